"""What an algorithm with several variants knows when it chooses one for the next step."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.control.event_clock import Indicators


@dataclass(frozen=True, slots=True)
class StepContext:
    """The situation before a step."""

    indicators: Indicators
    size: float
    """Length in s of a whole step."""
    variant: int
    """The variant of the step before."""
