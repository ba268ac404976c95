"""The thread in which FMUs are called; what the waiting thread handles meanwhile: signals, requests to stop, progress."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # signal makes enumerations of all, which takes longer than a step
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fmimaster.apart.shared_run import ENDING
from fmimaster.base.data import dataclass
from fmimaster.base.errors import Interrupted
from fmimaster.fmu.process_state import expect_hanging_streams

if TYPE_CHECKING:
    from fmimaster.cards.measured import MeasuredAtStart


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run, passed to the progress callback.

    Examples
    --------
    >>> progress = Progress(start_time=0.0, time=5.0, stop_time=20.0, steps=50, seconds=2.0)
    >>> progress.fraction, progress.real_time_factor, progress.remaining
    (0.25, 2.5, 6.0)
    """

    start_time: float
    """In s."""
    time: float
    """Time that the run has reached, in s."""
    stop_time: float
    """In s."""
    steps: int
    """Number of steps so far."""
    seconds: float
    """Wall time in s since the start of the first step; 0 before."""

    @property
    def fraction(self) -> float:
        """Simulated part of the run, from 0 to 1."""
        return (self.time - self.start_time) / (self.stop_time - self.start_time)

    @property
    def real_time_factor(self) -> float | None:
        """Simulated seconds per second of wall time; None before the first step has ended."""
        done = self.time - self.start_time
        return done / self.seconds if done > 0.0 and self.seconds > 0.0 else None

    @property
    def remaining(self) -> float | None:
        """Wall time in s until the stop time, at the present speed; None before the first step has ended."""
        factor = self.real_time_factor
        return None if factor is None else (self.stop_time - self.time) / factor


ProgressCallback = Callable[[Progress], object]
"""Called about ten times a second. The run ends if it returns ``False`` or raises an exception."""


def silent(progress: Progress) -> None:
    """No progress."""
    del progress


def unanswered(progress: ProgressCallback) -> ProgressCallback:
    """The callback for runs that must be whole: its returned value has no effect."""

    def show(reached: Progress) -> None:
        progress(reached)

    return show


class Signals:
    """Exceptions of signal handlers are kept until they are requested, so no operation is interrupted halfway.

    The program's handlers are called as usual: Python's own for Ctrl-C raises KeyboardInterrupt. Signals that the
    program leaves to the system, or ignores, are not changed. Signals arrive only in the main thread.
    """

    def __init__(self) -> None:
        self.raised: list[BaseException] = []
        """Received exceptions, oldest first."""
        self.is_held = False
        """Whether the first one is kept; otherwise it is raised. The second one is always raised."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if callable(handler := _signal.getsignal(number)):
                    self._before[number] = handler
                    _signal.signal(number, self._heard)
        return self

    @property
    def is_listening(self) -> bool:
        """Whether this is the main thread, and there are handlers."""
        return bool(self._before)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        try:
            handler = self._before[number]
            handler(number, frame)
            outer = getattr(handler, "__self__", None)
            if isinstance(outer, Signals) and outer.raised:  # a nested run ends too
                raise outer.raised[-1]
        except BaseException as error:  # the exception with which the run must end
            self.raised.append(error)
            if not self.is_held or len(self.raised) > 1:
                raise

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        for number, handler in self._before.items():
            _signal.signal(number, handler)
        if self.raised and error is None:  # it arrived after the end of the run
            raise self.raised[0]


class RunStopped(BaseException):
    """Ends a run on request; internal, never raised to users."""


class StartsAnew(BaseException):
    """Ends a run before its first step, which then starts with other dependencies; internal, never raised to users."""

    def __init__(self, measured: MeasuredAtStart) -> None:
        super().__init__()
        self.measured = measured


def interrupted(time: float | None, hangs: str = "") -> Interrupted:
    """The error of a run that was interrupted; its last row is at a time in s, None without rows."""
    when = "before the first row" if time is None else f"at t = {time:.12g} s"
    return Interrupted(f"Interrupted {when}.{hangs}", time=time)


class StopRequest:
    """Whether a run must end before its stop time: set by the listening thread, checked by the thread that calls
    FMUs."""

    def __init__(self) -> None:
        self.is_made = False

    def heed(self) -> None:
        """Raise RunStopped if the run must end."""
        if self.is_made:
            raise RunStopped


# The thread -----------------------------------------------------------------------------------------------------------

T = TypeVar("T")

STACK_BYTES = 64 * 1024 * 1024
"""Address space for its stack: some systems provide less than 1 MB for a thread, and FMUs may need as much as in a main
thread."""

_STARTING = threading.Lock()
"""Python has one stack size for all threads that are started afterwards."""


class WorkThread(threading.Thread, Generic[T]):
    """A thread with a function to execute, and its result.

    It has the name and the context variables of the thread that created it, so log filters can assign messages to runs.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(name=f"{threading.current_thread().name} (FMUs)", daemon=True)
        self.is_left_alone = False
        """Whether it was abandoned before it ended."""
        self.is_resting = False
        """Whether it waits for an order; see :meth:`rest`."""
        self._orders: SimpleQueue[Any] = SimpleQueue()
        self._work = work
        self._context = copy_context()
        self._value: T
        self._error: BaseException | None = None
        self._done = threading.Event()

    def start(self) -> None:
        """Begin, with a large stack if the system can give it."""
        with _STARTING:
            before = threading.stack_size(STACK_BYTES)
            try:
                with suppress(RuntimeError):  # no memory for such a stack
                    return super().start()
            finally:
                threading.stack_size(before)
        return super().start()

    def run(self) -> None:
        """Do the work; called in the thread."""
        try:
            self._value = self._context.run(self._work)
        except BaseException as error:  # raised again in the thread that waits
            self._error = self._error or error
        finally:
            self._done.set()

    def rest(self) -> Any:
        """Wait in the thread for an order of :meth:`wake`, which is returned.

        A run that pauses keeps its thread: an FMU may depend on the thread that has loaded it.
        """
        self.is_resting = True
        self._done.set()
        return self._orders.get()

    def wake(self, order: Any) -> None:
        """Give an order to the waiting work; called in another thread."""
        self.is_resting = False
        self._done.clear()
        self._orders.put(order)

    def wait(self, seconds: float) -> bool:
        """Wait at most this wall time until the work has ended or waits for orders; returns whether it has."""
        return self._done.wait(seconds)

    def result(self) -> T:
        """The result of the work; its exception is raised here."""
        if self._error is not None:
            raise self._error
        return self._value

    def leave_alone(self) -> None:
        """Abandon work that does not end."""
        expect_hanging_streams()
        self.is_left_alone = True

    def ended_by(self, error: BaseException) -> None:
        """Mark the work as ended, instead of the thread, which no longer runs."""
        self._error = error
        self._end_alone()

    def ended_with(self, value: T) -> None:
        """The same, with a result."""
        self._value = value
        self._end_alone()

    def _end_alone(self) -> None:
        self.leave_alone()
        self._done.set()


def any_left_alone() -> bool:
    """Whether an abandoned FMU call has not returned: then the process must not be ended by exit()."""
    return any(isinstance(t, WorkThread) and t.is_left_alone for t in threading.enumerate())
