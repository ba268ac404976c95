"""Accepts and commits a step that was tried, or undoes it so that it is tried again."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isnan

from fmimaster.causes import Cause, Kind
from fmimaster.control.grid import rounding
from fmimaster.control.indicators import NONE
from fmimaster.control.instant import Goal, Instant
from fmimaster.control.step_context import StepContext
from fmimaster.program.outcome import Outcome
from fmimaster.program.programs import Variant
from fmimaster.run.changes import Changes
from fmimaster.run.event_handler import EventHandler
from fmimaster.run.failures import no_progress, step_failure, too_short
from fmimaster.run.loop import Loop

MOST_TRIES = 1000
"""Of one step: halving a step down to the distance of two doubles takes less than a hundred."""


class Acceptance:
    """Accepts steps, or undoes them: the one place for errors that are too large, for changes that are located, for
    discarded steps and for iterations that do not converge."""

    def __init__(self, loop: Loop, changes: Changes, events: EventHandler) -> None:
        self._plan = loop.plan
        self._programs = loop.programs
        self._executor = loop.executor
        self._rule = rule = loop.rule
        self._base = loop.base
        self._state = loop.state
        self._indicators = loop.indicators
        self._names = loop.names
        self._changes = changes
        self._events = events
        self._decides_after = rule.grid(loop.state.memory) is None and not rule.rejects
        self._size = loop.base.ticks(rule.exact_size) / loop.base.resolution

    def accept(self, goal: Goal, outcome: Outcome, variant: Variant) -> bool:
        """Whether a step in which something has happened is accepted; if so, it is committed.

        Raises
        ------
        SimulationError
            If the step failed, and cannot be tried again.
        """
        s = self._state
        changed: tuple[str, ...] = ()
        # a step in which an FMU ends the run is not tried again
        if self._rule.rejects and not outcome.terminate:
            self._indicators.renew()
            context = self.context(goal, self._changes.outputs_changed())
            changed = context.changed if self._rule.watches_discrete_outputs else ()
            if self._is_undone(goal, outcome, variant, context):
                return False
        if outcome.stopped is not None:
            size = goal.end.seconds - s.time.seconds
            raise step_failure(self._plan, outcome.stopped, s.time.seconds, size)
        end = goal.end if outcome.end == goal.end.seconds else Instant(outcome.end)
        # if an FMU has ended the run within the step, the others are ahead of it: no row belongs to all
        together = not outcome.terminate or end == goal.end or len(self._plan.instances) == 1
        if together and end.seconds > s.time.seconds:
            self._executor.run(self._programs.commit, end.seconds, end.seconds)
            self.committed(end, goal.cause if end == goal.end else self._cause(outcome))
            if changed:
                self._events.located(changed)
        if end != goal.end and not (outcome.terminate or outcome.event_requests):
            self._check_progress(end.seconds)
        return True

    def context(self, goal: Goal, changed: tuple[str, ...] = ()) -> StepContext:
        """The arguments for rules and algorithms."""
        s = self._state
        return StepContext(self._indicators, self._size, s.variant, goal, self._base, changed)

    def committed(self, end: Instant, cause: Cause) -> None:
        """Note a step that is committed."""
        s = self._state
        self._indicators.renew()
        begin = s.time.seconds
        s.step_log.add(begin, end.seconds, cause)
        s.previous = end.seconds - begin
        if self._decides_after:
            s.memory, _ = self._rule.decide(s.memory, s.time, s.previous, 0.0)
        s.time, s.retry, s.index = end, None, 0
        s.unseen = frozenset()
        s.steps += 1
        if not s.outdated:
            s.fired = NONE
            return
        # what was outdated before this step must not serve a polynomial; the step after the event is still to come
        self._executor.run(self._programs.renew, end.seconds, end.seconds)
        s.previous, s.outdated = 0.0, NONE
        s.memory = self._rule.restart(s.memory)

    def _is_undone(
        self, goal: Goal, outcome: Outcome, variant: Variant, context: StepContext
    ) -> bool:
        """Call the rule; undo the step if it is to be tried again with another length."""
        s, now = self._state, self._state.time.seconds
        error = inf if outcome.stopped is not None else self._rule.error(context)
        length = (goal.end.seconds if outcome.stopped else outcome.end) - now
        if s.retry is None:
            s.longest, s.tries = length, 0
        s.memory, again = self._rule.decide(
            s.memory, s.time, length, inf if isnan(error) else error
        )
        if again is None:
            return False
        s.tries += 1
        if not now + again > now or s.tries > MOST_TRIES:  # NaN, too
            if outcome.stopped is not None:  # its own error says more
                return False
            raise too_short(now, again, s.tries, error)
        self._executor.run(variant.rollback, now, now)
        self._indicators.renew()
        s.retry = min(again, s.longest)
        return True

    def _cause(self, outcome: Outcome) -> Cause:
        """Why a step ended before its goal."""
        if outcome.terminate:
            reached = self._executor.registers.at.tolist()
            return Cause(
                Kind.ENDED, self._who(i for i, at in enumerate(reached) if at == outcome.end)
            )
        return Cause(Kind.EARLY_RETURN, self._who(outcome.event_requests) or self._stopping())

    def _check_progress(self, time: float) -> None:
        """Raise if FMUs return early again and again without an event; those with events are counted with these."""
        if self._state.accumulating.too_many_at(time, rounding(time, self._size)):
            raise no_progress(self._stopping(), time)

    def _stopping(self) -> tuple[str, ...]:
        """The instances that may return early: which of them did is known only if it requests an event."""
        planned = self._plan.instances
        return self._who(i for i, instance in enumerate(planned) if instance.may_return_early)

    def _who(self, instances: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._names[i] for i in instances)
