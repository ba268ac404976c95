"""Exact times: instants as integer multiples of a resolution, the doubles passed to FMUs, and points known in advance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import inf, lcm
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.record.causes import Cause
from fmimaster.system.clocks import LARGEST as LARGEST
from fmimaster.system.clocks import exact as exact

Times = Sequence[float] | NDArray[np.float64]
"""Times in s."""

MOST_LISTED = 50_000
"""Points that are computed together at most: some may be in vain."""


class PointsAhead(ABC):
    """The successive points that a step-size rule proposes, while no step ends elsewhere.

    Attributes
    ----------
    cause : Cause
        Cause of the end of steps at these points.
    """

    __slots__ = ()
    cause: ClassVar[Cause]

    @abstractmethod
    def seconds_between(self, first: Instant, last: Instant, most: int) -> NDArray[np.float64]:
        """Points after ``first`` and before ``last`` in s, at most ``most``, up to two with the same double.

        No point is so near to ``last`` that the step between them would be too short.
        """

    def times(self, first: Instant, last: Instant, most: int) -> Times:
        """An instant and these points after it, in s."""
        ends = self.seconds_between(first, last, min(most, MOST_LISTED))
        return np.concatenate(([first.seconds], ends))

    @abstractmethod
    def point_after(self, first: Instant, n: int) -> Instant:
        """The n-th point after an instant, counted from 0."""

    def interval_to(self, point: Instant) -> int:
        """Which of the intervals that repeat ends at a point, counted from 0."""
        del point
        return 0


_new = tuple.__new__
"""Makes a named tuple without a call of Python."""


Ticks = int | Fraction
"""A time as a multiple of ``1 / resolution`` s; a fraction if it is known only since an event at a found time."""


class Instant(NamedTuple):
    """A point in time, ordered exactly by comparing tuples."""

    seconds: float
    """The double passed to FMUs, correctly rounded, in s."""
    ticks: float | Fraction = -inf
    """An integer multiple of ``1 / resolution`` s, or a fraction if it is exact but known only during the run; -inf for a
    found time."""


NEVER = Instant(inf, inf)
"""After all times."""


class Instants(NamedTuple):
    """Instants as arrays of shape (n,)."""

    seconds: NDArray[np.float64]
    ticks: NDArray[np.int64] | None
    """Multiples of ``1 / resolution`` s; None for found times."""
    resolution: int


class Goal(NamedTuple):
    """The end of the next step, and its cause."""

    end: Instant
    cause: Cause
    fire: frozenset[int] = frozenset()
    """Events that happen there."""


_NO_EVENTS: frozenset[int] = frozenset()


def goal_at(end: Instant, cause: Cause) -> Goal:
    """A goal without events, created in a third less time, because each step needs one."""
    return _new(Goal, (end, cause, _NO_EVENTS))


def whole(ticks: float | Fraction) -> Ticks:
    """The same multiple, as an integer if it is one."""
    if isinstance(ticks, int):
        return ticks
    ticks = Fraction(ticks)
    return ticks.numerator if ticks.denominator == 1 else ticks


@dataclass(frozen=True, slots=True)
class TimeBase:
    """All given times as integers: multiples of ``1 / resolution`` s."""

    resolution: int

    @classmethod
    def of(cls, times: Iterable[Fraction]) -> TimeBase:
        """The coarsest base in which all these times are integers."""
        return cls(lcm(*(t.denominator for t in times)))

    def ticks(self, time: Fraction) -> int:
        """A time of this base as an integer."""
        return int(time * self.resolution)

    def instant(self, ticks: int | Fraction) -> Instant:
        """The instant at a multiple; Python rounds the quotient correctly."""
        return _new(Instant, (float(ticks / self.resolution), ticks))
