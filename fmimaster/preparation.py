"""A simulation before any FMU is instantiated: the plan, the programs, the times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fmimaster.algorithms import assemble
from fmimaster.control.schedule import Schedule, make_schedule
from fmimaster.control.step_rule import FixedStep, StepRule
from fmimaster.fmu.load import Loader
from fmimaster.input_file import attach_input_file
from fmimaster.plan.plan import EventUse, Plan, Policy, make_plan, step_order
from fmimaster.program.instructions import Fit
from fmimaster.program.programs import Programs
from fmimaster.requirements import refuse_plan, refuse_settings
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
    clock = settings.event_clock
    schedule = make_schedule(
        models,
        description.experiment,
        start_time=settings.start_time,
        stop_time=settings.stop_time,
        step_size=settings.step_size,
        usual_rule=FixedStep if clock is None else clock.usual_rule,
        points=jumps,
    )
    plan, programs = _planned(settings, schedule.rule, resolved, description.is_single_fmu)
    return Prepared(description, plan, programs, schedule, made_from)


def _planned(
    settings: Settings, rule: StepRule[Any], resolved: ResolvedSystem, bare_names: bool
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
    refuse_settings(settings.algorithm, clock)
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
        refuse_plan(plan, rule, clock)
        programs = assemble(
            plan,
            settings.algorithm,
            history=0 if clock is None else clock.history,
            undoes=rule.rejects,
        )
        found = fitted(programs)
        if found == given or not any(plan.instances[i].model.input_polynomials for i in found):
            return plan, programs
        given = found


def fitted(programs: Programs, *, ever: bool = False) -> frozenset[int]:
    """Instances that are given polynomials: from the first step on, or ever."""
    ways = programs.variants if ever else programs.variants[:1]
    instructions = [i for way in ways for i in way.attempt.instructions]
    return frozenset(f.instance for f in instructions if isinstance(f, Fit))
