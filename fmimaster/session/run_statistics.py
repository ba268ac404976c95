"""Statistics and warnings of a run, at any time of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from fmimaster.base.text import count, in_short, named
from fmimaster.configure.settings import Settings
from fmimaster.fmu.instance import Instance
from fmimaster.plan.plan import Plan
from fmimaster.plan.power_bonds import BondPlan, BondSignal
from fmimaster.prepare.preparation import Prepared
from fmimaster.program.store import ValueStore
from fmimaster.results.growth import Growth
from fmimaster.results.statistics import BondStatistics, FallBack, Statistics
from fmimaster.run.executor import Executor
from fmimaster.run.log import Delay
from fmimaster.run.state import RunState
from fmimaster.session.earlier_structures import EarlierStructures, statistics_of
from fmimaster.session.row_keeper import RowKeeper
from fmimaster.steps.locate import Locate
from fmimaster.system.model import DataType


def run_statistics(
    prepared: Prepared,
    settings: Settings,
    state: RunState,
    instances: Sequence[Instance],
    executor: Executor,
    rows: RowKeeper,
    earlier: EarlierStructures,
    *,
    seconds: float,
    start_seconds: float,
    simulated: float,
    is_parallel: bool,
) -> Statistics:
    """The statistics of a run so far.

    Parameters
    ----------
    seconds, start_seconds : float
        Wall time in s of the loop, and from the first instance to the first step.
    simulated : float
        Simulated time in s.
    is_parallel : bool
        Whether instances may step in several threads.
    """
    steps, attempts = state.counts(executor.reached)
    plan, recorder = prepared.plan, rows.recorder
    left = seconds - rows.recording_seconds - rows.writing_seconds
    return Statistics(
        steps=steps,
        attempts=attempts,
        rejections=attempts - steps,
        seconds=seconds,
        rows=recorder.rows,
        instances=earlier.instances(
            statistics_of(prepared, executor, _seconds_of_instances(executor, left, is_parallel))
        ),
        simulated=simulated,
        start_seconds=start_seconds,
        recording_seconds=rows.recording_seconds,
        writing_seconds=rows.writing_seconds,
        is_estimated=executor.is_estimating,
        is_parallel=is_parallel,
        warnings=_each_once(
            earlier.warnings,
            prepared.warnings,
            warnings_of_run(prepared, state, instances, recorder.growth, earlier),
        ),
        notes=_each_once(
            earlier.notes,
            prepared.notes,
            (text for instance in instances for text in instance.notes),
        ),
        events=state.event_log.count,
        methods=tuple(methods(prepared, settings)),
        fall_backs=tuple(fall_backs(state)),
        loops=earlier.loops(prepared),
        diverging=tuple(d.name for d in recorder.growth.diverging()),
        power_bonds=bond_statistics(plan, executor.store, float(prepared.schedule.start)),
    )


def warnings_of_run(
    prepared: Prepared,
    state: RunState,
    instances: Sequence[Instance],
    growth: Growth,
    earlier: EarlierStructures,
) -> tuple[str, ...]:
    """What a run has shown so far: reasons for a loss of accuracy of its results."""
    late = [late.text(name) for name, late in list(state.event_log.late.items())]
    return (
        *state.warnings,
        *late,
        *state.event_log.delays(),
        *earlier.warnings_of_run,
        *prepared.schedule.rule.warnings(state.memory),
        *(text for hook in prepared.programs.hooks for text in hook.warnings),
        *(text for instance in instances for text in instance.warnings),
        *growth.warnings(),
    )


def _each_once(*texts: Iterable[str]) -> tuple[str, ...]:
    """Several structures of a system have the same texts."""
    return tuple(dict.fromkeys(chain(*texts)))


def _seconds_of_instances(executor: Executor, most: float, is_parallel: bool) -> list[float]:
    """Wall time in s of each instance; estimates are reduced if their sum exceeds the available time."""
    seconds = list(executor.seconds)
    most = max(most, 0.0)
    if is_parallel or not executor.is_estimating or sum(seconds) <= most:
        return seconds
    factor = most / sum(seconds)
    return [factor * one for one in seconds]


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


def bond_statistics(plan: Plan, store: ValueStore, start: float) -> tuple[BondStatistics, ...]:
    """Statistics of all bonds since the start in s, sorted by error, the largest first, then by name."""
    found = [_statistics(bond, store, start) for bond in plan.power_bonds]
    return tuple(sorted(found, key=lambda bond: (-bond.mean_error, bond.name)))


def _statistics(bond: BondPlan, store: ValueStore, start: float) -> BondStatistics:
    outputs = store.outputs[DataType.FLOAT64]

    def value(signal: BondSignal) -> float:
        return float(outputs[bond.signals + signal])

    length = value(BondSignal.TIME) - start
    return BondStatistics(
        bond.name,
        value(BondSignal.ABSOLUTE_ENERGY) / length / 2 if length > 0.0 else 0.0,
        value(BondSignal.RESIDUAL_ENERGY),
        value(BondSignal.TRANSMITTED_ENERGY),
        value(BondSignal.LARGEST_RESIDUAL),
        value(BondSignal.LARGEST_AT),
        value(BondSignal.EVENT_ENERGY),
        bond.scale,
    )
