"""Steps of one size from the end of the last one."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import Instant, TimeBase
from fmimaster.instants.points_ahead import PointsAhead
from fmimaster.numerics.times import SLIVER
from fmimaster.record.causes import STEP_SIZE, Cause


@dataclass(frozen=True, slots=True)
class EvenSteps(PointsAhead):
    """Points at equal distances of one step.

    After a given instant the points are integers, like those of a grid; after a found instant they are sums of doubles.

    Parameters
    ----------
    base : TimeBase
    step : int
        Ticks of the base.
    least : float
        The points end before a step that rounding has made shorter than this, in s.
    """

    base: TimeBase
    step: int
    least: float = 0.0

    cause: ClassVar[Cause] = STEP_SIZE

    def seconds_between(self, first: Instant, last: Instant, most: int) -> NDArray[np.float64]:
        """Points after ``first`` and before ``last`` in s; see :class:`PointsAhead`."""
        points = np.concatenate(
            [[first.seconds], self._seconds_after(first, self._count(first, last, most))]
        )
        begins, ends = points[:-1], points[1:]
        lengths = ends - begins
        fit = (lengths > 0.0) & (lengths >= self.least) & (ends + SLIVER * lengths < last.seconds)
        return ends if fit.all() else ends[: int(fit.argmin())]

    def point_after(self, first: Instant, n: int) -> Instant:
        """The n-th point after an instant, counted from 0."""
        if isinf(first.ticks):
            return Instant(float(self._seconds_after(first, n + 1)[-1]))
        return self.base.instant(int(first.ticks) + (n + 1) * self.step)

    def _count(self, first: Instant, last: Instant, most: int) -> int:
        """Largest number of points before the last one; one point too many does no harm."""
        span = last.seconds - first.seconds
        return max(min(most, int(span / self._size) + 1), 0) if span < inf else most

    @property
    def _size(self) -> float:
        """Length of a step in s."""
        return self.step / self.base.resolution

    def _seconds_after(self, first: Instant, count: int) -> NDArray[np.float64]:
        if isinf(first.ticks):
            sizes = np.full(count + 1, self._size)
            sizes[0] = first.seconds
            return np.add.accumulate(sizes)[1:]
        return Grid(self.base, int(first.ticks), self.step).seconds_between(
            first, Instant(inf), count
        )
