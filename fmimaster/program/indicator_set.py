"""The indicators of an event in each member: their slots among the outputs, and the inputs on which they depend."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import IntEnum
from typing import NamedTuple

from fmimaster.plan.contacts import motion
from fmimaster.plan.events import PlanMember, counter_of
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.system.declarations import EventDeclaration, Indicator
from fmimaster.system.model import DataType, Model


class EventPhase(IntEnum):
    """How far an event has come for a member."""

    ABOVE = 0
    """An indicator is above zero."""
    AT_REST = 1
    """None is above zero, and none of those at zero falls; or none moves at all, see ``Indicators.rests``."""
    UNKNOWN = 2
    """All are at zero, and it is not known whether one falls: there is no derivative, and no point before."""
    ON = 3


class Near(NamedTuple):
    """How far from 0 an indicator still is at zero."""

    seconds: float
    """Its change within this time, in s, is negligible."""
    part: float
    """This fraction of its largest value is negligible."""
    of_inputs: float
    """This fraction of the inputs on which it depends is negligible."""


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
    declaration: EventDeclaration
    """Of the event, by the FMU."""
    active: int = -1
    """Slot among the Boolean outputs of what says whether the event can happen in the present mode; -1 if it always can."""


def indicator_set(plan: Plan, number: int, event: int, member: PlanMember) -> IndicatorSet:
    """The indicators of an event in a member, with their number among all sets and that of the event in the plan."""
    instance = member.instance

    def slot(name: str) -> int:
        return int(plan.layout.slots[instance, Group.OUTPUTS, name][1].start)

    pairs = tuple(
        (slot(i.name), -1 if i.derivative is None else slot(i.derivative))
        for i in member.declaration.indicators
    )
    indicators = tuple(z for z, _ in pairs)
    active = member.declaration.active
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
        declaration=member.declaration,
        active=-1 if active is None else slot(active),
    )


def _tolerance(model: Model, indicator: Indicator) -> float:
    """Tolerance around 0 declared by the FMU, in the unit of the indicator."""
    variable = model.variable(indicator.name)
    if indicator.tolerance is None or variable is None:
        return 0.0
    return indicator.tolerance * abs(variable.nominal)


def slot_of_counter(plan: Plan, s: IndicatorSet) -> tuple[DataType, int] | None:
    """Type and slot of the output that counts an event; None if there is none."""
    name = counter_of(plan.instances[s.instance].model, s.declaration)
    if name is None:
        return None
    kind, slot = plan.layout.slots[s.instance, Group.OUTPUTS, name]
    return kind, slot.start


def predictions(plan: Plan) -> list[tuple[int, int]]:
    """The instances that predict the time to their next event, each with the slot of that output."""
    found = []
    for i, instance in enumerate(plan.instances):
        name = instance.model.look_ahead
        _, slot = plan.layout.slots.get((i, Group.OUTPUTS, name or ""), (None, None))
        if name is not None and slot is not None:
            found.append((i, slot.start))
    return found


class Body(NamedTuple):
    """A body of a contact."""

    key: tuple[int, str]
    """The instance, and the variable that is the velocity."""
    direction: float
    velocity: int
    """Slot among the outputs, as of the next four."""
    position: int
    """-1 if the FMU does not publish it, as of the next one."""
    rate: int
    inverse_mass: int
    restitution: int
    impulse: int
    """Slot among the Float64 values, as of the next two."""
    force: int
    coefficients: tuple[int, ...]
    """Empty if the force is held over a step."""


class ContactPlan(NamedTuple):
    """A contact whose impulses and forces the run determines."""

    event: int
    sets: tuple[IndicatorSet, ...]
    bodies: tuple[Body, ...]


def contact_plans(
    plan: Plan, every: Sequence[IndicatorSet], polynomial_inputs: Collection[int]
) -> list[ContactPlan]:
    """All such contacts, with their sets among all; ``polynomial_inputs``: instances whose inputs are polynomials."""
    found = []
    for e, event in enumerate(plan.events):
        if any(m.declaration.contact is None for m in event.members):
            continue
        bodies = tuple(_body(plan, m, m.instance in polynomial_inputs) for m in event.members)
        sets = tuple(s for s in every if s.event == e)
        found.append(ContactPlan(e, sets, bodies))
    return found


def _body(plan: Plan, member: PlanMember, follows: bool) -> Body:
    i, contact, slots = member.instance, member.declaration.contact, plan.layout.slots
    assert contact is not None
    model = plan.instances[i].model
    names = next((p.coefficients for p in model.input_polynomials if p.input == contact.force), ())
    at = [slots[i, Group.FORCES, name][1] for name in names] if follows else []
    position, rate = (
        -1 if n is None else slots[i, Group.OUTPUTS, n][1].start for n in motion(model, contact)
    )
    return Body(
        (i, contact.velocity),
        contact.direction,
        slots[i, Group.OUTPUTS, contact.velocity][1].start,
        position,
        rate,
        slots[i, Group.OUTPUTS, contact.inverse_mass][1].start,
        slots[i, Group.OUTPUTS, contact.restitution][1].start,
        slots[i, Group.TRIGGERS, contact.impulse][1].start,
        slots[i, Group.FORCES, contact.force][1].start,
        tuple(k for slot in at for k in range(slot.start, slot.stop)),
    )
