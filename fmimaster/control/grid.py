"""The points of a fixed step in one run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isinf

import numpy as np
from numpy.typing import NDArray

from fmimaster.control.instant import Instant, TimeBase

EXACT = 2**53
"""Integers below it are doubles."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid of a fixed step in one run.

    Its points come from integers, so no error adds up; the step size passed to FMUs is the difference of two points,
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

    def after(self, now: Instant) -> Instant:
        """The first grid point after an instant."""
        return self.point(self._index_after(now))

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

    def _index_after(self, now: Instant) -> int:
        if isinf(now.ticks):  # a time that was found
            ticks = Fraction(now.seconds) * self.base.resolution
            return int((ticks - self.start) // self.step) + 1
        return int((now.ticks - self.start) // self.step) + 1
