"""The parts of a session, and statistics and warnings of its run, at any time of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from fmimaster.base.text import count, named
from fmimaster.configure.named import setting_text, steps_text
from fmimaster.configure.settings import Settings
from fmimaster.fmu.instance import Instance
from fmimaster.instants.instant import Instant
from fmimaster.plan.plan import Plan
from fmimaster.plan.power_bonds import BondSignal, BondSums
from fmimaster.prepare.prepared import Prepared
from fmimaster.program.bond_powers import signals_of
from fmimaster.program.programs import Programs
from fmimaster.program.store import ValueStore
from fmimaster.results.statistics import (
    BondStatistics,
    FallBack,
    InstanceStatistics,
    LoopStatistics,
    RealTimeStatistics,
    Statistics,
)
from fmimaster.run.executor import Executor
from fmimaster.run.failures import held_apart
from fmimaster.run.log import Lateness
from fmimaster.run.loop import RunState
from fmimaster.session.keepers import FactKeeper, RowKeeper

if TYPE_CHECKING:
    from fmimaster.fmu.journaled import Journaled
    from fmimaster.program.real_time import RealTime
    from fmimaster.run.stepper import Stepper


class SessionParts(Protocol):
    """The parts of a session, as those see it that start, save, continue and describe it."""

    settings: Settings
    prepared: Prepared
    plan: Plan
    programs: Programs
    instances: list[Instance]
    executor: Executor
    state: RunState
    stepper: Stepper
    rows: RowKeeper
    facts: FactKeeper
    start: Instant
    stop: Instant
    earlier: EarlierStructures
    noted: dict[int, Journaled]
    """Instances whose calls are noted, by number."""
    start_seconds: float
    """Wall time in s from the first instance to the first step."""
    may_start_anew: bool
    """Whether the run can be prepared again before its first step."""
    shown_at_start: object
    """What measurements at the start have shown that is decided upon; of a run in which they were enough."""

    @property
    def seconds(self) -> float:
        """Wall time in s of the loop so far."""
        ...

    @property
    def methods(self) -> tuple[str, ...]:
        """Those of :func:`methods`."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether the run has reached its end."""
        ...

    @property
    def time(self) -> float:
        """The time in s that the run has reached."""
        ...

    def warnings(self) -> tuple[str, ...]:
        """What the run has shown so far: reasons for a loss of accuracy of its results."""
        ...


def run_statistics(session: SessionParts) -> Statistics:
    """The statistics of a run so far."""
    state, executor, rows = session.state, session.executor, session.rows
    prepared, instances, earlier = session.prepared, session.instances, session.earlier
    steps, attempts = state.counts(executor.reached)
    recorder, seconds = rows.recorder, session.seconds
    real_time = None if session.programs.pace is None else _of_real_time(session.programs.pace)
    waited = 0.0 if real_time is None else real_time.waited
    left = seconds - rows.recording_seconds - rows.writing_seconds - waited
    is_parallel = session.settings.threads != 1
    return Statistics(
        steps=steps,
        attempts=attempts,
        rejections=attempts - steps,
        seconds=seconds,
        rows=recorder.rows,
        instances=earlier.instances(
            statistics_of(prepared, executor, _seconds_of_instances(executor, left, is_parallel))
        ),
        simulated=session.time - session.start.seconds,
        start_seconds=session.start_seconds,
        recording_seconds=rows.recording_seconds,
        writing_seconds=rows.writing_seconds,
        is_estimated=executor.is_estimating,
        is_parallel=is_parallel,
        real_time=real_time,
        warnings=_each_once(
            earlier.warnings,
            with_passed_events(session, prepared.warnings),
            warnings_of_run(session),
        ),
        notes=_each_once(
            earlier.notes,
            prepared.notes,
            (text for instance in instances for text in instance.notes),
        ),
        events=state.event_log.count,
        methods=session.methods,
        fall_backs=tuple(fall_backs(state)),
        loops=earlier.loops(prepared),
        diverging=tuple(d.name for d in recorder.growth.diverging()),
        leaping=recorder.growth.leaping(),
        suspected=_suspected(session),
        power_bonds=bond_statistics(
            prepared.plan, executor.store, float(prepared.schedule.start), state.structure.bonds
        ),
    )


def _of_real_time(pace: RealTime) -> RealTimeStatistics:
    """How late the steps of a run were."""
    _, steps, late, total, largest, _, waited = pace.numbers.tolist()
    mean = total / steps if steps else 0.0
    return RealTimeStatistics(pace.factor, steps, late, 1e-9 * largest, 1e-9 * mean, 1e-9 * waited)


def end_metadata(statistics: Statistics) -> dict[str, Any]:
    """Metadata of a run that are known at its end."""
    return {
        "steps": statistics.steps,
        "events": statistics.events,
        "wall_time": statistics.seconds,
        "warnings": list(statistics.warnings),
    }


def warnings_of_run(session: SessionParts) -> tuple[str, ...]:
    """What a run has shown so far: reasons for a loss of accuracy of its results."""
    state, prepared = session.state, session.prepared
    return (
        *state.warnings,
        *_late_events(session),
        *(held_apart(name, *gap) for name, gap in list(state.gaps.items())),
        *state.event_log.delays(),
        *session.earlier.warnings_of_run,
        *prepared.schedule.rule.warnings(state.memory),
        *(text for hook in prepared.programs.hooks for text in hook.warnings),
        *(text for instance in session.instances for text in instance.warnings),
        *session.rows.recorder.growth.warnings(),
    )


def with_passed_events(session: SessionParts, texts: Sequence[str]) -> Sequence[str]:
    """Warnings of the preparation; the first one about missing event clocks tells how many events were passed."""
    passed, unclocked = session.rows.recorder.passed, session.prepared.unclocked
    if passed is None or not (said := passed.text()):
        return texts
    return [f"{text}. {said}" if text == unclocked[0].text else text for text in texts]


def _suspected(session: SessionParts) -> tuple[str, ...]:
    """Those of them which show only that events may be wrong."""
    errors = session.prepared.programs.errors
    return (*_late_events(session), *(() if errors is None else errors.warnings))


def _late_events(session: SessionParts) -> list[str]:
    return [late.text(name) for name, late in list(session.state.event_log.late.items())]


def _each_once(*texts: Iterable[str]) -> tuple[str, ...]:
    """Several structures of a system have the same texts."""
    return tuple(dict.fromkeys(chain(*texts)))


def _seconds_of_instances(executor: Executor, most: float, is_parallel: bool) -> list[float]:
    """Wall time in s of each instance; estimates are reduced if their sum exceeds the available time.

    The kernel measures some steps only, so the sum of the estimates can be above the time of the run.
    """
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
    yield f"{setting_text(algorithm)}{order}; {steps_text(rule)}"
    clock = settings.clock_used
    stopping = [f"'{i.name}'" for i in plan.instances if i.may_return_early]
    modes = [f"'{i.name}'" for i in plan.instances if i.event_mode]
    if clock is not None:
        yield f"events located by {setting_text(clock)}"
    elif rule.watches_discrete_outputs:
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


_WHY = {
    Lateness.AHEAD: "it cannot go back",
    Lateness.FIXED_STEP: "the step size is fixed",
    Lateness.LOCATED: "it changed outputs at the start of a step",
    Lateness.UNFORESEEN: "no step was shortened to it",
    Lateness.NOT_SEEN: "it cannot be seen",
    Lateness.ALONE: "other members of a shared event did not have it",
}


def fall_backs(state: RunState) -> Iterator[FallBack]:
    """What a run has done so far in a less exact way than intended."""
    if again := state.attempts - state.steps:
        yield FallBack("a step was undone and tried again", again)
    for name, late in list(state.event_log.late.items()):
        yield FallBack(f"the event '{name}' was found late", late.times)
    for (name, reason), delayed in list(state.event_log.delayed.items()):
        what = f"'{name}' had an event late, by at most {delayed.largest:.6g} s ({_WHY[Lateness[reason]]})"
        yield FallBack(what, delayed.times)


def bond_statistics(
    plan: Plan, store: ValueStore, start: float, earlier: Mapping[str, BondSums]
) -> tuple[BondStatistics, ...]:
    """Statistics of all bonds since the start in s, sorted by error, the largest first, then by name.

    Parameters
    ----------
    earlier
        Of the structures before: sums of bonds that have ended, and when those that are still there began.
    """
    sums = {**earlier}
    for bond in plan.power_bonds:
        begin = earlier[bond.name].begin if bond.name in earlier else start
        sums[bond.name] = BondSums(begin, bond.scale, signals_of(bond, store))
    found = [_statistics(name, its) for name, its in sums.items()]
    return tuple(sorted(found, key=lambda bond: (-bond.mean_error, bond.name)))


def _statistics(name: str, sums: BondSums) -> BondStatistics:
    value = sums.signals
    length = value[BondSignal.TIME] - sums.begin
    return BondStatistics(
        name,
        value[BondSignal.ABSOLUTE_ENERGY] / length / 2 if length > 0.0 else 0.0,
        value[BondSignal.RESIDUAL_ENERGY],
        value[BondSignal.TRANSMITTED_ENERGY],
        value[BondSignal.LARGEST_RESIDUAL],
        value[BondSignal.LARGEST_AT],
        value[BondSignal.EVENT_ENERGY],
        sums.scale,
    )


class EarlierStructures:
    """Numbers, warnings and notes of all structures before the present one; empty if the structure never changes."""

    def __init__(self) -> None:
        self._instances: dict[str, InstanceStatistics] = {}
        self.solved: list[LoopStatistics] = []
        """Loops: also those that events have solved before the checkpoint from which the run continues."""
        self.warnings: tuple[str, ...] = ()
        """Of the preparations."""
        self.accuracy_warnings: tuple[str, ...] = ()
        """Those of them that report a loss of accuracy."""
        self.warnings_of_run: tuple[str, ...] = ()
        """Of hooks, and of instances that have ended."""
        self.notes: tuple[str, ...] = ()

    def add(
        self,
        prepared: Prepared,
        instances: Sequence[Instance],
        executor: Executor,
        kept: Collection[str],
    ) -> None:
        """Add the structure that ends; ``kept``: names of its instances that exist in the next one too."""
        ended = [
            instance
            for planned, instance in zip(prepared.plan.instances, instances, strict=True)
            if planned.name not in kept
        ]
        self._instances = {i.name: i for i in self.instances(statistics_of(prepared, executor))}
        self.solved += solved_loops(prepared)
        for hook in prepared.programs.hooks:
            hook.forget()  # the structure may return
        self.warnings += prepared.warnings
        self.accuracy_warnings += prepared.accuracy_warnings
        self.warnings_of_run += tuple(t for hook in prepared.programs.hooks for t in hook.warnings)
        self.warnings_of_run += tuple(text for instance in ended for text in instance.warnings)
        self.notes += (*prepared.notes, *(text for instance in ended for text in instance.notes))

    def instances(self, present: Iterable[InstanceStatistics]) -> tuple[InstanceStatistics, ...]:
        """Statistics of all instances of all structures; numbers of calls go on from structure to structure."""
        found = dict(self._instances)
        for one in present:
            before = found.get(one.name)
            seconds = 0.0 if before is None else before.seconds
            found[one.name] = replace(one, seconds=one.seconds + seconds)
        return tuple(found.values())

    def loops(self, present: Prepared) -> tuple[LoopStatistics, ...]:
        """Statistics of the solved loops; numbers of the same loop in different programs and structures are added."""
        found: dict[tuple[str, ...], LoopStatistics] = {}
        for one in (*self.solved, *solved_loops(present)):
            before = found.get(one.variables)
            found[one.variables] = one if before is None else before + one
        return tuple(found[variables] for variables in sorted(found))


def statistics_of(
    prepared: Prepared, executor: Executor, seconds: Iterable[float] | None = None
) -> tuple[InstanceStatistics, ...]:
    """Of the instances of one structure.

    Parameters
    ----------
    seconds
        Wall time of each in s. Default: as the executor has it.
    """
    return tuple(
        InstanceStatistics(planned.name, int(calls), spent, int(restores), int(events))
        for planned, spent, calls, restores, events in zip(
            prepared.plan.instances,
            executor.seconds if seconds is None else seconds,
            *executor.calls,
            strict=True,
        )
    )


def solved_loops(prepared: Prepared) -> list[LoopStatistics]:
    """Of each hook that has solved a loop."""
    found = (hook.solutions for hook in prepared.programs.hooks)
    return [LoopStatistics(*s) for s in found if s is not None and s.sweeps]
