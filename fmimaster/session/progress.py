"""Progress of a run, for callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
