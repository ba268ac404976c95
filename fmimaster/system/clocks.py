"""When a clock ticks, as the model description declares it (FMI 3.0, 2.2.8 and 2.4.7.6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction


class IntervalVariability(Enum):
    """How the interval between two ticks is known."""

    CONSTANT = "constant"
    FIXED = "fixed"
    TUNABLE = "tunable"
    CHANGING = "changing"
    COUNTDOWN = "countdown"
    TRIGGERED = "triggered"
    """There is no interval: the clock ticks at events."""


@dataclass(frozen=True, slots=True)
class ClockAttributes:
    """Attributes of one clock. Times are exact decimal numbers: ``0.1`` is a tenth of a second."""

    interval_variability: IntervalVariability = IntervalVariability.TRIGGERED
    interval: Fraction | None = None
    """Between two ticks, in s; None if it is not declared."""
    shift: Fraction = Fraction(0)
    """From the start to the first tick, in s."""
    resolution: int | None = None
    """Number of parts of a second, in which the FMU counts intervals as fractions."""
    supports_fraction: bool = False
    """Whether the FMU gives and takes intervals as fractions."""
    priority: int | None = None
    """Priority of the model partition that the clock activates; a smaller number is more urgent."""
    can_be_deactivated: bool = False

    @property
    def is_time_based(self) -> bool:
        """Whether it ticks at intervals that the importer must know."""
        return self.interval_variability is not IntervalVariability.TRIGGERED
