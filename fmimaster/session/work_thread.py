"""The thread in which FMUs are called, so that the one that waits for them can always listen, whatever they do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from fmimaster.fmu.output import expect_hanging_streams

T = TypeVar("T")

STACK_BYTES = 64 * 1024 * 1024
"""Address space for its stack: some systems give a thread less than 1 MB, and FMUs may need as much as in a main thread."""

_STARTING = threading.Lock()
"""Python has one stack size, for all threads that are started next."""


class WorkThread(threading.Thread, Generic[T]):
    """Work in a thread of its own, and its result.

    It is named after the thread that has made it and has its context variables, so that filters of log messages find the
    run to which a message belongs.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(name=f"{threading.current_thread().name} (FMUs)", daemon=True)
        self.is_left_alone = False
        """Whether nobody waits for it any more, although it has not ended."""
        self.is_resting = False
        """Whether it has nothing to do at present; see :meth:`rest`."""
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
        """Wait in the thread for an order of :meth:`wake`, which is returned."""
        self.is_resting = True
        self._done.set()
        return self._orders.get()

    def wake(self, order: Any) -> None:
        """Give an order to the work, which rests; called in another thread."""
        self.is_resting = False
        self._done.clear()
        self._orders.put(order)

    def wait(self, seconds: float) -> bool:
        """Whether the work has ended or rests, now or within this wall time."""
        return self._done.wait(seconds)

    def result(self) -> T:
        """What the work has returned; what it has raised is raised here."""
        if self._error is not None:
            raise self._error
        return self._value

    def leave_alone(self) -> None:
        """Wait no more for work that does not end."""
        expect_hanging_streams()
        self.is_left_alone = True

    def ended_by(self, error: BaseException) -> None:
        """End the work for the one who waits, in place of the thread, which does nothing any more."""
        expect_hanging_streams()
        self._error = error
        self.is_left_alone = True
        self._done.set()


def any_left_alone() -> bool:
    """Whether a call of an FMU was left alone and has not returned: then the process must not be ended by exit()."""
    return any(isinstance(t, WorkThread) and t.is_left_alone for t in threading.enumerate())
