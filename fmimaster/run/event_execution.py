"""Executes events at the instant that a step has reached, notes what they leave, and checks what cannot be.

That are endless events, events that are still on, members that disagree, and events that are late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fmimaster.base.errors import SimulationError
from fmimaster.events.zeno import FEW, STEPS, Span
from fmimaster.instants.grid import rounding
from fmimaster.program.indicators import NONE
from fmimaster.record.causes import Cause, Event, Kind
from fmimaster.run.changes import Changes
from fmimaster.run.executor import Outcome
from fmimaster.run.failures import (
    accumulating,
    check_members_agree,
    illegitimate,
    next_event_is_nan,
    still_on,
    too_dense,
    too_often_late,
    unknown_event,
)
from fmimaster.run.log import Late, Lateness
from fmimaster.run.loop import Loop, LoopPart
from fmimaster.run.planned_events import PlannedEvent, PlannedEvents, last_row
from fmimaster.run.ticks import ClockTicks
from fmimaster.system.declarations import Scope

CHANGE_OF_STRUCTURE = "change of the structure"
"""Name of the event in the results."""

MOST_LATE = 20
"""So much more often than in time an event may be late: a rate, so that long runs may have many events that are late."""

_log = logging.getLogger("fmimaster")


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


class _EventChecks(LoopPart):
    """Checks events that have happened."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._recorded = loop.recorded
        self._size = float(loop.rule.exact_size)
        self._told_by_fmus = frozenset(
            k
            for k, trigger in enumerate(loop.plan.triggers)
            if trigger.clock is not None and not trigger.clock.is_periodic
        )
        """Time-based clocks whose ticks can accumulate: FMUs give their intervals one by one."""

    def check_happened(self, now: Happening, before: Sequence[float] = ()) -> None:
        """Raise if events accumulate, do not end, are still on, or are seen differently by their members.

        Parameters
        ----------
        before
            All Float64 outputs before the events that have been fired.
        """
        s, time, events = self._state, self._state.time.seconds, self._plan.events
        causes, fired, ticks = now.causes, now.fired, now.ticks
        for e in sorted(fired):
            self._check_accumulation(events[e].name, time)
            if e not in self._indicators.by_themselves and self._indicators.still_on(e):
                self._check_still_on(e, before)
            elif s.ineffective:
                s.ineffective.pop(events[e].name, None)
        members = {i for e in fired for i in events[e].instances}
        if fired:
            s.accumulating.restart(STEPS)
        for i in sorted(members):
            span = s.accumulating.too_dense(i, time, self._size)
            if span is not None:
                raise self._too_dense(i, span)
        for i in sorted(causes.keys() - members):
            self._check_accumulation(f"events of {self._names[i]}", time)
        for k in sorted(ticks & self._told_by_fmus):
            trigger = self._plan.triggers[k]
            self._check_accumulation(f"{self._names[trigger.instance]}.{trigger.name}", time)
        ticking = {self._plan.triggers[k].instance for k in ticks}
        who = frozenset(causes.keys() | members | ticking)
        if s.accumulating.too_many_at(time, rounding(time, self._size), who):
            raise self.illegitimate(s.accumulating.causes)
        self.check_members(
            e for e in fired if all(self._plan.instances[i].event_mode for i in events[e].instances)
        )

    def _check_still_on(self, event: int, before: Sequence[float]) -> None:
        """Raise if an event is on after it has happened, unless its trigger had no effect for a reason."""
        s, planned = self._state, self._plan.events[event]
        s.ineffective[planned.name] = times = s.ineffective.get(planned.name, 0) + 1
        if times > MOST_LATE or not self._indicators.may_be_none(event, before):
            late = s.event_log.late.get(planned.name)
            raise still_on(self._plan, planned, s.time.seconds, late)

    def _too_dense(self, instance: int, span: Span) -> SimulationError:
        """The error for events of an instance that are too close to each other."""
        name = self._names[instance]
        last = [e.name for e in self._state.event_log.events[-FEW:] if name in e.components]
        return too_dense(self._indicators, instance, last, self._recorded([name]), span)

    def illegitimate(self, instances: Collection[int]) -> SimulationError:
        """The error for events that do not end at the present time: with what has changed in the last iterations."""
        rows, now = self._executor.rows, self._state.time.seconds
        first = max(rows.count - FEW, 0)
        first += int(np.searchsorted(rows.times[first : rows.count], now))
        changing = {
            c.name
            for c in self._plan.recorded
            if (block := rows.part(c.type, first, rows.count)[:, c.column]).size
            and (block != block[0]).any()
        }
        for event in self._state.event_log.events[-FEW:]:
            if event.time == now:
                changing |= {n for n, v in event.right.items() if event.left.get(n, v) != v}
        return illegitimate(self._plan, instances, changing, now)

    def _check_accumulation(self, name: str, time: float) -> None:
        limit = self._state.accumulating.add(name, time, self._size)
        if limit is not None:
            raise accumulating(name, limit, time)

    def check_members(self, events: Iterable[int]) -> None:
        """Raise if members disagree on shared events; where inputs are synchronous: at the start, and in Event Mode."""
        for e in events:
            check_members_agree(self._indicators, e, self._state.time.seconds)

    def known_requests(self, requests: Sequence[int], found: frozenset[int]) -> Sequence[int]:
        """Requests without those of instances without Event Mode that have no event here: they have stopped at one that is
        none with the inputs of now, and go on, but not for ever."""
        time, events = self._state.time.seconds, self._plan.events
        unknown = [
            i
            for i in requests
            if not self._plan.instances[i].event_mode
            and not any(i in events[e].instances for e in found)
        ]
        known = self._state.accumulating
        if unknown and (
            known.too_many_at(time, rounding(time, self._size))
            or known.too_dense("stops without an event", time, self._size)
        ):
            raise unknown_event(self._names[unknown[0]], time)
        return [i for i in requests if i not in unknown]

    def note_late(self, found: frozenset[int], in_time: Collection[int]) -> None:
        """Count events that were found late, and raise if one is late more often than in time for long."""
        time, log = self._state.time.seconds, self._state.event_log.late
        for e in found:
            name = self._plan.events[e].name
            if self._indicators.is_left_to_fmu(e):  # it stops there by a condition of its own
                continue
            if not self._indicators.is_late(e):
                in_time = {e, *in_time}
                continue
            largest = self._indicators.largest(e)
            late = log.setdefault(name, Late(0, time, largest))
            late.times += 1
            late.excess += 1
            if late.times == 1:  # at once: the run may still take long
                _log.warning("%s", late.text(name))
            if late.excess == MOST_LATE:
                first = late.time, late.indicator
                raise too_often_late(name, late.times, first, (time, largest))
        for e in in_time if log else ():
            if (known := log.get(self._plan.events[e].name)) is not None:
                known.excess = max(0, known.excess - 1)


class EventExecution(LoopPart):
    """Runs the programs of events; that of each combination is found once."""

    def __init__(self, loop: Loop, changes: Changes) -> None:
        super().__init__(loop)
        self._changes = changes
        self.recorded = loop.recorded
        self.plan_of = PlannedEvents(loop)
        self.ticks = ClockTicks(loop.plan, loop.executor.store, loop.state)
        self.checks = _EventChecks(loop)
        self._components = [self._who(sorted(event.instances)) for event in loop.plan.events]

    def execute(self, now: Happening) -> bool:
        """Run the program of what happens now, and note it; whether an FMU ends the run."""
        s, executor = self._state, self._executor
        causes, fired, ticks, is_early, given = now
        planned = self.plan_of(frozenset(causes), frozenset(fired), ticks, is_early=is_early)
        self._leave_ahead(planned.late)
        named = self._named(causes, fired)
        left = [self.recorded(components) for _, _, components, _ in named]
        for i in planned.instances:
            executor.next_events[i] = inf
        rows = executor.rows.count
        self.ticks.note_late(ticks)
        before = self._indicators.present()
        answer = self._run(planned, given)
        if answer.stopped is not None:
            raise self.checks.illegitimate(planned.instances)
        s.index += executor.rows.count - rows
        if ticks:
            self.ticks.take(ticks)
        s.fired |= fired.keys()
        s.on |= fired.keys()
        self._note_outcome(planned, ticks)
        for (name, shared, components, cause), values in zip(named, left, strict=True):
            after = self.recorded(components)
            event = Event(s.time.seconds, s.index, name, shared, components, cause, values, after)
            s.event_log.events.append(event)
        self.checks.check_happened(now, before)
        return answer.terminate

    def hold(self, contacts: frozenset[int]) -> None:
        """Let the members of contacts take their forces, and read their outputs again: triggers without an impulse."""
        planned, rows = self.plan_of(fired=contacts), self._executor.rows.count
        self._run(planned, None)
        self._state.index += self._executor.rows.count - rows
        self._note_outcome(planned, NONE)

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
        planned = self.plan_of(ticks=last) if last else None
        if planned is not None:
            s.index = rows
            self._note_outcome(planned, last)
        else:
            self._changes.note()
        if planned is None or outcome is None:
            return False
        if outcome.stopped is not None:
            raise self.checks.illegitimate(planned.instances)
        self.checks.check_happened(Happening(ticks=last))
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
        s.outdated |= (planned.outdated - s.just_renewed) | planned.starting
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
            (events[e].name, events[e].scope is Scope.SHARED, self._components[e], fired[e])
            for e in fired
        ]
        members = {i for e in fired for i in events[e].instances}
        for i in sorted(causes.keys() - members):
            found.append((f"event of {self._names[i]}", False, (self._names[i],), causes[i]))
        return found
