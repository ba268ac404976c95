"""Steps that are known in advance if nothing happens: the executor makes them in one call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.instants.calendar import Every, Period, distinct, members, merged, ticking
from fmimaster.instants.grid import EXACT, Grid
from fmimaster.instants.instant import Goal, Instant, PointsAhead
from fmimaster.program.instructions.base import Program
from fmimaster.record.causes import GRID, Cause
from fmimaster.run.event_handler import EventHandler
from fmimaster.run.executor import EventsAhead
from fmimaster.run.goal import REFRESH, cause_of_renewal, cause_of_ticks
from fmimaster.run.log import Stretch
from fmimaster.run.loop import Loop
from fmimaster.steps.step_rule import StepRule

FEWEST_ASKED, MOST_ASKED = 4, 256
"""Steps for which a rule is asked ahead: few where something has just happened, since what it is asked behind the next
event is asked in vain; then more each time, until calls in between cost nothing beside the questions."""


@dataclass(frozen=True, slots=True)
class TicksAlong:
    """The ticks of periodic clocks at the ends of steps."""

    ahead: EventsAhead
    """Their programs."""
    clocks: tuple[int, ...]
    """Their triggers."""
    sets: NDArray[np.int64]
    """Shape (steps, numbers): which of them tick after each step; see :func:`fmimaster.instants.calendar.members`."""
    places: NDArray[np.int64]
    """Per step: number of the instant at its end, -1 for the end of a step that makes outputs known."""

    def has_renewed(self, k: int) -> bool:
        """Whether a step has made outputs known."""
        return self.places.item(k) < 0

    def counts(self, done: int) -> dict[int, int]:
        """How often each clock has ticked after the first steps."""
        sets = self.sets[:done]
        return {c: int(np.count_nonzero(ticking(sets, k))) for k, c in enumerate(self.clocks)}

    def ticked(self, k: int) -> frozenset[int]:
        """The triggers of the clocks that tick after a step."""
        found = members(self.sets[k : k + 1], len(self.clocks))[0]
        return frozenset(self.clocks[n] for n in np.flatnonzero(found))


@dataclass(frozen=True, slots=True)
class Outlook:
    """The next steps.

    Attributes
    ----------
    stretch : Stretch
        Their ends and causes; at least two steps.
    goal : function
        The goal of a step, by its number.
    memory : function
        What the rule remembers after so many steps.
    note : function
        Called with the number of steps that were done before something happened.
    """

    stretch: Stretch
    goal: Callable[[int], Goal]
    memory: Callable[[int], Any]
    note: Callable[[int], None]
    ticks: TicksAlong | None = None
    """None if no clock ticks at their ends."""


class Lookout:
    """Determines the next steps. It must not be used where anything except the rule or the calendar can end a step."""

    def __init__(self, loop: Loop) -> None:
        self._rule = loop.rule
        self._rows = loop.executor.rows
        self._state = loop.state
        self._size = float(loop.rule.exact_size)
        self._asks = not loop.rule.estimators
        self._most_asked = FEWEST_ASKED

    def limit(self, until: Instant) -> Instant:
        """The earliest instant at which a step certainly ends."""
        s = self._state
        return min(self.limit_but_ticks(until), s.calendar.first)

    def limit_but_ticks(self, until: Instant) -> Instant:
        """The same without ticks of clocks."""
        s = self._state
        last = min(until, s.timeline.after(s.time)) if s.timeline.points else until
        return last if last.seconds < s.next_event else Instant(s.next_event)

    def steps_to(self, goal: Goal, until: Instant) -> Outlook | None:
        """The step to the goal and those after it, as far as they are known; None if it is the only one."""
        points = self._rule.ahead(self._state.memory)
        if points is not None:
            return self._on(points, until) if goal.cause is points.cause else None
        if self._asks and goal == self._rule.propose(self._state.time, self._state.memory):
            return self._by_asking(goal, until)
        return None  # something else than the rule has chosen this goal

    def _on(self, points: PointsAhead, until: Instant) -> Outlook | None:
        """By a formula."""
        s = self._state
        now, memory, cause = s.time, s.memory, points.cause
        ends = points.seconds_between(now, self.limit(until), self._rows.capacity + 1)
        if len(ends) < 2:
            return None
        times = np.empty(len(ends) + 1)
        times[0], times[1:] = now.seconds, ends
        codes = None if cause is GRID else np.zeros(len(ends), np.int64)
        return Outlook(
            Stretch(times, codes, (cause,)),
            lambda k: Goal(points.point_after(now, k), cause),
            lambda _: memory,
            lambda _: None,
        )

    def _by_asking(self, goal: Goal, until: Instant) -> Outlook | None:
        """The answers of the rule for as many steps as there is room for rows, but not too many."""
        s, decide, propose = self._state, self._rule.decide, self._rule.propose
        nearly = self.limit(until).seconds - self._size
        most = min(self._most_asked, self._rows.room)
        self._most_asked = min(2 * self._most_asked, MOST_ASKED)
        now, memory, begin = s.time, s.memory, s.time.seconds
        goals, memories, times = list[Goal](), [memory], [begin]
        with suppress(Exception):  # it fails again when the steps before are done
            for _ in range(most):
                end = goal.end.seconds
                if not begin < end <= nearly:
                    break
                goals.append(goal)
                times.append(end)
                memory, _ = decide(memory, now, end - begin, ())
                memories.append(memory)
                now, begin = goal.end, end
                goal = propose(now, memory)
        if len(goals) < 2:
            return None
        codes, causes = _numbered([goal.cause for goal in goals])
        stretch = Stretch(np.array(times), codes, causes)

        def note(done: int) -> None:
            if done + 1 < stretch.steps:  # it was not the last one at which something happened
                self._most_asked = max(done, FEWEST_ASKED)

        return Outlook(stretch, goals.__getitem__, memories.__getitem__, note)


def _numbered(causes: list[Cause]) -> tuple[NDArray[np.int64], list[Cause]]:
    """The number of each cause, and the different ones by their numbers."""
    if causes.count(causes[0]) == len(causes):
        return np.zeros(len(causes), np.int64), causes[:1]
    different = list(dict.fromkeys(causes))
    return np.array([different.index(cause) for cause in causes]), different


# Grids with periodic clocks -------------------------------------------------------------------------------------------

WORTH = 4
"""Instants for which a stretch is made at least."""

FEWEST, MOST = 32, 8192
"""Instants that are looked at together: few where something has just happened, then more each time."""

BEFORE_THE_END = 2
"""So many step sizes before an instant at which a step certainly ends, steps are chosen one by one."""

NO_EVENT, RENEWAL = -1, 0
"""Numbers of what is executed after a step: nothing, and the program after a step that has made outputs known again. Those
of ticks come behind it."""


class TicksAhead:
    """Determines the next steps where nothing but a grid and periodic clocks ends them."""

    def __init__(self, loop: Loop, events: EventHandler, lookout: Lookout) -> None:
        self._loop = loop
        self._events = events
        self._lookout = lookout
        self._most = FEWEST
        plan, rule = loop.plan, loop.rule
        able = (i.model.capabilities for i in plan.instances)
        self._is_possible = (
            loop.clock is None
            and not loop.state.calendar.merged
            and loop.programs.pattern is None
            and not (loop.programs.undoes or plan.power_bonds)
            and type(rule).restart is StepRule.restart
            and all(c.can_handle_variable_communication_step_size for c in able)
            and sum(i.priority is not None for i in plan.instances) < 2
        )
        """Whether it can be used in this run."""

    def steps_to(self, _: Goal, until: Instant) -> Outlook | None:
        """The next steps before an instant; None if there are few."""
        s = self._loop.state
        if not (s.calendar.periods and self._is_possible):
            return None
        grid, calendar = self._loop.rule.ahead(s.memory), s.calendar
        clocks = tuple(sorted(calendar.periods.keys() & calendar.next.keys()))
        if not (isinstance(grid, Grid) and len(grid.offsets) == 1 and clocks):
            return None
        others = [calendar.next[k] for k in calendar.next.keys() - calendar.periods.keys()]
        limit = self._lookout.limit_but_ticks(until)
        stop = min(limit, *others, key=lambda i: i.seconds) if others else limit
        last = Fraction(stop.seconds) - BEFORE_THE_END * self._loop.rule.exact_size
        periods = [calendar.periods[k] for k in clocks]
        scale = lcm(*(t.denominator for p in periods for t in (p.first, p.interval)))
        resolution = calendar.resolution * scale
        if resolution >= EXACT or last * resolution <= 0:
            return None
        point = grid.after(s.time)
        ticks, sets = merged(
            Every(int(point.ticks) * scale, grid.step * scale),
            [_every(p, scale) for p in periods],
            int(last * resolution),
            self._most,
        )
        seconds = ticks / resolution
        apart = np.flatnonzero(np.diff(seconds, prepend=s.time.seconds) <= 0)
        if len(apart):  # instants that no double tells apart: no step is between them
            seconds = seconds[: apart[0]]
        if len(seconds) < WORTH:
            return None
        return self._outlook(clocks, seconds, ticks, sets[: len(seconds)], scale, grid, stop)

    def _outlook(
        self,
        clocks: tuple[int, ...],
        seconds: NDArray[np.float64],
        ticks: NDArray[np.int64],
        sets: NDArray[np.int64],
        scale: int,
        grid: Grid,
        stop: Instant,
    ) -> Outlook:
        loop = self._loop
        now = loop.state.time.seconds
        places = ticking(sets, len(clocks))
        table = self._table(clocks, sets)
        begins = np.concatenate(([now], seconds[:-1]))
        renewed = begins + REFRESH * (seconds - begins)
        is_renewed = (np.concatenate(([0], table.renewals[:-1])) > 0) & (renewed > begins)
        at = np.arange(len(seconds)) + np.cumsum(is_renewed)
        before = at[is_renewed] - 1
        n = len(seconds) + len(before)
        times, codes = np.empty(n + 1), np.zeros(n, np.int64)
        times[0], times[at + 1], times[before + 1] = now, seconds, renewed[is_renewed]
        codes[at] = np.where(places, 0, table.codes)
        codes[before] = table.renewals[np.flatnonzero(is_renewed) - 1]
        numbers = np.full(n, RENEWAL, np.int32)
        numbers[at] = table.numbers
        all_sets, instants = np.zeros((n, sets.shape[1]), np.int64), np.full(n, -1, np.int64)
        all_sets[at], instants[at] = sets, np.arange(len(seconds))
        restart = loop.programs.restart
        after = None if restart is None else restart.attempt
        events = EventsAhead(numbers, table.programs, after, stop.seconds)
        stretch, memory = Stretch(times, codes, table.causes), loop.state.memory

        def goal(k: int) -> Goal:
            cause = table.causes[codes.item(k)]
            place = instants.item(k)
            if place < 0:
                return Goal(Instant(times.item(k + 1)), cause)
            at = Fraction(ticks.item(place), scale)
            return Goal(loop.base.instant(int(at) if at.denominator == 1 else at), cause)

        def note(done: int) -> None:
            is_full = done + 1 >= stretch.steps
            self._most = min(2 * self._most, MOST) if is_full else max(done, FEWEST)

        along = TicksAlong(events, clocks, all_sets, instants)
        return Outlook(stretch, goal, lambda _: memory, note, along)

    def _table(self, clocks: tuple[int, ...], sets: NDArray[np.int64]) -> _Table:
        """What is known of each set of clocks that ticks."""
        found, of = distinct(sets)
        programs, causes = [self._loop.programs.renew], [GRID]
        numbers = np.full(len(found), NO_EVENT, np.int32)
        codes, renewals = np.zeros((2, len(found)), np.int64)
        for k, one in enumerate(members(found, len(clocks))):
            triggers = [clocks[n] for n in np.flatnonzero(one)]
            if not triggers:
                continue
            planned = self._events.execution.of_ticks(frozenset(triggers))
            numbers[k], codes[k] = len(programs), len(causes)
            programs.append(planned.program)
            causes.append(cause_of_ticks(self._loop.plan, triggers))
            if planned.outdated:
                renewals[k] = len(causes)
                causes.append(cause_of_renewal(self._loop.names, planned.outdated))
        return _Table(programs, causes, numbers[of], codes[of], renewals[of])


class _Table(NamedTuple):
    """Programs and causes, and for each instant the number of its program, the code of its cause, and the code of the cause
    of a step after it that makes outputs known; 0 for none."""

    programs: list[Program]
    causes: list[Cause]
    numbers: NDArray[np.int32]
    codes: NDArray[np.int64]
    renewals: NDArray[np.int64]


def _every(period: Period, scale: int) -> Every:
    return Every(int(period.next * scale), int(period.interval * scale))
