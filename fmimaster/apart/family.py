"""A process with all that it starts: what is left when it ends is ended too, also daemons with sessions of their own.

Between the preloaded process and each process that is forked from it stands one more, its keeper. The kernel gives a keeper
the orphans of its process (it is their subreaper), so it finds them all. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NoReturn

REPORT = struct.Struct("=qqq")
"""Number of the process in the system; after its end its status as ``os.wait4`` has it, else -1; its largest memory in
bytes."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""From <sys/prctl.h>."""

_KIB = 1024

_PATIENCE = 5.0
"""Time in s for the end of processes that were killed; one that starts others without end is left after it."""
_PAUSE = 0.002
"""Time in s from one look at them to the next."""


def adopt_orphans() -> None:
    """Let orphans of processes below this one become its children."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(parent: int, number: int) -> None:
    """Let this process get a signal when its parent ends; it ends now if that has happened."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def keep(report: int, descriptors: Collection[int], run: Callable[[], NoReturn]) -> NoReturn:
    """In a keeper: fork the process, and end all that is left when it ends. SIGTERM, which is blocked, ends it.

    Parameters
    ----------
    report : int
        Descriptor for reports.
    descriptors
        Those of the process, which are closed here.
    run
        What the process does.
    """
    status = 1
    try:
        adopt_orphans()
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            end_with_parent(keeper, signal.SIGKILL)
            os.close(report)
            os.setsid()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
            run()
        for descriptor in descriptors:
            os.close(descriptor)
        _watch(pid, report)
        status = 0
    finally:
        os._exit(status)


def _watch(pid: int, report: int) -> None:
    running = [pid]

    def end(*_: object) -> None:
        for number in running:
            kill(number)

    signal.signal(signal.SIGTERM, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    _tell(report, pid, -1, 0)
    while running:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        assert ended is not None  # without WNOHANG
        if ended.si_pid != pid:
            os.waitpid(ended.si_pid, 0)
            continue
        running.clear()
        kill(pid)  # its group; it is not reaped yet, so its number is still its own
        _, status, usage = os.wait4(pid, 0)
    end_children()
    _tell(report, pid, status, usage.ru_maxrss * _KIB)


def _tell(report: int, pid: int, status: int, memory: int) -> None:
    with suppress(OSError):  # the process that asked has ended, or does not want to know
        os.write(report, REPORT.pack(pid, status, memory))


def kill(pid: int) -> None:
    """End a process and its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def end_children(spared: Collection[int] = ()) -> None:
    """End all children of this process, those that become its children then, and so on."""
    until = time.monotonic() + _PATIENCE
    while _has_children() and time.monotonic() < until:
        for pid in (found := children() - set(spared)):
            kill(pid)
        for pid in found:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if not found:
            return
        time.sleep(_PAUSE)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def children() -> set[int]:
    """Children of this process, also those that have ended and are not reaped."""
    me, found = os.getpid(), set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
                if int(fields[1]) == me:
                    found.add(int(name))
    return found
