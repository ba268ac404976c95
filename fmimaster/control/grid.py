"""The points of a fixed step in one run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isinf, ulp

import numpy as np
from numpy.typing import NDArray

from fmimaster.control.instant import Instant, TimeBase

EXACT = 2**53
"""Integers below it are doubles."""

SLIVER = 1e-9
"""No step is shorter than this part of a usual one, if that can be avoided."""

_ULPS = 4
"""A time ``start + k * step`` that was computed with doubles is wrong by less: by at most 1 for the step, which is a double
near the decimal that was meant, and by at most a half each for the start, the product and the sum."""


def same(time: float, step: float) -> float:
    """How far apart in s two doubles may be that mean one time, beside a step: an FMU computes its times, too."""
    return min(_ULPS * ulp(time), step / 4)


def rounding(time: float, step: float) -> float:
    """How near in s a time is to a point of a grid that it cannot be told from: else the step between them is a sliver."""
    return max(SLIVER * step, same(time, step))


def nearest(time: Fraction, start: Fraction, step: Fraction) -> Fraction:
    """The grid point ``start + k * step`` that a time is but for rounding; if there is none, the time itself.

    A user who writes ``3 * 0.1`` in Python means 3 steps of 0.1 s, not 0.30000000000000004 s.
    """
    point = start + round((time - start) / step) * step
    return point if abs(time - point) <= rounding(float(time), float(step)) else time


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
        """The first grid point after an instant, but not one that a found time cannot be told from."""
        return self.point(self._index_after(now))

    def seconds_between(self, first: Instant, last: Instant, most: int) -> NDArray[np.float64]:
        """Grid points after ``first`` and before ``last`` in s, at most so many, up to two with the same double.

        A grid point is not before a time that was found, if it cannot be told from it.
        """
        k = self._index_after(first)
        count = most
        if last.seconds < inf:
            found = isinf(last.ticks)
            until = self._ticks(last.seconds, -1) if found else int(last.ticks)
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
            return int((self._ticks(now.seconds, 1) - self.start) // self.step) + 1
        return int((now.ticks - self.start) // self.step) + 1

    def _ticks(self, found: float, towards: int) -> Fraction:
        """The end of the times, earlier or later, that a time which was found cannot be told from."""
        near = rounding(found, self.step / self.base.resolution)
        return Fraction(found + towards * near) * self.base.resolution
