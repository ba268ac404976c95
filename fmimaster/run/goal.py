"""The end of the next step: the earliest instant that the rule, the calendar, an FMU or the event clock requires."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fmimaster.base.errors import SimulationError
from fmimaster.instants.instant import NEVER, Goal, Instant
from fmimaster.numerics.step_sizes import SLIVER
from fmimaster.plan.plan import Plan
from fmimaster.record.causes import GRID, RAMP, STEP_SIZE, STOP_TIME, Cause, Kind
from fmimaster.run.loop import Loop, LoopPart

REFRESH = 1e-5
"""Length of the step that renews outputs after an event elsewhere, as a part of the step that was due. FMI 2.0 forbids to
read them before; an extrapolation from the old ones costs accuracy (2.7e-4 instead of 6e-5 on the two masses)."""

IMPOSED_POINT = Cause(Kind.IMPOSED_POINT)


class Goals(LoopPart):
    """Finds the end of the next step."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        able = (i.model.capabilities for i in loop.plan.instances)
        self._is_fixed = not all(c.can_handle_variable_communication_step_size for c in able)
        """Whether an FMU cannot vary its step size: then time events, and outputs after events, wait for the next grid
        point."""
        self._has_rates = loop.programs.pattern is not None
        """Whether components have their own step sizes."""
        self._merged = loop.state.calendar.merged_seconds
        self._quiet_clock = loop.clock
        """The clock while FMUs ignore their own events, because they are in a contact at rest."""
        if loop.clock is not None and loop.clock.silences and loop.programs.quiet:
            from fmimaster.events.predictive import Predictive  # few runs need it

            self._quiet_clock = Predictive(go_back=False)  # other FMUs still stop at their events

    def find(self, until: Instant) -> Goal:
        """The end of the next step, at the latest ``until``, with its cause."""
        s = self._state
        now = s.time
        if s.retry is not None:  # the step before was undone: nothing else limits the shorter one
            return s.retry
        goal = self.of_rule(now, s.memory, until)
        end = goal.end.seconds
        if goal.end is not until:
            end += SLIVER * (end - now.seconds)
        if s.timeline.points and (point := s.timeline.after(now)).seconds <= end:
            goal = Goal(point, IMPOSED_POINT)
            end = point.seconds
        tick = s.calendar.first if s.calendar.next else NEVER
        if tick < goal.end:
            goal = self._tick(tick, goal)
            # an event that comes little later takes the tick with it
            end = min(end, goal.end.seconds + self._merged)
        if self._has_rates and s.next_event <= end:
            raise self._event_between()
        if s.next_event <= (now.seconds if self._is_fixed else end):
            name = self._names[int(self._executor.next_events.argmin())]
            event = Instant(max(s.next_event, now.seconds))
            # a time event that is at a tick is at the same instant
            at = max(tick, event) if s.calendar.is_one(event, tick) else event
            goal = Goal(at, Cause(Kind.TIME_EVENT, (name,)))
        if s.ahead:
            goal = self._rejoined(goal)
        if s.outdated and not self._is_fixed:
            goal = self._sooner(goal)
        clock = self._quiet_clock if s.resting else self._clock
        self._indicators.resting, self._indicators.held = s.resting, s.touching
        return goal if clock is None else clock.clip(goal, now, self._indicators, s.fired)

    def _tick(self, tick: Instant, goal: Goal) -> Goal:
        """A step that ends at the tick of a clock; FMUs with fixed steps reach it at the next communication point."""
        now = self._state.time
        if self._is_fixed and tick > now:
            return goal
        return Goal(max(tick, now), cause_of_ticks(self._plan, self._state.calendar.at(tick)))

    def _event_between(self) -> SimulationError:
        """The error for a time event while components have their own step sizes."""
        name = self._names[int(self._executor.next_events.argmin())]
        return SimulationError(
            f"'{name}' has a time event at t = {self._state.next_event:.12g} s, where with MultiRate not all components "
            "end a step. Use a step size for all of them, or SubSteps (--sub-steps)."
        )

    def of_rule(self, now: Instant, memory: Any, until: Instant) -> Goal:
        """The end that the rule proposes, at the latest ``until``."""
        goal = self._rule.propose(now, memory)
        end = goal.end.seconds
        # what comes by less than a sliver after a step ends that step
        if until.seconds <= end + SLIVER * (end - now.seconds):
            if not self._state.pauses:
                return Goal(until, STOP_TIME)
            # a pause at a point of the rule has no effect
            return goal if until.seconds == end else Goal(until, IMPOSED_POINT)
        return goal

    def _rejoined(self, goal: Goal) -> Goal:
        """A step that ends no later than where an instance stands ahead of the others."""
        at = self._executor.registers.at
        first = min(self._state.ahead, key=lambda i: (at.item(i), i))
        end = latest = goal.end.seconds
        if goal.cause in (GRID, STEP_SIZE, RAMP):  # no sliver may remain before it
            latest += SLIVER * (end - self._state.time.seconds)
        if at.item(first) == end or at.item(first) > latest:
            return goal
        return Goal(Instant(at.item(first)), Cause(Kind.AHEAD, (self._names[first],)))

    def _sooner(self, goal: Goal) -> Goal:
        """A short step, after which outdated outputs can be read."""
        s = self._state
        now = s.time.seconds
        length = REFRESH * (goal.end.seconds - now)
        if now + length <= now:
            return goal
        return Goal(Instant(now + length), cause_of_renewal(self._names, s.outdated))


def cause_of_ticks(plan: Plan, triggers: Iterable[int]) -> Cause:
    """The cause of the end of a step at ticks of clocks, by the numbers of their triggers."""
    ticking = (plan.triggers[k] for k in triggers)
    return Cause(Kind.CLOCK, tuple(f"{plan.instances[t.instance].name}.{t.name}" for t in ticking))


def cause_of_renewal(names: Sequence[str], outdated: Iterable[int]) -> Cause:
    """The cause of the end of a step that makes outputs of instances known again."""
    return Cause(Kind.OUTDATED_OUTPUTS, tuple(names[i] for i in sorted(outdated)))
