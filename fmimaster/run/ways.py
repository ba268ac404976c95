"""Ways to do the next steps: the loop asks them in order, and the first that can do them does.

A new way is a function here that returns a :data:`Way`, or None for runs that cannot use it, and a place in :data:`WAYS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.events.event_clock import watch_data
from fmimaster.instants.instant import Goal, Instant
from fmimaster.program.hook import Twin
from fmimaster.program.indicators import NONE
from fmimaster.program.instructions.base import Program
from fmimaster.record.causes import Cause, Kind
from fmimaster.run.acceptance import TOWARDS, Acceptance
from fmimaster.run.changes import Changes
from fmimaster.run.event_handler import EventHandler
from fmimaster.run.executor import Outcome
from fmimaster.run.goal import Goals
from fmimaster.run.log import Stretch
from fmimaster.run.loop import Loop
from fmimaster.run.outlook import MOST_ASKED, Lookout, numbered
from fmimaster.run.ticks_ahead import TicksAhead

OFTEN = 16
"""After so many single steps the loop yields: far fewer than a block of rows has room for."""


MOST_TOWARDS = 256
"""Steps between two events that are done in one call: room for more takes longer than the calls."""


class Done(NamedTuple):
    """What a way has done."""

    goal: Goal | None
    """Of the last attempt; None if all are committed and ticks of clocks have followed the last one."""
    outcome: Outcome | None = None
    """Of the last attempt, which is not committed yet; None if it is."""
    ends: bool = False
    """Whether an FMU ends the run at these ticks."""


Way = Callable[[Goal, Instant, Program], Done | None]
"""A way to do the next steps.

Called with the goal of the next step, the end of all steps, and the program of an attempt, it attempts the step to the
goal, and as many steps after it as it can, until something happens. All but the last one are committed and noted. It
returns None, and has done nothing, if another way must do them.
"""


@dataclass
class LoopParts:
    """The parts of the loop that ways use."""

    loop: Loop
    goals: Goals
    acceptance: Acceptance
    events: EventHandler
    changes: Changes
    attempts_from: Callable[[Goal], Sequence[Program]]
    """The attempts of the step to a goal and of those after it, again and again."""
    lookout: Lookout = field(init=False)
    twins: Sequence[Twin] | None = field(init=False)
    """What tells the executor where Python must look at a step; None if it must look at each."""
    watches: Any = field(init=False)
    """The same, as the executor reads them."""

    def __post_init__(self) -> None:
        self.lookout = Lookout(self.loop)
        self.twins = twins = self._twins()
        self.watches = self.loop.executor.watches(twins) if twins else None

    def _twins(self) -> Sequence[Twin] | None:
        twins, loop = [*self.changes.twins()], self.loop
        errors = loop.programs.errors
        if errors is not None and loop.programs.undoes:
            twins.insert(0, errors.twin(loop.executor.store))  # others take a step for accepted
        if loop.clock is not None:
            found = watch_data(loop.clock, loop.indicators), self.events.observer.watch()
            if None in found:
                return None
            twins += [twin for twin in found if twin is not None]
        return twins

    @property
    def is_seen(self) -> bool:
        """Whether it is known, or the executor sees, where something else than the rule may end a step."""
        is_watched = not self.twins or self.watches is not None
        return self.loop.choose is None and self.twins is not None and is_watched

    def begin(self, stretch: Stretch) -> None:
        """Prepare a stretch of steps, which other threads may see from now on."""
        self.changes.lend()
        self.loop.state.stretch = stretch

    def note(self, stretch: Stretch, done: int, end: Callable[[int], Instant]) -> None:
        """Note the first steps of a stretch, as :meth:`Acceptance.committed` notes each.

        Parameters
        ----------
        end
            The end of the step of a number.
        """
        s = self.loop.state
        if not done:
            return
        last = end(done - 1)
        s.step_log.add_stretch(stretch, done)
        s.steps += done
        s.previous = last.seconds - float(stretch.times[done - 1])
        s.time, s.index = last, 0
        # after a step in which nothing is found no event is on
        s.fired, s.on, s.unseen = NONE, NONE, frozenset()
        self.loop.indicators.renew()


def single(parts: LoopParts) -> Way:
    """One attempt; it is committed at once if no step is undone and nothing happens."""
    s, programs, executor = parts.loop.state, parts.loop.programs, parts.loop.executor

    def way(goal: Goal, _: Instant, program: Program) -> Done:
        s.attempts += 1
        begin, end = s.time.seconds, goal.end.seconds
        if programs.undoes:
            return Done(goal, executor.run(program, begin, end))
        happened = executor.stepping(program, programs.commit)(begin, end)
        return Done(goal, executor.outcome(happened) if happened else None)

    return way


def controlled(parts: LoopParts) -> Way | None:
    """The steps that the twin of the rule chooses."""
    loop, s, executor, rule = parts.loop, parts.loop.state, parts.loop.executor, parts.loop.rule
    if not parts.is_seen or loop.clock is not None or not rule.estimators:
        return None
    twin = rule.twin(s.memory, loop.plan, executor.store)
    steps = None if twin is None else executor.controlled(twin, parts.watches)
    if twin is None or steps is None:
        return None

    def way(_: Goal, until: Instant, program: Program) -> Done:
        twin.put(s.memory)
        stretch = Stretch.empty(s.time.seconds, executor.rows.capacity, twin.causes)
        parts.begin(stretch)
        try:
            done, outcome = steps(
                program, loop.programs.commit, stretch, parts.lookout.limit(until).seconds
            )
        finally:
            s.memory = twin.take()
        s.stretch = None
        s.attempts += done + 1
        parts.note(stretch, done, lambda k: Instant(float(stretch.times[k + 1])))
        if outcome is not None:
            return Done(rule.propose(s.time, s.memory), outcome)
        goal = parts.goals.find(until)
        return Done(goal, executor.run(program, s.time.seconds, goal.end.seconds))

    return way


def towards_events(parts: LoopParts) -> Way | None:
    """The steps that grow after an event, and those towards the next one, which the executor predicts."""
    loop, s, executor, rule = parts.loop, parts.loop.state, parts.loop.executor, parts.loop.rule
    if not parts.is_seen or loop.clock is None or rule.rejects or rule.estimators:
        return None
    watch = loop.clock.watch(loop.plan)
    twin = (
        None
        if watch is None or watch.towards is None
        else rule.twin(s.memory, loop.plan, executor.store)
    )
    predicted = [Cause(Kind.PREDICTED, (event.name,)) for event in loop.plan.events]
    steps = None if twin is None else executor.controlled(twin, parts.watches, len(predicted))
    if twin is None or steps is None:
        return None
    causes = [*predicted, *twin.causes]
    is_towards = [cause.kind in TOWARDS for cause in causes]

    def way(goal: Goal, until: Instant, program: Program) -> Done | None:
        end, last = goal.end, parts.lookout.limit(until).seconds
        if not parts.events.is_quiet or end.seconds >= last or s.calendar.next:
            return None
        if abs(end.ticks) != inf:  # the kernel counts from times that were found
            return None
        if goal.cause not in causes:
            causes.append(goal.cause)
            is_towards.append(goal.cause.kind in TOWARDS)
        twin.put(s.memory)
        most = min(executor.rows.capacity, MOST_TOWARDS)
        stretch = Stretch.empty(s.time.seconds, most, causes, end.seconds)
        codes = stretch.codes
        assert codes is not None
        codes[0] = causes.index(goal.cause)
        parts.begin(stretch)
        done, outcome = steps(program, loop.programs.commit, stretch, last)
        s.memory, s.stretch = twin.take(), None
        s.attempts += done + (outcome is not None)
        times = np.asarray(stretch.times)[: done + 2].tolist()
        parts.note(stretch, done, lambda k: Instant(times[k + 1]))
        for k in np.flatnonzero(np.array(is_towards)[codes[:done]]).tolist():
            parts.acceptance.check_approach(times[k + 1])
        if outcome is None:
            return Done(None)
        return Done(Goal(Instant(times[-1]), causes[codes.item(done)]), outcome)

    return way


def over_known(parts: LoopParts) -> Way | None:
    """The steps that are known ahead, with the ticks at their ends."""
    loop, s, events = parts.loop, parts.loop.state, parts.events
    if not parts.is_seen or loop.rule.rejects:
        return None
    lookout = parts.lookout
    ticks = TicksAhead(loop, events, lookout)

    def way(goal: Goal, until: Instant, _: Program) -> Done | None:
        if not events.is_quiet:
            return None
        outlook = ticks.steps_to(goal, until) or lookout.steps_to(goal, until)
        if outlook is None:
            return None
        stretch, along = outlook.stretch, outlook.ticks
        parts.begin(stretch)
        done, outcome, rows = loop.executor.repeat(
            parts.attempts_from(outlook.goal(0)),
            loop.programs.commit,
            stretch.times,
            parts.watches,
            None if along is None else along.ahead,
        )
        s.stretch = None
        s.memory = outlook.memory(done)
        s.attempts += done + (rows is None)
        outlook.note(done)
        parts.note(stretch, done, lambda k: outlook.goal(k).end)
        ends = False
        if along is not None and done:
            counts, last = along.counts(done), along.ticked(done - 1)
            ends = events.execution.have_ticked(
                counts, last, None if rows is None else outcome, rows or 0
            )
            if along.has_renewed(done - 1):
                s.previous = 0.0
            if rows is not None and not ends:
                ends = events.go_on()
        return Done(outlook.goal(done), outcome) if rows is None else Done(None, None, ends)

    return way


def of_rule(parts: LoopParts) -> Way | None:
    """The steps that a rule with estimators proposes one after the other, while nothing else can end or undo one.

    They are noted together.
    """
    loop, s, rule = parts.loop, parts.loop.state, parts.loop.rule
    can_ask = parts.is_seen and loop.clock is None and not (loop.programs.undoes or parts.twins)
    if not (can_ask and rule.estimators):
        return None
    executor, errors, size = loop.executor, parts.acceptance.errors, float(rule.exact_size)

    def way(goal: Goal, until: Instant, program: Program) -> Done | None:
        nearly = parts.lookout.limit(until).seconds - size
        if goal.end.seconds > nearly:
            return None
        decide, propose = rule.decide, rule.propose
        step = executor.stepping(program, loop.programs.commit)
        now, memory, begin = s.time, s.memory, s.time.seconds
        times, causes = [begin], list[Cause]()
        try:
            for _ in range(min(MOST_ASKED, executor.rows.room)):
                there = goal.end
                end = there.seconds
                if end > nearly:
                    break
                times.append(end)
                happened = step(begin, end)
                if happened:
                    return Done(goal, executor.outcome(happened))
                causes.append(goal.cause)
                memory, _ = decide(memory, now, end - begin, errors(end))
                now, begin = there, end
                if s.asked:
                    break
                goal = propose(now, memory)
        finally:
            s.memory = memory
            s.attempts += len(times) - 1
            is_undecided = begin < times[len(causes)]  # the last one, at an error
            if causes:
                stretch = Stretch(np.fromiter(times, float), *numbered(causes))
                parts.note(stretch, len(causes) - is_undecided, lambda _: now)
                if is_undecided:
                    s.step_log.add(begin, times[len(causes)], causes[-1])
        return Done(None)

    return way


WAYS: Sequence[Callable[[LoopParts], Way | None]] = (
    controlled,
    towards_events,
    over_known,
    of_rule,
    single,
)
"""All ways in the order in which they are asked; the last one can always do a step."""


def ways(parts: LoopParts) -> tuple[Way, ...]:
    """The ways that a run has."""
    return tuple(way for make in WAYS if (way := make(parts)) is not None)
