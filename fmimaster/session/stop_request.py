"""How one thread asks another to end a run."""

from __future__ import annotations


class RunStopped(BaseException):
    """Ends a run from inside, on request; it never leaves the package."""


class StopRequest:
    """Whether a run shall end before its stop time: set by the thread that listens, heeded by the one that calls FMUs."""

    def __init__(self) -> None:
        self.is_made = False

    def heed(self) -> None:
        """Raise RunStopped if the run shall end."""
        if self.is_made:
            raise RunStopped
