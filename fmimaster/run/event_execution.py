"""Executes events at the instant that a step has reached, and notes what they leave."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from fmimaster.program.indicators import NONE
from fmimaster.program.programs import Outcome
from fmimaster.record.causes import Cause, Event, Kind
from fmimaster.run.changes import Changes
from fmimaster.run.event_checks import EventChecks
from fmimaster.run.failures import next_event_is_nan
from fmimaster.run.log import Lateness, recorded_values
from fmimaster.run.loop import Loop, LoopPart
from fmimaster.run.planned_events import PlannedEvent, PlannedEvents, last_row
from fmimaster.run.ticks import ClockTicks
from fmimaster.system.declarations import Scope

CHANGE_OF_STRUCTURE = "change of the structure"
"""Name of the event in the results."""


class Given(NamedTuple):
    """Values of the user that are set at an event."""

    instances: list[int]
    set_values: Callable[[int], None]
    """Sets those of an instance, by its number."""


class Happening(NamedTuple):
    """What happens together at one instant: the form of events in a run. The results have an :class:`Event` for each."""

    causes: Mapping[int, Cause] = MappingProxyType({})
    """Instances that have an event of their own, each with its cause."""
    fired: Mapping[int, Cause] = MappingProxyType({})
    """Events that occur, likewise."""
    ticks: frozenset[int] = NONE
    """Clocks that tick, by their triggers."""
    is_early: bool = False
    """Whether an early return is the cause."""
    given: Given | None = None
    """Values of the user that are set at it."""


class EventExecution(LoopPart):
    """Runs the programs of events; that of each combination is found once."""

    def __init__(self, loop: Loop, changes: Changes) -> None:
        super().__init__(loop)
        self._changes = changes
        self.plan_of = PlannedEvents(loop)
        self.ticks = ClockTicks(loop.plan, loop.executor.store, loop.state)
        self.checks = EventChecks(loop)

    def execute(self, now: Happening) -> bool:
        """Run the program of what happens now, and note it; whether an FMU ends the run."""
        s, executor = self._state, self._executor
        causes, fired, ticks, is_early, given = now
        planned = self.plan_of(frozenset(causes), frozenset(fired), ticks, is_early=is_early)
        self._leave_ahead(planned.late)
        named = self._named(causes, fired)
        left = [self.recorded(components) for _, _, components, _ in named]
        executor.next_events[list(planned.instances)] = inf
        rows = executor.rows.count
        self.ticks.note_late(ticks)
        answer = self._run(planned, given)
        if answer.stopped is not None:
            raise self.checks.illegitimate(planned.instances)
        s.index += executor.rows.count - rows
        if ticks:
            self.ticks.take(ticks)
        s.fired |= fired.keys()
        s.on |= fired.keys()
        self._note_outcome(planned, ticks)
        for (name, shared, components, cause), before in zip(named, left, strict=True):
            after = self.recorded(components)
            event = Event(s.time.seconds, s.index, name, shared, components, cause, before, after)
            s.event_log.events.append(event)
        self.checks.check_happened(causes, fired, ticks)
        return answer.terminate

    def change_structure(
        self,
        names: tuple[str, ...],
        new: frozenset[int],
        changed: frozenset[int],
        set_values: Callable[[int], None],
    ) -> bool:
        """Go over to another structure of the system, and record its first rows.

        Parameters
        ----------
        names
            Components that the change concerns.
        new, changed
            Instances that join, and others with inputs that have another source than before.
        set_values
            Sets inputs of such an instance that have lost their source.

        Returns
        -------
        Whether an FMU ends the run.
        """
        s, executor, now = self._state, self._executor, self._state.time.seconds
        change = self._programs.change(new, changed)
        planned = self.plan_of.of_change(change, new, changed)
        left = self.recorded({*names}.difference(self._names[i] for i in new))
        executor.run(change.before, now, now)
        for i in sorted(changed):
            set_values(i)
        executor.next_events[list(change.modes)] = inf
        answer = self._record_end(executor.run(change.after, now, now))
        if answer.stopped is not None:
            raise self.checks.illegitimate(planned.instances)
        s.index += executor.rows.count
        self.ticks.begin(new)
        self._note_outcome(planned, NONE)
        right, cause = self.recorded(names), Cause(Kind.STRUCTURE)
        event = Event(now, s.index, CHANGE_OF_STRUCTURE, len(names) > 1, names, cause, left, right)
        s.event_log.events.append(event)
        return answer.terminate

    def of_ticks(self, ticks: frozenset[int]) -> PlannedEvent:
        """What an event is in which these clocks tick, by their triggers, and nothing else happens."""
        return self.plan_of(ticks=ticks)

    def have_ticked(
        self, counts: Mapping[int, int], last: frozenset[int], outcome: Outcome | None, rows: int
    ) -> bool:
        """Note ticks whose programs the executor has run.

        Parameters
        ----------
        counts
            Trigger of each clock → number of its ticks.
        last
            Those that have ticked at the present instant.
        outcome
            Of the event there, which has so many rows; None if all is done there.

        Returns
        -------
        Whether an FMU ends the run.
        """
        s = self._state
        self.ticks.skip(counts)
        planned = self.of_ticks(last) if last else None
        if planned is not None:
            s.index = rows
            self._note_outcome(planned, last)
        else:
            self._changes.note()
        if planned is None or outcome is None:
            return False
        if outcome.stopped is not None:
            raise self.checks.illegitimate(planned.instances)
        self.checks.check_happened((), (), last)
        self._record_end(outcome)
        return outcome.terminate

    def _run(self, planned: PlannedEvent, given: Given | None) -> Outcome:
        """Run the program of an event; values of the user are set when all instances are in Event Mode."""
        executor, now = self._executor, self._state.time.seconds
        if given is None:
            return self._record_end(executor.run(planned.program, now, now))
        before, after = planned.halves
        executor.run(before, now, now)
        for i in given.instances:
            given.set_values(i)
        return self._record_end(executor.run(after, now, now))

    def _record_end(self, outcome: Outcome) -> Outcome:
        """The outcome of an event; if an FMU has ended the run in it, the row follows that its program did not reach."""
        if outcome.terminate:
            now = self._state.time.seconds
            self._executor.run(last_row(self._plan, self._executor.registers.initialized), now, now)
        return outcome

    def _note_outcome(self, planned: PlannedEvent, ticks: frozenset[int]) -> None:
        """Note what the program of an event has left: the loop goes on from there."""
        s = self._state
        self.ticks.take_intervals(planned.instances, ticks)
        s.unseen = (s.unseen - planned.seen) | planned.unseen
        s.previous = 0.0
        s.memory = self._rule.restart(s.memory)
        # outputs may change inputs of events in short steps too: a step of the usual length must follow
        s.outdated |= planned.outdated - s.just_renewed
        self._changes.note()
        self.find_next_event()
        self._indicators.renew()
        self._indicators.outdated = frozenset(number for number, _ in s.unseen)

    def _leave_ahead(self, late: frozenset[int]) -> None:
        """Note who sees an event of the present time late, and that these instances have it at their own times."""
        s, at = self._state, self._executor.registers.at
        s.late |= late
        for i in sorted(s.ahead):
            lateness = at.item(i) - s.time.seconds
            s.event_log.note_delay(self._names[i], Lateness.AHEAD, s.time.seconds, lateness)

    def recorded(self, components: Collection[str]) -> dict[str, Any]:
        """Recorded variables of components, with their present values."""
        return recorded_values(self._plan, self._executor.store, components)

    def find_next_event(self) -> None:
        """Find the next event that an FMU has announced."""
        s, times = self._state, self._executor.next_events
        s.next_event = float(times.min())
        if s.next_event != s.next_event:  # NaN
            names = " and ".join(self._who(np.flatnonzero(np.isnan(times)).tolist()))
            raise next_event_is_nan(names, s.time.seconds)

    def _named(
        self, causes: Mapping[int, Cause], fired: Mapping[int, Cause]
    ) -> list[tuple[str, bool, tuple[str, ...], Cause]]:
        """Name, whether it is shared, components and cause: of events that are fired, then of all other instances."""
        events = self._plan.events
        found = [
            (
                events[e].name,
                events[e].scope is Scope.SHARED,
                self._who(sorted(events[e].instances)),
                fired[e],
            )
            for e in sorted(fired)
        ]
        members = {i for e in fired for i in events[e].instances}
        for i in sorted(causes.keys() - members):
            found.append((f"event of {self._names[i]}", False, (self._names[i],), causes[i]))
        return found
