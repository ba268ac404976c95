"""Processes on Linux: each ended with all that it has started; that of a run forked, and watched to its end.

Between the preloaded process and each process that is forked from it stands one more, its keeper. The kernel gives a keeper
the orphans of its process (it is their subreaper), so it finds them all, also daemons with sessions of their own.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import select
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, NoReturn, Protocol

from fmimaster.apart import shared_run
from fmimaster.apart.exit import Exit
from fmimaster.apart.shared_run import SharedNumber, SharedRun, flush_streams
from fmimaster.base.memory import taken, takes_the_last

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

log = logging.getLogger("fmimaster")

LOOK = 100
"""Wall time in ms between two looks at the process."""

NAMED_AFTER, LONGER = 10.0, 20.0
"""A call is named after this wall time in s, or after so many times what the longest of its kind took."""

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")

_BYTES_PER_GB = 1e9


class Calls(Protocol):
    """The calls of a run in another process."""

    def present(self) -> str:
        """Words for the present one; empty if there is none."""
        ...

    def activity(self) -> tuple[Any, ...]:
        """Numbers of which one changes whenever there is another call."""
        ...

    def time(self) -> float | None:
        """Time in s that the run has reached."""

    def has_own_limit(self, call: str) -> bool:
        """Whether its limit is held elsewhere: the FMU has a process of its own."""
        ...


@dataclass(frozen=True, slots=True)
class Lost:
    """How the process of a run has ended before its command."""

    how: str
    """In words, such as ``"was ended by SIGSEGV"``."""
    call: str
    """The call in which it was; empty if it was in none."""
    time: float | None
    """Time in s that the run had reached."""
    is_asked: bool = False
    """Whether it was asked to end."""
    limit: str = ""
    """The option by which it was ended; empty if it has ended by itself."""


def can_fork() -> bool:
    """Whether a run can have a process of its own here."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


def fork() -> int:
    """Fork; returns the number of the new process, and 0 in it. It ends when this process does."""
    flush_streams()
    parent = os.getpid()
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
        return pid
    end_with_parent(parent, signal.SIGKILL)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="utf-8") as file:
        file.write("1000")  # it ends before all others if there is no memory
    return 0


class RunWatch:
    """Waits for the process of a run.

    Parameters
    ----------
    call_timeout : float or None
        Wall time in s after which a call that has not returned is ended, with the process.
    memory_limit : int or None
        Bytes that the process may take.
    """

    def __init__(
        self,
        shared: SharedRun,
        pid: int,
        calls: Calls,
        call_timeout: float | None,
        memory_limit: int | None,
    ) -> None:
        self._shared, self._pid, self._calls = shared, pid, calls
        self._call_timeout, self._memory_limit = call_timeout, memory_limit
        self._asked = 0
        self._asked_at = 0.0
        self._seen: tuple[Any, ...] = ()
        self._since = monotonic()
        self._took = 0.0
        self._longest: dict[str, float] = {}
        """Call → wall time in s of the longest one that has returned, as far as it was seen."""
        self._is_named = False
        self._done_at = 0.0
        self._limit = ""

    def wait(self) -> Lost | int:
        """Wait for the end: the status of the command, or how the process was lost.

        What it has started is ended with it, if it was lost.
        """
        spared = children() - {self._pid}
        if shared_run.is_command:  # else the program may have children of its own
            adopt_orphans()
        descriptor = os.pidfd_open(self._pid)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        how = ""
        try:
            with self._signals():
                while not poll.poll(LOOK):
                    if how := self._look():
                        break
        finally:
            os.close(descriptor)
        call, time = self._calls.present(), self._calls.time()
        is_done = bool(self._shared[SharedNumber.DONE])
        if how or is_done:
            kill(self._pid)
        _, status = os.waitpid(self._pid, 0)
        if is_done:
            return self._shared[SharedNumber.STATUS]
        kill(self._pid)  # its group
        if shared_run.is_command:
            end_children(spared)
        return Lost(how or _ending(status), call, time, self._asked > 0, self._limit)

    def _look(self) -> str:
        """Why the process must be ended, in words; empty if it need not be."""
        now = monotonic()
        if self._shared[SharedNumber.DONE]:
            self._done_at = self._done_at or now
            return "did not end" if now - self._done_at > PATIENCE else ""
        if self._asked and (self._asked > 2 or now - self._asked_at > PATIENCE):
            return "did not return"
        if _state(self._pid)[:1] in (["t"], ["T"]):
            self._since += LOOK / 1000  # it is stopped, for example by a debugger
            return ""
        return self._look_at_call(now) or self._look_at_memory()

    def _look_at_call(self, now: float) -> str:
        call = self._calls.present()
        activity = (call, *self._calls.activity())
        if not call or activity != self._seen:
            if self._seen:
                before = self._seen[0]
                self._longest[before] = max(self._longest.get(before, 0.0), self._took)
            self._seen = activity if call else ()
            self._since, self._took, self._is_named = now, 0.0, False
            return ""
        self._took = took = now - self._since
        longest = self._longest.get(call, 0.0)
        limit = None if self._calls.has_own_limit(call) else self._call_timeout
        if limit is not None and took > limit:
            self._limit = "--call-timeout"
            return f"has not returned within {limit:g} s and was ended"
        if not self._is_named and took > max(NAMED_AFTER, LONGER * longest):
            self._is_named = True
            log.warning(
                "%s has not returned for %.0f s. It is not ended, because an FMU may need long. Ctrl-C ends the run, and "
                "keeps its rows; --call-timeout limits the time of each call.",
                first_words(call),
                took,
            )
        return ""

    def _look_at_memory(self) -> str:
        used = taken(self._pid)
        if self._memory_limit is not None and used > self._memory_limit:
            self._limit = "--memory-limit"
            return f"has taken {used / _BYTES_PER_GB:.2g} GB of memory and was ended"
        if takes_the_last(used):
            return f"has taken {used / _BYTES_PER_GB:.2g} GB of memory, nearly all that this machine has, and was ended"
        return ""

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Signals that end this process are passed on; the process of the run ends its command by them."""
        before: dict[int, Any] = {}

        def put(name: str, handler: Callable[[int, Any], None]) -> None:
            number = getattr(signal, name)
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)

        def pass_on(number: int, _: Any) -> None:
            self._asked += 1
            self._asked_at = self._asked_at or monotonic()
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

        def stop(number: int, _: Any) -> None:
            """Ctrl-Z: both stop, and both go on."""
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGSTOP)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)  # returns when this process goes on
            signal.signal(number, stop)
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGCONT)

        try:
            if threading.current_thread() is threading.main_thread():
                for name in _ENDING:
                    put(name, pass_on)
                put("SIGTSTP", stop)
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def first_words(call: str) -> str:
    """A call at the beginning of a sentence."""
    return call[:1].upper() + call[1:] if call.startswith(("the ", "a ")) else f"The call {call}"


def _ending(status: int) -> str:
    end = Exit(os.waitstatus_to_exitcode(status))
    return end.how if end.signal else f"has ended with status {end.code}"
