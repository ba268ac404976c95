"""Refuses impossible combinations of algorithms, event clocks, step-size rules and plans, and warns of events that need an
event clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError, OptionError
from fmimaster.base.text import listed
from fmimaster.events.event_clock import EventClock
from fmimaster.plan.events import (
    PlanEvent,
    inputs_of,
    plan_events,
    with_used_events,
    without_lone_events,
)
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import EventUse, Policy, stops_at_events
from fmimaster.steps.step_rule import StepRule
from fmimaster.system.declarations import EventDeclaration, Scope
from fmimaster.system.model import Model
from fmimaster.system.resolved import ResolvedSystem


def refuse_settings(algorithm: Algorithm, clock: EventClock | None) -> None:
    """Raise if an algorithm and an event clock cannot be combined.

    Raises
    ------
    OptionError
    """
    name = type(algorithm).__name__
    if algorithm.finds_events_for_others and (clock is None or not clock.for_others):
        raise OptionError(
            f"{name} lets an FMU stop at its events, and needs the event clock Check, which triggers these events. Add "
            "event_clock=Check() (--event-clock check)."
        )
    if clock is not None and clock.for_others and not algorithm.finds_events_for_others:
        raise OptionError(
            f"The event clock {type(clock).__name__} is for algorithms in which one FMU finds events for the others, not "
            f"for {name}. Use Sequential() or AutomaticSequence() (--algorithm sequential), or the event clock "
            "Predictive() (--event-clock predictive)."
        )


def refuse_rates(algorithm: Algorithm, inputs: Collection[str], clock: EventClock | None) -> None:
    """Raise if components with their own step sizes cannot be combined with an algorithm or an event clock.

    Raises
    ------
    OptionError
    """
    if clock is not None:
        raise OptionError(
            f"The event clock {type(clock).__name__} ends the steps of all components at an event, but with MultiRate they "
            "end at different times. Use a step size for all of them, or SubSteps (--sub-steps)."
        )
    if algorithm != Jacobi() or inputs:
        other = f"inputs of {', '.join(sorted(inputs))}" if inputs else f"{algorithm}"
        raise OptionError(
            "MultiRate steps each component over its own grid with held inputs, like Jacobi, and cannot be combined "
            f"with {other}. Leave it out, or use SubSteps (--sub-steps), which interpolates between the rates."
        )


def refuse_plan_with_rates(plan: Plan) -> None:
    """Raise if components with their own step sizes would need common communication points that they do not have.

    Raises
    ------
    OptionError
    """
    instead = "Use a step size for all of them, or SubSteps (--sub-steps)."
    for trigger in plan.triggers:
        if trigger.clock is not None:
            raise OptionError(
                f"The clock '{plan.instances[trigger.instance].name}.{trigger.name}' ticks at times of its own, but with "
                f"MultiRate the components end their steps at different times. {instead}"
            )
    for i, planned in enumerate(plan.instances):
        groups = (Group.DISCRETE, Group.CLOCKS, Group.TRIGGERS)
        has_events = planned.event_mode and any(plan.layout.segments(i, g) for g in groups)
        if has_events or planned.may_return_early:
            raise OptionError(
                f"'{planned.name}' has events in common with other components, but with MultiRate they end their steps at "
                f"different times. {instead}"
            )
    for group in plan.step_groups:
        names = sorted(f"'{plan.instances[i].name}'" for i in group)
        raise OptionError(
            f"{' and '.join(names)} share an algebraic loop, which is solved where their steps end; with MultiRate these "
            f"are different times. {instead} Without a solution of the loop (loops=Loops.NONE, --loops none), its "
            "inputs are delayed."
        )


def refuse_plan(
    plan: Plan,
    rule: StepRule[Any],
    clock: EventClock | None,
) -> None:
    """Raise if a step-size rule or an event clock cannot work in a system.

    Raises
    ------
    DescriptionError
        If a shared event cannot be triggered in each of its members.
    OptionError
        If no FMU has what the rule or the clock needs, or the rule has no signals to control the step size.
    """
    _refuse_constraints(plan)
    if rule.watches_discrete_outputs and not plan.discrete_routes:
        raise OptionError(
            f"The step-size rule {type(rule).__name__} locates changes of connected discrete outputs, and there are "
            f"no such outputs. {_what_fits(_Met.in_plan(plan))}"
        )
    for estimator in rule.estimators:
        estimator.refuse(plan)
    if clock is not None:
        _refuse_clock(_Met.in_plan(plan), clock)


def why_not(system: ResolvedSystem, clock: EventClock, event_mode: bool | None) -> str:
    """The reason why a run of a system with an event clock would be refused; empty if it would not be.

    Parameters
    ----------
    event_mode
        The setting.
    """
    try:
        _refuse_clock(_Met.in_system(system, clock, event_mode), clock)
    except (DescriptionError, OptionError) as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class _Met:
    """What an event clock meets in a system."""

    models: Mapping[str, Model]
    """Name of an instance → its model."""
    events: Sequence[PlanEvent]
    event_modes: Sequence[bool]
    stops: bool
    """Whether any instance may end a step at an event."""
    goes_back: bool
    has_discrete_links: bool
    changes: bool
    """Whether it is one of several structures: in one of them the clock may have nothing to do."""

    @classmethod
    def in_plan(cls, plan: Plan) -> _Met:
        """In a run."""
        return cls(
            {i.name: i.model for i in plan.instances},
            plan.events,
            [i.event_mode for i in plan.instances],
            plan.instances.any_may_return_early,
            plan.can_go_back,
            bool(plan.discrete_routes),
            plan.structure is not None,
        )

    @classmethod
    def in_system(cls, system: ResolvedSystem, clock: EventClock, event_mode: bool | None) -> _Met:
        """In a system for which no run is planned yet."""
        use = EventUse(watched=True, fires=clock.fires, policy=clock.policy)
        models = {c.name: c.model for c in system.components}
        abilities = [m.capabilities for m in models.values()]
        modes = [can.has_event_mode and event_mode is not False for can in abilities]
        stops = [
            stops_at_events(m, clock.policy) and (mode or not m.capabilities.has_event_mode)
            for m, mode in zip(models.values(), modes, strict=True)
        ]
        return cls(
            models,
            plan_events(with_used_events(system, use))[0],
            modes,
            any(stops),
            all(can.can_get_and_set_fmu_state for can in abilities),
            any(not k.output.is_continuous for k in system.links),
            system.structure is not None,
        )


def _refuse_clock(met: _Met, clock: EventClock) -> None:
    _refuse_fixed_steps(met, clock)
    if clock.fires:
        _refuse_untriggered(met)
        _refuse_hidden_right_limits(met)
    if not met.changes:
        _refuse_nothing_to_do(met, clock)


def _refuse_constraints(plan: Plan) -> None:
    """A constraint is solved by repeating steps: all components at its ends must be able to go back."""
    for group in plan.step_groups:
        members = [plan.instances[i] for i in group]
        constraints = [m.name for m in members if m.model.residuals]
        unable = [m.name for m in members if not m.model.capabilities.can_get_and_set_fmu_state]
        if constraints and unable:
            raise DescriptionError(
                f"The constraint '{constraints[0]}' needs components that can go back to the start of a step, but "
                f"{' and '.join(map(repr, unable))} cannot get and set its FMU state (canGetAndSetFMUState is false). "
                "Couple it by a stiff spring and a damper, or use an FMU that can."
            )


def _refuse_fixed_steps(met: _Met, clock: EventClock) -> None:
    for name, model in met.models.items():
        if not model.capabilities.can_handle_variable_communication_step_size:
            raise OptionError(
                f"The event clock {type(clock).__name__} needs steps of different sizes, but '{name}' cannot "
                "vary its step size (canHandleVariableCommunicationStepSize is false). Leave the event clock out, and use "
                "short steps."
            )


def _refuse_untriggered(met: _Met) -> None:
    every = [*met.models]
    for event in met.events:
        missing = [m for m in event.members if m.trigger is None]
        if event.scope is Scope.SHARED and missing:
            names = " and ".join(f"'{every[m.instance]}'" for m in missing)
            raise DescriptionError(
                f"The shared event '{event.name}' has no trigger in {names}, so an event clock cannot trigger it in "
                "all its members at the same time. Name a trigger in the FMU's manifest, or use LookAhead "
                "(--event-clock look-ahead), with which FMUs execute their events themselves."
            )
        if event.scope is Scope.SHARED and len(event.members) < 2:
            raise DescriptionError(
                f"The event '{event.name}' is shared, but the system does not declare its members. Declare "
                "them by an annotation of the system, or by builder.share_event(name, members...)."
            )


def _refuse_hidden_right_limits(met: _Met) -> None:
    """In FMI 2.0 outputs can be read only after a step, unless the FMU declares otherwise (proposal, requirement
    I25)."""
    every = [*met.models]
    for event in met.events:
        for m in event.members:
            has_mode, declared = met.event_modes[m.instance], m.declaration
            if m.trigger is None or has_mode or declared.right_limits_without_step:
                continue
            raise DescriptionError(
                f"The event '{declared.name}' of '{every[m.instance]}' cannot be triggered: there is no Event Mode, and "
                "the FMU does not declare that its outputs can be read directly after the trigger was set, without a step. "
                'If they can, add rightLimitsWithoutStep="true" to the event in its manifest; otherwise use '
                "LookAhead (--event-clock look-ahead)."
            )


def _refuse_nothing_to_do(met: _Met, clock: EventClock) -> None:
    name = type(clock).__name__
    if clock.requests and not met.stops:
        raise OptionError(
            f"The event clock {name} needs FMUs that can be stopped inside of a step before their events: FMI 3.0 with "
            "Event Mode, canReturnEarlyAfterIntermediateUpdate, and event indicators with derivatives as outputs with "
            f"intermediateUpdate, in their manifest. There is no such FMU.{_broken_manifests(met)} {_what_fits(met)}"
        )
    if clock.policy is Policy.ANNOUNCE and not met.stops:
        raise OptionError(
            f"The event clock {name} needs FMUs that stop at their events: by an early return (Event Mode and "
            "mightReturnEarlyFromDoStep), or by a discarded step, with a trigger and a policy in their manifest. "
            f"There is no such FMU.{_broken_manifests(met)} {_what_fits(met)}"
        )
    if not met.stops and not met.events and not any(m.look_ahead for m in met.models.values()):
        raise OptionError(
            f"The event clock {name} cannot be used: no FMU declares an event with indicators."
            f"{_broken_manifests(met)} {_what_fits(met)}"
        )


class Unclocked(NamedTuple):
    """Events that need the inputs of their instant, in a run without an event clock that fires them."""

    text: str
    """A warning."""
    events: tuple[tuple[str, EventDeclaration], ...]
    """Each with the name of its component; empty if passed ones are not counted."""


def without_event_clock(
    system: ResolvedSystem, followed: Collection[int], event_mode: bool | None
) -> Iterator[Unclocked]:
    """Such events: those that are shared, and those whose inputs are held.

    Private events are found and executed by their FMU. Discrete inputs are held in any case, until an event changes them.

    Parameters
    ----------
    followed
        Instances whose continuous inputs are polynomials in a step.
    event_mode
        The setting.
    """
    alone, held = list[tuple[str, EventDeclaration]](), list[tuple[str, EventDeclaration]]()
    links = {(k.target, k.input.name): k for k in system.links}
    for i, c in enumerate(without_lone_events(system).components):
        for event in c.model.events:
            inputs = inputs_of(event, c.model)
            fed = [links[i, n] for n in inputs if (i, n) in links]
            if event.scope is Scope.SHARED:
                by_file = bool(fed) and all(system.components[k.source].is_input for k in fed)
                alone += [] if by_file or (i, event.trigger) in links else [(c.name, event)]
            elif event.scope is Scope.COUPLED:
                is_held = i not in followed and any(k.input.is_continuous for k in fed)
                held += [(c.name, event)] if is_held else []
    if not alone and not held:
        return
    from fmimaster.events.predictive import Predictive  # few systems need it

    instead = "Use event_clock=Predictive() (--event-clock predictive)"
    if reason := why_not(system, Predictive(), event_mode):
        instead = f"No event clock can fire them here. {reason.rstrip('.')}"
    if alone:
        yield Unclocked(
            "There is no event clock, so each FMU executes its shared events alone, by its own inputs and at its own "
            f"time: {_names(alone)}. {instead}",
            tuple(alone),
        )
    if held:
        yield Unclocked(
            "There is no event clock, and inputs are held over a step, so events that depend on them may be a step early "
            f"or late, or missing: {_names(held)}. {instead}",
            tuple(held),
        )


def executed_unseen(system: ResolvedSystem) -> Iterator[Unclocked]:
    """Shared events that FMUs execute themselves, and of which the system does not declare the members: a run with an event
    clock that fires none cannot compare them."""
    declared = {(m.component, m.event.name) for e in system.shared_events for m in e.members}
    fed = {k.target for k in system.links if not system.components[k.source].is_input}
    unseen = [
        (c.name, event)
        for i, c in enumerate(without_lone_events(system).components)
        for event in c.model.events
        if event.scope is Scope.SHARED and i in fed and (i, event.name) not in declared
    ]
    if unseen:
        yield Unclocked(
            "Each FMU executes its shared events alone, by its own inputs and at its own time, so they may be executed "
            f"twice or missed: {_names(unseen)}. No event clock can fire them, and the run does not compare their members, "
            "because the system does not declare them. Name a trigger in the FMU's manifest, and declare the members by an "
            "annotation of the system, or by builder.share_event(name, members...)",
            (),
        )


def _names(events: Iterable[tuple[str, EventDeclaration]]) -> str:
    return listed(f"'{component}.{event.name}'" for component, event in events)


def _what_fits(met: _Met) -> str:
    """Alternatives that these FMUs allow; never an event clock or a rule that would be refused as well."""
    fits = []
    if met.events:
        fits.append(
            "Events have indicators: the event clocks Predictive() and LookAhead() can be used (--event-clock predictive, "
            "look-ahead)."
        )
    if any(m.capabilities.has_event_mode for m in met.models.values()):
        fits.append(
            "There is Event Mode: event_mode=True (--event-mode) ends steps at time events."
        )
    if met.goes_back and met.has_discrete_links:
        fits.append(
            "Discrete outputs are connected: step_size=Locate(H) (--step-rule locate) finds their changes."
        )
    fits = fits or ["Leave it out and use short steps."]
    return " ".join([*fits, 'All choices are in docs/events.md, "My FMU has …".'])


def _broken_manifests(met: _Met) -> str:
    """Invalid manifests, which therefore declare no events."""
    said = ((name, m.broken_manifests) for name, m in met.models.items())
    return "".join(f" '{name}':{sentences}" for name, sentences in said if sentences)
