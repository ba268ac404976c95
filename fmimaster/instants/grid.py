"""The points of a fixed step in one run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf, ulp
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.instants.instant import Instant, PointsAhead, TimeBase, Times
from fmimaster.numerics.step_sizes import SLIVER, ULPS
from fmimaster.record.causes import GRID, Cause

_new = tuple.__new__
"""Makes a named tuple without a call of Python."""

EXACT = 2**52
"""Integers below it, and their differences, are doubles, so that a quotient of two is rounded as Python rounds it."""


def same(time: float, step: float) -> float:
    """Largest difference in s of two doubles that mean the same time, for a given step size."""
    return min(ULPS * ulp(time), step / 4)


def rounding(time: float, step: float) -> float:
    """Distance in s from a grid point below which a time is that grid point, because a step between them would be too
    short."""
    return max(SLIVER * step, same(time, step))


def nearest(time: Fraction, start: Fraction, step: Fraction) -> Fraction:
    """The grid point ``start + k * step`` that equals a time up to rounding; if there is none, the time itself.

    A user who writes ``3 * 0.1`` in Python means 3 steps of 0.1 s, not 0.30000000000000004 s.
    """
    point = start + round((time - start) / step) * step
    return point if abs(time - point) <= rounding(float(time), float(step)) else time


class GridTimes(Sequence[float]):
    """A time in s and multiples of ``1 / resolution`` s after it: n times, each computed when it is asked for.

    Parameters
    ----------
    begin : float
    first, step, resolution : int
        The first multiple, and how far they are apart. All are below :data:`EXACT`.
    n : int
    """

    __slots__ = ("begin", "first", "n", "resolution", "step")

    def __init__(self, begin: float, first: int, step: int, resolution: int, n: int) -> None:
        self.begin, self.first, self.step = begin, first, step
        self.resolution, self.n = resolution, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, k: int) -> float:  # type: ignore[override]
        if not 0 <= k < self.n:
            raise IndexError(k)
        return (self.first + (k - 1) * self.step) / self.resolution if k else self.begin


@dataclass(frozen=True, slots=True)
class Grid(PointsAhead):
    """The grid of a fixed step in one run, or of several fixed steps with the same start.

    Its points are computed from integers, so errors do not accumulate. The step size passed to FMUs is the difference
    of two points, so ``t + h`` is the next point, bit for bit. After an interruption the next step goes to the next
    grid point.

    Parameters
    ----------
    base : TimeBase
    start, step : int
        Ticks of the base. After each step the points repeat.
    offsets : tuple of int
        The points of one step in ticks after its start: the first is 0, they increase, all are below the step.
    """

    base: TimeBase
    start: int
    step: int
    offsets: tuple[int, ...] = (0,)

    cause: ClassVar[Cause] = GRID

    def after(self, now: Instant) -> Instant:
        """The first grid point after an instant, except a point that equals a found time up to rounding."""
        ticks = now[1]
        # so it is at most steps, which pay for each call
        if type(ticks) is int and len(self.offsets) == 1:
            ticks += self.step - (ticks - self.start) % self.step
            return _new(Instant, (ticks / self.base.resolution, ticks))
        return self.point(self._index_after(now))

    def seconds_between(self, first: Instant, last: Instant, most: int) -> NDArray[np.float64]:
        """Grid points after ``first`` and before ``last`` in s; see :class:`PointsAhead`.

        A grid point is not before a found time if both are equal up to rounding.
        """
        k, count = self._between(first, last, most)
        if not count:
            return np.empty(0)
        if self._are_exact(k, count):
            seconds = self._many_ticks(k, count)
            seconds /= self.base.resolution
        else:
            seconds = np.array([self.point(k + n).seconds for n in range(count)])
        if not seconds[0] > first.seconds:
            return seconds[:0]
        increasing = seconds[1:] > seconds[:-1]
        return seconds if increasing.all() else seconds[: int(increasing.argmin()) + 1]

    def times(self, first: Instant, last: Instant, most: int) -> Times:
        """An instant and grid points after it in s; see :class:`PointsAhead`."""
        k, count = self._between(first, last, most)
        if len(self.offsets) == 1 and count and self._are_exact(k, count):
            ticks, resolution = self._ticks_of(k), self.base.resolution
            found = GridTimes(first.seconds, ticks, self.step, resolution, count + 1)
            farthest = max(abs(found[1]), abs(found[count]))
            # each is rounded by half an ulp at most, so that no two are the same
            if found[1] > found[0] and self.step / resolution > 2.0 * ulp(farthest):
                return found
        return PointsAhead.times(self, first, last, most)

    def _between(self, first: Instant, last: Instant, most: int) -> tuple[int, int]:
        """Index of the first point, and number of the points, of :meth:`seconds_between`."""
        k = self._index_after(first)
        if last.seconds == inf:
            return k, most
        found = abs(last.ticks) == inf
        until = self._ticks(last.seconds, -1) if found else int(last.ticks)
        steps, offset = divmod(until - self.start, self.step)
        first_not_before = int(steps) * len(self.offsets) + bisect_left(self.offsets, offset)
        return k, min(most, max(first_not_before - k, 0))

    def _are_exact(self, k: int, count: int) -> bool:
        """Whether doubles hold all these points, so that their quotients are rounded as Python rounds those of integers."""
        ends = (self._ticks_of(k), self._ticks_of(k + count - 1), self.base.resolution)
        return all(abs(n) < EXACT for n in ends)

    def point_after(self, first: Instant, n: int) -> Instant:
        """The n-th grid point after an instant, counted from 0."""
        return self.point(self._index_after(first) + n)

    def point(self, k: int) -> Instant:
        """The k-th grid point."""
        return self.base.instant(self._ticks_of(k))

    def interval_to(self, point: Instant) -> int:
        """Which of the intervals between the offsets ends at a grid point, counted from 0."""
        return (self._index_after(point) - 2) % len(self.offsets)

    def _ticks_of(self, k: int) -> int:
        steps, offset = divmod(k, len(self.offsets))
        return self.start + steps * self.step + self.offsets[offset]

    def _many_ticks(self, k: int, count: int) -> NDArray[np.float64]:
        """Those of the points from the k-th one; all are below :data:`EXACT`."""
        if len(self.offsets) == 1:
            begin = self._ticks_of(k)
            behind = begin + (count - 0.5) * self.step
            return np.arange(begin, behind, self.step, dtype=float)
        steps, offset = np.divmod(np.arange(k, k + count), len(self.offsets))
        found = self.start + steps * self.step + np.array(self.offsets)[offset]
        return found.astype(float)  # type: ignore[no-any-return]

    def _index_after(self, now: Instant) -> int:
        found = abs(now.ticks) == inf
        ticks = self._ticks(now.seconds, 1) if found else floor(now.ticks)
        steps, offset = divmod(ticks - self.start, self.step)
        return int(steps) * len(self.offsets) + bisect_right(self.offsets, offset)

    def _ticks(self, found: float, towards: int) -> Fraction:
        """The earliest or latest time that equals a found time up to rounding."""
        near = rounding(found, self.step / self.base.resolution)
        return Fraction(found + towards * near) * self.base.resolution
