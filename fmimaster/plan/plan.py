"""The plan of a system: everything that can be known before an FMU is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from fmimaster.errors import OptionError, did_you_mean
from fmimaster.plan.events import (
    Event,
    Trigger,
    TriggerPlan,
    event_members,
    place_triggers,
    plan_events,
    stops_at_events,
)
from fmimaster.plan.graph import (
    AlgebraicLoop,
    Visit,
    dependency_arcs,
    trigger_sequence,
    visits,
)
from fmimaster.plan.layout import Group, Layout, make_layout
from fmimaster.system.description import Source, Transformation
from fmimaster.system.model import Causality, DataType, Initial, Model, Scope, Variable
from fmimaster.system.resolve import Link, ResolvedComponent, ResolvedSystem, is_lossless


class Policy(Enum):
    """What FMUs do at their own events, if they let the importer choose."""

    EXECUTE = "execute"
    """They execute them, inside a step or in Event Mode."""
    ANNOUNCE = "announce"
    """They stop there, and leave it to the importer to let them happen."""
    IGNORE = "ignore"
    """They step over them: the importer fires them."""


@dataclass(frozen=True)
class InstancePlan:
    """One instance: what it is made from and what it is given at the start."""

    name: str
    source: Source
    model: Model
    start_values: Mapping[str, tuple[Any, ...]]
    """Variable name → values of all its elements; no array, so that plans can be compared."""
    event_mode: bool = False
    """Whether its Event Mode is used."""
    may_return_early: bool = False
    """Whether it may end a step early, at an event of its own."""
    policies: tuple[Policy, ...] = ()
    """What it does at its own events, in each variant of the algorithm."""

    @property
    def takes_polynomials(self) -> bool:
        """Whether its inputs can be given as polynomials over a step."""
        can = self.model.capabilities
        return (
            can.max_input_derivative_order > 0
            or can.provides_intermediate_update
            or bool(self.model.input_polynomials)
        )


@dataclass(frozen=True, slots=True)
class EventUse:
    """What a run wants of the events of its FMUs."""

    watched: bool = False
    """Whether indicators are read."""
    fires: bool = False
    """Whether the importer fires events: then private ones without a trigger are the FMUs' own affair."""
    policy: Policy = Policy.EXECUTE
    """For all instances, if there are no others."""
    policies: tuple[Mapping[int, Policy], ...] = ()
    """For each variant of the algorithm, by instance."""
    early_return: bool | None = None
    """Whether FMUs may end a step at their events; None: if Event Mode is used for clock connections."""
    event_mode: bool | None = None
    """Whether Event Mode is used; None: where clocks are connected or the policy asks for it."""

    @property
    def tuned(self) -> bool:
        """Whether policies, and whether inputs are polynomials, change during the run."""
        return len(self.policies) > 1

    def policies_of(self, instance: int) -> tuple[Policy, ...]:
        """The policy for one instance in each variant of the algorithm; one if there is no difference."""
        return tuple(p.get(instance, Policy.EXECUTE) for p in self.policies) or (self.policy,)


@dataclass(frozen=True, slots=True)
class Route:
    """A link in terms of the value store."""

    link: Link
    source_type: DataType
    source: slice
    target_type: DataType
    target: slice
    derivatives: tuple[slice, ...]
    """Outputs that are the first, second, … derivative of the source; Float64."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self.target.stop - self.target.start)

    @property
    def is_lossless(self) -> bool:
        """Whether no value can be lost by the conversion of types, but by rounding to Float32."""
        return is_lossless(self.link.output, self.link.input)

    @property
    def transformation(self) -> Transformation:
        """What happens to a value on the way."""
        return self.link.transformation


@dataclass(frozen=True, slots=True)
class Recorded:
    """A variable that is a column of the results."""

    name: str
    instance: int
    variable: Variable
    slot: slice


@dataclass(frozen=True, slots=True)
class StepOrder:
    """What is known of the instances before there is a plan."""

    names: tuple[str, ...]
    """In the order of the system description."""
    trigger_sequence: tuple[int, ...]
    """Instance indices, upstream first."""


@dataclass(frozen=True)
class Plan:
    """One system, ready to be computed."""

    instances: tuple[InstancePlan, ...]
    """In the order of the system description."""
    links: tuple[Link, ...]
    trigger_sequence: tuple[int, ...]
    """Instance indices, upstream first."""
    visits: tuple[Visit, ...]
    """Order of set-and-get in Initialization Mode; an instance may recur."""
    step_loops: tuple[AlgebraicLoop, ...]
    """Algebraic loops by the dependencies of Step Mode."""
    layout: Layout
    routes: Mapping[tuple[int, Group], tuple[Route, ...]]
    """What feeds each group of each instance, in the order of its slots."""
    recorded: tuple[Recorded, ...]
    notes: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    """Those that the run watches or fires."""
    trigger_plans: tuple[TriggerPlan, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    """In the order of the plans of triggers."""
    payload: Mapping[int, tuple[Route, ...]] = field(default_factory=dict)
    """Trigger → what comes along."""

    @property
    def step_order(self) -> StepOrder:
        """Names of all instances, and the trigger sequence."""
        return StepOrder(tuple(i.name for i in self.instances), self.trigger_sequence)

    @property
    def members(self) -> tuple[int, ...]:
        """Indices of the instances that are stepped, in the order of the system description.

        All of them; in the plan of a part of the system those of its trigger sequence.
        """
        return tuple(sorted(self.trigger_sequence))

    @property
    def initial_loops(self) -> tuple[AlgebraicLoop, ...]:
        """Algebraic loops in Initialization Mode."""
        return tuple(v.loop for v in self.visits if v.loop is not None)

    def has_inputs(self, instance: int) -> bool:
        """Whether anything feeds the instance."""
        return any((instance, g) in self.routes for g in (Group.CONTINUOUS, Group.DISCRETE))

    def triggers_of(self, instance: int) -> tuple[int, ...]:
        """Indices of the triggers of an instance."""
        return tuple(k for k, t in enumerate(self.triggers) if t.instance == instance)


def step_order(system: ResolvedSystem) -> StepOrder:
    """Names and trigger sequence of a system."""
    models = [c.model for c in system.components]
    return StepOrder(
        tuple(c.name for c in system.components), trigger_sequence(models, system.links)
    )


def make_plan(
    system: ResolvedSystem,
    *,
    outputs: Sequence[str] = (),
    bare_names: bool = False,
    use: EventUse | None = None,
    fitted: frozenset[int] = frozenset(),
) -> Plan:
    """Derive the plan of a system: a pure function.

    Parameters
    ----------
    outputs
        Globs of the names ``"component.variable"`` to record; empty for the outputs of all components.
    bare_names : bool
        Whether columns of the first component are named without its name, as users of single FMUs expect.
    use
        What the run wants of events; nothing, if left out.
    fitted
        Instances that are given polynomials: those that take them as coefficients are told so by a start value.

    Raises
    ------
    OptionError
        If a glob fits no variable.
    """
    models = [c.model for c in system.components]
    sequence = trigger_sequence(models, system.links)
    stops = visits(
        dependency_arcs(models, system.links, initial=True),
        dependency_arcs(models, system.links, initial=True, assumed=False),
        sequence,
    )
    step_stops = visits(
        dependency_arcs(models, system.links, initial=False),
        dependency_arcs(models, system.links, initial=False, assumed=False),
        sequence,
    )
    chosen = _chosen(system.components, outputs, bare_names)
    use = use or EventUse()
    if not use.watched:
        system = without_events(system)
    elif use.fires:
        system = without_untriggered(system)
    events, triggers = plan_events(system)
    system = _with_start_values(system, use, fitted)
    wanted = event_members(system, events, triggers)
    tuned = [set(tuned_parameters(c.model)) if use.tuned else set() for c in system.components]
    layout = make_layout(_members(system, [(i, v) for i, v, _ in chosen], *wanted, tuned))
    clocked = {t.instance for t in triggers} | {j for t in triggers for j, _ in t.sources}
    connected = any(k.input.type is DataType.CLOCK for k in system.links)
    return Plan(
        instances=tuple(
            _instance(c, i, use, i in clocked, connected) for i, c in enumerate(system.components)
        ),
        links=system.links,
        trigger_sequence=sequence,
        visits=stops,
        step_loops=tuple(v.loop for v in step_stops if v.loop is not None),
        layout=layout,
        routes=_routes(system.links, layout),
        recorded=tuple(
            Recorded(name, i, v, layout.slots[i, Group.OUTPUTS, v.name][1]) for i, v, name in chosen
        ),
        notes=system.notes,
        events=events,
        trigger_plans=triggers,
        triggers=place_triggers(triggers, layout),
        payload={k: _payload_routes(t, layout) for k, t in enumerate(triggers) if t.payload},
    )


def _instance(
    component: ResolvedComponent, i: int, use: EventUse, clocked: bool, connected: bool
) -> InstancePlan:
    model, policies = component.model, use.policies_of(i)
    can = model.capabilities
    wanted = clocked or {*policies} != {Policy.EXECUTE} or bool(use.early_return)
    event_mode = can.has_event_mode and (wanted if use.event_mode is None else use.event_mode)
    early_return = (
        connected or bool(use.event_mode) if use.early_return is None else use.early_return
    )
    early_return = early_return and (event_mode or not can.has_event_mode)
    return InstancePlan(
        component.name,
        component.source,
        model,
        {n: tuple(v.tolist()) for n, v in component.start_values.items()},
        event_mode,
        early_return and any(stops_at_events(model, policy.value) for policy in policies),
        policies,
    )


def without_events(system: ResolvedSystem) -> ResolvedSystem:
    """The system without what its FMUs say of events; clock connections stay."""
    components = tuple(
        replace(c, model=replace(c.model, events=(), look_ahead=None)) for c in system.components
    )
    return replace(system, components=components, shared_events=())


def without_untriggered(system: ResolvedSystem) -> ResolvedSystem:
    """The system without private events that the importer cannot trigger: the FMUs execute them by themselves."""
    components, notes = [], list(system.notes)
    for c in system.components:
        kept = tuple(e for e in c.model.events if e.trigger or e.scope is Scope.SHARED)
        dropped = [e.name for e in c.model.events if e not in kept]
        notes += [f"'{c.name}' sees to its event '{n}' itself: it has no trigger" for n in dropped]
        # who is told to leave its events to the importer would wait for ever
        policy = c.model.event_policy if kept or not dropped else None
        model = replace(c.model, events=kept, event_policy=policy)
        components.append(replace(c, model=model))
    return replace(system, components=tuple(components), notes=tuple(notes))


def _with_start_values(
    system: ResolvedSystem, use: EventUse, fitted: frozenset[int]
) -> ResolvedSystem:
    """The system with the parameters that say what FMUs do at events and with polynomials, where the user does not."""
    components, notes = [], list(system.notes)
    for i, component in enumerate(system.components):
        model, added = component.model, dict[str, int]()
        policy = use.policies_of(i)[0]
        if policy is not Policy.EXECUTE or i in fitted:
            asked = tuned_parameters(model, policy, i in fitted)
            added = {name: value for name, value in asked.items() if value is not None}
        for name, value in added.items():
            given = component.start_values.get(name)
            if given is not None and int(given[0]) != value:
                raise OptionError(
                    f"The start value {int(given[0])} of '{component.name}.{name}' contradicts the event clock or the "
                    f"algorithm, which needs {value}. Leave the start value out."
                )
        added = {n: v for n, v in added.items() if n not in component.start_values}
        values = {n: np.array([v], _dtype(model, n)) for n, v in added.items()}
        components.append(replace(component, start_values={**component.start_values, **values}))
        reason = {
            None: "its inputs come as polynomials",
            Policy.EXECUTE: "it executes its events itself",
            Policy.ANNOUNCE: "it stops at its events, and the importer fires them",
            Policy.IGNORE: "it steps over its events, and the importer fires them",
        }
        own = None if model.event_policy is None else model.event_policy.parameter
        for n, v in added.items():
            why = reason[policy if n == own else None]
            notes.append(f"'{component.name}.{n}' is set to {v}: {why}")
    return replace(system, components=tuple(components), notes=tuple(notes))


def tuned_parameters(
    model: Model, policy: Policy = Policy.EXECUTE, fitted: bool = False
) -> dict[str, int | None]:
    """Parameters by which an FMU is told a policy, and that inputs come as coefficients; None for as the FMU starts."""
    found: dict[str, int | None] = {}
    if model.event_policy is not None:
        found[model.event_policy.parameter] = getattr(model.event_policy, policy.value)
    for polynomial in model.input_polynomials:
        if polynomial.parameter is not None:
            found[polynomial.parameter] = polynomial.value if fitted else None
    return found


def _dtype(model: Model, name: str) -> np.dtype[Any]:
    variable = model.variable(name)
    assert variable is not None
    return variable.type.dtype


def _payload_routes(trigger: TriggerPlan, layout: Layout) -> tuple[Route, ...]:
    routes = []
    for link in trigger.payload:
        kind, source = layout.slots[link.source, Group.OUTPUTS, link.output.name]
        target_kind, target = layout.slots[trigger.instance, Group.TRIGGERS, link.input.name]
        routes.append(Route(link, kind, source, target_kind, target, ()))
    return tuple(routes)


def _chosen(
    components: Sequence[ResolvedComponent], globs: Sequence[str], bare_names: bool
) -> list[tuple[int, Variable, str]]:
    """Variables to record: instance, variable, name of the column."""
    every = [
        (i, v, v.name if bare_names and i == 0 else f"{c.name}.{v.name}")
        for i, c in enumerate(components)
        for v in c.model.variables
        if v.type not in (DataType.BINARY, DataType.CLOCK)
        and not v.clocks
        and v.causality is not Causality.INDEPENDENT
    ]
    if not globs:
        return [
            (i, v, name)
            for i, v, name in every
            if v.causality is Causality.OUTPUT and not (bare_names and i > 0)
        ]
    names = [name for _, _, name in every]
    for glob in globs:
        if not any(_fits(name, glob) for name in names):
            raise OptionError(
                f"Output variable '{glob}' fits no variable.{did_you_mean(glob, names)}"
            )
    return [entry for entry in every if any(_fits(entry[2], glob) for glob in globs)]


def _fits(name: str, glob: str) -> bool:
    """Whether a name is the glob or fits it; brackets belong to names of array elements, not to the glob."""
    return name == glob or fnmatchcase(name, glob.replace("[", "[[]"))


def _members(
    system: ResolvedSystem,
    recorded: Sequence[tuple[int, Variable]],
    watched: Sequence[set[str]],
    triggers: Sequence[Sequence[str]],
    clocks: Sequence[set[str]],
    tuned: Sequence[set[str]],
) -> list[dict[Group, list[Variable]]]:
    """Variables of each group of each instance, each group in the order of the model description."""
    members = []
    for i, component in enumerate(system.components):
        fed = {k.input.name: k for k in system.links if k.target == i}
        read = {k.output.name for k in system.links if k.source == i}
        read |= {v.name for j, v in recorded if j == i} | watched[i]
        read -= {v.name for v in component.model.variables if v.type is DataType.CLOCK}
        slopes = {
            v.derivative_of: v.name
            for v in component.model.with_causality(Causality.OUTPUT)
            if v.type is DataType.FLOAT64
        }
        for name in list(read):
            while (name := slopes.get(name, "")) and name not in read:
                read.add(name)
        given = component.start_values.keys()
        groups: dict[Group, list[Variable]] = {group: [] for group in Group}
        for v in component.model.variables:
            if v.name in read:
                groups[Group.OUTPUTS].append(v)
            if v.name in triggers[i]:
                groups[Group.TRIGGERS].append(v)
            elif v.name in fed:
                continuous = v.is_continuous and v.type is DataType.FLOAT64
                groups[Group.CONTINUOUS if continuous else Group.DISCRETE].append(v)
            if v.name in tuned[i]:
                groups[Group.TUNED].append(v)
            if v.name in clocks[i]:
                groups[Group.CLOCKS].append(v)
            if v.name in given and v.causality is Causality.STRUCTURAL_PARAMETER:
                groups[Group.STRUCTURAL].append(v)
            elif v.name in given:
                groups[Group.START].append(v)
                if v.initial is Initial.EXACT and v.name not in fed:
                    groups[Group.INITIAL].append(v)
        members.append(groups)
    return members


def _routes(links: Sequence[Link], layout: Layout) -> dict[tuple[int, Group], tuple[Route, ...]]:
    by_target = {(k.target, k.input.name): k for k in links}
    derivative_of: dict[tuple[int, str], str] = {}
    for i, groups in enumerate(layout.groups):
        for segment in groups.get(Group.OUTPUTS, ()):
            for v in segment.variables:
                if v.derivative_of and v.type is DataType.FLOAT64:
                    derivative_of[i, v.derivative_of] = v.name
    routes: dict[tuple[int, Group], tuple[Route, ...]] = {}
    for i, groups in enumerate(layout.groups):
        for group in (Group.CONTINUOUS, Group.DISCRETE):
            found = []
            for segment in groups.get(group, ()):
                for name, target in segment.slots().items():
                    link = by_target[i, name]
                    kind, source = layout.slots[link.source, Group.OUTPUTS, link.output.name]
                    slots, output = [], link.output.name
                    while output := derivative_of.get((link.source, output), ""):
                        slot = layout.slots[link.source, Group.OUTPUTS, output][1]
                        if slot in slots:  # a circle: the FMU contradicts itself
                            break
                        slots.append(slot)
                    found.append(Route(link, kind, source, segment.type, target, tuple(slots)))
            if found:
                routes[i, group] = tuple(found)
    return routes
