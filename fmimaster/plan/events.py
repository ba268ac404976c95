"""Events of a system: who is concerned, where their indicators are, and what triggers them.

A clock connection and a shared event come to the same: a trigger of an instance that becomes active when any of some output
clocks is, with inputs that it brings along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fmimaster.errors import DescriptionError
from fmimaster.plan.layout import Group, Layout, Segment
from fmimaster.system.model import (
    DataType,
    EventDeclaration,
    Model,
    Scope,
    Variable,
)
from fmimaster.system.resolve import Link, ResolvedSystem
from fmimaster.system.shared_events import EventMember


@dataclass(frozen=True, slots=True)
class TriggerPlan:
    """An input clock or counter by its name, and all that makes it act."""

    instance: int
    variable: str
    sources: tuple[tuple[int, str], ...]
    """(instance, output clock) of those that make it active."""
    payload: tuple[Link, ...]
    """What comes along."""

    @property
    def names(self) -> tuple[str, ...]:
        """The input clock or counter, and the inputs that come along."""
        return (self.variable, *(k.input.name for k in self.payload))


@dataclass(frozen=True, slots=True)
class Member:
    """One instance's part in an event."""

    instance: int
    declaration: EventDeclaration
    trigger: int | None
    """Index in the plan's triggers."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event that happens in one instance, or in several at the same superdense instant."""

    name: str
    """With the component's name in front if it is private."""
    scope: Scope
    members: tuple[Member, ...]

    @property
    def instances(self) -> frozenset[int]:
        """Whom it concerns."""
        return frozenset(m.instance for m in self.members)


def plan_events(system: ResolvedSystem) -> tuple[tuple[Event, ...], tuple[TriggerPlan, ...]]:
    """Events and triggers of a system: clock connections first, then what the FMUs and the system say of events."""
    triggers = _of_connections(system)
    by_name = {(t.instance, t.variable): k for k, t in enumerate(triggers)}
    events = []

    def member(
        i: int,
        declaration: EventDeclaration,
        others: Sequence[EventMember] = (),
        payload: Sequence[Link] = (),
    ) -> Member:
        name = declaration.trigger
        if name is None:
            return Member(i, declaration, None)
        if (i, name) in by_name:
            raise DescriptionError(
                f"'{system.components[i].name}.{name}' is connected and triggers the event '{declaration.name}'. "
                "Leave the connection out."
            )
        announcing = [(i, declaration), *((m.component, m.event) for m in others)] if others else []
        sources = tuple(
            (j, d.announce)
            for j, d in announcing
            if d.announce is not None and _is_clock(system.components[j].model, d.announce)
        )
        mine = tuple(link for link in payload if link.target == i)
        triggers.append(TriggerPlan(i, name, sources, mine))
        by_name[i, name] = len(triggers) - 1
        return Member(i, declaration, by_name[i, name])

    linked = set()
    for shared in system.shared_events:
        members = []
        for m in shared.members:
            others = [other for other in shared.members if other is not m]
            members.append(member(m.component, m.event, others, shared.payload))
            linked.add((m.component, m.event.name))
        events.append(Event(shared.name, Scope.SHARED, tuple(members)))
    for i, component in enumerate(system.components):
        for declaration in component.model.events:
            if (i, declaration.name) not in linked:
                name = f"{component.name}.{declaration.name}"
                events.append(Event(name, declaration.scope, (member(i, declaration),)))
    return tuple(events), tuple(triggers)


def _of_connections(system: ResolvedSystem) -> list[TriggerPlan]:
    """A trigger for each connected input clock, with the connected inputs that it clocks."""
    clocks: dict[tuple[int, str], list[Link]] = {}
    for link in system.links:
        if link.input.type is DataType.CLOCK:
            clocks.setdefault((link.target, link.input.name), []).append(link)
    return [
        TriggerPlan(
            target,
            name,
            tuple((k.source, k.output.name) for k in links),
            tuple(k for k in system.links if k.target == target and name in k.input.clocks),
        )
        for (target, name), links in clocks.items()
    ]


def _is_clock(model: Model, name: str) -> bool:
    variable = model.variable(name)
    return variable is not None and variable.type is DataType.CLOCK


def concerned(
    first: frozenset[int],
    triggers: Sequence[TriggerPlan],
    links: Sequence[Link],
    event_modes: Sequence[bool],
) -> tuple[int, ...]:
    """Whom an event reaches: who has Event Mode over any connection, others over clock connections; ``first`` holds all
    members of a shared event."""
    found = set(first)
    while True:
        more = set(found)
        for trigger in triggers:
            if any(j in found for j, _ in trigger.sources):
                more.add(trigger.instance)
        for link in links:
            if link.source in found and event_modes[link.target]:
                more.add(link.target)
        if more == found:
            return tuple(sorted(found))
        found = more


def event_members(
    system: ResolvedSystem, events: Sequence[Event], triggers: Sequence[TriggerPlan]
) -> tuple[list[set[str]], list[list[str]], list[set[str]]]:
    """Per instance, the names of what events want: outputs to read, triggers with payload, output clocks."""
    outputs: list[set[str]] = [set() for _ in system.components]
    given: list[list[str]] = [[] for _ in system.components]
    clocks: list[set[str]] = [set() for _ in system.components]
    for event in events:
        for m in event.members:
            for indicator in m.declaration.indicators:
                outputs[m.instance].add(indicator.name)
                if indicator.derivative:
                    outputs[m.instance].add(indicator.derivative)
    for i, component in enumerate(system.components):
        if component.model.look_ahead is not None:
            outputs[i].add(component.model.look_ahead)
    for trigger in triggers:
        given[trigger.instance] += [n for n in trigger.names if n not in given[trigger.instance]]
        for link in trigger.payload:
            outputs[link.source].add(link.output.name)
        for j, name in trigger.sources:
            clocks[j].add(name)
    return outputs, given, clocks


def stops_at_events(model: Model, policy: str) -> bool:
    """Whether an instance may end a step at an event of its own, if it is allowed to and told this policy."""
    chosen = model.event_policy
    if chosen is not None and chosen.ignore is not None and policy == "ignore":
        return False
    if model.capabilities.has_event_mode:
        return model.capabilities.might_return_early_from_do_step
    return chosen is not None and policy == "announce"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger in terms of the value store."""

    instance: int
    name: str
    segments: tuple[Segment, ...]
    """What is set when it is active, in this order, one call each."""
    counter: int | None
    """Slot of the Int32 that counts; None for a clock."""
    sources: tuple[int, ...]
    """Slots of the output clocks that make it active."""


def place_triggers(plans: Sequence[TriggerPlan], layout: Layout) -> tuple[Trigger, ...]:
    """The triggers with their slots. A clock comes before what it clocks, a counter after what it brings along."""
    placed = []
    for plan in plans:
        kind, slot = layout.slots[plan.instance, Group.TRIGGERS, plan.variable]
        is_clock = kind is DataType.CLOCK
        names = plan.names if is_clock else (*plan.names[1:], plan.variable)
        placed.append(
            Trigger(
                plan.instance,
                plan.variable,
                tuple(_segment(layout, plan.instance, name) for name in names),
                None if is_clock else slot.start,
                tuple(layout.slots[j, Group.CLOCKS, name][1].start for j, name in plan.sources),
            )
        )
    return tuple(placed)


def _segment(layout: Layout, i: int, name: str) -> Segment:
    kind, slot = layout.slots[i, Group.TRIGGERS, name]
    variables: Mapping[str, Variable] = {
        v.name: v for s in layout.segments(i, Group.TRIGGERS) for v in s.variables
    }
    return Segment(kind, slot.start, slot.stop, (variables[name],))
