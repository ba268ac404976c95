"""What is done before any FMU is instantiated: the plan, the programs and the times are made, pass by pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, cast

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.assemble import ProgramsRequest, assemble
from fmimaster.algorithms.settling import Settling
from fmimaster.base.collector import left_for_later
from fmimaster.base.data import dataclass
from fmimaster.base.files import given_path
from fmimaster.cards.use import CardUse, use_cards
from fmimaster.configure.requirements import (
    Unclocked,
    executed_unseen,
    refuse_plan,
    refuse_plan_with_rates,
    refuse_rates,
    refuse_settings,
    without_event_clock,
)
from fmimaster.configure.settings import Settings
from fmimaster.fmu.load import Loader
from fmimaster.fmu.model_exchange.integrator import chosen_solvers
from fmimaster.inputs.given_inputs import extrapolation_degree, fitting_inputs
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.instants.instant import exact
from fmimaster.plan.make import PlanRequest, make_plan, step_order
from fmimaster.plan.plan import Plan, StepOrder, tolerance_of_run
from fmimaster.plan.policy import EventUse, Policy
from fmimaster.prepare.isolation import isolated_fmus
from fmimaster.prepare.prepared import (
    ALONE,
    NOTHING,
    ChosenSettings,
    Isolated,
    Prepared,
    known_at_start,
    with_measured,
)
from fmimaster.prepare.structures import is_dynamic, structure_at, structure_note
from fmimaster.program.bond_powers import bond_measures
from fmimaster.program.programs import Programs
from fmimaster.program.signals import extrapolation_measures, extrapolation_signals, mark_signals
from fmimaster.run.changes import points_to_observe
from fmimaster.run.event_handler import begins_anew_at_jumps
from fmimaster.run.planned_events import input_jumps
from fmimaster.steps.estimator import control_measures, control_signals
from fmimaster.steps.schedule import Schedule, make_schedule
from fmimaster.steps.step_rule import FixedStep, RatePattern, StepRule, Time
from fmimaster.system.declarations import Interface
from fmimaster.system.description import Component, SystemDescription
from fmimaster.system.model import Model
from fmimaster.system.read import read_system
from fmimaster.system.resolve import resolve
from fmimaster.system.resolved import ResolvedSystem

if TYPE_CHECKING:
    from fmimaster.cards.measured import MeasuredAtStart
    from fmimaster.prepare.accuracy_choice import Choice


@left_for_later()
def prepare(
    settings: Settings,
    loader: Loader,
    *,
    needs_stop_time: bool = True,
    varied: Collection[str] = (),
) -> Prepared:
    """Make the plan, the programs and the times of a simulation; of the structure at its start, if that changes.

    Parameters
    ----------
    needs_stop_time : bool
        Whether a missing stop time is an error; otherwise the times are those of a run of 500 steps.
    varied
        Names of start values that change from run to run.
    """
    draft = Draft(settings, loader, needs_stop_time, varied)
    for complete in PASSES:
        complete(draft)
    return draft.prepared


@dataclass(slots=True)
class Draft:
    """A simulation while it is prepared: what was asked for, and what each pass has added."""

    settings: Settings
    """As given; passes replace them by those of the structure at the start, and of the first run for an accuracy."""
    loader: Loader
    needs_stop_time: bool
    varied: Collection[str] = ()
    measured: MeasuredAtStart | None = None
    """What is known of dependencies that decide about loops, and are measured at the start; None if they are not."""
    whole: SystemDescription = field(init=False)
    description: SystemDescription = field(init=False)
    """Of what exists at the start."""
    components: tuple[Component, ...] = field(init=False)
    """Of the description; the last one may be the table with the signals of the input."""
    models: Mapping[str, Model] = field(init=False)
    """Name of a component of the description → its model, as its card has changed it."""
    cards: CardUse = field(init=False)
    isolated: Isolated = field(init=False)
    resolved: ResolvedSystem = field(init=False)
    jumps: Mapping[float, frozenset[str]] = field(default_factory=dict)
    """Time in s → the columns of the input that jump."""
    left_out: Sequence[str] = ()
    """Signals of the input that have no open input here."""
    chosen: ChosenSettings = NOTHING
    """Settings that were not given."""
    choice: Choice | None = None
    schedule: Schedule = field(init=False)
    rates: RatePattern | None = None
    """The own step sizes of components; None if all have the same."""
    algorithm: Algorithm = field(init=False)
    """The one that the programs are made by: around that of the settings, if components have their own step sizes."""
    order: StepOrder = field(init=False)
    plan: Plan = field(init=False)
    inputs: Mapping[str, Polynomial] = field(init=False)
    """The polynomials that the user has chosen; of one of several structures, those that fit an input of it."""
    degree: int = field(init=False)
    """Of the polynomials by which inputs are extrapolated."""
    programs: Programs = field(init=False)
    prepared: Prepared = field(init=False)


def read_structure(draft: Draft) -> None:
    """The description of what exists at the start, and the settings for it."""
    settings = draft.settings
    description = draft.whole = read_description(settings)
    if is_dynamic(description):
        # few systems change their structure
        from fmimaster.prepare.structure_settings import settings_of_structure

        start = settings.start_time, description.experiment.start_time, 0
        note = structure_note(description)
        description = structure_at(description, exact(next(t for t in start if t is not None)))
        description = replace(description, notes=(*description.notes, note))
        settings = settings_of_structure(settings, draft.whole, description)
    if description.structure is not None and settings.event_mode is None:
        settings = replace(settings, event_mode=True)  # a change of connections is an event
    draft.description, draft.settings = description, settings


def load_models(draft: Draft) -> None:
    """The models of all components, changed by the cards of their FMUs, and the FMUs that get own processes."""
    components = dict(draft.description.components())
    models = {name: draft.loader.model(component) for name, component in components.items()}
    cards = use_cards(draft.settings.cards, components, models)
    draft.measured = measured = known_at_start(draft.settings, draft.description)
    draft.cards = with_measured(cards, measured, components, models)
    draft.models = {**models, **draft.cards.models}
    draft.isolated = isolated_fmus(
        draft.settings, components, draft.models, draft.loader, draft.cards.isolated
    )
    draft.components = tuple(components.values())


def resolve_connections(draft: Draft) -> None:
    """The flat system; signals that the user gives are the outputs of a further component."""
    settings, description = draft.settings, draft.description
    draft.resolved = resolve(
        description,
        draft.models,
        overrides=settings.start_values,
        allow_lossy_conversions=settings.allow_lossy_conversions,
        power_bonds=settings.power_bonds,
        varied=draft.varied,
    )
    if settings.input is not None:
        from fmimaster.prepare.attached_input import attach_input  # few runs need it

        structure = description.structure
        draft.resolved, table, draft.left_out = attach_input(
            settings.input,
            draft.resolved,
            draft.loader,
            bare_names=description.is_single_fmu,
            ignore_further=settings.ignore_further_columns,
            absent=None if structure is None else structure.absent,
        )
        if table is not None:
            draft.components += (table,)
            draft.jumps = draft.loader.table(table).jumps()


def choose_methods(draft: Draft) -> None:
    """Settings of methods that are not given: they are chosen for the system."""
    if draft.resolved.links or draft.settings.event_clock is not None:
        from fmimaster.prepare.choice import choose  # a component alone needs no choice

        draft.chosen = choose(draft.settings, draft.resolved)
    elif draft.settings.algorithm is None:
        draft.chosen = ALONE
    if draft.measured is not None:
        draft.chosen = draft.chosen.with_setting("loops", draft.measured)
    draft.settings = replace(draft.settings, **draft.chosen.settings)


def choose_times(draft: Draft) -> None:
    """Start, stop and steps; for an accuracy, also the controller and the inputs. Jumps of the input move to the grid."""
    draft.schedule = _scheduled(draft)
    if draft.settings.accuracy is not None:
        from fmimaster.prepare.accuracy_choice import choose as choose_control

        # what was only chosen may be chosen otherwise for an accuracy
        open_again: dict[str, Any] = dict.fromkeys(draft.chosen.settings)
        given = replace(draft.settings, **open_again)
        rule = draft.schedule.rule
        chosen = draft.chosen
        choice = choose_control(given, draft.resolved, rule, chosen.settings, chosen.notes)
        draft.choice = choice
        is_given = given.step_size is not None
        usual = draft.schedule.rule.exact_size
        largest = usual if is_given else choice.largest(draft.schedule)
        draft.settings = replace(draft.settings, **choice.changes(largest))
        draft.schedule = _scheduled(draft)
    draft.resolved = draft.resolved.with_bond_tolerance(draft.settings.bond_tolerance)
    on_grid = draft.schedule.on_grid
    if moved := {t: point for t in draft.jumps if (point := on_grid(t)) != t}:
        draft.loader.move_rows(draft.components[-1], moved)


def choose_order(draft: Draft) -> None:
    """The algorithm, and the order in which components are stepped."""
    settings, rule = draft.settings, draft.schedule.rule
    algorithm, clock = settings.algorithm_used, settings.clock_used
    refuse_settings(algorithm, clock)
    draft.rates = rule.rates(draft.schedule.stop - draft.schedule.start)
    if draft.rates is not None:
        refuse_rates(algorithm, settings.used.inputs, clock)
        from fmimaster.algorithms.own_steps import OwnGrids  # few runs need it

        algorithm = OwnGrids(draft.rates)
    own = dict(draft.description.components())
    unnamed = [c.name for c in draft.resolved.components if c.name not in own]
    draft.algorithm = algorithm
    draft.order = step_order(
        draft.resolved,
        settings.sequence,
        draft.description.sequence,
        unnamed,
        settings.loops_used,
        matters=not algorithm.is_parallel,
    )


def plan_system(draft: Draft) -> None:
    """The plan; rows without one of the isolated FMUs are marked, if the settings ask for that."""
    settings, rule = draft.settings, draft.schedule.rule
    marked = tuple(draft.isolated) if settings.used.on_fault.marks else ()
    names = [c.name for c in draft.resolved.components]
    is_wanted = settings.extrapolation_errors
    extrapolation = extrapolation_signals(names, draft.resolved.links) if is_wanted else ()
    request = PlanRequest(
        outputs=settings.output_variables,
        bare_names=draft.description.is_single_fmu,
        use=_event_use(settings, draft.order),
        signals=(
            *draft.algorithm.signals(),
            *control_signals(rule.estimators),
            *extrapolation,
            *mark_signals(marked),
        ),
        order=draft.order,
        tolerance=tolerance_of_run(settings.tolerance, draft.description.experiment.tolerance),
        loops=settings.loops_used,
        steady=settings.steady_states,
    )
    draft.plan = make_plan(draft.resolved, request)
    refuse_plan(draft.plan, rule, settings.clock_used)
    if draft.rates is not None:
        refuse_plan_with_rates(draft.plan)


def make_programs(draft: Draft) -> None:
    """The programs of the plan."""
    settings, plan, known, rule = draft.settings, draft.plan, draft.measured, draft.schedule.rule
    is_chosen = "algorithm" in draft.chosen.settings
    clock, given = settings.clock_used, settings.used.inputs
    draft.inputs = inputs = given if plan.structure is None else fitting_inputs(plan, given)
    draft.degree = degree = extrapolation_degree(plan, settings.algorithm_used.course, inputs)
    request = ProgramsRequest(
        history=max(
            0 if clock is None else max(clock.history, points_to_observe(plan, clock)),
            *(estimator.history(degree) for estimator in rule.estimators),
            0 if clock is None else 1,
        ),
        undoes=rule.rejects or (clock is not None and clock.undoes(plan)),
        settling=Settling(settings.loop_solver),
        loops=settings.loops_used,
        measured=known.missing(plan.instances.numbers, draft.cards.known) if known else (),
        holds_in_loops=is_chosen or (known is not None and known.holds),
        measures=(
            *bond_measures(plan),
            *control_measures(rule.estimators, plan, degree),
            *extrapolation_measures(plan),
        ),
        comparisons=[c for e in rule.estimators if (c := e.comparison(degree)) is not None],
        checked_step=0.0 if clock is None else float(rule.exact_size),
        jumps=draft.jumps,
        checks_held=clock is not None and clock.checks_held,
        inputs=inputs,
        in_halves=clock is not None and clock.in_halves,
        is_chosen=is_chosen,
        real_time_factor=settings.real_time_factor,
        lateness_limit=settings.lateness_limit,
    )
    draft.programs = assemble(plan, draft.algorithm, request)


def complete_preparation(draft: Draft) -> None:
    """All of it, with a rule that knows the degree of the inputs."""
    plan, programs, settings = draft.plan, draft.programs, draft.settings
    rule = draft.schedule.rule.with_inputs(draft.degree)
    schedule = replace(draft.schedule, rule=rule)
    draft.prepared = Prepared(
        draft.description,
        draft.whole,
        plan,
        programs,
        schedule,
        draft.components,
        input_jumps(plan, schedule, draft.jumps, programs, begins_anew_at_jumps(programs, rule)),
        draft.chosen,
        draft.choice,
        draft.resolved.open_inputs,
        chosen_solvers(settings.used.solver, draft.models),
        draft.cards,
        draft.isolated,
        draft.left_out,
        _unclocked(draft),
        draft.resolved.varied,
    )


PASSES: Sequence[Callable[[Draft], None]] = (
    read_structure,
    load_models,
    resolve_connections,
    choose_methods,
    choose_times,
    choose_order,
    plan_system,
    make_programs,
    complete_preparation,
)
"""What completes a draft, in order."""


def read_description(settings: Settings) -> SystemDescription:
    """The whole system of a simulation, with all that exists at any time."""
    system = settings.system
    if not isinstance(system, SystemDescription):
        # what a builder has built is a description since the simulation was made
        system = read_system(given_path(cast(str | os.PathLike[str], system)))
    if settings.interface is not None:
        system = system.with_interface(Interface.named(settings.interface))
    return system


def _scheduled(draft: Draft) -> Schedule:
    settings, clock = draft.settings, draft.settings.clock_used
    usual_rule: Callable[[Time | None], StepRule[Any]] = FixedStep
    if clock is not None:
        extrapolates = settings.algorithm_used.course.uses_history and any(
            link.input.is_continuous for link in draft.resolved.links
        )
        usual_rule = clock.usual_rule_with_history if extrapolates else clock.usual_rule
    return make_schedule(
        draft.models,
        draft.description.experiment,
        start_time=settings.start_time,
        stop_time=settings.stop_time,
        step_size=settings.step_size,
        usual_rule=usual_rule,
        points=draft.jumps,
        needs_stop_time=draft.needs_stop_time,
    )


def _unclocked(draft: Draft) -> tuple[Unclocked, ...]:
    """Events that need an event clock, in a run without one, or whose chosen clock cannot fire them."""
    if (clock := draft.settings.clock_used) is not None:
        is_chosen = "event_clock" in draft.chosen.settings
        return tuple(executed_unseen(draft.resolved)) if is_chosen and not clock.fires else ()
    followed: Collection[int] = draft.programs.polynomial_inputs
    if draft.schedule.rule.watches_discrete_outputs:  # undone steps find what events change
        followed = range(len(draft.plan.instances))
    return tuple(without_event_clock(draft.resolved, followed, draft.settings.event_mode))


def _event_use(settings: Settings, order: StepOrder) -> EventUse:
    """How the run uses events: decided by the event clock, and by the algorithm if it has its own policies."""
    clock = settings.clock_used
    if clock is None:
        return EventUse(event_mode=settings.event_mode, refreshes=settings.algorithm_used.refreshes)
    policies = settings.algorithm_used.policies(order)
    announced = clock.policy is Policy.ANNOUNCE if clock.fires else None
    return EventUse(
        watched=True,
        fires=clock.fires,
        policy=clock.policy,
        policies=policies,
        early_return=True if policies else announced,
        event_mode=settings.event_mode,
        requests=clock.requests,
    )
