"""The process of a run, watched to its end: its present call, its memory, and the signals that it must get."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol

from fmimaster.apart.shared_run import ENDING, SharedNumber, SharedRun, first_words
from fmimaster.apart.watch import PATIENCE, RunProcess
from fmimaster.base.data import dataclass
from fmimaster.base.memory import taken, takes_the_last

log = logging.getLogger("fmimaster")

LOOK = 0.1
"""Wall time in s between two looks at the process."""

NAMED_AFTER, LONGER = 10.0, 20.0
"""A call is named after this wall time in s, or after so many times what the longest of its kind took."""

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


class RunWatch:
    """Waits for the process of a run, and ends it at its limits."""

    def __init__(self, shared: SharedRun, process: RunProcess, calls: Calls) -> None:
        self._shared, self._process, self._calls = shared, process, calls
        self._asked = 0
        self._asked_at = 0.0
        self._seen: tuple[Any, ...] = ()
        self._call = ""
        """Words for it, if they were asked for."""
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
        how = ""
        with self._signals():
            while not self._process.has_ended(LOOK):
                if how := self._look():
                    break
        call, time = self._calls.present(), self._calls.time()
        is_done = bool(self._shared[SharedNumber.DONE])
        if how or is_done:
            self._process.kill()
        status = self._process.end(is_lost=not is_done)
        if is_done:
            return self._shared[SharedNumber.STATUS]
        return Lost(how or _ending(status), call, time, self._asked > 0, self._limit)

    def _look(self) -> str:
        """Why the process must be ended, in words; empty if it need not be."""
        now = monotonic()
        if self._shared[SharedNumber.DONE]:
            self._done_at = self._done_at or now
            return "did not end" if now - self._done_at > PATIENCE else ""
        if self._asked and (self._asked > 2 or now - self._asked_at > PATIENCE):
            return "did not return"
        if self._process.is_stopped():
            self._since += LOOK
            return ""
        return self._look_at_call(now) or self._look_at_memory()

    def _look_at_call(self, now: float) -> str:
        activity, limit, took = self._calls.activity(), self._shared.call_timeout, now - self._since
        if limit is None and (activity != self._seen or took <= NAMED_AFTER / LONGER):
            # as most calls: none that is so short is ever named, and words cost an import
            if activity != self._seen:
                self._begin_call("", activity, now)
            return ""
        call = self._calls.present()
        if not call or activity != self._seen or call != (self._call or call):
            self._begin_call(call, activity, now)
            return ""
        self._call, self._took = call, took
        longest = self._longest.get(call, 0.0)
        if self._calls.has_own_limit(call):
            limit = None
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

    def _begin_call(self, call: str, activity: tuple[Any, ...], now: float) -> None:
        if self._call:
            self._longest[self._call] = max(self._longest.get(self._call, 0.0), self._took)
        self._seen, self._call = activity, call
        self._since, self._took, self._is_named = now, 0.0, False

    def _look_at_memory(self) -> str:
        used, limit = taken(self._process.pid), self._shared[SharedNumber.MEMORY_LIMIT]
        if limit and used > limit:
            self._limit = "--memory-limit"
            return f"has taken {used / _BYTES_PER_GB:.2g} GB of memory and was ended"
        if takes_the_last(used):
            return f"has taken {used / _BYTES_PER_GB:.2g} GB of memory, nearly all that this machine has, and was ended"
        return ""

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Signals that end this process are passed on; the process of the run ends its command by them."""
        before: dict[signal.Signals, Any] = {}

        def put(number: signal.Signals, handler: Callable[[int, Any], None]) -> None:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)

        def pass_on(number: int, _: Any) -> None:
            self._asked += 1
            self._asked_at = self._asked_at or monotonic()
            self._process.pass_on(number)

        def stop(number: int, _: Any) -> None:
            """Ctrl-Z: both stop, and both go on."""
            self._process.stop_or_continue(signal.SIGSTOP)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)  # returns when this process goes on
            signal.signal(number, stop)
            self._process.stop_or_continue(signal.SIGCONT)

        try:
            if threading.current_thread() is threading.main_thread():
                for number in ENDING:
                    put(number, pass_on)
                if sys.platform != "win32":
                    put(signal.SIGTSTP, stop)
            yield
        finally:
            for ending, handler in before.items():
                signal.signal(ending, handler)


def _ending(code: int) -> str:
    from fmimaster.apart.exit import Exit  # few runs are lost

    end = Exit(code)
    return end.how if end.signal else f"has ended with status {end.code}"
