"""FMI calls that depend on which clocks are active: of clocked outputs, and of the intervals of clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from fmimaster.fmu.instance import Instance
from fmimaster.plan.layout import Group, Segment
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.model import Variable


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
