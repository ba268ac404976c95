"""Steps that are known in advance if nothing happens: the executor makes them in one call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.instants.calendar import members, ticking
from fmimaster.instants.instant import Goal, Instant, PointsAhead
from fmimaster.record.causes import GRID, Cause
from fmimaster.run.executor import EventsAhead
from fmimaster.run.log import Stretch
from fmimaster.run.loop import Loop

FEWEST_ASKED, MOST_ASKED = 4, 256
"""Steps for which a rule is asked ahead: few where something has just happened, since what it is asked behind the next
event is asked in vain; then more each time, until calls in between cost nothing beside the questions."""

NO_EVENT, RENEWAL = -1, 0
"""Numbers of what is executed after a step: nothing, and the program after a step that has made outputs known again. Those
of ticks come behind it."""


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
        return self.ahead.numbers.item(k) == RENEWAL

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
        limit = self.limit(until)
        if (
            s.pauses
            and limit is until
            and isinstance(until.ticks, int)
            and until < s.calendar.first
        ):
            # a pause at one of the points has no effect on the step to it
            limit = Instant(until.seconds, until.ticks + 1)
        times = points.times(now, limit, self._rows.capacity + 1)
        if len(times) < 3:
            return None
        codes = None if cause is GRID else np.zeros(len(times) - 1, np.int64)
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
        codes, causes = numbered([goal.cause for goal in goals])
        stretch = Stretch(np.array(times), codes, causes)

        def note(done: int) -> None:
            if done + 1 < stretch.steps:  # it was not the last one at which something happened
                self._most_asked = max(done, FEWEST_ASKED)

        return Outlook(stretch, goals.__getitem__, memories.__getitem__, note)


def numbered(causes: list[Cause]) -> tuple[NDArray[np.int64], list[Cause]]:
    """The number of each cause, and the different ones by their numbers."""
    if causes.count(causes[0]) == len(causes):
        return np.zeros(len(causes), np.int64), causes[:1]
    different = list(dict.fromkeys(causes))
    return np.array([different.index(cause) for cause in causes]), different
