"""The log of a run: its steps with their causes, its events, and the activations of its clocks."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import field
from enum import Enum
from fractions import Fraction
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.instants.instant import Ticks, Times
from fmimaster.record.causes import GRID, Activations, Cause, Event
from fmimaster.record.step_series import StepColumns

_log = logging.getLogger("fmimaster")

FEW = 16
"""Number of steps up to which adding them one by one is faster."""

SAME_SIZE = 1e-9
"""Relative difference up to which step sizes are treated as equal: they are differences of times."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Steps that the executor does without Python; another thread may read the data at the same time.

    Attributes
    ----------
    times : shape (steps + 1,)
        In s, from the start of the first step; infinite where the end is not known yet.
    codes : shape (steps,), or None
        The cause of the end of each step, as an index of ``causes``; None if all end on the grid.
    """

    times: Times
    codes: NDArray[np.int64] | None = None
    causes: Sequence[Cause] = ()

    @classmethod
    def empty(cls, begin: float, steps: int, causes: Sequence[Cause], end: float = inf) -> Stretch:
        """So many steps of which no end is known, or only that of the first one in s."""
        times = np.full(steps + 1, inf)
        times[0], times[1] = begin, end
        return cls(times, np.zeros(steps, np.int64), causes)

    @property
    def steps(self) -> int:
        """How many there are."""
        return len(self.times) - 1

    def done(self, reached: float) -> int:
        """How many steps are done, if the executor works on an interval with this start in s."""
        return bisect_left(self.times, reached)


@dataclass
class StepLog(StepColumns):
    """Each step with its cause; steps that follow each other, of the same cause and size, are one entry.

    These are the entries that were not passed on. The next step may still belong to the last one.
    """

    size: float = 0.0
    """[s] Of the first step of the last entry."""
    handed_on: int = 0
    """Entries before these."""
    any_size: bool = False
    """Whether steps of different sizes are one entry on the grid: then it is a grid of several rates."""

    @property
    def ended(self) -> int:
        """Number of entries that do not change any more."""
        return max(len(self) - 1, 0)

    def remove(self, n: int) -> None:
        """The first ones are passed on."""
        super().remove(n)
        self.handed_on += n

    def add(self, begin: float, end: float, cause: Cause, count: int = 1) -> None:
        """Take up steps of one size."""
        size = end - begin if count == 1 else (end - begin) / count
        counts = self.counts
        if counts and (cause is self.causes[-1] or cause == self.causes[-1]):
            margin = SAME_SIZE * size
            if -margin <= size - self.size <= margin or (self.any_size and cause is GRID):
                self.ends[-1] = end
                counts[-1] += count
                return
        self.size = size
        self.append(begin, end, cause, count)

    def add_stretch(self, stretch: Stretch, done: int) -> None:
        """Take up the first steps of a stretch; on a grid, the very first is shorter after an interruption."""
        times = stretch.times
        if stretch.codes is not None:
            self._add_all(np.asarray(times)[: done + 1], stretch.codes[:done], stretch.causes)
            return
        if done:
            self.add(float(times[0]), float(times[1]), GRID)
        if done > 1:
            self.add(float(times[1]), float(times[done]), GRID, done - 1)

    def _add_all(
        self, times: NDArray[np.float64], codes: NDArray[np.int64], causes: Sequence[Cause]
    ) -> None:
        """The same as to add each step, in a fraction of the time if there are many."""
        if len(codes) < FEW:
            ends = times.tolist()
            for k, code in enumerate(codes.tolist()):
                self.add(ends[k], ends[k + 1], causes[code])
            return
        if self._all_alike(times, codes, causes):
            self.ends[-1] = times.item(-1)
            self.counts[-1] += len(codes)
            return
        # the last entry stands before the steps, as if it were one: step k ends at times[k]
        last = self.causes[-1:]
        codes = np.concatenate(
            ([causes.index(last[0]) if last and last[0] in causes else -1], codes)
        )
        sizes = np.concatenate(([self.size], np.diff(times)))
        firsts = _first_of_alike(sizes, codes)
        counts = np.diff(firsts, append=len(codes))
        ends = times[np.cumsum(counts) - 1]
        if counts[0] > 1:
            self.ends[-1] = ends.item(0)
            self.counts[-1] += counts.item(0) - 1
        if len(firsts) > 1:
            new = firsts[1:]
            chosen = [causes[code] for code in codes[new].tolist()]
            self.extend(times[new - 1], ends[1:], chosen, counts[1:])
            self.size = sizes.item(new.item(-1))

    def _all_alike(
        self, times: NDArray[np.float64], codes: NDArray[np.int64], causes: Sequence[Cause]
    ) -> bool:
        """Whether these steps belong to the last entry: so it is with most rules, for most steps."""
        if [causes[codes.item(0)]] != self.causes[-1:] or (codes != codes[0]).any():
            return False
        sizes = np.diff(times)
        return bool((np.abs(sizes - self.size) <= SAME_SIZE * sizes).all())

    def copy(self) -> StepLog:
        """Another one that is as this one is now."""
        entries = self.part(0).columns()
        return StepLog(*entries, self.size, self.handed_on, self.any_size)


def _first_of_alike(sizes: NDArray[np.float64], codes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Indices of the steps that are not like the first one of the entry before them."""
    places = np.arange(len(sizes))
    begins = np.ones(len(sizes), np.bool_)
    # one that is like the first step of an entry is near the step before it
    is_far = np.abs(np.diff(sizes)) > 4 * SAME_SIZE * sizes[1:]
    begins[1:] = is_far | (codes[1:] != codes[:-1])
    while True:
        first = np.maximum.accumulate(np.where(begins, places, 0))
        unlike = np.abs(sizes - sizes[first]) > SAME_SIZE * sizes
        if not unlike.any():
            return np.flatnonzero(begins)
        begins[unlike.argmax()] = True


@dataclass
class Late:
    """Number of times that an event was found late, and the first time."""

    times: int
    time: float
    """[s]"""
    indicator: float
    """The largest of its indicators then."""
    excess: int = 0
    """How much more often it was late than in time, since it was last in time more often."""

    def text(self, name: str) -> str:
        """A warning."""
        often = "once" if self.times == 1 else f"{self.times} times"
        return (
            f"the event '{name}' was found late {often}, first at t = {self.time:.12g} s, when the largest of its "
            f"indicators was {self.indicator:.3g} already: use smaller steps, especially after events"
        )


class Lateness(Enum):
    """Reasons why a component has events later than they happen. The value is the text for a reader."""

    AHEAD = (
        "it had stepped past an early return and cannot go back (canGetAndSetFMUState is false). Let components with "
        "events step first (Jacobi, or the trigger sequence), or use smaller steps"
    )
    FIXED_STEP = (
        "an FMU of the system cannot vary its step size (canHandleVariableCommunicationStepSize is false), so events wait "
        "for the next communication point. Use a step size on whose multiples they lie"
    )
    LOCATED = (
        "its discrete outputs have changed at the very start of a step, so what has changed them was in the step before, "
        "which is not undone. Let it step after the components that feed it (GaussSeidel, or the trigger sequence), or use "
        "smaller steps"
    )
    UNFORESEEN = (
        "FMUs execute events themselves with this event clock. Use Predictive or EarlyReturn if they can be triggered, "
        "or smaller steps"
    )
    NOT_SEEN = (
        "its inputs move in steps that are not shortened, and it cannot be seen when the FMU executes it: no output counts "
        "it. Use Predictive or EarlyReturn if it can be triggered, or smaller steps"
    )
    ALONE = (
        "FMUs execute shared events themselves with this event clock, each by itself, so what they exchange, as momentum, "
        "is wrong. Use Predictive or EarlyReturn if they can be triggered, or smaller steps"
    )


@dataclass
class Delayed:
    """How often a component had events late for one reason, and by how much."""

    times: int
    time: float
    """[s] Of the first event."""
    largest: float
    """[s] The largest delay."""

    def text(self, name: str, reason: Lateness) -> str:
        """A warning."""
        first, largest = f"at t = {self.time:.12g} s", f"{self.largest:.6g} s"
        often = "once" if self.times == 1 else f"{self.times} times"
        if reason is Lateness.LOCATED:
            return (
                f"'{name}' may have changed its discrete outputs late {often}, first {first}, by at most {largest}: "
                f"{reason.value}"
            )
        if reason is Lateness.UNFORESEEN:
            return (
                f"the event '{name}' was executed {often} in or after a step that was not shortened to it, first {first}, "
                f"with inputs from the start of the step: it may be wrong in time by up to {largest}. {reason.value}"
            )
        if reason is Lateness.NOT_SEEN:
            return f"the event '{name}' may be wrong in time by up to {largest}, as {first}: {reason.value}"
        if reason is Lateness.ALONE:
            return (
                f"the shared event '{name}' was executed {often} by this member, and not by all others within a step, "
                f"first {first}. {reason.value}"
            )
        if self.times == 1:
            return f"'{name}' has seen the event {first} late, by {largest}: {reason.value}"
        return (
            f"'{name}' has seen {self.times} events late, first that {first}, by at most {largest}: "
            f"{reason.value}"
        )


@dataclass
class EventLog:
    """The events of a run in their order, and how often one was late."""

    events: list[Event] = field(default_factory=list)
    """Events that were not passed on."""
    handed_on: int = 0
    """Events before them."""
    late: dict[str, Late] = field(default_factory=dict)
    """By name: those that were found when their indicators were well below 0."""
    delayed: dict[tuple[str, str], Delayed] = field(default_factory=dict)
    """By the names of a component and of a :class:`Lateness`: events that it had late."""

    def note_delay(self, name: str, reason: Lateness, time: float, delay: float) -> None:
        """Count an event at ``time`` that a component has later by ``delay``, both in s, and log it."""
        _log.info("event at t = %.12g s seen late by '%s', by %.6g s", time, name, delay)
        key = name, reason.name
        if key not in self.delayed:
            self.delayed[key] = Delayed(0, time, delay)
            _log.warning("%s", Delayed(1, time, delay).text(name, reason))
        known = self.delayed[key]
        known.times += 1
        known.largest = max(known.largest, delay)

    def delays(self) -> list[str]:
        """Warnings about events that components had late."""
        return [d.text(name, Lateness[reason]) for (name, reason), d in list(self.delayed.items())]

    @property
    def count(self) -> int:
        """Number of events."""
        return self.handed_on + len(self.events)


MOST_STRETCHES = 1000
"""So many stretches of a clock are kept one by one; of those behind them only their number of activations."""


class Ticking(NamedTuple):
    """Activations of one clock."""

    first: Ticks
    last: Ticks
    number: int
    interval: Ticks | None
    """0 if there is one activation; None if the distances differ."""


@dataclass
class ActivationLog:
    """Each activation of the time-based clocks. Its size does not depend on the length of a run."""

    stretches: dict[str, list[Ticking]] = field(default_factory=dict)
    """By the name of the clock, with its component."""

    def add(self, clock: str, time: Ticks) -> None:
        """One more activation of a clock."""
        self.add_many(clock, time, 0, 1)

    def add_many(self, clock: str, first: Ticks, interval: Ticks, count: int) -> None:
        """Some more, at equal distances."""
        if not count:
            return
        last = first + interval * (count - 1)
        interval = interval if count > 1 else 0
        known = self.stretches.setdefault(clock, [])
        if not known:
            known.append(Ticking(first, last, count, interval))
            return
        before = known[-1]
        distance = first - before.last
        is_same = count == 1 or distance == interval
        if before.interval is None:
            known[-1] = Ticking(before.first, last, before.number + count, None)
        elif is_same and (before.number == 1 or before.interval == distance):
            known[-1] = Ticking(before.first, last, before.number + count, distance)
        elif len(known) < MOST_STRETCHES:
            known.append(Ticking(first, last, count, interval))
        else:
            known[-1] = Ticking(before.first, last, before.number + count, None)

    def rescale(self, factor: Fraction) -> None:
        """Times are multiples of another resolution from now on; ``factor`` is its ratio to the one before."""
        for known in self.stretches.values():
            known[:] = [
                Ticking(
                    s.first * factor,
                    s.last * factor,
                    s.number,
                    None if s.interval is None else s.interval * factor,
                )
                for s in known
            ]

    def entries(self, resolution: int) -> tuple[Activations, ...]:
        """The stretches in s, by the name of the clock and then in their order; another thread may add some meanwhile."""
        return tuple(
            Activations(
                clock,
                Fraction(s.first) / resolution,
                Fraction(s.last) / resolution,
                s.number,
                None if s.interval is None else Fraction(s.interval) / resolution,
            )
            for clock, stretches in sorted(self.stretches.items())
            for s in list(stretches)
        )
