"""Rules that say where the next step shall end."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isinf
from typing import ClassVar

from fmimaster.control.instant import Goal, Instant, TimeBase, exact
from fmimaster.errors import OptionError


@dataclass(frozen=True, slots=True)
class FixedStep:
    """Steps of one size, on the grid ``start + k * size``.

    Parameters
    ----------
    size : float, int, str or Fraction
        Step size in s. A float counts as its shortest decimal; a text may be a fraction: ``"1/60"``.
    """

    size: float | int | str | Fraction

    def __post_init__(self) -> None:
        if self.exact_size <= 0:
            raise OptionError(f"Step size {self.size} s: expected a positive number.")

    @property
    def exact_size(self) -> Fraction:
        """The step size as a rational number of s."""
        return exact(self.size)


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid of a fixed step in one run.

    Its points come from integers, so no error adds up; the step size that FMUs are given is the difference of two points,
    so that ``t + h`` is the next point bit by bit. After an interruption the next step goes to the next grid point.

    Parameters
    ----------
    base : TimeBase
    start, step : int
        Ticks of the base.
    """

    base: TimeBase
    start: int
    step: int
    reason: ClassVar[str] = "grid"

    def propose(self, now: Instant) -> Goal:
        """The first grid point after an instant."""
        return self._goal(self._index_after(now))

    def goals_between(self, first: Instant, last: Instant, most: int) -> list[Goal]:
        """Grid points after ``first`` and before ``last``, at most so many, no two with the same double."""
        goals: list[Goal] = []
        k, before = self._index_after(first), first.seconds
        while len(goals) < most:
            goal = self._goal(k)
            if goal.end >= last or goal.end.seconds == before:
                break
            goals.append(goal)
            k, before = k + 1, goal.end.seconds
        return goals

    def _goal(self, k: int) -> Goal:
        return Goal(self.base.instant(self.start + k * self.step), self.reason)

    def _index_after(self, now: Instant) -> int:
        if isinf(now.ticks):  # a time that was found
            ticks = Fraction(now.seconds) * self.base.resolution
            return int((ticks - self.start) // self.step) + 1
        return int((now.ticks - self.start) // self.step) + 1
