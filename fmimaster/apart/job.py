"""Job objects of Windows: processes that end together with all that they start, and whose memory is limited."""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from time import monotonic, sleep
from typing import Any

from fmimaster.apart.exit import KILLED
from fmimaster.apart.watch import PATIENCE

_PAUSE = 0.001
"""Time in s from one look at processes that were killed to the next."""

_ACCOUNTING, _EXTENDED_LIMITS = 1, 9
"""From JOBOBJECTINFOCLASS."""
_PROCESS_MEMORY, _DIE_ON_UNHANDLED_EXCEPTION, _KILL_ON_JOB_CLOSE = 0x100, 0x400, 0x2000
"""JOB_OBJECT_LIMIT_..., from <winnt.h>."""
_NO_DIALOGS = 0x0001 | 0x0002 | 0x8000
"""SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SEM_NOOPENFILEERRORBOX."""
_NO_WORDS_OF_ABORT = 0x1 | 0x4
"""_WRITE_ABORT_MSG, _CALL_REPORTFAULT."""


class _Accounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION."""

    _fields_ = [
        ("times", c_int64 * 4),
        ("page_faults", c_uint32),
        ("total_processes", c_uint32),
        ("active_processes", c_uint32),
        ("terminated_processes", c_uint32),
    ]


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = [
        ("times", c_int64 * 2),
        ("flags", c_uint32),
        ("working_sets", c_size_t * 2),
        ("most_processes", c_uint32),
        ("affinity", c_size_t),
        ("classes", c_uint32 * 2),
        ("io_counters", c_uint64 * 6),
        ("process_memory", c_size_t),
        ("job_memory", c_size_t),
        ("peaks", c_size_t * 2),
    ]


@cache
def kernel32() -> Any:
    """The library with the functions of the system that are called here."""
    library = ctypes.CDLL("kernel32", use_last_error=True)
    handle, pointer, number = c_void_p, c_void_p, c_uint32
    given = {
        "CreateJobObjectW": (handle, [pointer, ctypes.c_wchar_p]),
        "AssignProcessToJobObject": (c_int, [handle, handle]),
        "SetInformationJobObject": (c_int, [handle, c_int, pointer, number]),
        "QueryInformationJobObject": (c_int, [handle, c_int, pointer, number, pointer]),
        "TerminateJobObject": (c_int, [handle, number]),
        "CreateEventW": (handle, [pointer, c_int, c_int, ctypes.c_wchar_p]),
        "CloseHandle": (c_int, [handle]),
        "GetCurrentProcess": (handle, []),
        "SetErrorMode": (number, [number]),
    }
    for name, (returned, arguments) in given.items():
        function = getattr(library, name)
        function.restype, function.argtypes = returned, arguments
    return library


def checked(value: Any) -> Any:
    """What a function of the system has returned; OSError if it has failed."""
    if not value:
        raise ctypes.WinError(ctypes.get_last_error())  # type: ignore[attr-defined]
    return value


class Job:
    """A job object. Its processes, and what they start, end when it is closed, also by the end of this process.

    Parameters
    ----------
    process : int
        Handle of the first process; those that it starts later belong to the job as well.
    """

    def __init__(self, process: int) -> None:
        self._handle = checked(kernel32().CreateJobObjectW(None, None))
        try:
            self._limit(_Limits())
            checked(kernel32().AssignProcessToJobObject(self._handle, process))
        except BaseException:
            self.close()
            raise

    def limit_memory(self, size: int) -> None:
        """Let allocations fail by which one of its processes would have more bytes of private memory."""
        self._limit(_Limits(flags=_PROCESS_MEMORY, process_memory=size))

    def _limit(self, limits: _Limits) -> None:
        limits.flags |= _KILL_ON_JOB_CLOSE | _DIE_ON_UNHANDLED_EXCEPTION
        checked(
            kernel32().SetInformationJobObject(
                self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
            )
        )

    @property
    def active(self) -> int:
        """How many of its processes run."""
        found = _Accounting()
        checked(
            kernel32().QueryInformationJobObject(
                self._handle, _ACCOUNTING, ctypes.byref(found), ctypes.sizeof(found), None
            )
        )
        return int(found.active_processes)

    def kill(self) -> None:
        """End all of its processes, and wait for that."""
        kernel32().TerminateJobObject(self._handle, KILLED)
        until = monotonic() + PATIENCE
        while self.active and monotonic() < until:
            sleep(_PAUSE)

    def close(self) -> None:
        """Close the job, which ends its processes; a second call has no effect."""
        if self._handle:
            kernel32().CloseHandle(self._handle)
            self._handle = None


def show_no_dialogs() -> None:
    """Let errors of this process end it, without a window that waits for somebody."""
    kernel32().SetErrorMode(_NO_DIALOGS)
    ctypes.CDLL("ucrtbase")._set_abort_behavior(0, _NO_WORDS_OF_ABORT)


def own_python() -> tuple[str, dict[str, str]]:
    """The program that runs this Python, and variables for it.

    In a virtual environment ``sys.executable`` starts another process, to which handles and the job would not belong.
    """
    program: str = sys._base_executable  # type: ignore[attr-defined]
    if program == sys.executable:
        return program, {}
    return program, {"__PYVENV_LAUNCHER__": sys.executable}
