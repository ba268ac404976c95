"""Steps and ticks of periodic clocks that are known in advance: the executor makes them in one call."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.instants.calendar import Period
from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import Goal, Instant, TimeBase
from fmimaster.instants.merged_ticks import LARGEST, Every, distinct, members, merged, ticking
from fmimaster.program.instructions import Program
from fmimaster.record.causes import GRID, Cause
from fmimaster.run.event_handler import EventHandler
from fmimaster.run.executor import EventsAhead
from fmimaster.run.goal import REFRESH, cause_of_renewal, cause_of_ticks
from fmimaster.run.log import Stretch
from fmimaster.run.loop import Loop
from fmimaster.steps.step_rule import StepRule

WORTH = 4
"""Instants for which a stretch is made at least."""

FEWEST, MOST = 32, 8192
"""Instants that are looked at together: few where something has just happened, then more each time."""

BEFORE_THE_END = 2
"""So many step sizes before an instant at which a step certainly ends, steps are chosen one by one."""

NO_EVENT, RENEWAL = -1, 0
"""Numbers of what is executed after a step: nothing, and the program after a step that has made outputs known again. Those
of ticks come behind it."""


@dataclass(frozen=True, slots=True)
class TicksOutlook:
    """The next steps, and the ticks at their ends.

    Attributes
    ----------
    sets : shape (steps, numbers)
        Which of ``clocks`` tick after each step; see :func:`fmimaster.instants.merged_ticks.members`.
    """

    stretch: Stretch
    events: EventsAhead
    sets: NDArray[np.int64]
    clocks: tuple[int, ...]
    """Their triggers."""
    places: NDArray[np.int64]
    """Per step: number of the instant at its end, -1 for the end of a step that makes outputs known."""
    ticks: NDArray[np.int64]
    """Of the instants, in ``1 / (resolution * scale)`` s."""
    scale: int
    base: TimeBase

    def instant(self, k: int) -> Instant:
        """The end of a step."""
        place = self.places.item(k)
        if place < 0:
            return Instant(self.stretch.times.item(k + 1))
        ticks = Fraction(self.ticks.item(place), self.scale)
        return self.base.instant(int(ticks) if ticks.denominator == 1 else ticks)

    def goal(self, k: int) -> Goal:
        """The goal of a step."""
        assert self.stretch.codes is not None
        return Goal(self.instant(k), self.stretch.causes[self.stretch.codes[k]])

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


class TicksAhead:
    """Determines the next steps where nothing but a grid and periodic clocks ends them."""

    def __init__(self, loop: Loop, events: EventHandler) -> None:
        self._loop = loop
        self._events = events
        self._most = FEWEST
        plan, rule = loop.plan, loop.rule
        able = (i.model.capabilities for i in plan.instances)
        self.is_possible = (
            loop.executor.repeats_over_events
            and loop.clock is None
            and not loop.state.calendar.merged
            and loop.programs.pattern is None
            and not (loop.programs.undoes or plan.power_bonds)
            and type(rule).restart is StepRule.restart
            and all(c.can_handle_variable_communication_step_size for c in able)
            and sum(i.priority is not None for i in plan.instances) < 2
        )
        """Whether it can be used in this run."""

    def steps(self, limit: Instant) -> TicksOutlook | None:
        """The next steps before an instant; None if there are few."""
        s = self._loop.state
        grid, calendar = self._loop.rule.ahead(s.memory), s.calendar
        clocks = tuple(sorted(calendar.periods.keys() & calendar.next.keys()))
        if not (isinstance(grid, Grid) and len(grid.offsets) == 1 and clocks):
            return None
        others = [calendar.next[k] for k in calendar.next.keys() - calendar.periods.keys()]
        stop = min(limit, *others, key=lambda i: i.seconds) if others else limit
        last = Fraction(stop.seconds) - BEFORE_THE_END * self._loop.rule.exact_size
        periods = [calendar.periods[k] for k in clocks]
        scale = lcm(*(t.denominator for p in periods for t in (p.first, p.interval)))
        resolution = calendar.resolution * scale
        if resolution >= LARGEST or last * resolution <= 0:
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

    def note(self, outlook: TicksOutlook, done: int) -> None:
        """How many of these steps were done before something happened."""
        is_full = done + 1 >= outlook.stretch.steps
        self._most = min(2 * self._most, MOST) if is_full else max(done, FEWEST)

    def _outlook(
        self,
        clocks: tuple[int, ...],
        seconds: NDArray[np.float64],
        ticks: NDArray[np.int64],
        sets: NDArray[np.int64],
        scale: int,
        grid: Grid,
        stop: Instant,
    ) -> TicksOutlook:
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
        return TicksOutlook(
            Stretch(times, codes, table.causes),
            EventsAhead(numbers, table.programs, after, stop.seconds),
            all_sets,
            clocks,
            instants,
            ticks,
            scale,
            loop.base,
        )

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
            planned = self._events.of_ticks(frozenset(triggers))
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
