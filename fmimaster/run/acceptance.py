"""Accepts and commits an attempted step, or undoes it so that it is tried again."""

from __future__ import annotations

from math import inf, isnan
from typing import Any

from fmimaster.base.errors import NotANumberError
from fmimaster.events.event_clock import Retry
from fmimaster.events.zeno import FEW, STEPS
from fmimaster.instants.grid import rounding
from fmimaster.instants.instant import Goal, Instant
from fmimaster.plan.plan import Plan
from fmimaster.program.bond_powers import exclude_last_step
from fmimaster.program.indicators import NONE
from fmimaster.program.programs import Variant
from fmimaster.program.store import ValueStore
from fmimaster.record.causes import Cause, Kind
from fmimaster.run.changes import Changes
from fmimaster.run.event_handler import EventHandler
from fmimaster.run.executor import Outcome, Reason
from fmimaster.run.failures import no_approach, no_progress, step_failure, too_short, unrepeated
from fmimaster.run.loop import Loop, LoopPart
from fmimaster.run.planned_events import read_all
from fmimaster.steps.estimator import Measured
from fmimaster.steps.step_rule import StepContext, StepRule
from fmimaster.system.model import DataType

_new = tuple.__new__
"""Makes a named tuple without a call of Python: errors are read after each step."""


class ErrorReader:
    """Reads the signals of the estimators of a rule."""

    def __init__(self, plan: Plan, store: ValueStore, rule: StepRule[Any]) -> None:
        signals, floats = plan.layout.signals, DataType.FLOAT64
        self._values = memoryview(store.values[floats].data if rule.estimators else b"")
        self._places = [
            (signals[e.name][1], signals[e.worst][1], dict(enumerate(e.names(plan))))
            for e in rule.estimators
        ]
        """Per estimator: places of the error and of the index of what contributed most, and names by that index."""

    def read(self) -> list[Measured]:
        """The errors as they are."""
        values, found = self._values, []
        for error, worst, names in self._places:
            found.append(_new(Measured, (values[error], names[values[worst]])))
        return found

    def read_finite(self, time: float) -> list[Measured]:
        """The errors of a step that is accepted, and has ended at this time in s.

        Raises
        ------
        NotANumberError
            If one of them is NaN or infinite: no step size follows from it.
        """
        values, found = self._values, []
        for place, worst, names in self._places:
            error, name = values[place], names[values[worst]]
            if not error < inf:  # NaN, too
                raise NotANumberError(
                    f"The error estimate {name} is {error} at t = {time:.12g} s: no step size follows from it. Check the "
                    "outputs of which it is made for NaN and for division by zero, and the FMUs that compute them."
                )
            found.append(_new(Measured, (error, name)))
        return found


MOST_TRIES = 1000
"""Of one step: halving a step down to the distance of two doubles takes less than a hundred."""

MOST_HALVINGS = 10
"""Most halvings of a step whose iteration does not converge: if a thousandth of it does not converge, the length is not
the reason."""


TOWARDS = frozenset({Kind.PREDICTED, Kind.LOOK_AHEAD, Kind.LOCATED, Kind.OUTDATED_OUTPUTS})
"""Causes of steps that are shorter because of an event."""

MOST_SHORTER = 6
"""Most tries of a step whose inputs are not foreseen: an output that jumps inside of it is not foreseen by shorter ones."""


SHORT_ENOUGH = 1 / 64
"""Of a usual step: an FMU with held inputs that stops in a step that is not longer has its event at the right instant."""


class Acceptance(LoopPart):
    """Accepts steps, or undoes them: the one place for errors that are too large, for changes that are located, for
    discarded steps and for iterations that do not converge."""

    def __init__(self, loop: Loop, changes: Changes, events: EventHandler) -> None:
        super().__init__(loop)
        rule = loop.rule
        self._clock_undoes = loop.clock is not None and loop.clock.undoes(loop.plan)
        self._changes = changes
        self._events = events
        self._rejects = rule.rejects
        self._decides_after = not rule.rejects
        self.reader = ErrorReader(loop.plan, loop.executor.store, rule)
        self.errors = self.reader.read_finite
        """The errors of a step that is accepted, by the time in s of its end."""
        self._size = loop.base.ticks(rule.exact_size) / loop.base.resolution

    def accept(self, goal: Goal, outcome: Outcome, variant: Variant) -> bool:
        """Whether a step with an outcome is accepted; if so, it is committed.

        Raises
        ------
        SimulationError
            If the step failed, and cannot be tried again.
        """
        s = self._state
        changed: tuple[str, ...] = ()
        # a step in which an FMU ends the run is not tried again
        if self._programs.undoes and not outcome.terminate:
            self._indicators.renew(is_tried=True)
            if self._rule.watches_discrete_outputs:
                changed = self._changes.outputs_changed()
            again = self._again(goal, outcome, changed)
            if again is not None:
                self._executor.run(variant.rollback, s.time.seconds, s.time.seconds)
            self._indicators.renew()
            if again is not None:
                s.retry = again
                return False
        if outcome.stopped is not None:
            size = goal.end.seconds - s.time.seconds
            raise step_failure(self._plan, outcome.stopped, s.time.seconds, size)
        end = goal.end if outcome.end == goal.end.seconds else Instant(outcome.end)
        # if an FMU has ended the run within the step, the others are ahead of it: no row belongs to all
        together = not outcome.terminate or end == goal.end or len(self._plan.instances) == 1
        if together and end.seconds > s.time.seconds:
            if (
                outcome.terminate and end != goal.end
            ):  # the program may have ended before they were read
                self._executor.run(read_all(self._plan), end.seconds, end.seconds)
            self._executor.run(self._programs.commit, end.seconds, end.seconds)
            begin, before = s.time.seconds, s.previous
            self.committed(end, goal.cause if end == goal.end else self._cause(outcome))
            if changed:
                self._events.located(changed, begin, before)
        if end != goal.end and not outcome.terminate:
            self._find_ahead(end.seconds, goal.end.seconds)
            if not outcome.event_requests:
                self._check_progress(end.seconds)
        return True

    def _find_ahead(self, end: float, wanted: float) -> None:
        """Find the instances past an early return in a step that was to end later; both times in s."""
        s, registers = self._state, self._executor.registers
        reached = registers.at.tolist()
        s.ahead = frozenset(i for i, at in enumerate(reached) if at > end)
        # those that have returned early themselves or requested an event, later than another one, have their events there
        s.late |= {i for i in s.ahead if reached[i] < wanted or registers.pending[i]}

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
        if cause.kind in TOWARDS:
            self.check_approach(end.seconds)
        s.previous = end.seconds - begin
        if self._decides_after:
            s.memory, _ = self._rule.decide(s.memory, s.time, s.previous, self.errors(end.seconds))
        if s.outdated:
            s.renewed = end, s.outdated | s.just_renewed
        s.time, s.retry, s.index = end, None, 0
        s.unseen = frozenset()
        s.steps += 1
        if s.ahead:
            at = self._executor.registers.at
            s.ahead = frozenset(i for i in s.ahead if at.item(i) > end.seconds)
        if not s.outdated:
            s.fired = NONE
            return
        # what was outdated before this step must not serve a polynomial; the step after the event is still to come
        self._executor.run(self._programs.renew, end.seconds, end.seconds)
        exclude_last_step(self._plan.power_bonds, self._executor.store, s.outdated)
        s.previous, s.outdated = 0.0, NONE
        s.memory = self._rule.restart(s.memory)

    def check_approach(self, end: float) -> None:
        """Raise if steps that are shorter because of an event come too close to each other; ``end`` of the last in s."""
        s = self._state
        span = s.accumulating.too_dense(STEPS, end, self._size)
        if span is not None:
            raise no_approach([str(c) for c in s.step_log.causes[-FEW:]], span)

    def _again(self, goal: Goal, outcome: Outcome, changed: tuple[str, ...]) -> Goal | None:
        """The end of the step when it is tried again; None if it is not."""
        s, now = self._state, self._state.time.seconds
        end = goal.end.seconds if outcome.stopped else outcome.end
        if s.retry is None:
            s.longest, s.tries = goal.end.seconds - now, 0
        # the clock comes first: a rule must not remember a step that is not accepted
        found = (
            self._passed_event(outcome)
            or self._rejection(goal, changed, end - now, outcome)
            or self._unforeseen(end - now, outcome)
            or self._stopped_with_held_inputs(goal, outcome)
            or self._halved(end - now, outcome)
        )
        if found is None:
            return None
        s.tries += 1
        return Goal(Instant(now + min(found.length, s.longest)), found.cause)

    def _passed_event(self, outcome: Outcome) -> Retry | None:
        """An event that the step has passed and that the event clock locates by going back."""
        s, clock = self._state, self._clock
        now, end = s.time.seconds, outcome.end
        # where outputs are outdated, indicators do not belong to the start of the step
        if clock is None or not self._clock_undoes or outcome.stopped or s.outdated or end <= now:
            return None
        found = clock.passed(self._indicators, now, end, s.tries)
        return found if found is not None and now + found.length > now else None

    def _rejection(
        self, goal: Goal, changed: tuple[str, ...], length: float, outcome: Outcome
    ) -> Retry | None:
        """Ask the rule for the length with which the step is tried again."""
        s, rule, now = self._state, self._rule, self._state.time.seconds
        if not self._rejects:
            return None
        errors, largest = self._measured(goal, changed, outcome)
        s.memory, again = rule.decide(s.memory, s.time, length, errors)
        if again is None:
            if largest == inf and outcome.stopped is None:
                self.errors(now + length)
            if s.tries and rule.watches_discrete_outputs and not (changed or outcome.stopped):
                s.warnings += (unrepeated(self._changes.watched, now),)
            return None
        if not now + again > now or s.tries >= MOST_TRIES:  # NaN, too
            if outcome.stopped is not None:  # its own error says more
                return None
            raise too_short(now, again, s.tries + 1, largest)
        return Retry(again, rule.rejection)

    def _measured(
        self, goal: Goal, changed: tuple[str, ...], outcome: Outcome
    ) -> tuple[list[Measured], float]:
        """The errors of a step that was tried, and the largest; infinite for NaN, and where there is none because the step
        failed."""
        if outcome.stopped is not None:
            return [Measured(inf)] * max(len(self._rule.estimators), 1), inf
        found = self.reader.read() or [Measured(self._rule.error(self.context(goal, changed)))]
        largest = 0.0
        for error, _ in found:
            if not error <= largest:
                largest = error if error < inf else inf  # NaN, too
        if largest == inf:
            found = [m._replace(error=inf) if isnan(m.error) else m for m in found]
        return found, largest

    def _unforeseen(self, length: float, outcome: Outcome) -> Retry | None:
        """Half the length for a step at whose end an input is far from its source, unless the rule decides on steps."""
        s, errors, now = self._state, self._programs.errors, self._state.time.seconds
        # outputs that were outdated have jumped
        if errors is None or self._rejects or outcome.stopped is not None or s.outdated:
            return None
        if s.tries >= MOST_SHORTER or not now + length / 2 > now:
            return None
        if not errors.are_large(self._executor.store, now, s.retry is not None):
            return None
        return Retry(length / 2, self._rule.rejection)

    def _stopped_with_held_inputs(self, goal: Goal, outcome: Outcome) -> Retry | None:
        """Half the length for a step in which an FMU has stopped with inputs that are held over it: the instant moves with
        them, and only in a short step they are nearly those of the instant."""
        now = self._state.time.seconds
        if outcome.stopped is not None or self._programs.held.isdisjoint(outcome.event_requests):
            return None
        length = goal.end.seconds - now
        if length <= SHORT_ENOUGH * self._size or not now + length / 2 > now:
            return None
        return Retry(length / 2, Cause(Kind.EARLY_RETURN, self._who(outcome.event_requests)))

    def _halved(self, length: float, outcome: Outcome) -> Retry | None:
        """Half the length for an iteration that did not converge, unless the rule has decided on it."""
        stopped, now = outcome.stopped, self._state.time.seconds
        if self._rejects or stopped is None or stopped.reason is not Reason.NOT_CONVERGED:
            return None
        if self._state.tries >= MOST_HALVINGS or not now + length / 2 > now:
            return None
        return Retry(length / 2, self._rule.rejection)

    def _cause(self, outcome: Outcome) -> Cause:
        """The cause of a step that ended before its goal."""
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
