"""What is measured at FMUs before the first step, because the run relies on it: direct dependencies, and repeated steps."""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING

from fmimaster.algorithms.reactions import LENGTHS
from fmimaster.base.errors import SimulationError
from fmimaster.cards.at_start import contradicts, measured_at_start
from fmimaster.cards.measured import MeasuredAtStart
from fmimaster.program.programs import LONGER, SHORTER, Reactions
from fmimaster.session.work_thread import StartsAnew

if TYPE_CHECKING:
    from fmimaster.session.run_statistics import SessionParts

log = logging.getLogger("fmimaster")


def refuse_failed(session: SessionParts, error: SimulationError) -> None:
    """Start anew without the measurement at an FMU that has failed in it; nothing if none was measured then."""
    for reactions in session.programs.reactions:
        if reactions.is_busy:
            raise _not_measured(reactions, error) from error


def settle_loops(session: SessionParts) -> None:
    """Measure the dependencies that decide about loops further, if FMUs can go back, and start anew if the plan is wrong.

    The calls are not counted.
    """
    executor, plan, reactions = session.executor, session.plan, session.programs.reactions
    counted = executor.calls.copy()
    models = {planned.name: planned.model for planned in plan.instances}
    for one in reactions:
        if one.needs_steps(models[one.name].dependencies):
            _try_short_steps(session, one)
    executor.calls[:] = counted
    measured = measured_at_start(reactions, models)
    if contradicts(measured, models, plan.links):
        raise StartsAnew(measured)


def _try_short_steps(session: SessionParts, reactions: Reactions) -> None:
    """Measure over short steps, unless an event comes first or a step is not done as it should."""
    start, executor = session.start.seconds, session.executor
    usual = min(
        float(session.prepared.schedule.rule.exact_size),
        session.stop.seconds - session.start.seconds,
    )
    if executor.next_events.min() <= start + usual * max(LENGTHS):
        return
    try:
        for reactions.at, part in zip((LONGER, SHORTER), LENGTHS, strict=True):
            outcome = executor.run(reactions.trial, start, start + part * usual)
            executor.run(reactions.back, start, start)
            if outcome.stopped is not None or outcome.terminate or outcome.event_requests:
                return
    except SimulationError as error:
        raise _not_measured(reactions, error) from error
    reactions.is_tried = True


def _not_measured(reactions: Reactions, error: SimulationError) -> StartsAnew:
    """The end of a run in which an FMU has failed while its dependencies were measured."""
    reason = f"with slightly changed inputs, {error}".rstrip(".")
    return StartsAnew(MeasuredAtStart(refused={reactions.name: reason}))


def measure_replay(session: SessionParts) -> None:
    """Measure whether FMUs repeat a step exactly, if the algorithm relies on it; its calls are not counted.

    It takes two steps, in which no time event and no tick of a clock must be passed: then nothing is measured.
    """
    replay, calls = session.programs.replay, session.executor.calls
    calendar = session.state.calendar
    counted, start = calls.copy(), session.start.seconds
    end = start + 2 * float(session.prepared.schedule.rule.exact_size)
    due = min(session.state.next_event, calendar.first.seconds if calendar.next else inf)
    if not replay.twice or end > min(session.stop.seconds, due):
        return
    session.executor.run(replay.twice, start, end)  # if a step fails here, the run reports it
    session.executor.run(replay.back, start, start)
    calls[:] = counted
    measured = session.prepared.measured
    if replay.ignoring and session.may_start_anew and measured is not None and measured.holds:
        raise StartsAnew(MeasuredAtStart(ignoring=frozenset(replay.ignoring)))
    for text in session.warnings():  # at once: the run may take long
        log.warning("%s", text)
