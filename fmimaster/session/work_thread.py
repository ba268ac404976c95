"""The thread in which FMUs are called; the waiting thread can always handle signals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from fmimaster.fmu.process_state import expect_hanging_streams


class RunStopped(BaseException):
    """Ends a run on request; internal, never raised to users."""


class StopRequest:
    """Whether a run must end before its stop time: set by the listening thread, checked by the thread that calls
    FMUs."""

    def __init__(self) -> None:
        self.is_made = False

    def heed(self) -> None:
        """Raise RunStopped if the run must end."""
        if self.is_made:
            raise RunStopped


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
        expect_hanging_streams()
        self.is_left_alone = True
        self._done.set()


def any_left_alone() -> bool:
    """Whether an abandoned FMU call has not returned: then the process must not be ended by exit()."""
    return any(isinstance(t, WorkThread) and t.is_left_alone for t in threading.enumerate())
