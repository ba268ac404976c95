"""The methods by which a run is computed, and how often it had to do something less exact: for its report."""

from __future__ import annotations

from collections.abc import Iterator

from fmimaster.base.text import count, in_short, named
from fmimaster.configure.settings import Settings
from fmimaster.prepare.preparation import Prepared
from fmimaster.results.statistics import FallBack
from fmimaster.run.log import Delay
from fmimaster.run.state import RunState
from fmimaster.steps.locate import Locate


def methods(prepared: Prepared, settings: Settings) -> Iterator[str]:
    """Algorithm, step sizes, location of events, loops, and semantic adaptation; one sentence for each."""
    plan, rule, algorithm = prepared.plan, prepared.schedule.rule, settings.algorithm_used
    names = [f"'{plan.instances[i].name}'" for i in plan.trigger_sequence]
    order = "" if algorithm.is_parallel else f", in the order {named(names)}"
    yield f"steps by {in_short(algorithm)}{order}; their ends by {in_short(rule)}"
    clock = settings.event_clock_used
    stopping = [f"'{i.name}'" for i in plan.instances if i.may_return_early]
    modes = [f"'{i.name}'" for i in plan.instances if i.event_mode]
    if clock is not None:
        yield f"events located by {in_short(clock)}"
    elif isinstance(rule, Locate):
        yield "events located by undone steps"
    if stopping:
        yield f"early return of {named(stopping)}"
    if modes:
        yield f"Event Mode of {named(modes)}"
    if plan.step_groups:
        yield f"{count(len(plan.step_groups), 'algebraic loop')} solved in Step Mode"
    if plan.settled:
        names = [f"'{plan.instances[i].name}'" for i in plan.settled]
        yield f"algebraic loop of {named(names)} solved at the ends of steps, by setting and reading"
    adapted = [
        f"'{c.name}' ({type(c.adaptation).__name__})"
        for c in prepared.components
        if c.adaptation is not None
    ]
    if adapted:
        yield f"semantic adaptation by {named(adapted)}"


def fall_backs(state: RunState) -> Iterator[FallBack]:
    """What a run has done so far in a less exact way than intended."""
    if again := state.attempts - state.steps:
        yield FallBack("a step was undone and tried again", again)
    for name, late in list(state.event_log.late.items()):
        yield FallBack(f"the event '{name}' was found late", late.times)
    for (name, reason), delayed in list(state.event_log.delayed.items()):
        why = "it cannot go back" if reason == Delay.AHEAD.name else "the step size is fixed"
        what = f"'{name}' had an event late, by at most {delayed.largest:.6g} s ({why})"
        yield FallBack(what, delayed.times)
