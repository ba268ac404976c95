"""The only loop over time: it decides, and programs execute the decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fmimaster.events.watch import watch_data
from fmimaster.events.zeno import MOST_MICROSTEPS
from fmimaster.instants.grid import rounding
from fmimaster.instants.instant import Goal, Instant
from fmimaster.program.hook import Twin
from fmimaster.program.indicators import NONE
from fmimaster.program.instructions import Program
from fmimaster.program.outcome import Outcome
from fmimaster.program.programs import Pattern, Variant
from fmimaster.record.causes import GRID
from fmimaster.run.acceptance import Acceptance
from fmimaster.run.changes import Changes
from fmimaster.run.event_handler import EventHandler
from fmimaster.run.executor import ControlledSteps
from fmimaster.run.failures import standing
from fmimaster.run.goal import Goals
from fmimaster.run.log import Stretch
from fmimaster.run.loop import Loop
from fmimaster.run.outlook import Lookout, Outlook
from fmimaster.run.ticks_ahead import TicksAhead, TicksOutlook

OFTEN = 16
"""After so many single steps the loop yields: far fewer than a block of rows has room for."""


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
        self.has_ended = False
        """Whether an FMU has ended the run."""
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
            loop.state.step_log.any_size = True
            self._attempts = tuple(programs.variants[k].attempt for k in programs.pattern.intervals)
        self._size = float(rule.exact_size)
        self._lookout = Lookout(loop)
        self._ticks_ahead = TicksAhead(loop, self.events)
        self._changes = changes
        twins = self._twins(loop)
        self._watches = loop.executor.watches(twins) if twins else None
        # whether it is known, or the executor sees, where something else than the rule may end a step
        is_seen = choose is None and twins is not None and (not twins or self._watches is not None)
        self._can_look_ahead = is_seen and not rule.rejects
        can_control = is_seen and loop.clock is None
        store, memory = loop.executor.store, loop.state.memory
        self._twin = rule.twin(memory, loop.plan, store) if can_control else None
        self._controlled_steps = (
            loop.executor.controlled(self._twin, self._watches) if self._twin else None
        )
        self._must_ask = can_control and not (programs.undoes or twins) and bool(rule.estimators)
        """Whether a rule decides on each step, of which none can be undone."""

    def _twins(self, loop: Loop) -> Sequence[Twin] | None:
        """What tells the executor where Python must look at a step; None if it must look at each."""
        twins = [*self._changes.twins()]
        if loop.clock is not None:
            found = watch_data(loop.clock, loop.indicators), self.events.observer.watch()
            if None in found:
                return None
            twins += [twin for twin in found if twin is not None]
        return twins

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
            goal = self._goals.find(until)
            outcome: Outcome | None = None
            steps = s.steps
            if goal.end.seconds > s.time.seconds:  # FMI: a step has a positive length
                variant = self._only or self._variant(goal)
                if s.ahead:
                    variant = replace(variant, attempt=variant.without(s.ahead))
                tried = self._attempt(goal, until, variant)
                if isinstance(tried, bool):  # the last steps ended with an event
                    self.has_ended = tried
                    unseen = 0
                    yield
                    if tried:
                        return
                    continue
                goal, outcome = tried
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

    def _attempt(
        self, goal: Goal, until: Instant, variant: Variant
    ) -> tuple[Goal, Outcome | None] | bool:
        """Try one step, or as many of the known following steps as possible.

        Returns the goal of the last one and its outcome, which is not yet committed; None for the outcome if it is. If all
        are committed and ticks of clocks have followed the last one: whether an FMU ends the run.
        """
        s, program = self.state, variant.attempt
        # the first step after an event is done alone, where it is done in another way or makes outputs known again
        alone = s.retry is not None or s.outdated or s.ahead
        if not alone and variant is not self._programs.restart:
            if self._controlled_steps is not None:
                return self._controlled(self._controlled_steps, until, program)
            if self._can_look_ahead and self.events.is_quiet:
                if s.calendar.periods and self._ticks_ahead.is_possible:
                    ticks = self._ticks_ahead.steps(self._lookout.limit_but_ticks(until))
                    if ticks is not None:
                        return self._stretch_over_ticks(ticks)
                outlook = self._lookout.steps_to(goal, until)
                if outlook is not None:
                    return self._stretch(outlook)
            if self._must_ask:
                return self._steps_of_rule(goal, until, program)
        s.attempts += 1
        begin = s.time.seconds
        if self._programs.undoes:
            return goal, self._executor.run(program, begin, goal.end.seconds)
        return goal, self._executor.step(program, self._programs.commit, begin, goal.end.seconds)

    def _steps_of_rule(
        self, goal: Goal, until: Instant, program: Program
    ) -> tuple[Goal, Outcome | None]:
        """Try the step to the goal and those that the rule proposes after it, until something happens or a yield is due.

        The last one is committed too, and not yet noted. Each of the others is noted as :meth:`Acceptance.committed` does,
        and its goal found as by :meth:`Goals.find`, but without questions whose answer is known: half of the time.
        """
        s, commit = self.state, self._programs.commit
        decide, propose = self._rule.decide, self._rule.propose
        nearly = self._lookout.limit(until).seconds - self._size
        step, add, errors = self._executor.step, s.step_log.add, self._acceptance.errors
        now, memory, previous = s.time, s.memory, s.previous
        noted = 0
        try:
            while True:
                begin, end = now.seconds, goal.end.seconds
                outcome = step(program, commit, begin, end)
                if outcome is not None or noted == OFTEN - 1 or end > nearly or s.asked:
                    return goal, outcome
                previous = end - begin
                add(begin, end, goal.cause)
                memory, _ = decide(memory, now, previous, errors(end))
                now = goal.end
                noted += 1
                goal = propose(now, memory)
                if goal.end.seconds > nearly:
                    s.time, s.memory = now, memory
                    goal = self._goals.find(until)
        finally:
            s.time, s.memory, s.previous = now, memory, previous
            s.steps += noted
            s.attempts += noted + 1

    def _controlled(
        self, steps: ControlledSteps, until: Instant, program: Program
    ) -> tuple[Goal, Outcome]:
        """Try the steps that the twin of the rule chooses, until something happens."""
        s, twin = self.state, self._twin
        assert twin is not None
        twin.put(s.memory)
        self._changes.lend()
        s.stretch = stretch = Stretch.empty(
            s.time.seconds, self._executor.rows.capacity, twin.causes
        )
        last = self._lookout.limit(until).seconds
        try:
            done, outcome = steps(program, self._programs.commit, stretch, last)
        finally:
            s.memory = twin.take()
        s.stretch = None
        s.attempts += done + 1
        if done:
            self._note(stretch, done, Instant(float(stretch.times[done])))
        if outcome is not None:
            return self._rule.propose(s.time, s.memory), outcome
        goal = self._goals.find(until)
        return goal, self._executor.run(program, s.time.seconds, goal.end.seconds)

    def _stretch(self, outlook: Outlook) -> tuple[Goal, Outcome]:
        """Try the next steps, until something happens."""
        s, stretch = self.state, outlook.stretch
        attempts = self._attempts
        if len(attempts) > 1:
            k = self._interval_to(outlook.goal(0).end)
            attempts = attempts[k:] + attempts[:k]
        self._changes.lend()
        s.stretch = stretch
        done, outcome = self._executor.repeat(
            attempts, self._programs.commit, stretch.times, self._watches
        )
        s.stretch = None
        s.memory = outlook.memory(done)
        s.attempts += done + 1
        self._lookout.note(outlook, done)
        if done:
            self._note(stretch, done, outlook.goal(done - 1).end)
        return outlook.goal(done), outcome

    def _stretch_over_ticks(self, outlook: TicksOutlook) -> tuple[Goal, Outcome] | bool:
        """Try the next steps, with the ticks at their ends, until something else happens; see :meth:`_attempt`."""
        s, stretch = self.state, outlook.stretch
        self._changes.lend()
        s.stretch = stretch
        done, outcome, rows = self._executor.repeat_over_events(
            self._attempts, self._programs.commit, stretch.times, outlook.events, self._watches
        )
        s.stretch = None
        s.attempts += done + (rows is None)
        self._ticks_ahead.note(outlook, done)
        ends = False
        if done:
            self._note(stretch, done, outlook.instant(done - 1))
            answer = None if rows is None else outcome
            counts, last = outlook.counts(done), outlook.ticked(done - 1)
            ends = self.events.have_ticked(counts, last, answer, rows or 0)
            if outlook.has_renewed(done - 1):
                s.previous = 0.0
        return (outlook.goal(done), outcome) if rows is None else ends

    def _note(self, stretch: Stretch, done: int, end: Instant) -> None:
        """Note the first steps of a stretch, as :meth:`Acceptance.committed` notes each."""
        s = self.state
        s.step_log.add_stretch(stretch, done)
        s.steps += done
        s.previous = end.seconds - float(stretch.times[done - 1])
        s.time, s.index = end, 0
        s.fired, s.unseen = NONE, frozenset()
        self.indicators.renew()
