"""The only loop over time: it decides, and programs execute the decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fmimaster.events.zeno import MOST_MICROSTEPS
from fmimaster.instants.grid import rounding
from fmimaster.instants.instant import Goal, Instant
from fmimaster.program.instructions.base import Program
from fmimaster.program.programs import Pattern, Variant
from fmimaster.record.causes import GRID
from fmimaster.run.acceptance import Acceptance
from fmimaster.run.changes import Changes
from fmimaster.run.event_handler import EventHandler
from fmimaster.run.executor import Outcome
from fmimaster.run.failures import standing
from fmimaster.run.goal import Goals
from fmimaster.run.loop import Loop
from fmimaster.run.ways import OFTEN, Done, LoopParts, ways


class Stepper:
    """Advances all instances of a plan from instant to instant.

    A step ends at the earliest instant that any source requires, with a cause. Steps that are known ahead are left to the
    executor, which returns with an attempt that is not yet committed where something may have happened. Events are
    processed after a step was accepted, so an event is never undone.
    """

    def __init__(self, loop: Loop) -> None:
        self.state = loop.state
        self.indicators = loop.indicators
        self._programs = programs = loop.programs
        self._executor = loop.executor
        self._rule = rule = loop.rule
        self._choose = choose = loop.choose
        changes = Changes(loop.plan, loop.executor.store, loop.state)
        self.events = EventHandler(loop, changes)
        self._goals = Goals(loop)
        self._acceptance = Acceptance(loop, changes, self.events)
        has_event_mode = any(instance.event_mode for instance in loop.plan.instances)
        has_jumps = bool(loop.state.timeline.jumps)
        self._may_have_events = loop.clock is not None or has_event_mode or has_jumps
        self._only = programs.variants[0] if choose is None and programs.restart is None else None
        """The variant of all steps, if there is but one."""
        self._attempts = tuple(v.attempt for v in programs.variants[:1])
        """The attempts of steps that follow each other, again and again."""
        if programs.pattern is not None:
            self._only = None
            self._attempts = tuple(programs.variants[k].attempt for k in programs.pattern.intervals)
        self._size = float(rule.exact_size)
        parts = LoopParts(
            loop, self._goals, self._acceptance, self.events, changes, self._attempts_from
        )
        self._ways = ways(parts)
        self._single = self._ways[-1:]
        self.begin_anew()

    def begin_anew(self) -> None:
        """A run begins, whose state is that of a new one: no part remembers anything."""
        self.has_ended = False
        """Whether an FMU has ended the run."""
        self.state.step_log.any_size = self._programs.pattern is not None
        self.indicators.begin_anew()
        self.events.begin_anew()

    def begin(self) -> bool:
        """Look at what belongs to the start, after all instances were initialized; whether an FMU ends the run there."""
        self.has_ended = self.events.begin()
        return self.has_ended

    def give(self, instances: frozenset[int], set_values: Callable[[int], None]) -> bool:
        """Set values of the user in instances at the present instant; returns whether an FMU ends the run.

        Parameters
        ----------
        set_values
            Sets those of an instance, by its number; called where FMI allows it.
        """
        self.has_ended |= self.events.give(instances, set_values)
        return self.has_ended

    def advance(self, until: Instant) -> Iterator[None]:
        """Step until an instant is reached or an FMU ends the run; yields after each stretch of steps, after each
        event, after some single steps, and when it is asked to.

        Raises
        ------
        SimulationError
            If a step failed and cannot be tried again, or if events accumulate.
        """
        s = self.state
        unseen = idle = 0
        # an event that cannot be told from the end is the end: no sliver follows it
        near = rounding(until.seconds, self._size)
        end = Instant(until.seconds - near)
        while s.time < end:
            goal = self.events.step_to(self._goals.find(until))
            if goal is None:
                continue
            outcome: Outcome | None = None
            steps = s.steps
            if goal.end.seconds > s.time.seconds:  # FMI: a step has a positive length
                variant = self._only or self._variant(goal)
                if s.ahead:
                    variant = replace(variant, attempt=variant.without(s.ahead))
                tried = self._attempt(goal, until, variant)
                if tried.goal is None:  # the last steps ended with ticks
                    self.has_ended = tried.ends
                    unseen = 0
                    yield
                    if tried.ends:
                        return
                    continue
                goal, outcome = tried.goal, tried.outcome
                if outcome is None:
                    self._acceptance.committed(goal.end, goal.cause)
                elif not self._acceptance.accept(goal, outcome, variant):
                    continue
                idle = 0
            else:
                s.time = max(s.time, goal.end)
                idle += 1
                if idle > MOST_MICROSTEPS:
                    raise standing(s.time.seconds, goal.cause)
            ends = outcome is not None and outcome.terminate
            # an attempt that may be undone has an outcome in any case
            happened = outcome is not None and (ends or not self._programs.undoes)
            if self._may_have_events and not ends:
                requests = () if outcome is None else outcome.event_requests
                there_was_one, ends = self.events.happen(goal.fire, requests)
                happened |= there_was_one
                idle = 0 if there_was_one else idle
            unseen += 1 if s.steps <= steps + 1 else OFTEN
            self.has_ended = ends
            if happened or unseen >= OFTEN or s.asked or s.time >= end:
                unseen = 0
                yield
            if ends:
                return

    def _variant(self, goal: Goal) -> Variant:
        """The variant that does the next step; the FMUs are prepared for it if it is another one than before."""
        s, programs = self.state, self._programs
        if programs.pattern is not None:
            return programs.variants[self._number(goal, programs.pattern)]
        if self._choose is not None:
            chosen = self._choose(self._acceptance.context(goal))
            if chosen != s.variant:
                s.variant = chosen
                tell = programs.variants[chosen].tell
                if tell:
                    self._executor.run(tell, s.time.seconds, s.time.seconds)
                    self.indicators.renew()
        if programs.restart is not None and s.previous == 0.0:
            return programs.restart
        return programs.variants[s.variant]

    def _number(self, goal: Goal, pattern: Pattern) -> int:
        """Number of the variant of a step on a grid whose intervals repeat."""
        if goal.cause is not GRID:
            return pattern.last
        return pattern.intervals[self._interval_to(goal.end)]

    def _interval_to(self, point: Instant) -> int:
        """Which of the intervals that repeat ends at a point."""
        points = self._rule.ahead(self.state.memory)
        assert points is not None, "a rule with step sizes of components knows the points ahead"
        return points.interval_to(point)

    def _attempts_from(self, goal: Goal) -> Sequence[Program]:
        """The attempts of the step to a goal and of those after it, again and again."""
        k = self._interval_to(goal.end) if len(self._attempts) > 1 else 0
        return self._attempts[k:] + self._attempts[:k]

    def _attempt(self, goal: Goal, until: Instant, variant: Variant) -> Done:
        """Try one step, or as many of the known following steps as possible."""
        s = self.state
        # the first step after an event is done alone, where it is done in another way or makes outputs known again
        alone = s.retry is not None or s.outdated or s.ahead or variant is self._programs.restart
        for way in self._single if alone else self._ways:
            done = way(goal, until, variant.attempt)
            if done is not None:
                return done
        raise AssertionError("the last way can always do a step")
