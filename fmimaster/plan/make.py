"""Makes the plan of a resolved system."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError
from fmimaster.plan.clocks import (
    check_clocks,
    clock_differences,
    clock_notes,
    clock_warnings,
    only_ticking,
    refuse_without_event_mode,
    without_clocked_links,
)
from fmimaster.plan.corrections import find_corrections
from fmimaster.plan.events import (
    PlanEvent,
    Trigger,
    event_members,
    place_triggers,
    plan_events,
    with_used_events,
)
from fmimaster.plan.graph import Node, dependency_graph
from fmimaster.plan.layout import Group, Layout, Signal, make_layout, routes
from fmimaster.plan.links import (
    Links,
    clocked_visits,
    connected_parameters,
    held_inputs,
    is_clocked,
    loops_without_delay,
    other_programs,
    unread_outputs,
)
from fmimaster.plan.plan import InstancePlan, Instances, Plan, StepOrder, Tolerance, own_tolerance
from fmimaster.plan.policy import EventUse, Policy, stops_at_events, stops_inside
from fmimaster.plan.power_bonds import bond_signals, place_bonds
from fmimaster.plan.step_groups import (
    Loops,
    SteadyState,
    in_order_of_sweeps,
    settled,
    steady_notes,
    steady_states,
    step_groups,
    with_start_values,
)
from fmimaster.plan.variables import (
    NOTHING_RECORDED,
    Chosen,
    Recorded,
    chosen_variables,
    group_members,
    initial_sources,
    place_columns,
)
from fmimaster.plan.visits import Visits, visits
from fmimaster.sequences.methods import SequenceSetting, choose_sequence
from fmimaster.sequences.weights import units_of
from fmimaster.system.declarations import Interface, Scope
from fmimaster.system.model import DataType, Model
from fmimaster.system.resolved import ResolvedSystem


def step_order(
    system: ResolvedSystem,
    sequence: SequenceSetting | None = None,
    described: Sequence[str] = (),
    unnamed: Collection[str] = (),
    loops: Loops = Loops.REAL,
    *,
    matters: bool = True,
) -> StepOrder:
    """Names and trigger sequence of a system: the information for an algorithm before there is a plan.

    Parameters
    ----------
    sequence
        The sequence of the user.
    described
        The sequence in the system description; empty if there is none.
    unnamed
        Components that are not in sequences of users.
    loops
        Which algebraic loops are solved in Step Mode: their members follow each other directly, unless names are given.
    matters
        Whether the results depend on the sequence. If they do not, the best one of a large system is not searched for.

    Raises
    ------
    OptionError
        If a component is missing in a sequence, is repeated, or does not exist.
    """
    names = tuple(c.name for c in system.components)
    models = [c.model for c in system.components]
    groups = step_groups(models, system.links, loops)
    units = units_of(names, models, system.links, groups)
    chosen, by = choose_sequence(units, sequence, described, unnamed, matters=matters)
    index = {name: i for i, name in enumerate(names)}
    return StepOrder(names, tuple(index[name] for name in chosen), by)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a run asks of its plan."""

    outputs: Sequence[str] = ()
    """Globs of the names ``"component.variable"`` to record; empty for the outputs of all components and all signals."""
    bare_names: bool = False
    """Whether columns of the first component are named without its name, as users of single FMUs expect."""
    use: EventUse = EventUse()
    """The use of events in the run."""
    signals: Sequence[Signal] = ()
    """Values that hooks of the algorithm write, which can be recorded like outputs."""
    order: StepOrder | None = None
    """What :func:`step_order` returns, if it is known already."""
    tolerance: Tolerance | None = None
    """The tolerance of the run, for all instances; None for each FMU's own tolerance."""
    loops: Loops = Loops.REAL
    """Which algebraic loops are solved in Step Mode."""
    steady: Sequence[str] = ()
    """Names of states whose start values are unknown, and whose derivatives are 0 at the start."""


def make_plan(system: ResolvedSystem, request: PlanRequest | None = None) -> Plan:
    """Derive the plan of a system: a pure function.

    Of one of several structures of a system, globs may fit nothing, and recorded outputs can be corrected too, so that they
    show a change.

    Raises
    ------
    OptionError
        If a glob fits no variable, or a name no state with a time derivative.
    """
    request = request or PlanRequest()
    draft = PlanDraft(
        system,
        request,
        request.order or step_order(system, loops=request.loops),
        (*request.signals, *bond_signals(system.power_bonds)),
    )
    for complete in PASSES:
        complete(draft)
    return draft.plan


@dataclass(slots=True)
class PlanDraft:
    """A plan while it is made: what was asked for, and what each pass has added."""

    system: ResolvedSystem
    """As far as it takes part in steps: passes leave out what does not."""
    request: PlanRequest
    order: StepOrder
    signals: Sequence[Signal]
    described: ResolvedSystem = field(init=False)
    """The system before clocked links were left out."""
    refreshed: Sequence[bool] = field(init=False)
    """Whether the outputs of each instance are read again with new inputs."""
    chosen: Sequence[Chosen] = field(init=False)
    """The variables to record."""
    silent: Sequence[str] = field(init=False)
    """Notes about variables that are not recorded, because their clocks never tick."""
    events: tuple[PlanEvent, ...] = field(init=False)
    triggers: tuple[Trigger, ...] = field(init=False)
    initial_visits: Visits = field(init=False)
    step_visits: Visits = field(init=False)
    read: list[set[str]] = field(init=False)
    """Variables of each instance that are read."""
    steady: tuple[SteadyState, ...] = field(init=False)
    layout: Layout = field(init=False)
    columns: tuple[Recorded, ...] = field(init=False)
    rows: Mapping[DataType, tuple[int, ...]] = field(init=False)
    instances: Instances = field(init=False)
    plan: Plan = field(init=False)

    @property
    def models(self) -> list[Model]:
        """The model of each instance."""
        return [c.model for c in self.system.components]


def choose_variables(draft: PlanDraft) -> None:
    """Which variables are recorded."""
    draft.chosen = chosen_variables(
        draft.system.components,
        draft.request.outputs,
        draft.request.bare_names,
        draft.signals,
        draft.system.root_connectors,
        must_fit=draft.system.structure is None,
    )


def connect_events(draft: PlanDraft) -> None:
    """The events that the run uses, and what triggers them; variables whose clocks never tick are not recorded."""
    draft.refreshed = [draft.request.use.refreshes and _can_be_refreshed(m) for m in draft.models]
    draft.system = system = with_used_events(draft.system, draft.request.use)
    check_clocks(system)
    draft.events, draft.triggers = plan_events(system)
    refuse_without_event_mode(system, draft.triggers)
    draft.chosen, draft.silent = only_ticking(system, draft.chosen, draft.request.outputs)
    draft.described, draft.system = system, without_clocked_links(system, draft.triggers)


def order_visits(draft: PlanDraft) -> None:
    """The visits in Initialization Mode and in Step Mode."""
    system = draft.system
    links = [k for k in system.links if not is_clocked(k)]
    initial, in_steps = (
        dependency_graph(
            system.components, links, initial=initial, parameter_links=system.parameter_links
        )
        for initial in (True, False)
    )
    sequence = draft.order.trigger_sequence
    draft.initial_visits = visits(initial, sequence)
    is_same = in_steps == initial and [*in_steps.arcs] == [*initial.arcs]  # usual
    draft.step_visits = draft.initial_visits if is_same else visits(in_steps, sequence)
    _refuse_late_parameters(system, draft.initial_visits.loop_of)


def lay_out(draft: PlanDraft) -> None:
    """A place in the value store for each variable that is read or set, and in a row for each that is recorded."""
    use, triggers = draft.request.use, draft.triggers
    draft.read, given, clocks = event_members(draft.system, draft.events, triggers, use.fires)
    for entry in draft.chosen:
        if entry.instance is not None:
            draft.read[entry.instance].add(entry.variable)
    for i, model in enumerate(draft.models):
        draft.read[i].update(name for residual in model.residuals.values() for name in residual)
    sources = initial_sources(draft.system, (k for t in triggers for k in t.links))
    draft.steady = steady_states(draft.system.components, draft.request.steady)
    for s in draft.steady:
        draft.read[s.instance].add(s.derivative)
        sources[s.instance].add(s.derivative)
    draft.system = with_start_values(draft.system, draft.steady)
    members = group_members(draft.system, use, draft.read, given, clocks, sources)
    draft.layout = make_layout(members, draft.signals)
    coupled = {(k.source, k.output.name) for k in draft.system.links if k.source != k.target}
    draft.columns, draft.rows = place_columns(
        draft.system.components, draft.chosen, draft.layout, coupled
    )


def plan_instances(draft: PlanDraft) -> None:
    """How each instance takes part in the run: Event Mode, early return, policies."""
    connected = any(k.input.type is DataType.CLOCK for k in draft.system.links)
    # other instances must go back to an early return, if there are any
    able = [model.capabilities.can_get_and_set_fmu_state for model in draft.models]
    stops_alone = draft.request.use.fires and (len(able) == 1 or all(able))
    draft.instances = Instances(
        _instance(draft, i, connected, stops_alone) for i in range(len(able))
    )


def complete_plan(draft: PlanDraft) -> None:
    """The plan, with its loops, routes, corrections, notes and warnings."""
    system, layout, models = draft.system, draft.layout, draft.models
    instances, order = draft.instances, draft.order
    in_steps = [
        k
        for k in system.links
        if not instances[k.target].event_mode
        or (k.target, Group.DISCRETE, k.input.name) not in layout.slots
    ]
    groups = step_groups(models, in_steps, draft.request.loops)
    step_loops = draft.step_visits.loops
    in_event_mode = [i for i, planned in enumerate(instances) if planned.event_mode]
    draft.plan = Plan(
        instances=instances,
        links=Links(system.links),
        parameter_links=Links(system.parameter_links),
        trigger_sequence=order.trigger_sequence,
        sequence_chosen_by=order.chosen_by,
        visits=draft.initial_visits,
        step_visits=draft.step_visits,
        clocked_visits=clocked_visits(system.links, order.names),
        layout=layout,
        routes=routes((*system.links, *system.parameter_links), layout),
        recorded=draft.columns,
        rows=draft.rows,
        notes=_notes(draft),
        warnings=_warnings(draft),
        events=draft.events,
        triggers=place_triggers(draft.triggers, layout),
        steady=draft.steady,
        power_bonds=place_bonds(system.power_bonds, models, layout),
        corrections=find_corrections(
            models,
            system.links,
            draft.events,
            layout,
            () if system.structure is None else draft.read,
            assumes_linear=draft.request.use.corrects,
        ),
        step_groups=in_order_of_sweeps(groups, step_loops, models, order.trigger_sequence),
        settled=settled(step_loops, models, draft.request.loops, groups, in_event_mode),
        structure=system.structure,
    )


PASSES: Sequence[Callable[[PlanDraft], None]] = (
    choose_variables,
    connect_events,
    order_visits,
    lay_out,
    plan_instances,
    complete_plan,
)
"""What completes a draft, in order."""


def _notes(draft: PlanDraft) -> tuple[str, ...]:
    """Choices that were made, and parts of the system that have no effect."""
    system = draft.system
    return (
        *system.notes,
        *unread_outputs(system),
        *connected_parameters(system),
        *clock_notes(system.components, draft.request.use),
        *held_inputs(system.links, draft.order.names),
        *draft.silent,
        *other_programs(system),
        *steady_notes(system.components, draft.steady),
        *([] if draft.chosen else [NOTHING_RECORDED]),
    )


def _warnings(draft: PlanDraft) -> tuple[str, ...]:
    """What may be wrong in the system."""
    system = draft.system
    return (
        *system.warnings,
        *clock_warnings(draft.described, system.links),
        *clock_differences(system),
        *loops_without_delay(system.links, draft.order.names, draft.models),
        *(warning for bond in system.power_bonds for warning in bond.warnings),
    )


def _refuse_late_parameters(system: ResolvedSystem, inside: Collection[Node]) -> None:
    """Raise if a parameter is calculated from itself over an FMU whose calculated parameters are readable too late."""
    for link in system.parameter_links:
        if (link.source, link.output.name) in inside and not link.output.get_in_initialization:
            source, target = (system.components[i].name for i in (link.source, link.target))
            raise DescriptionError(
                f"Connection '{source}.{link.output.name} -> {target}.{link.input.name}': '{source}' must be "
                f"initialized before its calculated parameter can be read (FMI 2.0), but its initialization depends on "
                f"'{target}.{link.input.name}'. Remove one of the connections on the way, or set the parameter."
            )


def _instance(draft: PlanDraft, i: int, connected: bool, stops_alone: bool) -> InstancePlan:
    """``connected``: whether any clocks are; ``stops_alone``: whether an instance may stop at its own private events."""
    component, use = draft.system.components[i], draft.request.use
    policies = use.policies_of(i)
    model, can = component.model, component.model.capabilities
    wanted = {*policies} != {Policy.EXECUTE} or bool(use.early_return)
    asked = wanted if use.event_mode is None else use.event_mode
    refreshed = draft.refreshed[i] and use.event_mode is not False
    event_mode = can.has_event_mode and (asked or model.has_clocks or refreshed)
    early_return = (
        connected or bool(use.event_mode) if use.early_return is None else use.early_return
    )
    executes = any(e.trigger is None and e.scope is not Scope.SHARED for e in model.events)
    early_return = early_return or (stops_alone and event_mode and executes)
    has_ticks = model.has_clocks and model.interface is Interface.MODEL_EXCHANGE
    early_return = early_return and (event_mode or not can.has_event_mode)
    if use.policies:  # an instance that never announces its events must not stop at them either
        early_return = early_return and Policy.ANNOUNCE in policies
    early_return = early_return or has_ticks  # inside a step, its clocks cannot be read
    return InstancePlan(
        component.name,
        component.source,
        model,
        {n: tuple(v.tolist()) for n, v in component.start_values.items()},
        event_mode,
        (early_return and any(stops_at_events(model, policy) for policy in policies))
        or (use.requests and event_mode and any(stops_inside(model, e) for e in model.events)),
        policies,
        refreshed=refreshed and event_mode,
        priority=component.priority,
        tolerance=draft.request.tolerance or own_tolerance(model),
    )


def _can_be_refreshed(model: Model) -> bool:
    """Whether outputs depend directly on inputs, and no event can happen when Event Mode is entered for them."""
    stops = model.capabilities.might_return_early_from_do_step
    return any(model.dependencies.values()) and not (stops or model.events or model.has_clocks)
