"""Signals that end a run, such as Ctrl-C, while a run listens for them."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Windows has no SIGHUP."""


class Signals:
    """What the handlers of ending signals raise is kept until it is asked for, so that nothing is broken off halfway.

    The handlers of the program are called as ever: Python's own for Ctrl-C raises KeyboardInterrupt. Signals that the
    program leaves to the system, or ignores, stay as they are. In another thread than the main one there are no signals.
    """

    def __init__(self) -> None:
        self.raised: list[BaseException] = []
        """What came, oldest first."""
        self.is_held = False
        """Whether the first one is kept. It is raised otherwise; the second one is raised in any case."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name) for name in _ENDING if hasattr(signal, name)):
                handler = signal.getsignal(number)
                if callable(handler) and not isinstance(handler, signal.Handlers):
                    self._before[number] = handler
                    signal.signal(number, self._heard)
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
            if isinstance(outer, Signals) and outer.raised:  # a run inside of another one ends too
                raise outer.raised[-1]
        except BaseException as error:  # what it is to end the run with
            self.raised.append(error)
            if not self.is_held or len(self.raised) > 1:
                raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.raised and error is None:  # it came when the run had ended
            raise self.raised[0]
