"""Facts about a step to be chosen or already tried: for algorithms with variants, and for step-size rules."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.instants.instant import Goal, TimeBase
from fmimaster.program.indicators import Indicators


@dataclass(frozen=True, slots=True)
class StepContext:
    """A step that will be tried, or that was tried and is not accepted yet."""

    indicators: Indicators
    """The event indicators of the plan in the value store: ``indicators.plan``, ``indicators.store``."""
    size: float
    """Length in s of a whole step."""
    variant: int
    """The variant of the last step, or of this step after it was tried."""
    goal: Goal
    """The end of the step, and its cause."""
    base: TimeBase
    """The unit of the ticks of instants."""
    changed: tuple[str, ...] = ()
    """Components with a connected discrete output that has changed in the step; empty before the step is tried."""
