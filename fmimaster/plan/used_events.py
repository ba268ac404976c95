"""The events declared by FMUs that a run uses."""

from __future__ import annotations

from dataclasses import replace

from fmimaster.plan.policy import EventUse
from fmimaster.system.model import EventDeclaration, Model, Scope
from fmimaster.system.resolve import ResolvedSystem


def with_used_events(system: ResolvedSystem, use: EventUse) -> ResolvedSystem:
    """The system with the events that a run uses, and notes about the others."""
    if not use.watched:
        return _without_events(system)
    system = _without_lone_events(system)
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


def _without_lone_events(system: ResolvedSystem) -> ResolvedSystem:
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
    inputs = {name for z in event.indicators for name in model.dependencies.get(z.name, ())}
    return bool(inputs) and connected.isdisjoint((i, name) for name in inputs)


def _without_untriggered(system: ResolvedSystem) -> ResolvedSystem:
    """The system without private events that the importer cannot fire, in FMUs with other events that it can fire.

    FMUs that execute all of their events themselves, in Event Mode or inside a step, keep them: they are predicted.
    """
    components, notes = [], list(system.notes)
    for c in system.components:
        own = [e for e in c.model.events if e.trigger is None and e.scope is Scope.PRIVATE]
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
