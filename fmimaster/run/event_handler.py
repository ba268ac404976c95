"""Processes events at the instant that a step has reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from fmimaster.instants.grid import rounding
from fmimaster.instants.instant import Goal
from fmimaster.program.indicators import NONE
from fmimaster.program.programs import Programs
from fmimaster.record.causes import Cause, Event, Kind
from fmimaster.run.changes import Changes, Observer
from fmimaster.run.event_execution import EventExecution, Given, Happening
from fmimaster.run.failures import check_indicators_are_finite, close_changes
from fmimaster.run.log import Lateness
from fmimaster.run.loop import Loop, LoopPart
from fmimaster.steps.step_rule import CHANGE, StepRule
from fmimaster.system.declarations import Scope

LEFT = 1e-3
"""Part of a usual step within which indicators rise above 0, so that their event is none that another one has caused."""

PREDICTED, DETECTED, LOCATED = map(Cause, (Kind.PREDICTED, Kind.DETECTED, Kind.LOCATED))


def begins_anew_at_jumps(programs: Programs, rule: StepRule[Any]) -> bool:
    """Whether lines through several instants or step-size control must restart where an input jumps."""
    return programs.follows_lines or len(rule.estimators) > 0


class EventHandler(LoopPart):
    """Processes events: those that FMUs request, time events, and those that an event clock triggers."""

    def __init__(self, loop: Loop, changes: Changes) -> None:
        super().__init__(loop)
        self._changes = changes
        self.observer = Observer(loop)
        self._rests = None
        if loop.clock is not None:
            from fmimaster.run.rest import Rests  # most runs of single FMUs have no event clock

            self._rests = Rests(loop)
        self._derivatives = None
        if loop.clock is not None and loop.clock.fires:
            # with other clocks FMUs execute events themselves, and no prediction needs derivatives
            from fmimaster.run.derivatives import DerivativeCheck

            self._derivatives = DerivativeCheck(loop)
        self._contacts = None
        if any(m.declaration.contact for event in loop.plan.events for m in event.members):
            from fmimaster.run.contacts import Contacts  # few systems have some

            self._contacts = Contacts(loop)
        self._event_modes = [instance.event_mode for instance in loop.plan.instances]
        self._begins_anew = begins_anew_at_jumps(loop.programs, loop.rule)
        self.execution = execution = EventExecution(loop, changes)
        self._ticks, self._checks = execution.ticks, execution.checks
        self._size = float(loop.rule.exact_size)
        self._merged = loop.state.calendar.merged_seconds

    def begin_anew(self) -> None:
        """As before the first step of a run."""
        self.observer.begin_anew()
        if self._derivatives is not None:
            self._derivatives.begin_anew()

    def prepare(self) -> None:
        """Write and check the program of each event that may be fired alone, before anything is simulated."""
        if self._clock is not None and self._clock.fires:
            for e in range(len(self._plan.events)):
                self.execution.plan_of(fired=frozenset({e}))

    @property
    def is_quiet(self) -> bool:
        """Whether what is looked for after a step depends on that step alone, not on an event before it."""
        s = self._state
        if self._clock is None:
            return True
        if self._derivatives and self._derivatives.waits:
            return False
        waits = s.outdated or (self._rests and self._rests.quiet) or s.touching
        return not waits and self.observer.is_far

    def begin(self) -> bool:
        """Process the events at the start.

        Returns
        -------
        Whether an FMU ends the run.
        """
        self._changes.note()
        self.execution.find_next_event()
        self._ticks.begin()
        if self._clock is None:
            return self._let_happen(Happening(ticks=self._ticks.due()))[1]
        check_indicators_are_finite(self._indicators, self._state.time.seconds)
        self._checks.check_members(range(len(self._plan.events)))
        found = self._look(())
        self._state.on = found & self._indicators.by_themselves  # they were not reached from above
        waiting = dict.fromkeys(found - self._indicators.by_themselves, DETECTED)
        now = Happening(fired=waiting, ticks=self._ticks.due())
        _, ends = self._let_happen(now, notes=False)  # what rests at the start is no event
        if not ends and self._rests is not None:
            self._rests.look()
        return ends

    def happen(self, due: frozenset[int], requests: Sequence[int]) -> tuple[bool, bool]:
        """Process the events of the present instant, and find the contacts at rest that they leave.

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
        happened, ends = self._happen(due, requests)
        if not ends and self._rests is not None:
            self._rests.look()
        return happened, ends

    def _happen(self, due: frozenset[int], requests: Sequence[int]) -> tuple[bool, bool]:
        s = self._state
        observed = self.observer.look()
        if not observed and self._derivatives:
            self._derivatives.look()
        found = self._look(requests) - due
        is_due = s.next_event <= s.time.seconds
        is_jump = s.time in s.timeline.jumps
        jumped = self._jumped() if is_jump else NONE
        # their indicators may be corrected for the jump already: they are looked at after their Event Mode
        found = frozenset(e for e in found if jumped.isdisjoint(self._plan.events[e].instances))
        ticks = self._ticks.due()
        watched = self._changes.inputs
        if not (found or due or requests or is_due or ticks or watched or jumped or s.late):
            return observed, False
        waiting = dict.fromkeys(due, PREDICTED)
        if requests and self._plan.events:
            stopped = self._indicators.stopped_at(frozenset(requests)) - s.on - s.resting
            waiting |= dict.fromkeys(stopped, Cause(Kind.EARLY_RETURN, self._who(requests)))
            self.observer.note_stops(stopped, requests)
            requests = self._checks.known_requests(requests, found | waiting.keys())
        causes = self._at_own_times(self._causes_of(requests, jumped))
        if found or waiting:
            self._checks.note_late(NONE if is_jump else found - waiting.keys(), waiting.keys())
            waiting = dict.fromkeys(found, DETECTED) | waiting
        happened, ends = self._let_happen(Happening(causes, waiting, ticks, bool(requests)))
        return observed or happened, ends

    def go_on(self) -> bool:
        """Process the events that are on after ticks whose programs the executor has run; whether an FMU ends the run."""
        found = self._look(())
        return bool(found) and self._let_happen(Happening(fired=dict.fromkeys(found, DETECTED)))[1]

    def rejoin(
        self,
        names: tuple[str, ...],
        new: frozenset[int],
        changed: frozenset[int],
        set_values: Callable[[int], None],
    ) -> bool:
        """Go over to another structure of the system, see :meth:`EventExecution.change_structure`; then clocks tick."""
        ends = self.execution.change_structure(names, new, changed, set_values)
        if not ends and (ticks := self._ticks.due()):
            _, ends = self._let_happen(Happening(ticks=ticks))
        return ends

    def give(self, instances: frozenset[int], set_values: Callable[[int], None]) -> bool:
        """Set values of the user in instances: an event for those with Event Mode (FMI 3.0, 4.1.1).

        They are calls of their own, not a component that feeds all open inputs: so plan, programs and bits of a stepwise
        run are those of any other one while nothing is set.

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
        return self._let_happen(Happening(causes, given=Given(modes, set_values)))[1]

    def step_to(self, goal: Goal) -> Goal | None:
        """Prepare contacts at rest for a step; None if one of them opens now."""
        held = self._state.held
        if self._contacts is None:
            return goal
        found = self._contacts.step_to(goal)
        if found is None:
            self._begin_anew()
            self.execution.hold(self._state.held ^ held)  # accelerations have jumped
            self._contacts.note(held)
        return found

    def located(self, components: tuple[str, ...], begin: float, before: float) -> None:
        """Note a change of discrete outputs that was located by going back.

        Parameters
        ----------
        components
            Those whose outputs have changed.
        begin
            Start in s of the step that ends with the change.
        before
            Length in s of the step before; 0 if none was, or if there was an event.
        """
        s = self._state
        who = tuple(dict.fromkeys(components))
        self._note_doubts(who, begin, before)
        right = self.execution.recorded(who)
        s.event_log.events.append(
            Event(s.time.seconds, s.index, CHANGE, False, who, LOCATED, {}, right)
        )
        self._changes.note_outputs()

    def _note_doubts(self, components: tuple[str, ...], begin: float, before: float) -> None:
        """Note changes that may be late, or beside which others may not be seen; see :meth:`located`."""
        s, now = self._state, self._state.time.seconds
        is_at_start = now - begin <= self._rule.bracket(begin)
        follows = any(
            at == begin for at, _ in s.located.values()
        )  # another change may be its cause
        for name in components:
            if is_at_start and before > 0.0 and not follows:
                s.event_log.note_delay(name, Lateness.LOCATED, begin, before)
            at, earlier = s.located.get(name, (-inf, []))
            noted, outputs = self._changes.outputs_of(name)
            s.located[name] = now, noted
            if now - at >= self._size or outputs != earlier or name in s.close:
                continue
            if not self._answers_itself(name):
                s.close |= {name}
                s.warnings += (close_changes(name, now, now - at, self._size),)

    def _answers_itself(self, name: str) -> bool:
        """Whether inputs of a component depend on its own outputs: then it cannot change and change back inside a step, in
        which its outputs are held for the others."""
        sources, own = self._plan.links.sources, self._names.index(name)
        found, waiting = set[int](), [own]
        while waiting:
            new = sources[waiting.pop()] - found
            found |= new
            waiting += new
        return own in found

    # What happens ------------------------------------------------------------------------------------------------------

    def _look(self, requests: Sequence[int]) -> frozenset[int]:
        """Events that are on at this point by the event clock, and have not been on ever since they happened."""
        s, clock = self._state, self._clock
        if clock is None:
            return NONE
        self._indicators.resting, self._indicators.held = s.resting, s.touching
        self._indicators.first = self._programs.variants[s.variant].first
        self._indicators.outdated = frozenset(n for n, _ in s.unseen) if s.unseen else NONE
        found = clock.detect(self._indicators)
        # NaN is not above 0, so that it looks like an event
        if found or requests or not clock.fires:
            check_indicators_are_finite(self._indicators, s.time.seconds)
        if s.on:
            s.on &= found if s.fired else found & self._indicators.by_themselves
        return found - s.on

    def _let_happen(self, waiting: Happening, *, notes: bool = True) -> tuple[bool, bool]:
        """Process events one after the other until there are none; see :meth:`happen`. Values are set at the first one.

        ``notes``: whether contacts that close for good or open are noted in the results.

        Events without a common instance occur together. An event whose condition another event has removed does not
        occur.
        """
        happened = ends = False
        while (waiting.causes or waiting.fired or waiting.ticks) and not ends:
            held = self._state.held
            chosen = dict(sorted(self._apart(waiting.fired).items()))
            if self._contacts is not None:
                chosen = self._contacts.with_impulses(chosen, DETECTED)
            causes, later = self._divided(waiting, chosen)
            if causes or chosen or waiting.ticks:
                ends = self.execution.execute(waiting._replace(causes=causes, fired=chosen))
            elif new := self._state.held - held:
                self.execution.hold(new)
            else:  # nothing pushes there
                self._state.fired |= waiting.fired.keys()
                self._state.on |= waiting.fired.keys()
            if notes and self._contacts is not None:
                self._contacts.note(held)
            happened = True
            ticks, found = self._ticks.due(), self._look(())
            left = {e for e in found if self._is_left(e)}
            self._state.on |= left
            self._state.fired |= left  # nor is it predicted here
            found -= left
            fired = {e: waiting.fired.get(e, DETECTED) for e in found}
            members = {i for e in fired for i in self._plan.events[e].instances}
            causes = {i: cause for i, cause in later.items() if i not in members}
            waiting = Happening(causes, fired, ticks)
        return happened, ends

    def _divided(
        self, waiting: Happening, chosen: Mapping[int, Cause]
    ) -> tuple[Mapping[int, Cause], Mapping[int, Cause]]:
        """Causes without the requests of instances whose events come after the chosen ones, and those requests."""
        if not waiting.causes:
            return waiting.causes, {}
        events = self._plan.events
        rest = {i for e in waiting.fired.keys() - chosen.keys() for i in events[e].instances}
        rest = rest.difference(*(events[e].instances for e in chosen))
        later = {
            i: cause
            for i, cause in waiting.causes.items()
            if i in rest and cause.kind is Kind.REQUESTED
        }
        return {i: cause for i, cause in waiting.causes.items() if i not in later}, later

    def _is_left(self, event: int) -> bool:
        """Whether an event is on by rounding and coupling errors only, from which its indicators rise: the speeds of a
        clutch that was locked differ a little when it begins to slip. It was not reached from above."""
        values, within = self._indicators.present(), LEFT * self._indicators.step
        return all(
            any(dz >= 0 and values[z] + within * values[dz] > 0.0 for z, dz in s.pairs)
            for s in self._indicators.sets
            if s.event == event
        )

    def _apart(self, waiting: Mapping[int, Cause]) -> dict[int, Cause]:
        """Of events that have an instance in common the first one, of contacts all. Shared events are before private ones,
        because their payloads are left limits, then their names count."""
        if len(waiting) <= 1:
            return dict(waiting)
        events, together = self._plan.events, self._contacts.events if self._contacts else ()
        chosen, taken, by_contacts = dict[int, Cause](), set[int](), set[int]()
        for e in sorted(waiting, key=lambda e: (events[e].scope is Scope.PRIVATE, events[e].name)):
            others = taken if e in together else taken | by_contacts
            if others.isdisjoint(events[e].instances):
                (by_contacts if e in together else taken).update(events[e].instances)
                chosen[e] = waiting[e]
        return chosen

    def _causes_of(self, requests: Sequence[int], jumped: frozenset[int]) -> dict[int, Cause]:
        """Instances that need an event, each with the cause: a request, a time event, or an input that is discrete and has
        changed, or continuous and has jumped."""
        found = {
            i: Cause(Kind.CHANGED_INPUT, (self._names[i],))
            for i in sorted(self._changes.inputs_changed() | jumped)
        }
        now, next_events = self._state.time.seconds, self._executor.next_events
        is_due = self._state.next_event <= now
        for i in np.flatnonzero(next_events <= now).tolist() if is_due else ():
            found[i] = Cause(Kind.TIME_EVENT, (self._names[i],))
            delay = now - next_events.item(i)
            if delay > max(rounding(now, self._size), self._merged):
                log = self._state.event_log
                log.note_delay(self._names[i], Lateness.FIXED_STEP, now - delay, delay)
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

    def _jumped(self) -> frozenset[int]:
        """Instances for which the jump of a continuous input here is an event, once.

        Values before a jump must not be extrapolated over it, nor be used for step-size control after it.
        """
        s = self._state
        if s.jumped == s.time or s.time not in s.timeline.jumps:
            return NONE
        s.jumped = s.time
        self._begin_anew()
        jump = s.timeline.jumps[s.time]
        s.outdated |= jump.outdated
        return jump.events

    def _begin_anew(self) -> None:
        s = self._state
        self._executor.run(self._programs.renew, s.time.seconds, s.time.seconds)
        s.previous = 0.0
        s.memory = self._rule.restart(s.memory)
