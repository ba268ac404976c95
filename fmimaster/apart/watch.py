"""Processes on Linux, each ended with all that it has started; and the process of a run, forked or started in another way.

Between the preloaded process and each process that is forked from it stands one more, its keeper. The kernel gives a keeper
the orphans of its process (it is their subreaper), so it finds them all, also daemons with sessions of their own.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import struct
import sys
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from time import monotonic, sleep
from typing import NoReturn

from fmimaster.apart import shared_run
from fmimaster.apart.shared_run import flush_streams

REPORT = struct.Struct("=qq")
"""Number of the process in the system; after its end its status as ``os.waitpid`` has it, else -1."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""From <sys/prctl.h>."""

PATIENCE = 5.0
"""Wall time in s for the end of processes that were killed (one that starts others without end is left after it), or of one
that has nothing more to do, or that was asked to end."""
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
            # in the session of the run: turns that hosts of other sessions gave went to nobody there
            os.setpgid(0, 0)
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
    _tell(report, pid, -1)
    while running:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        assert ended is not None  # without WNOHANG
        if ended.si_pid != pid:
            os.waitpid(ended.si_pid, 0)
            continue
        running.clear()
        kill(pid)  # its group; it is not reaped yet, so its number is still its own
        _, status = os.waitpid(pid, 0)
    end_children()
    _tell(report, pid, status)


def _tell(report: int, pid: int, status: int) -> None:
    with suppress(OSError):  # the process that asked has ended, or does not want to know
        os.write(report, REPORT.pack(pid, status))


def kill(pid: int) -> None:
    """End a process and its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def end_children(spared: Collection[int] = ()) -> None:
    """End all children of this process, those that become its children then, and so on."""
    until = monotonic() + PATIENCE
    while _has_children() and monotonic() < until:
        for pid in (found := children() - set(spared)):
            kill(pid)
        for pid in found:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if not found:
            return
        sleep(_PAUSE)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def children() -> set[int]:
    """Children of this process, also those that have ended and are not reaped."""
    if not _has_children():  # else all processes of the system are looked at
        return set()
    me, found = os.getpid(), set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            pid = int(name)
            if _state(pid)[1:2] == [str(me)]:
                found.add(pid)
    return found


def _state(pid: int) -> list[str]:
    """What the system tells of a process: its state as a letter, its parent, and more; empty if there is none."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].decode().split()
    return []


# The process of a run -------------------------------------------------------------------------------------------------


def can_fork() -> bool:
    """Whether a run can have a process of its own here."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


def fork() -> ForkedRun | None:
    """Fork; returns the new process, and None in it. It ends when this process does."""
    flush_streams()
    parent, spared = os.getpid(), children()
    is_first = gc.get_freeze_count() == 0  # what a program has frozen itself stays so
    if is_first:
        gc.freeze()  # else the first collection copies the pages of all objects
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS, which wait
        pid = os.fork()
    with suppress(OSError):
        os.setpgid(pid, pid)  # 0 is the new process itself
    if pid:
        if is_first:
            gc.unfreeze()
        return ForkedRun(pid, spared)
    end_with_parent(parent, signal.SIGKILL)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="utf-8") as file:
        file.write("1000")  # it ends before all others if there is no memory
    return None


class RunProcess:
    """The process of a run, however it was started.

    Parameters
    ----------
    pid : int
        Its number.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def has_ended(self, seconds: float) -> bool:
        """Whether it ends within this wall time in s."""
        raise NotImplementedError

    def is_stopped(self) -> bool:
        """Whether it is stopped, for example by a debugger; False if that is not known."""
        return False

    def pass_on(self, number: int) -> None:
        """Send a signal that this process has got, if it has not got it too: on Windows both have one console."""
        if sys.platform != "win32":
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def stop_or_continue(self, number: int) -> None:
        """Send SIGSTOP or SIGCONT to it and to what it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """End it, and what it has started."""
        raise NotImplementedError

    def end(self, is_lost: bool) -> int:
        """Its exit status as ``subprocess.Popen`` has it, after it has ended; what a lost one has started ends with it."""
        raise NotImplementedError


class ForkedRun(RunProcess):
    """The process of a run that was forked from this one, which had these children already."""

    def __init__(self, pid: int, spared: Collection[int]) -> None:
        super().__init__(pid)
        self._is_ended = False
        self._spared = spared
        if shared_run.is_command:  # else the program may have children of its own
            adopt_orphans()
        self._descriptor = os.pidfd_open(pid)
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)

    def has_ended(self, seconds: float) -> bool:
        self._is_ended = self._is_ended or bool(self._poll.poll(1000 * seconds))
        return self._is_ended

    def is_stopped(self) -> bool:
        return _state(self.pid)[:1] in (["t"], ["T"])

    def kill(self) -> None:
        kill(self.pid)

    def end(self, is_lost: bool) -> int:
        _, status = os.waitpid(self.pid, 0)
        os.close(self._descriptor)
        if is_lost:
            kill(self.pid)  # its group
            if shared_run.is_command:
                end_children(self._spared)
        return os.waitstatus_to_exitcode(status)
