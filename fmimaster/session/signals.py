"""Signals that end a run, such as Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Windows has no SIGHUP."""


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
            if isinstance(outer, Signals) and outer.raised:  # a nested run ends too
                raise outer.raised[-1]
        except BaseException as error:  # the exception with which the run must end
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
        if self.raised and error is None:  # it arrived after the end of the run
            raise self.raised[0]
