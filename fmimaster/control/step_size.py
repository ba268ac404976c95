"""Rules that say where the next step shall end."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isinf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.control.instant import Goal, Instant, TimeBase, exact
from fmimaster.errors import OptionError

EXACT = 2**53
"""Integers below it are doubles."""


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
class Ramp:
    """Steps of one size from wherever the last one ended; short ones first, at the start and after each event.

    Parameters
    ----------
    size : float, int, str or Fraction
        Largest step size in s, as in :class:`FixedStep`.
    first : float
        The first step, and the first after an event, as a fraction of the size.
    growth : float
        A step is at most so many times the one before.

    Source: fmimaster, for the event clock Predictive (docs/events.md).
    """

    size: float | int | str | Fraction
    first: float = 0.125
    growth: float = 2.0

    def __post_init__(self) -> None:
        if self.exact_size <= 0:
            raise OptionError(f"Step size {self.size} s: expected a positive number.")
        if not 0 < self.first <= 1 or not self.growth > 1:
            raise OptionError(f"{self}: expected 0 < first <= 1 and growth > 1.")

    @property
    def exact_size(self) -> Fraction:
        """The largest step size as a rational number of s."""
        return exact(self.size)


def free_step(size: float | int | str | Fraction) -> Ramp:
    """Steps of one size from wherever the last one ended, on no grid."""
    return Ramp(size, first=1.0, growth=inf)


@dataclass(frozen=True, slots=True)
class Ramped:
    """A :class:`Ramp` in one run.

    Parameters
    ----------
    base : TimeBase
    step : int
        Ticks of the largest step.
    ramp : Ramp
    """

    base: TimeBase
    step: int
    ramp: Ramp
    reason: ClassVar[str] = "step size"

    def propose(self, now: Instant, previous: float) -> Goal:
        """The end of the next step; ``previous`` is the length of the last one in s, 0 at the start and after events."""
        size = self.step / self.base.resolution
        longest = self.ramp.growth * previous if previous else self.ramp.first * size
        if longest < size:
            return Goal(Instant(now.seconds + longest), "ramp")
        if isinf(now.ticks):  # a time that was found
            return Goal(Instant(now.seconds + size), self.reason)
        return Goal(self.base.instant(int(now.ticks) + self.step), self.reason)


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

    def propose(self, now: Instant, previous: float = 0.0) -> Goal:
        """The first grid point after an instant, whatever the step before was."""
        del previous
        return self._goal(self._index_after(now))

    def seconds_between(self, first: Instant, last: Instant, most: int) -> NDArray[np.float64]:
        """Grid points after ``first`` and before ``last`` in s, at most so many, up to two with the same double."""
        k = self._index_after(first)
        count = most
        if last.seconds < inf:
            found = isinf(last.ticks)
            until = Fraction(last.seconds) * self.base.resolution if found else int(last.ticks)
            before_last = int(-((self.start - until) // self.step)) - 1
            count = min(most, max(before_last - k + 1, 0))
        ticks = self.start + k * self.step
        if all(abs(n) < EXACT for n in (ticks, ticks + most * self.step, self.base.resolution)):
            # numbers that a double holds exactly: their quotient is rounded as Python rounds that of integers
            end = ticks + count * self.step
            seconds = np.arange(ticks, end, self.step) / self.base.resolution
        else:
            seconds = np.array([self.point(k + n).seconds for n in range(count)])
        increasing = seconds > np.concatenate([[first.seconds], seconds[:-1]])
        return seconds if increasing.all() else seconds[: int(increasing.argmin())]

    def point_after(self, first: Instant, n: int) -> Instant:
        """The n-th grid point after an instant, counted from 0."""
        return self.point(self._index_after(first) + n)

    def point(self, k: int) -> Instant:
        """The k-th grid point."""
        return self.base.instant(self.start + k * self.step)

    def _goal(self, k: int) -> Goal:
        return Goal(self.point(k), self.reason)

    def _index_after(self, now: Instant) -> int:
        if isinf(now.ticks):  # a time that was found
            ticks = Fraction(now.seconds) * self.base.resolution
            return int((ticks - self.start) // self.step) + 1
        return int((now.ticks - self.start) // self.step) + 1
