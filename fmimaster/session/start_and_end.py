"""The start of a run, up to its first step; and the end of one that did not reach its end."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError, ConvergenceError, SimulationError
from fmimaster.base.files import decoding, given_path
from fmimaster.configure.settings import Settings
from fmimaster.fmu.instance import Instance
from fmimaster.instants.calendar import Calendar
from fmimaster.plan.layout import Group
from fmimaster.prepare.prepared import Prepared
from fmimaster.run.planned_events import last_row
from fmimaster.run.state import RunState, Timeline
from fmimaster.system.clocks import exact

if TYPE_CHECKING:
    from fmimaster.session.snapshot import SessionParts

log = logging.getLogger("fmimaster")


def first_state(prepared: Prepared, settings: Settings) -> RunState:
    """The state at the start of a run."""
    schedule, base = prepared.schedule, prepared.schedule.base
    memory = schedule.rule.begin(base, base.ticks(schedule.start))
    merged = exact(settings.event_merge_tolerance) * base.resolution
    calendar = Calendar(base.resolution, merged)
    start = schedule.instant(schedule.start)
    return RunState(start, timeline_of(prepared), memory, calendar)


def timeline_of(prepared: Prepared) -> Timeline:
    """The points in time that a preparation requires."""
    schedule = prepared.schedule
    jumps = {schedule.instant(p): who for p, who in prepared.input_jumps.items()}
    return Timeline.of((schedule.instant(p) for p in schedule.points), jumps)


def initialize(session: SessionParts, states: str | os.PathLike[str] | None) -> bool:
    """Initialize all instances, and continue from a file of FMU states if there is one; returns whether the run continues,
    because an FMU can end it in Event Mode."""
    outcome = session.executor.run(
        session.programs.initialize, session.start.seconds, session.start.seconds
    )
    if outcome.stopped is not None:
        raise _endless_start(session, outcome.stopped.change)
    if outcome.terminate:
        end = last_row(session.plan, session.executor.registers.initialized)
        session.executor.run(end, session.start.seconds, session.start.seconds)
        session.stepper.has_ended = True
        return False
    if states is not None:
        _take_states(session, states)
    goes_on = not session.stepper.begin()
    if goes_on:
        _measure_replay(session)
    return goes_on


def _take_states(session: SessionParts, path: str | os.PathLike[str]) -> None:
    """Continue from FMU states of a file; the row of the initialization is replaced."""
    # few runs begin with FMU states
    from fmimaster.session.fmu_states import has_calendar, read_states, recall

    states, memory = read_states(given_path(path), session.prepared)
    for instance, state in zip(session.instances, states, strict=True):
        if state:
            instance.deserialize(state)
    session.executor.rows.take()
    start, calendar = session.start.seconds, session.state.calendar
    session.executor.run(session.programs.resume, start, start)
    if memory:
        with decoding(path, "a file of FMU states"):
            recall(memory, session.plan, session.executor, calendar, start)
    elif memory is None and has_calendar(session.plan):
        session.state.warnings += (
            f"'{path}' does not say when clocks tick: their first ticks are counted from {start:g} s",
        )


def _measure_replay(session: SessionParts) -> None:
    """Measure whether FMUs repeat a step exactly, if the algorithm relies on it; its calls are not counted.

    It takes two steps, in which no time event and no tick of a clock must be passed: then nothing is measured.
    """
    replay, calls, calendar = (
        session.programs.replay,
        session.executor.calls,
        session.state.calendar,
    )
    counted, start = calls.copy(), session.start.seconds
    end = start + 2 * float(session.prepared.schedule.rule.exact_size)
    due = min(session.state.next_event, calendar.first.seconds if calendar.next else inf)
    if not replay.twice or end > min(session.stop.seconds, due):
        return
    session.executor.run(replay.twice, start, end)  # if a step fails here, the run reports it
    session.executor.run(replay.back, start, start)
    calls[:] = counted
    for text in session.warnings_of_run:  # at once: the run may take long
        log.warning("%s", text)


def _endless_start(session: SessionParts, change: float) -> SimulationError:
    """The error for updates in Event Mode that do not end before the first step."""
    session.stepper.indicators.check_finite(session.start.seconds)
    nan = [
        f"'{session.plan.instances[i].name}.{name}' is NaN"
        for (i, group, name), (kind, slot) in session.plan.layout.slots.items()
        if group is Group.OUTPUTS
        and kind.is_float
        and np.isnan(session.executor.store.values[kind][slot]).any()
    ]
    why = (
        "; ".join(nan)
        or f"an FMU requests another update, or outputs still change by {change:.3g} (relative)"
    )
    return ConvergenceError(
        f"The event at the start, t = {session.start.seconds:.12g} s, does not end: {why}. Look for a discrete "
        "loop without delay, and check start values."
    )


def terminate_others(
    instances: Sequence[Instance], initialized: NDArray[np.uint8], error: BaseException
) -> None:
    """Terminate all instances but the one whose call has failed: FMI allows it no further call that computes. The files of
    the others are complete then. Never raises a SimulationError.

    Parameters
    ----------
    initialized : shape (n_instances,)
        Which instances are in Step Mode or in Event Mode, where FMI allows ``Terminate``.
    """
    failed = error.instance if isinstance(error, CallError) else None
    for instance, is_initialized in zip(instances, initialized, strict=True):
        if not is_initialized or instance.name == failed:
            continue
        try:
            instance.terminate()
        except SimulationError as later:
            log.warning("%s", str(later))
