"""Processes events at the instant that a step has reached."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from math import inf
from typing import Any, NamedTuple

import numpy as np

from fmimaster.causes import Cause, Event, Kind
from fmimaster.control.grid import rounding
from fmimaster.control.indicators import NONE
from fmimaster.control.locate import CHANGE
from fmimaster.control.step_rule import StepRule
from fmimaster.control.zeno import FEW
from fmimaster.errors import SimulationError
from fmimaster.plan.events import concerned
from fmimaster.program.instructions import Mode, Program
from fmimaster.program.outcome import Outcome
from fmimaster.program.programs import Programs
from fmimaster.run.changes import Changes
from fmimaster.run.failures import (
    accumulating,
    illegitimate,
    next_event_is_nan,
    still_on,
    too_often_late,
    unknown_event,
)
from fmimaster.run.log import Delay, Late, recorded_values
from fmimaster.run.loop import Loop
from fmimaster.run.observed import Observer
from fmimaster.run.outdated import outdated_instances, unseen_sets
from fmimaster.run.ticks import ClockTicks
from fmimaster.system.model import Scope

MOST_LATE = 20
"""So much more often than in time an event may be late: a rate, so that long runs may have many events that are late."""

PREDICTED, DETECTED, LOCATED = map(Cause, (Kind.PREDICTED, Kind.DETECTED, Kind.LOCATED))


_log = logging.getLogger("fmimaster")


def begins_anew_at_jumps(programs: Programs, rule: StepRule[Any]) -> bool:
    """Whether extrapolation or step-size control must restart where an input jumps."""
    return programs.extrapolates or len(rule.estimators) > 0


class PlannedEvent(NamedTuple):
    """Data about a combination of requests and triggered events, computed in advance."""

    instances: tuple[int, ...]
    """Instances that take part in the event."""
    program: Program
    late: frozenset[int]
    """Instances that it concerns and that stand ahead."""
    outdated: frozenset[int]
    """Instances with outputs that are outdated by it."""
    unseen: frozenset[tuple[int, int]]
    seen: frozenset[tuple[int, int]]
    """Sets of indicators that do not show what it has changed, and that do; see :func:`unseen_sets`."""


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
        self._told_by_fmus = frozenset(
            k
            for k, trigger in enumerate(loop.plan.triggers)
            if trigger.clock is not None and not trigger.clock.is_periodic
        )
        """Time-based clocks whose ticks can accumulate: FMUs tell their intervals one by one."""
        self._event_modes = [instance.event_mode for instance in loop.plan.instances]
        self._by_themselves = frozenset(s.event for s in loop.indicators.sets if not s.is_triggered)
        """Events that FMUs let happen when they are reached from above, not whenever they are on."""
        self._begins_anew = begins_anew_at_jumps(loop.programs, loop.rule)
        self._halves: dict[int, tuple[Program, Program]] = {}
        """Of the programs of events at which the user has set values: before that and after it."""
        self._planned: dict[
            tuple[frozenset[int], frozenset[int], bool, int, frozenset[int], frozenset[int]],
            PlannedEvent,
        ] = {}

    def prepare(self) -> None:
        """Write and check the program of each event that may be fired alone, before anything is simulated."""
        if self._clock is not None and self._clock.fires:
            for e in range(len(self._plan.events)):
                self._plan_of(NONE, frozenset({e}), False)

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
        self._check_agreement(range(len(self._plan.events)))
        found = self._look(())
        self._state.on = found & self._by_themselves  # they were not reached from above
        waiting = dict.fromkeys(found - self._by_themselves, DETECTED)
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
            waiting |= dict.fromkeys(stopped, Cause(Kind.EARLY_RETURN, self._who(requests)))
            requests = self._known(requests, found | waiting.keys())
        causes = self._at_own_times(self._causes_of_instances(requests, jumped))
        if found or waiting:
            self._note_late(found - waiting.keys(), waiting.keys())
            waiting = dict.fromkeys(found, DETECTED) | waiting
        happened, ends = self._let_happen(causes, waiting, ticks, is_early=bool(requests))
        return observed or happened, ends

    def rejoin(
        self, new: frozenset[int], changed: frozenset[int], set_values: Callable[[int], None]
    ) -> bool:
        """Begin with another structure of the system during the run.

        Parameters
        ----------
        new
            Instances that have just been initialized.
        changed
            Others with inputs that have another source than before: an event for those with Event Mode.
        set_values
            Sets inputs of such an instance that have lost their source.

        Returns
        -------
        Whether an FMU ends the run.
        """
        self._changes.note()
        self._find_next_event()
        self._ticks.begin(new)
        ends = bool(changed) and self.give(changed, set_values, Kind.STRUCTURE)
        if not ends and (ticks := self._ticks.due()):
            _, ends = self._let_happen({}, {}, ticks, is_early=False)
        return ends

    def give(
        self,
        instances: frozenset[int],
        set_values: Callable[[int], None],
        kind: Kind = Kind.CHANGED_INPUT,
    ) -> bool:
        """Set values of the user in instances: an event for those with Event Mode (FMI 3.0, 4.1.1).

        Parameters
        ----------
        set_values
            Sets the values of an instance, by its number.
        kind
            Why it is an event.

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
        causes = {i: Cause(kind, (self._names[i],)) for i in modes}
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
            s.on &= found if s.fired else found & self._by_themselves
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

    def _run(self, program: Program) -> Outcome:
        """Run the program of an event; values that the user has set are set when all instances are in Event Mode."""
        executor, now = self._executor, self._state.time.seconds
        if self._waiting_values is None:
            return executor.run(program, now, now)
        (instances, set_values), self._waiting_values = self._waiting_values, None
        if id(program) not in self._halves:
            n = len(list(takewhile(lambda i: isinstance(i, Mode), program.instructions)))
            first, rest = program.instructions[:n], program.instructions[n:]
            self._halves[id(program)] = Program("event", first), Program("event", rest)
        before, after = self._halves[id(program)]
        executor.run(before, now, now)
        for i in instances:
            set_values(i)
        return executor.run(after, now, now)

    def _causes_of_instances(
        self, requests: Sequence[int], jumped: frozenset[int]
    ) -> dict[int, Cause]:
        """Instances that need an event, each with the cause: a request, a time event, or an input that is discrete and has
        changed, or continuous and has jumped."""
        found = {
            i: Cause(Kind.CHANGED_INPUT, (self._names[i],))
            for i in sorted(self._changes.inputs_changed() | jumped)
        }
        now, next_events = self._state.time.seconds, self._executor.next_events
        for i in np.flatnonzero(next_events <= now).tolist():
            found[i] = Cause(Kind.TIME_EVENT, (self._names[i],))
            delay = now - next_events.item(i)
            if delay > max(rounding(now, self._size), self._merged):
                log = self._state.event_log
                log.note_delay(self._names[i], Delay.FIXED_STEP, now - delay, delay)
        return found | {i: Cause(Kind.REQUESTED, (self._names[i],)) for i in requests}

    def _at_own_times(self, causes: dict[int, Cause]) -> dict[int, Cause]:
        """Causes without those of instances that stand ahead, which have their events at their own times; and with those
        of instances that stood ahead until now."""
        s = self._state
        if not (s.ahead or s.late):
            return causes
        late = s.late | (causes.keys() & s.ahead)
        s.late = late & s.ahead
        late_now = {i: Cause(Kind.SEEN_LATE, (self._names[i],)) for i in sorted(late - s.ahead)}
        return late_now | {i: cause for i, cause in causes.items() if i not in s.ahead}

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
        planned = self._plan_of(frozenset(causes), frozenset(fired), is_early, ticks)
        self._leave_ahead(planned.late)
        happening = self._happening(causes, fired)
        left = [self._recorded(components) for _, _, components, _ in happening]
        executor.next_events[list(planned.instances)] = inf
        rows = executor.rows.count
        answer = self._run(planned.program)
        if answer.stopped is not None:
            raise self._illegitimate(planned.instances)
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
        self._check(causes, fired, ticks)
        return answer.terminate

    def _note_outcome(self, planned: PlannedEvent, ticks: frozenset[int]) -> None:
        """Note what the program of an event has left: the loop goes on from there."""
        s = self._state
        self._ticks.take_intervals(planned.instances, ticks)
        s.unseen = (s.unseen - planned.seen) | planned.unseen
        s.previous = 0.0
        s.memory = self._rule.restart(s.memory)
        s.outdated |= planned.outdated
        self._changes.note()
        self._find_next_event()
        self._indicators.renew()
        self._indicators.outdated = frozenset(number for number, _ in s.unseen)

    def of_ticks(self, ticks: frozenset[int]) -> PlannedEvent:
        """What an event is in which these clocks tick, by their triggers, and nothing else happens."""
        return self._plan_of(NONE, NONE, False, ticks)

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
            raise self._illegitimate(planned.instances)
        self._check({}, {}, last)
        return outcome.terminate

    def _leave_ahead(self, late: frozenset[int]) -> None:
        """Note who sees an event of the present time late, and that these instances have it at their own times."""
        s, at = self._state, self._executor.registers.at
        s.late |= late
        for i in sorted(s.ahead):
            lateness = at.item(i) - s.time.seconds
            s.event_log.note_delay(self._names[i], Delay.AHEAD, s.time.seconds, lateness)

    def _happening(
        self, causes: dict[int, Cause], fired: dict[int, Cause]
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

    def _plan_of(
        self,
        requests: frozenset[int],
        fired: frozenset[int],
        is_early: bool,
        ticks: frozenset[int] = NONE,
    ) -> PlannedEvent:
        """The instances that an event concerns, its program, and whose outputs are outdated by it."""
        ahead = self._state.ahead
        key = requests, fired, is_early, self._state.variant, ahead, ticks
        if key not in self._planned:
            plan, modes = self._plan, self._event_modes
            events = [plan.events[e] for e in sorted(fired)]
            first = requests.union(*(event.instances for event in events))
            first |= {plan.triggers[k].instance for k in ticks}
            affected = concerned(first, plan.reached_by_events)
            instances = tuple(i for i in affected if i not in ahead)
            late = ahead.intersection(affected)
            triggers = tuple(
                m.trigger for event in events for m in event.members if m.trigger is not None
            ) + tuple(sorted(ticks))
            program = self._variants[self._state.variant].event(
                instances, triggers, is_early, tuple(sorted(late))
            )
            # an instance without Event Mode that was not triggered has only requested the event
            changed = {i for i in instances if modes[i]}
            changed |= {plan.triggers[k].instance for k in triggers}
            self._planned[key] = PlannedEvent(
                instances,
                program,
                late,
                outdated_instances(plan, changed, first, triggers) - ahead,
                *unseen_sets(plan, self._indicators.sets, changed, first, triggers),
            )
        return self._planned[key]

    def _recorded(self, components: Collection[str]) -> dict[str, Any]:
        return recorded_values(self._plan, self._executor.store, components)

    def _who(self, instances: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._names[i] for i in instances)

    def _find_next_event(self) -> None:
        s, times = self._state, self._executor.next_events
        s.next_event = float(times.min())
        if s.next_event != s.next_event:  # NaN
            names = " and ".join(self._who(np.flatnonzero(np.isnan(times)).tolist()))
            raise next_event_is_nan(names, s.time.seconds)

    # What cannot be --------------------------------------------------------------------------------------------------

    def _check(
        self, causes: dict[int, Cause], fired: dict[int, Cause], ticks: frozenset[int]
    ) -> None:
        """Raise if events accumulate, do not end, are still on, or are seen differently by their members."""
        s, time, events = self._state, self._state.time.seconds, self._plan.events
        for e in sorted(fired):
            self._check_accumulation(events[e].name, time)
            if e not in self._by_themselves and self._indicators.still_on(e):
                raise still_on(self._plan, events[e], time, s.event_log.late.get(events[e].name))
        members = {i for e in fired for i in events[e].instances}
        for i in sorted(causes.keys() - members):
            self._check_accumulation(f"events of {self._names[i]}", time)
        for k in sorted(ticks & self._told_by_fmus):
            trigger = self._plan.triggers[k]
            self._check_accumulation(f"{self._names[trigger.instance]}.{trigger.name}", time)
        ticking = {self._plan.triggers[k].instance for k in ticks}
        who = frozenset(causes.keys() | members | ticking)
        if s.accumulating.too_many_at(time, rounding(time, self._size), who):
            raise self._illegitimate(s.accumulating.causes)
        modes = self._event_modes
        self._check_agreement(e for e in fired if all(modes[i] for i in events[e].instances))

    def _illegitimate(self, instances: Collection[int]) -> SimulationError:
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

    def _check_agreement(self, events: Iterable[int]) -> None:
        """Raise if members disagree on shared events; where inputs are synchronous: at the start, and in Event Mode."""
        for e in events:
            self._indicators.check_members_agree(e, self._state.time.seconds)

    def _known(self, requests: Sequence[int], found: frozenset[int]) -> Sequence[int]:
        """Requests without those of instances without Event Mode that have no event here: they have stopped at one that is
        none with the inputs of now, and go on, but not for ever."""
        time, events = self._state.time.seconds, self._plan.events
        unknown = [
            i
            for i in requests
            if not self._event_modes[i] and not any(i in events[e].instances for e in found)
        ]
        if unknown and self._state.accumulating.too_many_at(time, rounding(time, self._size)):
            raise unknown_event(self._names[unknown[0]], time)
        return [i for i in requests if i not in unknown]

    def _note_late(self, found: frozenset[int], in_time: Collection[int]) -> None:
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
