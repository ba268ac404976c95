"""Processes events at the instant that a step has reached."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from fmimaster.program.indicators import NONE
from fmimaster.program.outcome import Outcome
from fmimaster.program.programs import Programs
from fmimaster.record.causes import Cause, Event, Kind
from fmimaster.run.changes import Changes
from fmimaster.run.event_causes import EventCauses
from fmimaster.run.event_checks import EventChecks
from fmimaster.run.failures import (
    next_event_is_nan,
)
from fmimaster.run.log import Delay, recorded_values
from fmimaster.run.loop import Loop
from fmimaster.run.observed import Observer
from fmimaster.run.planned_events import PlannedEvent, PlannedEvents, last_row
from fmimaster.run.ticks import ClockTicks
from fmimaster.steps.locate import CHANGE
from fmimaster.steps.step_rule import StepRule
from fmimaster.system.model import Scope

PREDICTED, DETECTED, LOCATED = map(Cause, (Kind.PREDICTED, Kind.DETECTED, Kind.LOCATED))

CHANGE_OF_STRUCTURE = "change of the structure"
"""Name of the event in the results."""


def begins_anew_at_jumps(programs: Programs, rule: StepRule[Any]) -> bool:
    """Whether extrapolation or step-size control must restart where an input jumps."""
    return programs.extrapolates or len(rule.estimators) > 0


class EventHandler:
    """Processes events: those that FMUs request, time events, and those that an event clock triggers.

    The program of each combination is found once. All memory is in the state of the run.
    """

    def __init__(self, loop: Loop, changes: Changes) -> None:
        self._plan = loop.plan
        self._programs = loop.programs
        self._variants = loop.programs.variants
        self._executor = loop.executor
        self._rule = loop.rule
        self._size = float(loop.rule.exact_size)
        self._state = loop.state
        self._merged = loop.state.calendar.merged_seconds
        self._clock = loop.clock
        self._indicators = loop.indicators
        self._names = loop.names
        self._changes = changes
        self._waiting_values: tuple[list[int], Callable[[int], None]] | None = None
        """Instances with values that the user has set, until they are in Event Mode; and what sets them."""
        self.observer = Observer(loop)
        self._ticks = ClockTicks(loop.plan, loop.executor.store, loop.state)
        self._event_modes = [instance.event_mode for instance in loop.plan.instances]
        self._begins_anew = begins_anew_at_jumps(loop.programs, loop.rule)
        self._plan_of = PlannedEvents(loop)
        self._causes = EventCauses(loop, changes)
        self._checks = EventChecks(loop)

    def prepare(self) -> None:
        """Write and check the program of each event that may be fired alone, before anything is simulated."""
        if self._clock is not None and self._clock.fires:
            for e in range(len(self._plan.events)):
                self._plan_of(fired=frozenset({e}))

    @property
    def is_quiet(self) -> bool:
        """Whether what is looked for after a step depends on that step alone, not on an event before it."""
        s = self._state
        if self._clock is None:
            return True
        return not (s.fired or s.on or s.unseen or s.outdated) and self.observer.is_far

    def begin(self) -> bool:
        """Process the events at the start.

        Returns
        -------
        Whether an FMU ends the run.
        """
        self._changes.note()
        self._find_next_event()
        self._ticks.begin()
        if self._clock is None:
            _, ends = self._let_happen({}, {}, self._ticks.due(), is_early=False)
            return ends
        self._indicators.check_finite(self._state.time.seconds)
        self._checks.check_members(range(len(self._plan.events)))
        found = self._look(())
        self._state.on = found & self._indicators.by_themselves  # they were not reached from above
        waiting = dict.fromkeys(found - self._indicators.by_themselves, DETECTED)
        _, ends = self._let_happen({}, waiting, self._ticks.due(), is_early=False)
        return ends

    def happen(self, due: frozenset[int], requests: Sequence[int]) -> tuple[bool, bool]:
        """Process the events of the present instant.

        Parameters
        ----------
        due
            Events that the event clock triggers now.
        requests
            Instances that request an event.

        Returns
        -------
        Whether there was an event, and whether an FMU ends the run at it.
        """
        s = self._state
        observed = self.observer.look()
        found = self._look(requests) - due
        is_due = s.next_event <= s.time.seconds
        jumped = self._jumped() if s.timeline.jumps else NONE
        ticks = self._ticks.due()
        watched = self._changes.inputs
        if not (found or due or requests or is_due or ticks or watched or jumped or s.late):
            return observed, False
        waiting = dict.fromkeys(due, PREDICTED)
        if requests and self._plan.events:
            stopped = self._indicators.stopped_at(frozenset(requests)) - s.on
            waiting |= dict.fromkeys(
                stopped, Cause(Kind.EARLY_RETURN, self._causes.names(requests))
            )
            requests = self._checks.known_requests(requests, found | waiting.keys())
        causes = self._causes.at_own_times(self._causes.of_instances(requests, jumped))
        if found or waiting:
            self._checks.note_late(found - waiting.keys(), waiting.keys())
            waiting = dict.fromkeys(found, DETECTED) | waiting
        happened, ends = self._let_happen(causes, waiting, ticks, is_early=bool(requests))
        return observed or happened, ends

    def rejoin(
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
        planned = self._plan_of.of_change(change, new, changed)
        left = self._recorded({*names}.difference(self._names[i] for i in new))
        executor.run(change.before, now, now)
        for i in sorted(changed):
            set_values(i)
        executor.next_events[list(change.modes)] = inf
        answer = self._record_end(executor.run(change.after, now, now))
        if answer.stopped is not None:
            raise self._checks.illegitimate(planned.instances)
        s.index += executor.rows.count
        self._ticks.begin(new)
        self._note_outcome(planned, NONE)
        right, cause = self._recorded(names), Cause(Kind.STRUCTURE)
        event = Event(now, s.index, CHANGE_OF_STRUCTURE, len(names) > 1, names, cause, left, right)
        s.event_log.events.append(event)
        ends = answer.terminate
        if not ends and (ticks := self._ticks.due()):
            _, ends = self._let_happen({}, {}, ticks, is_early=False)
        return ends

    def give(self, instances: frozenset[int], set_values: Callable[[int], None]) -> bool:
        """Set values of the user in instances: an event for those with Event Mode (FMI 3.0, 4.1.1).

        Parameters
        ----------
        set_values
            Sets the values of an instance, by its number.

        Returns
        -------
        Whether an FMU ends the run.
        """
        modes = [i for i in sorted(instances) if self._event_modes[i]]
        for i in sorted(instances.difference(modes)):
            set_values(i)
        if self._begins_anew:
            self._begin_anew()
        if not modes:
            return False
        causes = {i: Cause(Kind.CHANGED_INPUT, (self._names[i],)) for i in modes}
        self._waiting_values = modes, set_values
        _, ends = self._let_happen(causes, {}, NONE, is_early=False)
        return ends

    def located(self, components: tuple[str, ...]) -> None:
        """Note a change of discrete outputs that was located by going back."""
        s = self._state
        who = tuple(dict.fromkeys(components))
        right = self._recorded(who)
        s.event_log.events.append(
            Event(s.time.seconds, s.index, CHANGE, False, who, LOCATED, {}, right)
        )
        self._changes.note()

    # What happens ------------------------------------------------------------------------------------------------------

    def _look(self, requests: Sequence[int]) -> frozenset[int]:
        """Events that are on at this point by the event clock, and have not been on ever since they happened."""
        s, clock = self._state, self._clock
        if clock is None:
            return NONE
        self._indicators.first = self._variants[s.variant].first
        self._indicators.outdated = frozenset(n for n, _ in s.unseen) if s.unseen else NONE
        found = clock.detect(self._indicators)
        # NaN is not above 0, so that it looks like an event
        if found or requests or not clock.fires:
            self._indicators.check_finite(s.time.seconds)
        if s.on:
            s.on &= found if s.fired else found & self._indicators.by_themselves
        return found - s.on

    def _let_happen(
        self,
        causes: dict[int, Cause],
        waiting: dict[int, Cause],
        ticks: frozenset[int],
        *,
        is_early: bool,
    ) -> tuple[bool, bool]:
        """Process events one after the other until there are none; see :meth:`happen`.

        Events without a common instance occur together. An event whose condition another event has removed does not
        occur.
        """
        happened = ends = False
        while (causes or waiting or ticks) and not ends:
            fired = self._apart(waiting)
            ends = self._execute(causes, fired, ticks, is_early=is_early)
            happened = True
            causes, is_early = {}, False
            ticks = self._ticks.due()
            waiting = {e: waiting.get(e, DETECTED) for e in self._look(())}
        return happened, ends

    def _apart(self, waiting: dict[int, Cause]) -> dict[int, Cause]:
        """Of events that have an instance in common the first one: shared events are before private ones, since their
        payloads are left limits, then their names count."""
        events, taken, chosen = self._plan.events, set[int](), {}
        for e in sorted(waiting, key=lambda e: (events[e].scope is Scope.PRIVATE, events[e].name)):
            if taken.isdisjoint(events[e].instances):
                taken |= events[e].instances
                chosen[e] = waiting[e]
        return chosen

    def _jumped(self) -> frozenset[int]:
        """Instances for which the jump of a continuous input here is an event, once.

        Values before a jump must not be extrapolated over it, nor be used for step-size control after it.
        """
        s = self._state
        if s.jumped == s.time or s.time not in s.timeline.jumps:
            return NONE
        s.jumped = s.time
        self._begin_anew()
        return s.timeline.jumps[s.time]

    def _begin_anew(self) -> None:
        s = self._state
        self._executor.run(self._programs.renew, s.time.seconds, s.time.seconds)
        s.previous = 0.0
        s.memory = self._rule.restart(s.memory)

    def _run(self, planned: PlannedEvent) -> Outcome:
        """Run the program of an event; values that the user has set are set when all instances are in Event Mode."""
        executor, now = self._executor, self._state.time.seconds
        if self._waiting_values is None:
            return self._record_end(executor.run(planned.program, now, now))
        (instances, set_values), self._waiting_values = self._waiting_values, None
        before, after = planned.halves
        executor.run(before, now, now)
        for i in instances:
            set_values(i)
        return self._record_end(executor.run(after, now, now))

    def _record_end(self, outcome: Outcome) -> Outcome:
        """The outcome of an event; if an FMU has ended the run in it, the row follows that its program did not reach."""
        if outcome.terminate:
            now = self._state.time.seconds
            self._executor.run(last_row(self._plan, self._executor.registers.initialized), now, now)
        return outcome

    def _execute(
        self,
        causes: dict[int, Cause],
        fired: dict[int, Cause],
        ticks: frozenset[int],
        *,
        is_early: bool,
    ) -> bool:
        """Run the program of an event, and note what has happened; whether an FMU ends the run."""
        s, executor = self._state, self._executor
        planned = self._plan_of(frozenset(causes), frozenset(fired), ticks, is_early=is_early)
        self._leave_ahead(planned.late)
        happening = self._causes.happening(causes, fired)
        left = [self._recorded(components) for _, _, components, _ in happening]
        executor.next_events[list(planned.instances)] = inf
        rows = executor.rows.count
        self._ticks.note_late(ticks)
        answer = self._run(planned)
        if answer.stopped is not None:
            raise self._checks.illegitimate(planned.instances)
        s.index += executor.rows.count - rows
        if ticks:
            self._ticks.take(ticks)
        s.fired |= fired.keys()
        s.on |= fired.keys()
        self._note_outcome(planned, ticks)
        for (name, shared, components, cause), before in zip(happening, left, strict=True):
            after = self._recorded(components)
            event = Event(s.time.seconds, s.index, name, shared, components, cause, before, after)
            s.event_log.events.append(event)
        self._checks.check_happened(causes, fired, ticks)
        return answer.terminate

    def _note_outcome(self, planned: PlannedEvent, ticks: frozenset[int]) -> None:
        """Note what the program of an event has left: the loop goes on from there."""
        s = self._state
        self._ticks.take_intervals(planned.instances, ticks)
        s.unseen = (s.unseen - planned.seen) | planned.unseen
        s.previous = 0.0
        s.memory = self._rule.restart(s.memory)
        # outputs may change inputs of events in short steps too: a step of the usual length must follow
        s.outdated |= planned.outdated - s.just_renewed
        self._changes.note()
        self._find_next_event()
        self._indicators.renew()
        self._indicators.outdated = frozenset(number for number, _ in s.unseen)

    def of_ticks(self, ticks: frozenset[int]) -> PlannedEvent:
        """What an event is in which these clocks tick, by their triggers, and nothing else happens."""
        return self._plan_of(ticks=ticks)

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
        self._ticks.skip(counts)
        planned = self.of_ticks(last) if last else None
        if planned is not None:
            s.index = rows
            self._note_outcome(planned, last)
        else:
            self._changes.note()
        if planned is None or outcome is None:
            return False
        if outcome.stopped is not None:
            raise self._checks.illegitimate(planned.instances)
        self._checks.check_happened({}, {}, last)
        self._record_end(outcome)
        return outcome.terminate

    def _leave_ahead(self, late: frozenset[int]) -> None:
        """Note who sees an event of the present time late, and that these instances have it at their own times."""
        s, at = self._state, self._executor.registers.at
        s.late |= late
        for i in sorted(s.ahead):
            lateness = at.item(i) - s.time.seconds
            s.event_log.note_delay(self._names[i], Delay.AHEAD, s.time.seconds, lateness)

    def _recorded(self, components: Collection[str]) -> dict[str, Any]:
        return recorded_values(self._plan, self._executor.store, components)

    def _find_next_event(self) -> None:
        s, times = self._state, self._executor.next_events
        s.next_event = float(times.min())
        if s.next_event != s.next_event:  # NaN
            names = " and ".join(self._causes.names(np.flatnonzero(np.isnan(times)).tolist()))
            raise next_event_is_nan(names, s.time.seconds)
