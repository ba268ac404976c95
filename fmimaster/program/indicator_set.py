"""The indicators of an event in each member: their slots among the outputs, and the inputs on which they depend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fmimaster.plan.events import Member
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.system.model import DataType, Indicator, Model, Variable


class IndicatorSet(NamedTuple):
    """The indicators of an event in one member."""

    number: int
    """Index among all sets."""
    event: int
    """Index in the plan's events."""
    instance: int
    z: tuple[int, ...]
    """Slots of the indicators among the Float64 outputs."""
    pairs: tuple[tuple[int, int], ...]
    """The slots, each with that of the time derivative; -1 if there is none."""
    tolerances: tuple[float, ...]
    """Tolerance around 0 of each indicator, declared by the FMU; 0 if it declares none."""
    is_inside: bool
    """Whether the FMU executes the event inside a step: it has neither a trigger nor Event Mode."""
    internal_step: float
    """Fixed internal step size in s of an FMU that executes the event itself; 0 if it has none."""
    is_triggered: bool
    """Whether the importer triggers the event; otherwise the FMU does so, by its own condition."""
    stops: bool
    """Whether the FMU returns early at the event; its indicators alone then show no event."""


def indicator_set(plan: Plan, number: int, event: int, member: Member) -> IndicatorSet:
    """The indicators of an event in a member, with their number among all sets and that of the event in the plan."""
    instance = member.instance

    def slot(name: str) -> int:
        return int(plan.layout.slots[instance, Group.OUTPUTS, name][1].start)

    pairs = tuple(
        (slot(i.name), -1 if i.derivative is None else slot(i.derivative))
        for i in member.declaration.indicators
    )
    indicators = tuple(z for z, _ in pairs)
    is_triggered, planned = member.trigger is not None, plan.instances[instance]
    model = planned.model
    return IndicatorSet(
        number,
        event,
        instance,
        indicators,
        pairs,
        tolerances=tuple(_tolerance(model, i) for i in member.declaration.indicators),
        is_inside=not (is_triggered or planned.event_mode),
        internal_step=0.0 if is_triggered else model.capabilities.fixed_internal_step_size or 0.0,
        is_triggered=is_triggered,
        stops=not is_triggered and planned.event_mode and planned.may_return_early,
    )


def _tolerance(model: Model, indicator: Indicator) -> float:
    """Tolerance around 0 declared by the FMU, in the unit of the indicator."""
    variable = model.variable(indicator.name)
    if indicator.tolerance is None or variable is None:
        return 0.0
    return indicator.tolerance * abs(variable.nominal)


def sources(plan: Plan, instance: int, variable: Variable) -> Iterator[tuple[int, float]]:
    """Slots of the outputs connected to the inputs of the same unit on which a variable depends directly, each with the
    factor of the connection."""
    needed = plan.instances[instance].model.dependencies.get(variable.name, ())
    for link in plan.links.into_instance.get(instance, ()):
        if link.input.name not in needed:
            continue
        if link.input.unit == variable.unit and link.output.type is DataType.FLOAT64:
            _, slot = plan.layout.slots[link.source, Group.OUTPUTS, link.output.name]
            for k in range(slot.start, slot.stop):
                yield k, abs(link.transformation.factor)
