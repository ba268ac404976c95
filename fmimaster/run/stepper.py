"""The one loop over time: it decides, programs do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ulp

import numpy as np

from fmimaster.control.event_clock import NONE, EventClock, Indicators
from fmimaster.control.instant import Goal, Instant
from fmimaster.control.step_size import Grid, Ramped
from fmimaster.errors import CallError, ConvergenceError, SimulationError
from fmimaster.plan.plan import Plan
from fmimaster.program.outcome import Outcome, Reason, Stop
from fmimaster.run.event_handler import EventHandler
from fmimaster.run.executor import Executor
from fmimaster.run.state import RunState, StepPrograms

NO_TIMES = np.empty(0)

OFTEN = 16
"""After so many single steps the loop lets others have their turn: far fewer than a block of rows has room for."""

SLIVER = 1e-9
"""A step that would leave less than this part of itself until the stop time goes to the stop time."""

REFRESH = 1e-5
"""Length of the step that renews outputs after an event elsewhere, as a part of the step that was due."""


class Stepper:
    """Brings all instances of a plan from instant to instant.

    Each end of a step is the earliest instant that anyone asks for, with a reason. A quiet stretch of the grid is left
    to the executor, which comes back with an attempt that is not yet committed. Events happen after a step was accepted,
    so that nothing of an event is ever undone.
    """

    def __init__(
        self,
        plan: Plan,
        programs: StepPrograms,
        executor: Executor,
        rule: Grid | Ramped,
        state: RunState,
        clock: EventClock | None = None,
        history: int = 0,
    ) -> None:
        self.plan = plan
        self.programs = programs
        self.executor = executor
        self.rule = rule
        self.state = state
        self.clock = clock
        self.indicators = Indicators(plan, executor.store, history)
        self.event_handler = EventHandler(
            plan, programs.ways, executor, state, clock, self.indicators
        )
        self._names = [instance.name for instance in plan.instances]
        self._has_event_mode = any(instance.event_mode for instance in plan.instances)
        self.indicators.first = programs.ways[0].first
        self._is_fixed = isinstance(rule, Grid) and clock is None and not self._has_event_mode
        self._way = programs.ways[0]
        """That of the last attempt."""
        self._may_undo = clock is not None and clock.locates > 0
        self._may_repeat = (
            isinstance(rule, Grid)
            and clock is None
            and programs.choose is None
            and not self.event_handler.watches_inputs
        )
        """Whether stretches of the grid can be left to the executor: nobody wants to be asked in between."""

    def advance(self, until: Instant) -> Iterator[None]:
        """Step until an instant is reached or an FMU ends the run; yields after each stretch of steps, after each
        event, and after some single steps.

        Raises
        ------
        SimulationError
            If a step was discarded or did not converge: nothing can be done about it with a fixed step; or if events
            accumulate.
        """
        s = self.state
        self.event_handler.begin()
        locates = self.clock is not None and self.clock.locates > 0
        unseen = 0
        while s.time < until:
            goal = self.goal(s.time, until)
            outcome: Outcome | None = None
            if goal.end.seconds > s.time.seconds:  # FMI: a step has a positive length
                goal, outcome = self.attempt(goal, until)
                if outcome is None:
                    self._accepted(goal.end, goal.reason)
                elif outcome.stopped is not None:
                    raise self.failure(outcome.stopped, goal)
                elif locates and self._goes_back(goal, outcome):
                    continue
                else:
                    self._accept(goal, outcome)
            else:
                s.time = max(s.time, goal.end)
            happened, ends = outcome is not None, outcome is not None and outcome.terminate
            if not self._is_fixed and not ends:
                asked = () if outcome is None else outcome.event_requests
                happened |= self.event_handler.happen(goal.fire, asked)
                ends = self.event_handler.ends_the_run
            unseen += 1
            if happened or unseen == OFTEN or s.time >= until:
                unseen = 0
                yield
            if ends:
                return

    def _accept(self, goal: Goal, outcome: Outcome) -> None:
        """Commit an attempt in which something has happened, up to where all stand."""
        end = goal.end if outcome.end == goal.end.seconds else Instant(outcome.end)
        # if an FMU has ended the run within the step, the others are ahead of it: no row belongs to all
        together = not outcome.terminate or end == goal.end or len(self.plan.instances) == 1
        if together and end.seconds > self.state.time.seconds:
            self.executor.run(self.programs.commit, end.seconds, end.seconds)
            reason = goal.reason
            if end != goal.end:
                reason = f"early return of {self.event_handler.names(outcome.event_requests)}"
            self._accepted(end, reason)

    def _accepted(self, end: Instant, reason: str) -> None:
        """Take up that all stand at the end of a step, which is committed."""
        s = self.state
        self.indicators.renew()
        s.step_log.add(s.time.seconds, end.seconds, reason)
        s.previous = end.seconds - s.time.seconds
        s.time, s.bracket = end, None
        s.steps += 1
        if not s.outdated:
            s.fired = NONE
            return
        # what was outdated before this step must not serve a polynomial; the step after the event is still to come
        if self.programs.renew is not None:
            self.executor.run(self.programs.renew, end.seconds, end.seconds)
        s.previous, s.outdated = 0.0, NONE

    def goal(self, now: Instant, until: Instant) -> Goal:
        """The earliest instant after now that anyone asks for, with the reason."""
        s = self.state
        goal = self.rule.propose(now, s.previous)
        end = goal.end.seconds
        if until.seconds - end <= SLIVER * (end - now.seconds):
            goal = Goal(until, "stop time")
        if s.timeline.points and (point := s.timeline.after(now)) <= goal.end:
            goal = Goal(point, "imposed point")
        end = goal.end.seconds
        if self.event_handler.next_time <= end:
            name = self._names[int(self.executor.next_events.argmin())]
            goal = Goal(
                Instant(max(self.event_handler.next_time, now.seconds)), f"time event of {name}"
            )
        if s.outdated and now.seconds + REFRESH * (end - now.seconds) > now.seconds:
            names = " and ".join(self._names[i] for i in sorted(s.outdated))
            length = REFRESH * (goal.end.seconds - now.seconds)
            goal = Goal(Instant(now.seconds + length), f"outputs of {names} after an event")
            end = goal.end.seconds
        if self.clock is None:
            return goal
        if s.bracket is not None:
            low, high = s.bracket
            length = high if high - low <= self._finest(now) else (low + high) / 2
            return Goal(Instant(now.seconds + length), "change of discrete outputs located")
        return self.clock.clip(goal, now, self.indicators, s.fired)

    def attempt(self, goal: Goal, until: Instant) -> tuple[Goal, Outcome | None]:
        """Try one step, or as many as the quiet grid allows; returns the goal of the last one and its outcome, which is not
        yet committed; None for the outcome if it is."""
        s, restart = self.state, self.programs.restart
        if self.programs.choose is not None:
            self._choose_way(self.programs.choose)
        self._way = self.programs.ways[s.way]
        if restart is not None and s.previous == 0.0:
            self._way = restart
        program = self._way.attempt
        begin, between = s.time.seconds, NO_TIMES
        if self._may_repeat and goal.reason == "grid" and self._way is not restart:
            assert isinstance(self.rule, Grid)
            last = min(until, s.timeline.after(s.time), Instant(self.event_handler.next_time))
            between = self.rule.seconds_between(goal.end, last, self.executor.rows.capacity)
        if not len(between):
            s.attempts += 1
            if self._may_undo:
                return goal, self.executor.run(program, begin, goal.end.seconds)
            return goal, self.executor.step(program, self.programs.commit, begin, goal.end.seconds)
        times = np.concatenate([[begin, goal.end.seconds], between])
        done, outcome = self.executor.repeat(program, self.programs.commit, times)
        s.steps += done
        s.attempts += done + 1
        if done:
            assert isinstance(self.rule, Grid)
            first = goal.end
            s.time = first if done == 1 else self.rule.point_after(first, done - 2)
            goal = Goal(self.rule.point_after(first, done - 1), self.rule.reason)
            s.step_log.add(begin, s.time.seconds, self.rule.reason, done)
            s.previous = s.time.seconds - float(times[done - 1])
        return goal, outcome

    def _choose_way(self, choose: Callable[[Indicators, float, int], int]) -> None:
        s = self.state
        way = choose(self.indicators, self.rule.step / self.rule.base.resolution, s.way)
        if way != s.way:
            s.way = way
            self.executor.run(self.programs.ways[way].tell, s.time.seconds, s.time.seconds)
            self.indicators.renew()
        self.indicators.first = self.programs.ways[way].first

    # Locating by going back

    def _finest(self, now: Instant) -> float:
        """Length in s of the bracket that is wanted, as far as doubles can tell times apart."""
        assert self.clock is not None
        return max(self.clock.locates, 4 * ulp(now.seconds))

    def _goes_back(self, goal: Goal, outcome: Outcome) -> bool:
        """Whether a change of discrete outputs in the attempt is to be located more closely; if so it is undone."""
        s = self.state
        assert self.clock is not None
        length = goal.end.seconds - s.time.seconds
        changed = self.event_handler.changes.outputs_changed()
        if s.bracket is None and not changed:
            return False
        low, high = s.bracket or (0.0, length)
        if s.bracket is not None:
            low, high = (low, length) if changed else (length, high)
        if changed and high - low <= self._finest(s.time):
            s.event_log.add(
                goal.end.seconds,
                "change of discrete outputs",
                "private",
                tuple(self.event_handler.changes.who),
                "located by going back",
            )
            self.event_handler.changes.note()
            s.previous = 0.0
            return False
        self.executor.run(self._way.rollback, s.time.seconds, s.time.seconds)
        s.bracket = low, high
        return True

    def failure(self, stop: Stop, goal: Goal) -> SimulationError:
        """The error for an attempt that stopped, in words."""
        begin, size = self.state.time.seconds, goal.end.seconds - self.state.time.seconds
        if stop.reason is Reason.NOT_CONVERGED:
            return ConvergenceError(
                f"An iteration did not come to rest in the step from t = {begin:.12g} s (size {size:.6g} s): outputs "
                f"still change by {stop.change:.3g} (relative). Use a smaller step size.",
                time=begin,
            )
        name = self.plan.instances[stop.instance].name
        if stop.reason is Reason.EARLY:
            return CallError(
                f"DoStep of '{name}' from t = {begin:.12g} s (size {size:.6g} s) returned early at t = {stop.time:.17g} s, "
                "which is not inside the step, or was not allowed. Ask the FMU's vendor, or run it without Event Mode "
                "(event_mode=False, --no-event-mode).",
                instance=name,
                function="DoStep",
                status="early return",
                time=begin,
            )
        said = "".join(f"\n  {name}: {message}" for message in stop.messages[-5:])
        return CallError(
            f"DoStep of '{name}' was discarded at t = {begin:.12g} s (step {size:.6g} s); it came to "
            f"t = {stop.time:.12g} s. A fixed step cannot be made smaller during the run. Use a smaller step size."
            + (f" The FMU says:{said}" if said else ""),
            instance=name,
            function="DoStep",
            status="Discard",
            messages=stop.messages,
            time=begin,
        )
