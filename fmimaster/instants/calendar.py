"""The calendar of clocks: when each time-based clock ticks next, as exact numbers; many next ticks, merged with a grid.

Ticks of periodic clocks are products, ``first + count * interval``. No tick is the sum of rounded numbers, so ticks that
coincide are equal, and others never are (Broman et al. 2015, Requirements for hybrid cosimulation standards).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from heapq import heapify, heappop, heappush, heapreplace
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.instants.grid import EXACT
from fmimaster.instants.instant import NEVER, Instant, Ticks, TimeBase, whole

_new = tuple.__new__
"""Makes a named tuple without a call of Python: a third of the time."""


class Period(NamedTuple):
    """The ticks of a periodic clock: ``first + taken * interval``, in multiples of ``1 / resolution`` s."""

    first: Ticks
    interval: Ticks
    taken: int = 0
    """Number of ticks that have been taken."""

    @property
    def next(self) -> Ticks:
        """The next tick."""
        return self.first + self.taken * self.interval


@dataclass
class Calendar:
    """The next tick of each time-based clock, by a number for each clock."""

    resolution: int = 1
    """Times of the run are multiples of ``1 / resolution`` s."""
    merged: Ticks = 0
    """Events and ticks that are at most so far apart are one instant, likewise."""
    next: dict[int, Instant] = field(default_factory=dict)
    """Clock → its next tick; a clock that is not scheduled is missing."""
    periods: dict[int, Period] = field(default_factory=dict)
    """Of periodic clocks."""
    told: dict[int, Ticks] = field(default_factory=dict)
    """Of changing clocks: the interval that leads to the next tick, likewise."""
    waiting: list[tuple[Instant, int]] = field(default_factory=list)
    """A heap of ticks and clocks; an entry that differs from ``next`` is no longer valid."""

    @property
    def merged_seconds(self) -> float:
        """``merged`` in s."""
        return float(Fraction(self.merged) / self.resolution)

    @property
    def first(self) -> Instant:
        """The earliest tick; NEVER if no clock is scheduled."""
        waiting, scheduled = self.waiting, self.next
        while waiting:
            instant, clock = waiting[0]
            if scheduled.get(clock) == instant:
                return instant
            heappop(waiting)
        return NEVER

    def at(self, instant: Instant) -> list[int]:
        """The clocks whose next tick is this one or an earlier one, in the order of their numbers."""
        if self.first > instant:
            return []
        return sorted(clock for clock, tick in self.next.items() if tick <= instant)

    def with_merged(self, instant: Instant) -> Instant:
        """The last instant that is one with this one: a found event takes ticks with it that come little later."""
        if not (self.merged and abs(instant.ticks) == inf):
            return instant
        return TimeBase(self.resolution).instant(self.exact(instant) + self.merged)

    def is_one(self, event: Instant, tick: Instant) -> bool:
        """Whether an event and a tick are one instant."""
        if tick == NEVER:
            return False
        apart = Fraction(self.exact(event)) - self.exact(tick)
        return abs(apart) <= self.merged

    def exact(self, instant: Instant) -> Ticks:
        """An instant as a multiple of ``1 / resolution`` s; a double that was found is the rational number that it is."""
        if abs(instant.ticks) == inf:
            return whole(Fraction(instant.seconds) * self.resolution)
        return instant.ticks  # type: ignore[return-value]

    def in_base(self, time: Fraction) -> Ticks:
        """A time in s as a multiple of ``1 / resolution`` s."""
        return whole(time * self.resolution)

    def repeat(self, clock: int, first: Ticks, interval: Ticks) -> None:
        """Schedule a periodic clock, in place of what was scheduled."""
        self.periods[clock] = period = Period(first, interval)
        self.put(clock, period.next)

    def put(self, clock: int, tick: Ticks) -> None:
        """Schedule the next tick of a clock, in place of what was scheduled."""
        instant = self.next[clock] = TimeBase(self.resolution).instant(tick)
        heappush(self.waiting, (instant, clock))

    def take(self, clocks: Iterable[int]) -> None:
        """These clocks have ticked: periodic ones are scheduled for their next tick."""
        for clock in clocks:
            period = self.periods.get(clock)
            if period is None:
                del self.next[clock]
            else:
                self.skip(clock, 1)

    def rescale(
        self,
        resolution: int,
        factor: Fraction,
        ticks: Mapping[int, Instant],
        periods: Mapping[int, Period],
        told: Mapping[int, Ticks],
    ) -> None:
        """Go on with these clocks alone, in times that are multiples of another ``1 / resolution`` s.

        Parameters
        ----------
        factor
            The ratio of the new resolution to the old one.
        """
        exact = {clock: self.exact(tick) for clock, tick in ticks.items()}
        self.resolution, self.next, self.waiting = resolution, {}, []
        self.merged = whole(self.merged * factor)
        self.periods = {
            clock: Period(whole(p.first * factor), whole(p.interval * factor), p.taken)
            for clock, p in periods.items()
        }
        self.told = {clock: whole(interval * factor) for clock, interval in told.items()}
        for clock, tick in exact.items():
            self.put(clock, whole(tick * factor))

    def skip(self, clock: int, count: int) -> None:
        """A periodic clock has ticked so many times."""
        first, interval, taken = self.periods[clock]
        taken += count
        self.periods[clock] = _new(Period, (first, interval, taken))
        ticks = first + taken * interval
        instant = self.next[clock] = _new(Instant, (float(ticks / self.resolution), ticks))
        waiting = self.waiting
        if waiting[0][1] == clock:  # the tick that was taken
            heapreplace(waiting, (instant, clock))
            return
        heappush(waiting, (instant, clock))
        if len(waiting) > 2 * len(self.next) + 16:
            self.waiting = [(tick, clock) for clock, tick in self.next.items()]
            heapify(self.waiting)


_BITS = 62
"""A set of clocks is a row of numbers with one bit for each clock, and one for the grid."""

LEAST = 8
"""So many ticks of each clock on average: what each call costs is in proportion to the clocks, so what each tick costs is
not."""


class Every(NamedTuple):
    """The instants ``first + k * interval``, k = 0, 1, ..., as integers."""

    first: int
    interval: int


def merged(
    grid: Every, clocks: Sequence[Every], stop: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The instants before ``stop``, at most about ``most`` of them or LEAST for each clock, and which clocks tick there.

    Returns
    -------
    instants : shape (n,), increasing
    sets : shape (n, numbers)
        Bit k: the k-th clock ticks; the bit above those of all clocks: a point of the grid. See :func:`ticking`
        and :func:`members`.
    """
    every = [*clocks, grid]
    # clocks of equal intervals and phases tick together: their number makes no more instants
    rhythms = dict.fromkeys((e.interval, e.first % e.interval) for e in every)
    per_tick = sum(1.0 / interval for interval, _ in rhythms)
    ahead = int(max(most, LEAST * len(rhythms)) / per_tick)
    stop = min(stop, EXACT, min(e.first for e in every) + max(ahead, 1))
    each = [np.arange(e.first, stop, e.interval, dtype=np.int64) for e in every]
    # a stable sort merges what is in order already; np.unique alone would hash
    ticks = np.sort(np.concatenate(each), kind="stable")
    instants = ticks[np.diff(ticks, prepend=ticks[:1] - 1) > 0]
    sets = np.zeros((len(instants), (len(every) - 1) // _BITS + 1), np.int64)
    for k, own in enumerate(each):
        sets[np.searchsorted(instants, own), k // _BITS] |= 1 << k % _BITS
    return instants, sets


def ticking(sets: NDArray[np.int64], clock: int) -> NDArray[np.bool_]:
    """Whether a clock, or the grid behind the last one, is in each of these sets."""
    found: NDArray[np.bool_] = (sets[..., clock // _BITS] >> clock % _BITS & 1).astype(np.bool_)
    return found


def distinct(sets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Each set once, and for each of the sets given its place among these."""
    if sets.shape[1] == 1:  # rows are sorted at a thirtieth of the speed of numbers
        found, of = np.unique(sets[:, 0], return_inverse=True)
        return found[:, None], of
    found, of = np.unique(sets, axis=0, return_inverse=True)
    return found, of.reshape(-1)


def members(sets: NDArray[np.int64], clocks: int) -> NDArray[np.bool_]:
    """Which of all clocks are in each of these sets: shape (n, clocks)."""
    bits = np.unpackbits(sets.astype("<i8").view(np.uint8), axis=1, bitorder="little")
    of_each = bits.reshape(len(sets), -1, 64)[:, :, :_BITS]
    return of_each.reshape(len(sets), -1)[:, :clocks].astype(np.bool_)
