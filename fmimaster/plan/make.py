"""Makes the plan of a resolved system."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from fmimaster.base.errors import DescriptionError
from fmimaster.plan.clocks import (
    clock_notes,
    clock_warnings,
    has_clocks,
    refuse_without_event_mode,
    without_clocked_links,
)
from fmimaster.plan.corrections import find_corrections
from fmimaster.plan.dataflow import clocked_visits, held_inputs, is_clocked, loops_without_delay
from fmimaster.plan.events import event_members, place_triggers, plan_events
from fmimaster.plan.graph import dependency_graph
from fmimaster.plan.layout import Group, Layout, Route, Signal, make_layout
from fmimaster.plan.link_notes import connected_parameters, other_programs, unread_outputs
from fmimaster.plan.links import Links
from fmimaster.plan.loops import Visit, Visits
from fmimaster.plan.members import group_members, initial_sources
from fmimaster.plan.plan import InstancePlan, Instances, Plan, StepOrder
from fmimaster.plan.policy import EventUse, Policy, stops_at_events, stops_inside
from fmimaster.plan.power_bonds import bond_signals, place_bonds
from fmimaster.plan.recorded import NOTHING_RECORDED, chosen_variables, place_columns
from fmimaster.plan.rhythms import check_clocks, clock_differences, only_ticking
from fmimaster.plan.steady import steady_notes, steady_states, with_start_values
from fmimaster.plan.step_groups import Loops, in_order_of_sweeps, settled, step_groups
from fmimaster.plan.tolerance import Tolerance, own_tolerance
from fmimaster.plan.used_events import with_used_events
from fmimaster.plan.visits import visits
from fmimaster.sequences.choice import SequenceSetting, choose_sequence
from fmimaster.sequences.units import units_of
from fmimaster.system.model import DataType, Interface, Model, Scope
from fmimaster.system.resolve import Link, ResolvedComponent, ResolvedSystem


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


def make_plan(
    system: ResolvedSystem,
    *,
    outputs: Sequence[str] = (),
    bare_names: bool = False,
    use: EventUse | None = None,
    signals: Sequence[Signal] = (),
    order: StepOrder | None = None,
    tolerance: Tolerance | None = None,
    loops: Loops = Loops.REAL,
    steady: Sequence[str] = (),
) -> Plan:
    """Derive the plan of a system: a pure function.

    Of one of several structures of a system, globs may fit nothing, and recorded outputs can be corrected too, so that they
    show a change.

    Parameters
    ----------
    outputs
        Globs of the names ``"component.variable"`` to record; empty for the outputs of all components and all signals.
    bare_names : bool
        Whether columns of the first component are named without its name, as users of single FMUs expect.
    use
        The use of events in the run. Default: no use.
    signals
        Values that hooks of the algorithm write, which can be recorded like outputs.
    order
        What :func:`step_order` returns, if it is known already.
    tolerance
        The tolerance of the run, for all instances. Default: each FMU's own tolerance.
    loops
        Which algebraic loops are solved in Step Mode.
    steady
        Names of states whose start values are unknown, and whose derivatives are 0 at the start.

    Raises
    ------
    OptionError
        If a glob fits no variable, or a name no such state.
    """
    order = order or step_order(system, loops=loops)
    signals = (*signals, *bond_signals(system.power_bonds))
    sequence = order.trigger_sequence
    chosen = chosen_variables(
        system.components,
        outputs,
        bare_names,
        signals,
        system.root_connectors,
        must_fit=system.structure is None,
    )
    use = use or EventUse()
    refreshed = [use.refreshes and _can_be_refreshed(c.model) for c in system.components]
    system = with_used_events(system, use)
    check_clocks(system)
    events, triggers = plan_events(system)
    refuse_without_event_mode(system, triggers)
    chosen, silent = only_ticking(system, chosen, outputs)
    described, system = system, without_clocked_links(system, triggers)
    initial_visits, step_visits = _visits(system, sequence)
    models = [c.model for c in system.components]
    read, given, clocks = event_members(system, events, triggers, use.fires)
    for entry in chosen:
        if entry.instance is not None:
            read[entry.instance].add(entry.variable)
    for i, model in enumerate(models):
        read[i].update(name for residual in model.residuals.values() for name in residual)
    sources = initial_sources(system, triggers)
    steady_ones = steady_states(system.components, steady)
    for s in steady_ones:
        read[s.instance].add(s.derivative)
        sources[s.instance].add(s.derivative)
    system = with_start_values(system, steady_ones)
    members = group_members(system, use, read, given, clocks, sources)
    layout = make_layout(members, signals)
    columns, rows = place_columns(system.components, chosen, layout)
    connected = any(k.input.type is DataType.CLOCK for k in system.links)
    # other instances must go back to an early return, if there are any
    able = [c.model.capabilities.can_get_and_set_fmu_state for c in system.components]
    stops_alone = use.fires and (len(able) == 1 or all(able))
    instances = Instances(
        _instance(c, use, use.policies_of(i), connected, stops_alone, refreshed[i], tolerance)
        for i, c in enumerate(system.components)
    )
    in_steps = [
        k
        for k in system.links
        if not instances[k.target].event_mode
        or (k.target, Group.DISCRETE, k.input.name) not in layout.slots
    ]
    groups = step_groups(models, in_steps, loops)
    step_loops = [v.loop for v in step_visits if v.loop is not None]
    return Plan(
        instances=instances,
        links=Links(system.links),
        parameter_links=Links(system.parameter_links),
        trigger_sequence=sequence,
        sequence_chosen_by=order.chosen_by,
        visits=Visits(initial_visits),
        step_visits=Visits(step_visits),
        clocked_visits=clocked_visits(system.links, order.names),
        layout=layout,
        routes=_routes((*system.links, *system.parameter_links), layout),
        recorded=columns,
        rows=rows,
        notes=(
            *system.notes,
            *unread_outputs(system),
            *connected_parameters(system),
            *clock_notes(system.components, use),
            *held_inputs(system.links, order.names),
            *silent,
            *other_programs(system),
            *steady_notes(system.components, steady_ones),
            *([] if chosen else [NOTHING_RECORDED]),
        ),
        warnings=(
            *system.warnings,
            *clock_warnings(described, system.links),
            *clock_differences(system),
            *loops_without_delay(system.links, order.names, models),
            *(warning for bond in system.power_bonds for warning in bond.warnings),
        ),
        events=events,
        triggers=place_triggers(triggers, layout),
        steady=steady_ones,
        power_bonds=place_bonds(system.power_bonds, models, layout),
        corrections=find_corrections(
            models, system.links, events, layout, () if system.structure is None else read
        ),
        step_groups=in_order_of_sweeps(groups, step_loops, models, sequence),
        settled=settled(
            step_loops, models, loops, groups, [i for i, p in enumerate(instances) if p.event_mode]
        ),
        structure=system.structure,
    )


def _visits(
    system: ResolvedSystem, sequence: Sequence[int]
) -> tuple[tuple[Visit, ...], tuple[Visit, ...]]:
    """The visits in Initialization Mode and in Step Mode."""
    links = [k for k in system.links if not is_clocked(k)]
    initial, step = (
        visits(
            dependency_graph(
                system.components,
                links,
                initial=initial,
                parameter_links=system.parameter_links,
            ),
            sequence,
        )
        for initial in (True, False)
    )
    _refuse_late_parameters(system, initial)
    return initial, step


def _refuse_late_parameters(system: ResolvedSystem, visits: Iterable[Visit]) -> None:
    """Raise if a parameter is calculated from itself over an FMU whose calculated parameters are readable too late."""
    inside = {node for v in visits if v.loop for node in v.loop.variables}
    for link in system.parameter_links:
        if (link.source, link.output.name) in inside and not link.output.get_in_initialization:
            source, target = (system.components[i].name for i in (link.source, link.target))
            raise DescriptionError(
                f"Connection '{source}.{link.output.name} -> {target}.{link.input.name}': '{source}' must be "
                f"initialized before its calculated parameter can be read (FMI 2.0), but its initialization depends on "
                f"'{target}.{link.input.name}'. Remove one of the connections on the way, or set the parameter."
            )


def _instance(
    component: ResolvedComponent,
    use: EventUse,
    policies: tuple[Policy, ...],
    connected: bool,
    stops_alone: bool,
    refreshed: bool,
    tolerance: Tolerance | None,
) -> InstancePlan:
    model, can = component.model, component.model.capabilities
    wanted = {*policies} != {Policy.EXECUTE} or bool(use.early_return)
    asked = wanted if use.event_mode is None else use.event_mode
    refreshed = refreshed and use.event_mode is not False
    event_mode = can.has_event_mode and (asked or has_clocks(model) or refreshed)
    early_return = (
        connected or bool(use.event_mode) if use.early_return is None else use.early_return
    )
    executes = any(e.trigger is None and e.scope is Scope.PRIVATE for e in model.events)
    early_return = early_return or (stops_alone and event_mode and executes)
    has_ticks = has_clocks(model) and model.interface is Interface.MODEL_EXCHANGE
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
        tolerance=tolerance or own_tolerance(model),
    )


def _can_be_refreshed(model: Model) -> bool:
    """Whether outputs depend directly on inputs, and no event can happen when Event Mode is entered for them."""
    stops = model.capabilities.might_return_early_from_do_step
    return any(model.dependencies.values()) and not (stops or model.events or has_clocks(model))


def _routes(links: Sequence[Link], layout: Layout) -> dict[tuple[int, Group], tuple[Route, ...]]:
    """What feeds each group of inputs of each instance."""
    by_target = {(k.target, k.input.name): k for k in links}
    derivative_of: dict[tuple[int, str], str] = {}
    for i, groups in enumerate(layout.groups):
        for segment in groups.get(Group.OUTPUTS, ()):
            for v in segment.variables:
                if v.derivative_of and v.type is DataType.FLOAT64:
                    derivative_of[i, v.derivative_of] = v.name
    routes: dict[tuple[int, Group], tuple[Route, ...]] = {}
    for i, groups in enumerate(layout.groups):
        for group in (Group.CONTINUOUS, Group.DISCRETE, Group.PARAMETERS):
            found = []
            for segment in groups.get(group, ()):
                for name, target in segment.slots().items():
                    link = by_target[i, name]
                    kind, source = layout.placed(link.source, link.output.name)
                    slots, output = [], link.output.name
                    while output := derivative_of.get((link.source, output), ""):
                        slot = layout.slots[link.source, Group.OUTPUTS, output][1]
                        if slot in slots:  # a cycle: the FMU contradicts itself
                            break
                        slots.append(slot)
                    found.append(Route(link, kind, source, segment.type, target, tuple(slots)))
            if found:
                routes[i, group] = tuple(found)
    return routes
