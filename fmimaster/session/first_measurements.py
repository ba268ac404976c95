"""What is measured at FMUs before the first step, because the run relies on it: direct dependencies, and repeated steps."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from fmimaster.algorithms.reactions import LENGTHS
from fmimaster.base.errors import CallError, SimulationError
from fmimaster.cards.at_start import contradicts, measured_at_start
from fmimaster.cards.measured import MeasuredAtStart
from fmimaster.program.programs import LONGER, SHORTER, Reactions, ShortSteps
from fmimaster.session.work_thread import StartsAnew

if TYPE_CHECKING:
    from fmimaster.session.run_statistics import SessionParts

NOT_RESTORED = "equal steps from a saved state differ by as much as a step changes, so the state is not restored"

log = logging.getLogger("fmimaster")


def refuse_failed(session: SessionParts, error: SimulationError) -> None:
    """Start anew without the measurement at an FMU that has failed in it; nothing if none was measured then."""
    busy = [one.name for one in session.programs.reactions if one.is_busy]
    if busy:
        raise _not_measured(session, busy, error) from error


def settle_loops(session: SessionParts) -> None:
    """Measure the dependencies that decide about loops further, if FMUs can go back, and start anew if the plan is wrong.

    The calls are not counted. Nothing is decided again where the start of an earlier run has shown the same.
    """
    executor, plan, reactions = session.executor, session.plan, session.programs.reactions
    shown = [part for one in reactions for part in one.shown]
    if shown == session.shown_at_start:
        return
    counted = executor.calls.copy()
    models = {planned.name: planned.model for planned in plan.instances}
    unsure = [one for one in reactions if one.needs_steps(models[one.name].dependencies)]
    if unsure:
        _try_short_steps(session, unsure)
    else:
        session.shown_at_start = shown
    executor.calls[:] = counted
    measured = measured_at_start(reactions, models)
    if contradicts(measured, models, plan.links):
        raise StartsAnew(measured)


def _try_short_steps(session: SessionParts, reactions: Sequence[Reactions]) -> None:
    """Measure over short steps, unless an event comes first; those that do not do a step as they should are left out."""
    start, executor, short_steps = (
        session.start.seconds,
        session.executor,
        session.programs.short_steps,
    )
    usual = min(
        float(session.prepared.schedule.rule.exact_size),
        session.stop.seconds - session.start.seconds,
    )
    if short_steps is None or executor.next_events.min() <= start + usual * max(LENGTHS):
        return
    for trial in short_steps(reactions):
        if not _is_done(session, trial, usual) and len(trial.reactions) > 1:
            for one in trial.reactions:  # some can do it
                _try_short_steps(session, [one])


def _is_done(session: SessionParts, trial: ShortSteps, usual: float) -> bool:
    """Whether both short steps were done; otherwise nothing was seen in them."""
    start, executor = session.start.seconds, session.executor
    for place, part in zip((LONGER, SHORTER), LENGTHS, strict=True):
        for one in trial.reactions:
            one.at = place
        try:
            outcome = executor.run(trial.steps, start, start + part * usual)
            executor.run(trial.back, start, start)
        except SimulationError as error:
            names = [one.name for one in trial.reactions]
            raise _not_measured(session, names, error) from error
        if outcome.stopped is not None or outcome.terminate or outcome.event_requests:
            for one in trial.reactions:
                one.forget_steps()
            return False
    if lost := [one.name for one in trial.reactions if not one.goes_back]:
        raise StartsAnew(MeasuredAtStart(refused=dict.fromkeys(lost, NOT_RESTORED)))
    return True


def _not_measured(
    session: SessionParts, names: Sequence[str], error: SimulationError
) -> StartsAnew:
    """The end of a run in which an FMU has failed while dependencies of these were measured.

    Its other instances would fail as well, each with a start of its own.
    """
    failed = {*names}
    if isinstance(error, CallError):
        tokens = {i.name: i.model.instantiation_token for i in session.plan.instances}
        token = tokens.get(error.instance)
        failed = {error.instance, *(n for n in tokens if token and tokens[n] == token)}
    reason = f"with slightly changed inputs, {error}".rstrip(".")
    refused = {one.name: reason for one in session.programs.reactions if one.name in failed}
    return StartsAnew(MeasuredAtStart(refused=refused))


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
