"""What a process takes of the machine: memory, open files and cores."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LEAST_SHARE = 0.04
"""Share of the memory that must stay free."""

LARGE_SHARE = 0.25
"""Share of the memory from which on a process is large: a smaller one is not the reason if there is none left."""

_GROUPS = Path("/sys/fs/cgroup")


def taken(pid: int) -> int:
    """Bytes in memory of a process; 0 if it is not known."""
    with suppress(OSError, ValueError, IndexError):
        return _taken(pid)
    return 0


def usable_cores() -> int:
    """How many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def open_files() -> int | None:
    """How many files this process has open, on Windows how many handles; None if it is not known."""
    with suppress(OSError):
        return _open() or None
    return None


def takes_the_last(used: int) -> bool:
    """Whether a process with so many bytes is large, and nearly nothing is left beside it."""
    return any(
        used > LARGE_SHARE * whole and left < LEAST_SHARE * whole
        for whole, left in (*_machine(), *_container())
    )


def left() -> int | None:
    """Bytes that the machine, or the container of this process, has left; None if it is not known."""
    return min((left for _, left in (*_machine(), *_container())), default=None)


if sys.platform == "win32":

    class _Counters(ctypes.Structure):
        """PROCESS_MEMORY_COUNTERS_EX of <psapi.h>."""

        _fields_ = [
            ("size", ctypes.c_uint32),
            ("page_faults", ctypes.c_uint32),
            ("peak", ctypes.c_size_t),
            ("in_memory", ctypes.c_size_t),
            ("others", ctypes.c_size_t * 6),
            ("private", ctypes.c_size_t),
        ]

    class _Status(ctypes.Structure):
        """MEMORYSTATUSEX of <sysinfoapi.h>."""

        _fields_ = [
            ("size", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("whole", ctypes.c_uint64),
            ("left", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 5),
        ]

    _MAY_ASK = 0x1000
    """PROCESS_QUERY_LIMITED_INFORMATION."""

    def _taken(pid: int) -> int:
        system = ctypes.WinDLL("kernel32")
        system.OpenProcess.restype = ctypes.c_void_p
        process = system.OpenProcess(_MAY_ASK, 0, pid)
        if not process:
            return 0
        try:
            return int(_counters(process).in_memory)
        finally:
            system.CloseHandle(ctypes.c_void_p(process))

    def private_memory(process: int) -> int:
        """Bytes of private memory of a process, by its handle: what a job limits."""
        return int(_counters(process).private)

    def _counters(process: int) -> _Counters:
        found = _Counters(size=ctypes.sizeof(_Counters))
        system = ctypes.WinDLL("kernel32", use_last_error=True)
        of_process = ctypes.c_void_p(process)
        if not system.K32GetProcessMemoryInfo(of_process, ctypes.byref(found), found.size):
            raise ctypes.WinError(ctypes.get_last_error())
        return found

    def _open() -> int:
        """All handles: a file is one of them."""
        found, system = ctypes.c_uint32(), ctypes.WinDLL("kernel32")
        this_process = ctypes.c_void_p(-1)
        system.GetProcessHandleCount(this_process, ctypes.byref(found))
        return found.value

    def _machine() -> Iterator[tuple[int, int]]:
        found = _Status(size=ctypes.sizeof(_Status))
        if ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(found)):
            yield found.whole, found.left

elif sys.platform == "darwin":

    def _open() -> int:
        return len(os.listdir("/dev/fd"))

    def _taken(pid: int) -> int:
        """By ``proc_pid_rusage``: its footprint is the eighth number behind 16 bytes."""
        found = (ctypes.c_uint64 * 64)()
        is_known = ctypes.CDLL("libproc.dylib").proc_pid_rusage(pid, 2, ctypes.byref(found)) == 0
        return found[2 + 7] if is_known else 0

    def _machine() -> Iterator[tuple[int, int]]:
        """By the share that is free, in percent, as macOS itself looks whether memory is short."""
        percent, size = ctypes.c_int(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        name, whole = (
            b"kern.memorystatus_level",
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )
        system = ctypes.CDLL(None)
        if system.sysctlbyname(name, ctypes.byref(percent), ctypes.byref(size), None, 0) == 0:
            yield whole, whole * percent.value // 100

else:

    def _open() -> int:
        return len(os.listdir("/proc/self/fd"))

    def _taken(pid: int) -> int:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _machine() -> Iterator[tuple[int, int]]:
        with suppress(OSError, ValueError, KeyError):
            lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
            found = {
                name: int(rest.split()[0]) * 1024
                for name, _, rest in (line.partition(":") for line in lines)
            }
            yield found["MemTotal"], found["MemAvailable"]


def _container() -> Iterator[tuple[int, int]]:
    """Limits of the control groups of this process, in both versions; files that only cache a disk can be given back."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds == "":
                names = _GROUPS, "memory.max", "memory.current", "inactive_file"
            elif "memory" in kinds.split(","):
                names = (
                    _GROUPS / "memory",
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                    "total_inactive_file",
                )
            else:
                continue
            top, most, used, cached = names
            group = top / path.lstrip("/")
            for folder in (group, *group.parents):
                with suppress(OSError, ValueError, KeyError):  # no limit ("max"), or not readable
                    limit = int((folder / most).read_text(encoding="utf-8"))
                    stat = dict(
                        line.split()
                        for line in (folder / "memory.stat")
                        .read_text(encoding="utf-8")
                        .splitlines()
                    )
                    yield (
                        limit,
                        limit
                        - int((folder / used).read_text(encoding="utf-8"))
                        + int(stat[cached]),
                    )
                if folder == top:
                    break
