"""A simulation before any FMU is instantiated: the plan, the programs, the times."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from fmimaster.algorithms.assemble import assemble
from fmimaster.algorithms.initialization import Initialization
from fmimaster.algorithms.settling import Settling
from fmimaster.base.files import given_path
from fmimaster.base.memory import left_for_later
from fmimaster.base.text import count
from fmimaster.cards.use import CardUse, use_cards
from fmimaster.configure.requirements import (
    refuse_plan,
    refuse_plan_with_rates,
    refuse_rates,
    refuse_settings,
)
from fmimaster.configure.settings import Settings, settings_of_structure
from fmimaster.fmu.load import Loader
from fmimaster.fmu.model_exchange.choice import chosen_solvers, exchange_notes
from fmimaster.inputs.given_inputs import extrapolation_degree, fitting_inputs
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.instants.instant import exact
from fmimaster.plan.corrections import late_indicators
from fmimaster.plan.layout import Group, Signal
from fmimaster.plan.make import make_plan, step_order
from fmimaster.plan.plan import Plan, StepOrder, tolerance_of_run
from fmimaster.plan.policy import EventUse, Policy
from fmimaster.prepare.isolation import Isolated, isolated_fmus
from fmimaster.program.bond_powers import bond_measures
from fmimaster.program.extrapolation_errors import extrapolation_measures, extrapolation_signals
from fmimaster.program.fault_marks import mark_signals
from fmimaster.program.programs import Programs
from fmimaster.run.event_handler import begins_anew_at_jumps
from fmimaster.run.observed import points_to_observe
from fmimaster.steps.measures import (
    control_measures,
    control_signals,
    doubling_comparisons,
)
from fmimaster.steps.schedule import Schedule, make_schedule
from fmimaster.steps.step_rule import FixedStep, StepRule, Time
from fmimaster.system.declarations import Interface
from fmimaster.system.description import Component, SystemDescription
from fmimaster.system.read import read_system
from fmimaster.system.resolve import OpenInput, ResolvedSystem, resolve
from fmimaster.system.structure import is_dynamic, structure_at, structure_note

if TYPE_CHECKING:
    from fmimaster.fmu.model_exchange.integrator import Integrator
    from fmimaster.prepare.accuracy_choice import Choice


@dataclass(frozen=True, repr=False)
class Prepared:
    """A simulation before any FMU is instantiated."""

    description: SystemDescription
    """What exists at the start."""
    whole: SystemDescription
    """With all that exists at any time."""
    plan: Plan
    programs: Programs
    schedule: Schedule
    components: tuple[Component, ...]
    """The component from which each instance of the plan is made."""
    input_jumps: Mapping[Fraction, frozenset[int]] = field(default_factory=dict)
    """Time in s at which a continuous input jumps → instances in Event Mode for which that is an event (FMI 3.0, 4.1.1).
    Jumps that are not events are left out, unless extrapolation or step-size control must restart there."""
    choice: Choice | None = None
    """The controller and the inputs for a requested accuracy; the schedule and the programs are those of its first
    run."""
    open_inputs: tuple[OpenInput, ...] = ()
    """Open inputs."""
    solvers: Mapping[str, Integrator] = field(default_factory=dict)
    """Name of a component → its solver, for Model Exchange FMUs for which the user has chosen one."""
    cards: CardUse = CardUse()
    """What the cards of the FMUs have changed."""
    isolated: Isolated = field(default_factory=dict)
    """The FMUs that have processes of their own."""

    def __repr__(self) -> str:
        start, stop = float(self.schedule.start), float(self.schedule.stop)
        size = f"{float(self.schedule.rule.exact_size):g}"
        instances = count(len(self.plan.instances), "instance")
        times = f"t = {start:g} s to {stop:g} s, steps of at most {size} s"
        return f"<Prepared {self.description.system.name!r}: {instances}, {times}>"

    @property
    def notes(self) -> tuple[str, ...]:
        """Choices for settings that the user did not give."""
        chosen = () if self.choice is None else (str(self.choice),)
        models = {i.name: i.model for i in self.plan.instances}
        exchanged = exchange_notes(models, self.solvers)
        left_out = (note for e in self.schedule.rule.estimators for note in e.notes(self.plan))
        isolated = [note for note in dict.fromkeys(self.isolated.values()) if note]
        return (
            *self.plan.notes,
            *self.cards.notes,
            *exchanged,
            *isolated,
            *self.programs.notes,
            *self.schedule.notes,
            *left_out,
            *chosen,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Violations of the standard in the files of the system, and parts of the system that are not computed."""
        return (
            *self.description.warnings,
            *self.cards.warnings,
            *self.cards.beside(self.isolated),
            *self.plan.warnings,
            *self.accuracy_warnings,
        )

    @property
    def accuracy_warnings(self) -> tuple[str, ...]:
        """Those of :attr:`warnings` that report a loss of accuracy."""
        return (
            *self.programs.accuracy_warnings,
            *late_indicators(
                [i.name for i in self.plan.instances],
                self.plan.corrections,
                self.plan.events,
                self.programs.held,
                [i for i, planned in enumerate(self.plan.instances) if planned.may_return_early],
                float(self.schedule.rule.exact_size) / 2,
            ),
        )


@left_for_later()
def prepare(
    settings: Settings,
    loader: Loader,
    *,
    needs_stop_time: bool = True,
) -> Prepared:
    """Make the plan, the programs and the times of a simulation; of the structure at its start, if that changes.

    Parameters
    ----------
    needs_stop_time : bool
        Whether a missing stop time is an error; otherwise the times are those of a run of 500 steps.
    """
    description = whole = read_description(settings)
    if is_dynamic(whole):
        start = settings.start_time, whole.experiment.start_time, 0
        note = structure_note(whole)
        every = [name for name, _ in description.components()]
        description = structure_at(whole, exact(next(t for t in start if t is not None)))
        description = replace(description, notes=(*description.notes, note))
        settings = settings_of_structure(settings, every, dict(description.components()))
    if description.structure is not None and settings.event_mode is None:
        settings = replace(settings, event_mode=True)  # a change of connections is an event
    components = dict(description.components())
    models = {name: loader.model(component) for name, component in components.items()}
    cards = use_cards(settings.cards, components, models)
    models |= cards.models
    isolated = isolated_fmus(settings, components, models, loader, cards.isolated)
    resolved = resolve(
        description,
        models,
        overrides=settings.start_values,
        allow_lossy_conversions=settings.allow_lossy_conversions,
        power_bonds=settings.power_bonds,
    )
    made_from = tuple(components.values())
    jumps: Mapping[float, frozenset[str]] = {}
    if settings.input is not None:
        from fmimaster.configure.input_signals import attach_input  # few runs need it

        resolved, table, jumps = attach_input(
            settings.input,
            resolved,
            loader,
            bare_names=description.is_single_fmu,
            ignore_further=settings.ignore_further_columns,
        )
        made_from += (table,)
    clock = settings.used.event_clock

    def scheduled(step_size: StepRule[Any] | Time | None) -> Schedule:
        return make_schedule(
            models,
            description.experiment,
            start_time=settings.start_time,
            stop_time=settings.stop_time,
            step_size=step_size,
            usual_rule=FixedStep if clock is None else clock.usual_rule,
            points=jumps,
            needs_stop_time=needs_stop_time,
        )

    schedule, choice = scheduled(settings.step_size), None
    if settings.accuracy is not None:
        from fmimaster.prepare.accuracy_choice import choose

        choice = choose(settings, resolved)
        settings = choice.applied(settings, choice.largest(settings, schedule))
        schedule = scheduled(settings.step_size)
    resolved = resolved.with_bond_tolerance(settings.bond_tolerance)
    if moved := {t: point for t in jumps if (point := schedule.on_grid(t)) != t}:
        loader.move_rows(table, moved)
    marked = tuple(isolated)
    plan, programs = _planned(
        settings,
        schedule,
        resolved,
        description,
        marked if settings.used.on_fault.marks else (),
    )
    given = _given_inputs(plan, settings)
    rule = schedule.rule.with_inputs(
        extrapolation_degree(plan, settings.algorithm_used.course, given)
    )
    schedule = replace(schedule, rule=rule)
    return Prepared(
        description,
        whole,
        plan,
        programs,
        schedule,
        made_from,
        _input_jumps(plan, schedule, jumps, begins_anew_at_jumps(programs, rule)),
        choice,
        resolved.open_inputs,
        chosen_solvers(settings.used.solver, models),
        cards,
        isolated,
    )


def read_description(settings: Settings) -> SystemDescription:
    """The whole system of a simulation, with all that exists at any time."""
    system = settings.system
    if not isinstance(system, SystemDescription):
        # what a builder has built is a description since the simulation was made
        system = read_system(given_path(cast(str | os.PathLike[str], system)))
    if settings.interface is not None:
        system = system.with_interface(Interface.named(settings.interface))
    return system


def _given_inputs(plan: Plan, settings: Settings) -> Mapping[str, Polynomial]:
    """The polynomials that the user has chosen; of one of several structures, those that fit an input of it."""
    given = settings.used.inputs
    return given if plan.structure is None else fitting_inputs(plan, given)


def _planned(
    settings: Settings,
    schedule: Schedule,
    resolved: ResolvedSystem,
    description: SystemDescription,
    marked: Sequence[str],
) -> tuple[Plan, Programs]:
    """The plan and its programs; rows without one of the marked instances are marked."""
    clock, algorithm, rule = settings.used.event_clock, settings.algorithm_used, schedule.rule
    refuse_settings(algorithm, clock)
    rates = rule.rates(schedule.stop - schedule.start)
    if rates is not None:
        refuse_rates(algorithm, settings.used.inputs, clock)
        from fmimaster.algorithms.own_grids import OwnGrids  # few runs need it

        algorithm = OwnGrids(rates)
    own = dict(description.components())
    unnamed = [c.name for c in resolved.components if c.name not in own]
    order = step_order(
        resolved,
        settings.sequence,
        description.sequence,
        unnamed,
        settings.used.loops,
        matters=not algorithm.is_parallel,
    )
    plan = make_plan(
        resolved,
        outputs=settings.output_variables,
        bare_names=description.is_single_fmu,
        use=_event_use(settings, order),
        signals=(
            *algorithm.signals(),
            *control_signals(rule),
            *_extrapolation_signals(settings, resolved),
            *mark_signals(marked),
        ),
        order=order,
        tolerance=tolerance_of_run(settings.tolerance, description.experiment.tolerance),
        loops=settings.used.loops,
        steady=settings.steady_states,
    )
    refuse_plan(plan, rule, clock)
    if rates is not None:
        refuse_plan_with_rates(plan)
    given = _given_inputs(plan, settings)
    degree = extrapolation_degree(plan, settings.algorithm_used.course, given)
    programs = assemble(
        plan,
        algorithm,
        history=max(
            0 if clock is None else max(clock.history, points_to_observe(plan, clock)),
            *(estimator.history(degree) for estimator in rule.estimators),
            0,
        ),
        undoes=rule.rejects or (clock is not None and clock.undoes(plan)),
        initialization=Initialization(Settling(settings.loop_solver)),
        loops=settings.used.loops,
        measures=(
            *bond_measures(plan),
            *control_measures(rule, plan, degree),
            *extrapolation_measures(plan),
        ),
        comparisons=doubling_comparisons(rule, degree),
        inputs=given,
    )
    return plan, programs


def _extrapolation_signals(settings: Settings, resolved: ResolvedSystem) -> tuple[Signal, ...]:
    if not settings.extrapolation_errors:
        return ()
    return extrapolation_signals([c.name for c in resolved.components], resolved.links)


def _input_jumps(
    plan: Plan, schedule: Schedule, jumps: Mapping[float, frozenset[str]], begins_anew: bool
) -> dict[Fraction, frozenset[int]]:
    """Times at which signals of the input, the last component, jump, with the instances that have an event there; jumps
    without an event are included only if extrapolation or step-size control restarts there."""
    table = len(plan.instances) - 1
    fed: dict[str, set[int]] = {}
    for (i, group), routes in plan.routes.items():
        has_event = plan.instances[i].event_mode
        if group is Group.CONTINUOUS and (has_event or begins_anew):
            for route in routes:
                if route.link.source == table:
                    fed.setdefault(route.link.output.name, set()).update({i} if has_event else ())
    found: dict[Fraction, frozenset[int]] = {}
    for time, columns in jumps.items() if fed else ():
        concerned = frozenset[int]().union(*(fed.get(c, ()) for c in columns))
        met = schedule.met(time)
        if not columns.isdisjoint(fed) and schedule.start < met <= schedule.stop:
            found[met] = found.get(met, frozenset()) | concerned
    return found


def _event_use(settings: Settings, order: StepOrder) -> EventUse:
    """How the run uses events: decided by the event clock, and by the algorithm if it has its own policies."""
    clock = settings.used.event_clock
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
