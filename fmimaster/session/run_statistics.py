"""Statistics and warnings of a run, at any time of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from fmimaster.configure.settings import Settings
from fmimaster.fmu.instance import Instance
from fmimaster.prepare.preparation import Prepared
from fmimaster.results.growth import Growth
from fmimaster.results.statistics import Statistics
from fmimaster.run.executor import Executor
from fmimaster.run.state import RunState
from fmimaster.session.bond_statistics import bond_statistics
from fmimaster.session.earlier_structures import EarlierStructures, statistics_of
from fmimaster.session.methods import fall_backs, methods
from fmimaster.session.row_keeper import RowKeeper


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
