"""Clocks of a run: FMI calls that depend on which are active, and those that the calendar lets tick."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from math import isfinite

from fmimaster.base.data import dataclass
from fmimaster.base.errors import SimulationError
from fmimaster.fmu.instance import Instance
from fmimaster.instants.calendar import Calendar
from fmimaster.instants.instant import exact
from fmimaster.plan.layout import Group, Segment
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.indicators import NONE
from fmimaster.program.store import ValueStore
from fmimaster.run.log import Lateness
from fmimaster.run.loop import RunState
from fmimaster.system.clocks import ClockAttributes, Intervals, IntervalVariability, Qualifier
from fmimaster.system.model import Variable

_log = logging.getLogger("fmimaster")


@dataclass(frozen=True, slots=True)
class ClockedPart:
    """Clocked outputs that are read in one call."""

    segment: Segment
    clocks: tuple[int, ...]
    """Slots of their clocks: they are read if one of these is active."""


@dataclass(frozen=True, slots=True)
class AskedClocks:
    """Clocks whose intervals are asked in one call."""

    references: tuple[int, ...]
    places: tuple[int, ...]
    """Of these among the clocks of the group INTERVALS."""
    by_fraction: bool
    """Whether their intervals are fractions."""
    clock: int | None
    """Slot of the clock that must be active; None for none."""


def clocked_parts(plan: Plan, i: int) -> list[ClockedPart]:
    """The calls that read the clocked outputs of an instance: variables of one type that follow each other and have the
    same clocks."""
    found = []
    for segment in plan.layout.segments(i, Group.CLOCKED):
        slots = segment.slots()
        for names, group in groupby(segment.variables, lambda v: v.clocks):
            variables = tuple(group)
            start, stop = slots[variables[0].name].start, slots[variables[-1].name].stop
            part = Segment(segment.type, start, stop, variables)
            clocks = tuple(plan.layout.placed(i, name)[1].start for name in names)
            found.append(ClockedPart(part, clocks))
    return found


def asked_clocks(plan: Plan, i: int, *, initialized: bool) -> list[AskedClocks]:
    """The calls that ask an instance for the intervals of its clocks.

    At its initialization all are asked. Later the interval of a fixed clock cannot change, and that of a changing clock
    only when it has ticked (FMI 3.0, 2.2.8.3). Countdown clocks have calls of their own: Scheduled Execution does not allow
    these calls where it allows those of tunable clocks (5.2.2).
    """
    variables = [v for s in plan.layout.segments(i, Group.INTERVALS) for v in s.variables]
    if not initialized:
        return asked_in_calls(variables, range(len(variables)))
    places = dict[IntervalVariability, list[int]]()
    for k, variable in enumerate(variables):
        assert isinstance(variable.clock, ClockAttributes)
        places.setdefault(variable.clock.interval_variability, []).append(k)
    found = asked_in_calls(variables, places.get(IntervalVariability.TUNABLE, ()))
    found += asked_in_calls(variables, places.get(IntervalVariability.COUNTDOWN, ()))
    for k in places.get(IntervalVariability.CHANGING, ()):
        slot = plan.layout.placed(i, variables[k].name)[1].start
        found += asked_in_calls(variables, [k], slot)
    return found


def asked_in_calls(
    variables: Sequence[Variable], places: Sequence[int], clock: int | None = None
) -> list[AskedClocks]:
    """The calls that ask for the intervals of these clocks: first those whose intervals are fractions."""
    found = []
    for by_fraction in (True, False):
        chosen = tuple(k for k in places if _supports_fraction(variables[k]) is by_fraction)
        if chosen:
            references = tuple(variables[k].value_reference for k in chosen)
            found.append(AskedClocks(references, chosen, by_fraction, clock))
    return found


class GivenIntervals(Hook):
    """What SET does for the group INTERVALS: intervals and shifts that the user decides → FMU, shifts that the FMU
    decides → store; in Initialization Mode (FMI 3.0, 2.2.8.3)."""

    def __init__(self, plan: Plan, i: int, instance: Instance) -> None:
        self._instance, self._index = instance, i
        self._given = [
            (v.value_reference, v.clock)
            for v in plan.instances[i].model.variables
            if v.clock and v.clock.is_periodic and v.clock.is_given
        ]
        asked = (v for s in plan.layout.segments(i, Group.INTERVALS) for v in s.variables)
        self._shifted = [
            (k, v.value_reference)
            for k, v in enumerate(asked)
            if v.clock and v.clock.is_periodic and v.clock.interval is None
        ]
        self.name = f"given intervals of '{instance.name}'"

    def __call__(self, store: ValueStore) -> bool:
        """Set and ask."""
        for reference, clock in self._given:
            assert clock.interval is not None
            self._instance.set_interval(reference, clock.interval)
            if clock.shift:
                self._instance.set_shift(reference, clock.shift)
        for k, reference in self._shifted:
            shift = self._instance.shift(reference)
            store.shifts[self._index][:, k] = shift.numerator, shift.denominator
        return False


def _supports_fraction(variable: Variable) -> bool:
    return variable.clock is not None and variable.clock.supports_fraction


# The calendar ---------------------------------------------------------------------------------------------------------

MOST_PARTS = 1000
"""Largest denominator of a simple fraction."""

NEARLY = Fraction(1, 10**12)
"""Relative distance below which an interval may have been meant to be a simple fraction."""


class ClockTicks:
    """The time-based clocks of a run. All memory is in the calendar and in the value store."""

    def __init__(self, plan: Plan, store: ValueStore, state: RunState) -> None:
        self._state, self._store = state, store
        self._clocks: dict[int, ClockAttributes] = {
            k: trigger.clock for k, trigger in enumerate(plan.triggers) if trigger.clock is not None
        }
        self._triggers = plan.triggers
        self._instances = plan.instances
        by_name = {(t.instance, t.name): k for k, t in enumerate(plan.triggers)}
        self._told = {
            i: [
                by_name[i, v.name]
                for s in plan.layout.segments(i, Group.INTERVALS)
                for v in s.variables
            ]
            for i in range(len(plan.instances))
            if plan.layout.segments(i, Group.INTERVALS)
        }
        """Instance → the triggers of the clocks whose intervals its FMU tells, in their order."""

    @property
    def calendar(self) -> Calendar:
        """The present one: a run that continues from a checkpoint gets another."""
        return self._state.calendar

    def name(self, trigger: int) -> str:
        """``"instance.clock"``."""
        t = self._triggers[trigger]
        return f"{self._instances[t.instance].name}.{t.name}"

    def begin(self, instances: Collection[int] | None = None) -> None:
        """Schedule the first ticks, after instances were initialized: all that are not scheduled yet, unless some are
        given."""
        start = self.calendar.exact(self._state.time)
        told = self._told if instances is None else instances
        clocks = {
            k: clock
            for k, clock in self._clocks.items()
            if instances is None or self._triggers[k].instance in instances
        }
        for k, clock in clocks.items():
            if clock.interval is not None and k not in self.calendar.next:
                self._check(k, clock.interval)
                first = start + self.calendar.in_base(clock.shift)
                self.calendar.repeat(k, first, self.calendar.in_base(clock.interval))
        self.take_intervals(told)
        for k, clock in clocks.items():
            if clock.is_periodic and k not in self.calendar.next:
                raise SimulationError(
                    f"The clock '{self.name(k)}' ({clock.interval_variability.value}) has no interval: its model "
                    "description declares none, and the FMU tells none in Initialization Mode. Give one as its start value."
                )

    def due(self) -> frozenset[int]:
        """The clocks that tick now: all that are due; of discrete-event units only one, by priority and then by name."""
        calendar = self.calendar
        if not calendar.next:
            return NONE
        now = calendar.with_merged(self._state.time)
        if calendar.first > now:
            return NONE
        clocks = calendar.at(now)
        units = {
            i: self._instances[i]
            for i in {self._triggers[k].instance for k in clocks}
            if self._instances[i].priority is not None
        }
        if len(units) > 1:
            first = min(units, key=lambda i: (units[i].priority, units[i].name.encode()))
            clocks = [
                k
                for k in clocks
                if self._triggers[k].instance not in units or self._triggers[k].instance == first
            ]
        return frozenset(clocks)

    def note_late(self, clocks: Iterable[int]) -> None:
        """Note which of the clocks that are about to tick are late: FMUs with fixed steps have passed their times.

        An FMU may refuse a late tick, so this is noted before it is called.
        """
        calendar, now = self.calendar, self._state.time
        for k in sorted(clocks):
            tick = calendar.next[k]
            if tick.seconds < now.seconds and not calendar.is_one(now, tick):
                delay = float(calendar.exact(now) - calendar.exact(tick)) / calendar.resolution
                self._state.event_log.note_delay(
                    self.name(k), Lateness.FIXED_STEP, tick.seconds, delay
                )

    def take(self, clocks: Iterable[int]) -> None:
        """Note that these clocks have ticked."""
        calendar, log = self.calendar, self._state.activation_log
        for k in sorted(clocks):
            log.add(self.name(k), calendar.exact(calendar.next[k]))
        calendar.take(clocks)

    def skip(self, counts: Mapping[int, int]) -> None:
        """Note that periodic clocks have ticked so many times each."""
        calendar, log = self.calendar, self._state.activation_log
        for k, count in counts.items():
            period = calendar.periods[k]
            log.add_many(self.name(k), period.next, period.interval, count)
            calendar.skip(k, count)

    def take_intervals(self, instances: Iterable[int], ticked: Collection[int] = ()) -> None:
        """Schedule the next ticks of clocks whose FMUs have told an interval; of changing clocks that have ticked by the
        same interval again, if it is unchanged."""
        for i in sorted(self._told.keys() & set(instances)) if self._told else ():
            intervals = self._store.intervals[i]
            for at, k in enumerate(self._told[i]):
                if intervals.qualifier[at] == Qualifier.CHANGED:
                    intervals.qualifier[at] = Qualifier.UNCHANGED
                    interval = self._interval(intervals, at, k)
                    if not self._is_scheduled(k, interval, ticked):
                        self._told_interval(i, at, k, interval)
                elif k in ticked and self._kind(k) is IntervalVariability.CHANGING:
                    self._told_interval(i, at, k, self._interval(intervals, at, k))

    def _is_scheduled(self, k: int, interval: Fraction, ticked: Collection[int]) -> bool:
        """Whether the next tick follows from an equal interval: some FMUs tell it as changed at each event."""
        calendar = self.calendar
        period = calendar.periods.get(k)
        if period is not None:
            return period.interval == calendar.in_base(interval)
        is_ahead = k in calendar.next and k not in ticked
        return is_ahead and calendar.told.get(k) == calendar.in_base(interval)

    def _told_interval(self, i: int, at: int, k: int, interval: Fraction) -> None:
        calendar = self.calendar
        now = calendar.exact(self._state.time)
        self._check(k, interval)
        if not self._clocks[k].is_periodic:
            if self._kind(k) is IntervalVariability.CHANGING:
                calendar.told[k] = calendar.in_base(interval)
            calendar.put(k, now + calendar.in_base(interval))
            return
        if k not in calendar.next and self._clocks[k].interval is None:
            numerator, denominator = self._store.shifts[i][:, at].tolist()
            shift = Fraction(numerator, denominator or 1)
            calendar.repeat(k, now + calendar.in_base(shift), calendar.in_base(interval))
        else:  # a tunable clock: it counts from the present event
            ticks = calendar.in_base(interval)
            calendar.repeat(k, now + ticks, ticks)

    def _kind(self, k: int) -> IntervalVariability:
        return self._clocks[k].interval_variability

    def _check(self, k: int, interval: Fraction) -> None:
        """Refuse an interval that is not possible; warn of one that is nearly another one."""
        near = interval.limit_denominator(MOST_PARTS)
        if near != interval and abs(near - interval) <= NEARLY * interval:
            text = (
                f"the clock '{self.name(k)}' has the interval {float(interval)!r} s, which is nearly {near} s but not "
                f"equal to it: its ticks will not coincide with those of clocks with {near} s. Give intervals as fractions."
            )
            if text not in self._state.warnings:
                self._state.warnings += (text,)
                _log.warning("%s", text)
        if interval <= 0 and not (interval == 0 and self._may_be_0(k)):
            raise self._refused(k, float(interval))

    def _may_be_0(self, k: int) -> bool:
        return not self._clocks[k].is_periodic and self._clocks[k].interval is None

    def _refused(self, k: int, interval: float) -> SimulationError:
        expected = "of at least 0" if self._may_be_0(k) else "above 0"
        return SimulationError(
            f"The clock '{self.name(k)}' ({self._kind(k).value}) has the interval {interval:g} s at t = "
            f"{self._state.time.seconds:.12g} s; expected a finite interval {expected}. Ask the FMU's vendor, or give "
            "the interval as a start value if the clock allows it."
        )

    def _interval(self, intervals: Intervals, at: int, k: int) -> Fraction:
        """The interval that an FMU has told, as an exact number in s; a double is read as the shortest decimal."""
        resolution = intervals.resolution.item(at)
        if resolution:
            return Fraction(intervals.counter.item(at), resolution)
        seconds = intervals.seconds.item(at)
        if not isfinite(seconds):
            raise self._refused(k, seconds)
        return exact(seconds)
