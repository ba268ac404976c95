"""A simulation before any FMU is instantiated: the plan, the programs, the times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fmimaster.algorithms import Algorithm, assemble
from fmimaster.control.event_clock import Check, EventClock, refuse_what_cannot_be_done
from fmimaster.control.schedule import Schedule, make_schedule
from fmimaster.control.usual_step import usual_step
from fmimaster.errors import OptionError
from fmimaster.fmu.load import Loader
from fmimaster.input_file import attach_input_file
from fmimaster.plan.plan import EventUse, Plan, Policy, make_plan, step_order
from fmimaster.program.instructions import Fit
from fmimaster.program.programs import Programs
from fmimaster.settings import Settings
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import Component, SystemDescription
from fmimaster.system.resolve import ResolvedSystem, resolve
from fmimaster.system.ssp import read_system


@dataclass(frozen=True)
class Prepared:
    """A simulation before any FMU is instantiated."""

    description: SystemDescription
    plan: Plan
    programs: Programs
    schedule: Schedule
    components: tuple[Component, ...]
    """What each instance of the plan is made from."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided, where it was not said."""
        return (*self.plan.notes, *self.schedule.notes)


def prepare(settings: Settings, loader: Loader) -> Prepared:
    system = settings.system
    assert not isinstance(system, SystemBuilder)  # it was built when the simulation was made
    description = system if isinstance(system, SystemDescription) else read_system(Path(system))
    components = dict(description.components())
    models = {name: loader.model(component) for name, component in components.items()}
    resolved = resolve(
        description,
        models,
        overrides=settings.start_values,
        allow_lossy_conversions=settings.allow_lossy_conversions,
    )
    made_from = tuple(components.values())
    jumps: Sequence[float] = ()
    if settings.input_file is not None:
        path, bare = Path(settings.input_file), description.is_single_fmu
        resolved, table, jumps = attach_input_file(path, resolved, loader, bare_names=bare)
        made_from += (table,)
    plan, programs = _planned(settings, resolved, description.is_single_fmu)
    schedule = make_schedule(
        models,
        description.experiment,
        start_time=settings.start_time,
        stop_time=settings.stop_time,
        step_size=settings.step_size,
        usual_step=usual_step(settings.event_clock),
        points=jumps,
    )
    return Prepared(description, plan, programs, schedule, made_from)


def _planned(
    settings: Settings, resolved: ResolvedSystem, bare_names: bool
) -> tuple[Plan, Programs]:
    """The plan and its programs. They are made twice if inputs are polynomials: the FMUs are told so by parameters."""
    clock = settings.event_clock
    use = EventUse(
        watched=clock is not None,
        fires=clock is not None and clock.fires,
        policy=Policy.EXECUTE if clock is None else clock.policy,
        early_return=clock.policy is Policy.ANNOUNCE if clock is not None and clock.fires else None,
        event_mode=settings.event_mode,
    )
    given: frozenset[int] = frozenset()
    _refuse_unfit(settings.algorithm, clock)
    policies = () if clock is None else settings.algorithm.policies(step_order(resolved))
    if policies:
        use = replace(use, policies=policies, early_return=True)
    while True:
        plan = make_plan(
            resolved,
            outputs=settings.output_variables,
            bare_names=bare_names,
            use=use,
            fitted=given,
        )
        if clock is not None:
            _refuse_fixed_steps(plan, clock)
            refuse_what_cannot_be_done(plan, clock)
        if clock is not None and clock.fires:
            _refuse_without_event_mode(plan)
        programs = assemble(
            plan,
            settings.algorithm,
            history=0 if clock is None else clock.history,
            undoes=clock is not None and clock.locates > 0,
        )
        found = fitted(programs)
        if found == given or not any(plan.instances[i].model.input_polynomials for i in found):
            return plan, programs
        given = found


def _refuse_fixed_steps(plan: Plan, clock: EventClock) -> None:
    """Raise if an FMU cannot take the steps of different sizes that an event clock asks for."""
    for planned in plan.instances:
        if not planned.model.capabilities.can_handle_variable_communication_step_size:
            raise OptionError(
                f"The event clock {type(clock).__name__} asks for steps of different sizes, but '{planned.name}' cannot "
                "vary its step size (canHandleVariableCommunicationStepSize is false). Leave the event clock out."
            )


def _refuse_without_event_mode(plan: Plan) -> None:
    """Raise if an event is to be fired by a clock, which needs Event Mode, and the user has declined that."""
    for event in plan.events:
        for member in event.members:
            instance = plan.instances[member.instance]
            has_it = instance.model.capabilities.has_event_mode
            if member.trigger is not None and has_it and not instance.event_mode:
                raise OptionError(
                    f"event_mode is False (--no-event-mode), but the event '{event.name}' of '{instance.name}' can be "
                    "fired in Event Mode only. Leave it out, or use LookAhead (look-ahead), with which FMUs execute their "
                    "events themselves."
                )


def _refuse_unfit(algorithm: Algorithm, clock: EventClock | None) -> None:
    """Raise if an algorithm and an event clock do not go together."""
    name, needs_check = type(algorithm).__name__, algorithm.finds_events_for_others
    if needs_check and not isinstance(clock, Check):
        raise OptionError(
            f"{name} lets an FMU stop at its events, and needs the event clock Check, which fires them. Give it: "
            "event_clock=Check() (--event-clock check)."
        )
    if isinstance(clock, Check) and not needs_check:
        raise OptionError(
            f"The event clock Check is for algorithms in which one FMU finds events for the others, not for {name}. Use "
            "Sequential() or AutomaticSequence() (--algorithm sequential), or the event clock Predictive()."
        )


def fitted(programs: Programs, *, ever: bool = False) -> frozenset[int]:
    """Instances that are given polynomials: from the first step on, or ever."""
    ways = programs.variants if ever else programs.variants[:1]
    instructions = [i for way in ways for i in way.attempt.instructions]
    return frozenset(f.instance for f in instructions if isinstance(f, Fit))
