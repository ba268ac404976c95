"""Events of a system: the instances that each event affects, and the triggers that fire it in them.

Clock connections and shared events have the same form: a trigger of an instance, which is active if any of several
output clocks is active, and inputs that are set together with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError
from fmimaster.plan.contacts import motion, with_served_contacts
from fmimaster.plan.graph import collected
from fmimaster.plan.layout import Group, Layout, Route, Segment
from fmimaster.plan.policy import EventUse
from fmimaster.system.clocks import ClockAttributes
from fmimaster.system.declarations import EventDeclaration, Scope
from fmimaster.system.model import Causality, DataType, Model
from fmimaster.system.resolved import Link, ResolvedSystem


def with_used_events(system: ResolvedSystem, use: EventUse) -> ResolvedSystem:
    """The system with the events that a run uses, and notes about the others."""
    if not use.watched:
        return _without_events(system)
    system = with_served_contacts(without_lone_events(system), use.fires)
    return _without_untriggered(system) if use.fires else system


def _without_events(system: ResolvedSystem) -> ResolvedSystem:
    """The system without the events that its FMUs declare; clock connections stay."""
    components = tuple(
        replace(c, model=replace(c.model, events=(), look_ahead=None))
        if c.model.events or c.model.look_ahead is not None
        else c
        for c in system.components
    )
    return replace(system, components=components, shared_events=())


def without_lone_events(system: ResolvedSystem) -> ResolvedSystem:
    """The system without shared events that have no other member: nothing feeds an input of their indicators.

    For example, a ball at the end of a row has a neighbour on one side only. An event that is missing in the system
    description is kept: its indicators depend on connected inputs.
    """
    connected = {(k.target, k.input.name) for k in system.links}
    declared = {(m.component, m.event.name) for e in system.shared_events for m in e.members}
    components, notes = [], list(system.notes)
    for i, c in enumerate(system.components):
        lone = [
            e
            for e in c.model.events
            if e.scope is Scope.SHARED
            and (i, e.name) not in declared
            and _has_inputs_but_none_of(connected, i, e, c.model)
        ]
        notes += [
            f"'{c.name}' shares its event '{e.name}' with no component: no input of its indicators is connected"
            for e in lone
        ]
        kept = tuple(e for e in c.model.events if e not in lone)
        components.append(replace(c, model=replace(c.model, events=kept)) if lone else c)
    return replace(system, components=tuple(components), notes=tuple(notes))


def _has_inputs_but_none_of(
    connected: set[tuple[int, str]], i: int, event: EventDeclaration, model: Model
) -> bool:
    inputs = inputs_of(event, model)
    return bool(inputs) and connected.isdisjoint((i, name) for name in inputs)


def inputs_of(event: EventDeclaration, model: Model) -> set[str]:
    """The inputs on which its indicators depend directly."""
    return {name for z in event.indicators for name in model.dependencies.get(z.name, ())}


def _without_untriggered(system: ResolvedSystem) -> ResolvedSystem:
    """The system without private events that the importer cannot fire, in FMUs with other events that it can fire.

    FMUs that execute all of their events themselves, in Event Mode or inside a step, keep them: they are predicted.
    """
    components, notes = [], list(system.notes)
    for c in system.components:
        own = [e for e in c.model.events if e.trigger is None and e.scope is not Scope.SHARED]
        if own:
            what, why = f"event '{own[0].name}'", "it has no trigger"
            if len(own) > 1:
                what, why = (
                    f"{len(own)} events without a trigger",
                    "fmimaster info --all lists them",
                )
            notes.append(f"'{c.name}' executes its {what} itself: {why}")
        model = c.model
        if len(own) == len(model.events):
            # an FMU whose events are fired by the importer would never execute these
            model = replace(model, event_policy=None)
        elif model.event_policy is not None:
            model = replace(model, events=tuple(e for e in model.events if e not in own))
        components.append(replace(c, model=model))
    return replace(system, components=tuple(components), notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class Trigger:
    """An input clock or counter, the clocks that make it active, and the inputs that are set together with it."""

    instance: int
    name: str
    clocks: tuple[tuple[int, str], ...]
    """(instance, clock) of those that make it active."""
    links: tuple[Link, ...]
    """The links to the inputs that are set together with it: the payload."""
    clock: ClockAttributes | None = None
    """Of a time-based clock: the calendar makes it active."""
    sources: tuple[int, ...] = ()
    """Slots of the clocks that make it active."""
    payload: tuple[Route, ...] = ()
    """The links in terms of the value store."""
    segments: tuple[Segment, ...] = ()
    """Segments that are set when it is active, in this order, one call each."""
    counter: int | None = None
    """Slot of the Int32 that counts; None for a clock."""
    impulse: str | None = None
    """The input for the impulse of a contact, which the run determines."""
    shown: int | None = None
    """Slot of the clock among the INPUT_CLOCKS; None if nobody needs it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The input clock or counter, and the inputs that are set together with it."""
        impulse = () if self.impulse is None else (self.impulse,)
        return (self.name, *(k.input.name for k in self.links), *impulse)


@dataclass(frozen=True, slots=True)
class PlanMember:
    """The part of one instance in an event."""

    instance: int
    declaration: EventDeclaration
    trigger: int | None
    """Index in the plan's triggers."""


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """An event in one instance, or in several at the same superdense instant."""

    name: str
    """With the component's name in front if it is private."""
    scope: Scope
    members: tuple[PlanMember, ...]
    instances: frozenset[int] = field(init=False, compare=False)
    """Those in which it happens."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "instances", frozenset(m.instance for m in self.members))


def executes_itself(member: PlanMember, importer_fires: bool) -> bool:
    """Whether an instance executes an event itself: the importer does not fire it there."""
    return not importer_fires or member.trigger is None


def counter_of(model: Model, declaration: EventDeclaration) -> str | None:
    """The output in which an FMU counts an event; None if it has none, or announces it by a clock."""
    name = declaration.announce
    return None if name is None or _is_clock(model, name) else name


def plan_events(system: ResolvedSystem) -> tuple[tuple[PlanEvent, ...], tuple[Trigger, ...]]:
    """Events and triggers of a system, the latter without slots: first clock connections, then declared events."""
    triggers = _of_connections(system)
    by_name = {(t.instance, t.name): k for k, t in enumerate(triggers)}

    def member(i: int, declaration: EventDeclaration, links: Sequence[Link] = ()) -> PlanMember:
        name = declaration.trigger
        if name is None:
            return PlanMember(i, declaration, None)
        if (i, name) in by_name:
            raise DescriptionError(
                f"'{system.components[i].name}.{name}' is connected and triggers the event '{declaration.name}'. "
                "Leave the connection out."
            )
        impulse = None if declaration.contact is None else declaration.contact.impulse
        triggers.append(Trigger(i, name, (), tuple(links), impulse=impulse))
        by_name[i, name] = len(triggers) - 1
        return PlanMember(i, declaration, by_name[i, name])

    events, linked = [], set()
    for shared in system.shared_events:
        payload = collected((link.target, link) for link in shared.payload)
        members = tuple(
            member(m.component, m.event, payload.get(m.component, ())) for m in shared.members
        )
        linked |= {(m.component, m.event.name) for m in shared.members}
        events.append(PlanEvent(shared.name, Scope.SHARED, members))
    for i, component in enumerate(system.components):
        for declaration in component.model.events:
            if (i, declaration.name) not in linked:
                name = f"{component.name}.{declaration.name}"
                events.append(PlanEvent(name, declaration.scope, (member(i, declaration),)))
    return tuple(events), tuple(triggers)


def _of_connections(system: ResolvedSystem) -> list[Trigger]:
    """A trigger for each input clock that is connected or time-based, with the connected inputs that it clocks."""
    clocks = collected(
        ((k.target, k.input.name), (k.source, k.output.name))
        for k in system.links
        if k.input.type is DataType.CLOCK
    )
    clocked = collected(((k.target, clock), k) for k in system.links for clock in k.input.clocks)
    found = [
        Trigger(i, name, sources, clocked.get((i, name), ()))
        for (i, name), sources in clocks.items()
    ]
    for i, component in enumerate(system.components):
        can = component.model.capabilities
        for v in component.model.with_causality(Causality.INPUT):
            if v.clock is None or not v.clock.is_time_based or (i, v.name) in clocks:
                continue
            if can.has_event_mode:
                found.append(Trigger(i, v.name, (), clocked.get((i, v.name), ()), v.clock))
    return found


def _is_clock(model: Model, name: str) -> bool:
    variable = model.variable(name)
    return variable is not None and variable.type is DataType.CLOCK


def reached_by_events(
    triggers: Iterable[Trigger], links: Iterable[Link], event_modes: Sequence[bool]
) -> dict[int, tuple[int, ...]]:
    """Instance → instances that an event in it affects directly: over clock connections all, over other connections
    those with Event Mode."""
    found: dict[int, dict[int, None]] = {}
    for trigger in triggers:
        for j, _ in trigger.clocks:
            found.setdefault(j, {})[trigger.instance] = None
    for link in links:
        if event_modes[link.target]:
            found.setdefault(link.source, {})[link.target] = None
    return {i: tuple(targets) for i, targets in found.items()}


def concerned(first: frozenset[int], reached: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    """Instances that an event affects.

    Parameters
    ----------
    first
        Those in which it happens: all members of a shared event.
    reached
        What :func:`reached_by_events` returns.
    """
    found, new = set(first), list(first)
    while new:
        for i in reached.get(new.pop(), ()):
            if i not in found:
                found.add(i)
                new.append(i)
    return tuple(sorted(found))


def event_members(
    system: ResolvedSystem,
    events: Sequence[PlanEvent],
    triggers: Sequence[Trigger],
    importer_fires: bool,
) -> tuple[list[set[str]], list[set[str]], list[set[str]]]:
    """Per instance, the names that events need: outputs to read, triggers with payload, output clocks."""
    outputs: list[set[str]] = [set() for _ in system.components]
    given: list[set[str]] = [set() for _ in system.components]
    clocks: list[set[str]] = [set() for _ in system.components]
    for event in events:
        for m in event.members:
            for indicator in m.declaration.indicators:
                outputs[m.instance].add(indicator.name)
                if indicator.derivative:
                    outputs[m.instance].add(indicator.derivative)
            if m.declaration.active is not None:
                outputs[m.instance].add(m.declaration.active)
            if (contact := m.declaration.contact) is not None:
                names = contact.velocity, contact.inverse_mass, contact.restitution
                outputs[m.instance].update(names)
                found = motion(system.components[m.instance].model, contact)
                outputs[m.instance].update(n for n in found if n is not None)
            counter = counter_of(system.components[m.instance].model, m.declaration)
            if counter is not None and executes_itself(m, importer_fires):
                outputs[m.instance].add(counter)
    for i, component in enumerate(system.components):
        if component.model.look_ahead is not None:
            outputs[i].add(component.model.look_ahead)
    for trigger in triggers:
        given[trigger.instance].update(trigger.names)
        for link in trigger.links:
            outputs[link.source].add(link.output.name)
        for j, name in trigger.clocks:
            clocks[j].add(name)
    return outputs, given, clocks


def place_triggers(triggers: Iterable[Trigger], layout: Layout) -> tuple[Trigger, ...]:
    """The triggers with their slots. A clock is set before what it clocks, a counter after its payload."""
    variables = {
        (i, s.type, v.name): v
        for i, groups in enumerate(layout.groups)
        for s in groups.get(Group.TRIGGERS, ())
        for v in s.variables
    }

    def segment(i: int, name: str) -> Segment:
        kind, slot = layout.slots[i, Group.TRIGGERS, name]
        return Segment(kind, slot.start, slot.stop, (variables[i, kind, name],))

    def route(link: Link) -> Route:
        kind, source = layout.placed(link.source, link.output.name)
        target_kind, target = layout.slots[link.target, Group.TRIGGERS, link.input.name]
        return Route(link, kind, source, target_kind, target, ())

    placed = []
    for trigger in triggers:
        i = trigger.instance
        kind, slot = layout.slots[i, Group.TRIGGERS, trigger.name]
        is_clock = kind is DataType.CLOCK
        names = trigger.names if is_clock else (*trigger.names[1:], trigger.name)
        placed.append(
            replace(
                trigger,
                sources=tuple(layout.placed(j, c)[1].start for j, c in trigger.clocks),
                payload=tuple(route(link) for link in trigger.links),
                segments=tuple(segment(i, name) for name in names),
                counter=None if is_clock else slot.start,
                shown=_shown(layout, i, trigger.name),
            )
        )
    return tuple(placed)


def _shown(layout: Layout, instance: int, name: str) -> int | None:
    found = layout.slots.get((instance, Group.INPUT_CLOCKS, name))
    return None if found is None else found[1].start
