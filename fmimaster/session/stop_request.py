"""A request of one thread to another to end a run."""

from __future__ import annotations


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
