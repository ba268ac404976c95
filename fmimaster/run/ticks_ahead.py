"""Steps between the ticks of periodic clocks that are known in advance: the executor makes steps and ticks in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.instants.calendar import Every, Period, distinct, members, merged, ticking
from fmimaster.instants.grid import EXACT, Grid
from fmimaster.instants.instant import Goal, Instant, Instants, TimeBase, whole
from fmimaster.program.instructions.base import Program
from fmimaster.record.causes import GRID, RAMP, STEP_SIZE, Cause
from fmimaster.run.event_handler import EventHandler
from fmimaster.run.executor import EventsAhead
from fmimaster.run.goal import REFRESH, cause_of_renewal, cause_of_ticks
from fmimaster.run.log import Stretch
from fmimaster.run.loop import Loop
from fmimaster.run.outlook import NO_EVENT, RENEWAL, Lookout, Outlook, TicksAlong
from fmimaster.steps.step_rule import NextSteps, StepRule

WORTH = 4
"""Instants for which a stretch is made at least."""

FEWEST, MOST = 32, 8192
"""Instants that are looked at together: few where something has just happened, then more each time."""

BEFORE_THE_END = 2
"""So many step sizes before an instant at which a step certainly ends, steps are chosen one by one."""

MOST_PAUSES = 63
"""So often at most no stretch is tried after stretches that have ended at once."""

MOST_BETWEEN = 64
"""With more steps between two ticks, they are a stretch of their own."""


class TicksAhead:
    """Determines the next steps where nothing but the rule and periodic clocks ends them: on a grid, or by a rule that
    restarts at each tick."""

    def __init__(self, loop: Loop, events: EventHandler, lookout: Lookout) -> None:
        self._loop = loop
        self._events = events
        self._lookout = lookout
        self._most = FEWEST
        self._in_vain = self._pause = 0
        plan, rule = loop.plan, loop.rule
        able = (i.model.capabilities for i in plan.instances)
        self._is_possible = (
            not loop.state.calendar.merged
            and loop.programs.pattern is None
            and not plan.power_bonds
            and all(c.can_handle_variable_communication_step_size for c in able)
            and sum(i.priority is not None for i in plan.instances) < 2
        )
        """Whether it can be used in this run."""
        self._has_grid = type(rule).restart is StepRule.restart and not loop.programs.undoes

    def steps_to(self, goal: Goal, until: Instant) -> Outlook | None:
        """The next steps before an instant, of which the first is to this goal; None if there are few."""
        s = self._loop.state
        calendar = s.calendar
        clocks = tuple(sorted(calendar.periods.keys() & calendar.next.keys()))
        if not (clocks and self._is_possible):
            return None
        if self._pause:
            self._pause -= 1
            return None
        others = [calendar.next[k] for k in calendar.next.keys() - calendar.periods.keys()]
        limit = self._lookout.limit_but_ticks(until)
        stop = min(limit, *others, key=lambda i: i.seconds) if others else limit
        grid = self._loop.rule.ahead(s.memory)
        if not isinstance(grid, Grid):
            found = self._after_ticks(clocks, stop)
        elif self._has_grid and len(grid.offsets) == 1:
            found = self._on_grid(clocks, grid, stop)
        else:
            return None
        return found if found is not None and goal == found.goal(0) else None

    def _merged(
        self, clocks: tuple[int, ...], stop: Instant, point: Instant | None = None, step: int = 0
    ) -> _Instants | None:
        """The next ticks of clocks before an instant, and the points of a grid from this one on; None if there are few."""
        calendar = self._loop.state.calendar
        last = Fraction(stop.seconds) - BEFORE_THE_END * self._loop.rule.exact_size
        periods = [calendar.periods[k] for k in clocks]
        scale = lcm(*(t.denominator for p in periods for t in (p.first, p.interval)))
        resolution = calendar.resolution * scale
        if resolution >= EXACT or last * resolution <= 0:
            return None
        every = [_every(p, scale) for p in periods]
        grid = every[0] if point is None else Every(int(point.ticks) * scale, step * scale)
        ticks, sets = merged(grid, every, int(last * resolution), self._most)
        seconds = ticks / resolution
        apart = np.flatnonzero(np.diff(seconds, prepend=self._loop.state.time.seconds) <= 0)
        if len(apart):  # instants that no double tells apart: no step is between them
            seconds = seconds[: apart[0]]
        n = len(seconds)
        return _Instants(seconds, ticks[:n], sets[:n], scale) if n >= WORTH else None

    def _on_grid(self, clocks: tuple[int, ...], grid: Grid, stop: Instant) -> Outlook | None:
        """Steps that end at points of a grid and at ticks."""
        loop = self._loop
        found = self._merged(clocks, stop, grid.after(loop.state.time), grid.step)
        if found is None:
            return None
        seconds, _, sets, _ = found
        now, memory = loop.state.time.seconds, loop.state.memory
        table = self._table(clocks, sets)
        begins = np.concatenate(([now], seconds[:-1]))
        renewed = begins + REFRESH * (seconds - begins)
        is_renewed = (np.concatenate(([0], table.renewals[:-1])) > 0) & (renewed > begins)
        at = np.arange(len(seconds)) + np.cumsum(is_renewed)
        before = at[is_renewed] - 1
        n = len(seconds) + len(before)
        times, codes = np.empty(n + 1), np.zeros(n, np.int64)
        times[0], times[at + 1], times[before + 1] = now, seconds, renewed[is_renewed]
        codes[at] = np.where(ticking(sets, len(clocks)), 0, table.codes)
        codes[before] = table.renewals[np.flatnonzero(is_renewed) - 1]
        numbers = np.full(n, RENEWAL, np.int32)
        numbers[at] = table.numbers
        stretch = Stretch(times, codes, table.causes)
        along = self._along(clocks, at, numbers, sets, table, stop)

        def goal(k: int) -> Goal:
            place = along.places.item(k)
            end = Instant(times.item(k + 1)) if place < 0 else found.instant(place, loop.base)
            return Goal(end, table.causes[codes.item(k)])

        return Outlook(stretch, goal, lambda _: memory, self._note(stretch), along)

    def _after_ticks(self, clocks: tuple[int, ...], stop: Instant) -> Outlook | None:
        """Steps of a rule that restarts at each tick."""
        loop, found = self._loop, self._merged(clocks, stop)
        first = None if found is None else self._up_to(found.instant(0, loop.base))
        if found is None or first is None:
            return None
        rule, s = loop.rule, loop.state
        table = self._table(clocks, found.sets)
        between = self._between(found, table)
        if between is None or between.n_ticks + 1 < WORTH:
            return None
        n = between.n_ticks + 1
        begin, memory, restarted = s.time, s.memory, rule.restart(s.memory)
        ends = [goal.end.seconds for goal in first]
        times = np.concatenate(([begin.seconds], ends, found.seconds[:1], between.ends))
        codes = np.array([_CODES[goal.cause] for goal in first] + [AT_TICK, *between.codes])
        at = np.concatenate(([len(first)], len(first) + 1 + between.ticks))
        codes[at] = np.where(codes[at] == AT_TICK, len(_CODES) + table.codes[:n], codes[at])
        numbers = np.full(len(codes), NO_EVENT, np.int32)
        numbers[at] = table.numbers[:n]
        numbers[len(first) + 1 + between.renewals] = RENEWAL
        restarts = np.flatnonzero(numbers != NO_EVENT)
        stretch = Stretch(times, codes, (*_CODES, *table.causes))
        along = self._along(clocks, at, numbers, found.sets[:n], table, stop)

        def end(k: int) -> Instant:
            place = along.places.item(k)
            return Instant(times.item(k + 1)) if place < 0 else found.instant(place, loop.base)

        def before(k: int) -> tuple[Instant, Any]:
            """The start of a step, and what the rule remembers there."""
            n = int(np.searchsorted(restarts, k))
            last = restarts.item(n - 1) if n else -1
            now, own = (end(last), restarted) if n else (begin, memory)
            for _ in range(last + 1, k):
                following = rule.propose(now, own).end
                own, _ = rule.decide(own, now, following.seconds - now.seconds, ())
                now = following
            return now, own

        def goal(k: int) -> Goal:
            if numbers.item(k) == NO_EVENT:
                return rule.propose(*before(k))
            return Goal(end(k), stretch.causes[codes.item(k)])

        return Outlook(stretch, goal, lambda k: before(k)[1], self._note(stretch), along)

    def _between(self, found: _Instants, table: _Table) -> _Between | None:
        """The steps from tick to tick; None if they follow no formula, or are many."""
        rule, memory, calendar = self._loop.rule, self._loop.state.memory, self._loop.state.calendar
        seconds, stops = found.seconds[:-1], found.seconds[1:]
        begins = Instants(seconds, found.ticks[:-1], calendar.resolution * found.scale)
        columns = rule.after_restarts(memory, begins)
        are_renewed = table.renewals[:-1] > 0
        if columns is None or not are_renewed.any():
            return None if columns is None else _steps_between(columns, stops)
        # a short step makes outputs known, and the rule restarts once more
        renewed = seconds + REFRESH * (np.minimum(next(columns).ends, stops) - seconds)
        if (renewed <= seconds).any():
            return None
        at_ticks = rule.after_restarts(memory, begins)
        later = rule.after_restarts(memory, Instants(renewed, None, begins.resolution))
        if at_ticks is None or later is None:
            return None
        first = _Renewals(are_renewed, renewed, len(_CODES) + table.renewals[:-1])
        chosen = (
            NextSteps(*(np.where(are_renewed, b, a) for a, b in zip(one, other, strict=True)))
            for one, other in zip(at_ticks, later, strict=True)
        )
        return _steps_between(chosen, stops, first)

    def _up_to(self, tick: Instant) -> list[Goal] | None:
        """The goals of the rule before the next tick; None if there are many, or one that no double tells from it."""
        rule, now, memory = self._loop.rule, self._loop.state.time, self._loop.state.memory
        goals = list[Goal]()
        while len(goals) < MOST_BETWEEN:
            goal = rule.propose(now, memory)
            if tick < goal.end:
                return goals
            if goal.end.seconds >= tick.seconds:
                return None
            goals.append(goal)
            memory, _ = rule.decide(memory, now, goal.end.seconds - now.seconds, ())
            now = goal.end
        return None

    def _along(
        self,
        clocks: tuple[int, ...],
        at: NDArray[np.intp],
        numbers: NDArray[np.int32],
        sets: NDArray[np.int64],
        table: _Table,
        stop: Instant,
    ) -> TicksAlong:
        """The ticks of these sets of clocks, one after each of the steps ``at``."""
        n, restart = len(numbers), self._loop.programs.restart
        all_sets, places = np.zeros((n, sets.shape[1]), np.int64), np.full(n, -1, np.int64)
        all_sets[at], places[at] = sets, np.arange(len(at))
        after = None if restart is None else restart.attempt
        events = EventsAhead(numbers, table.programs, after, stop.seconds)
        return TicksAlong(events, clocks, all_sets, places)

    def _note(self, stretch: Stretch) -> Callable[[int], None]:
        """What is called with the number of steps that were done."""

        def note(done: int) -> None:
            is_full = done + 1 >= stretch.steps
            self._most = min(2 * self._most, MOST) if is_full else max(done, FEWEST)
            self._in_vain = min(2 * self._in_vain + 1, MOST_PAUSES) if done < WORTH else 0
            self._pause = self._in_vain

        return note

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
            planned = self._events.execution.plan_of(ticks=frozenset(triggers))
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


class _Instants(NamedTuple):
    """Instants at which clocks tick, or that are points of a grid."""

    seconds: NDArray[np.float64]
    ticks: NDArray[np.int64]
    """Multiples of a scale-th part of the tick of the calendar."""
    sets: NDArray[np.int64]
    """Which clocks tick there; see :func:`fmimaster.instants.calendar.merged`."""
    scale: int

    def instant(self, k: int, base: TimeBase) -> Instant:
        """The k-th one."""
        return base.instant(whole(Fraction(self.ticks.item(k), self.scale)))


_CODES = {STEP_SIZE: 0, RAMP: 1}
"""Causes of the ends of steps between ticks, with their codes; those of ticks are behind them."""

AT_TICK = -1
"""The code of a step that ends where a clock ticks, and would be longer."""


class _Between(NamedTuple):
    """Steps from tick to tick, with those that end at ticks."""

    ends: NDArray[np.float64]
    codes: NDArray[np.int64]
    ticks: NDArray[np.intp]
    """Which of them end at ticks."""
    renewals: NDArray[np.intp]
    """Which of them make outputs known."""

    @property
    def n_ticks(self) -> int:
        """How many end at ticks."""
        return len(self.ticks)


class _Renewals(NamedTuple):
    """Steps after ticks that make outputs known again."""

    are_there: NDArray[np.bool_]
    """After which of the ticks there is one."""
    ends: NDArray[np.float64]
    codes: NDArray[np.int64]


def _steps_between(
    columns: Iterator[NextSteps], ticks: NDArray[np.float64], first: _Renewals | None = None
) -> _Between | None:
    """The steps of a rule before each of these ticks in s, as it restarts at the tick before; None if there are many.

    They end before a tick that no double tells from the end of a step.
    """
    n, everywhere = len(ticks), np.ones(len(ticks), np.bool_)
    is_before, codes_at = everywhere, np.full(n, AT_TICK)
    all_ends, all_codes, all_before = list[Any](), list[Any](), list[Any]()
    if first is not None:
        all_ends, all_codes, all_before = [first.ends], [first.codes], [first.are_there]
    for ends, are_short, are_exact in columns:
        codes = np.where(are_short, _CODES[RAMP], _CODES[STEP_SIZE])
        meets = is_before & (ends == ticks)
        codes_at = np.where(meets & are_exact, codes, codes_at)
        if (is_found := meets & ~are_exact).any():
            n = min(n, int(is_found.argmax()))
        is_before = is_before & (ends < ticks)
        if not is_before.any():
            break
        if len(all_ends) > MOST_BETWEEN:
            return None
        all_ends.append(ends)
        all_codes.append(codes)
        all_before.append(is_before)
    are_there = np.column_stack([*all_before, everywhere])[:n]
    column = np.broadcast_to(np.arange(are_there.shape[1]), are_there.shape)[are_there]
    return _Between(
        np.column_stack([*all_ends, ticks])[:n][are_there],
        np.column_stack([*all_codes, codes_at])[:n][are_there],
        np.flatnonzero(column == are_there.shape[1] - 1),
        np.flatnonzero(column == 0) if first is not None else np.empty(0, np.intp),
    )


def _every(period: Period, scale: int) -> Every:
    return Every(int(period.next * scale), int(period.interval * scale))
