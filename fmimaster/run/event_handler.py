"""What happens at the instant that a step has reached: events, of whomever they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import inf, isnan
from typing import NamedTuple

import numpy as np

from fmimaster.control.event_clock import NONE, EventClock, Indicators
from fmimaster.control.zeno import MOST_AT_ONE_TIME, EventHistory
from fmimaster.errors import SimulationError, ZenoError
from fmimaster.plan.events import concerned
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions import Program
from fmimaster.run.executor import Executor
from fmimaster.run.state import RunState, StepWay

AT_EVENT = 1e-9
"""Indicators that come down to 0 within so many s, or are nearer to it than this part of their nominal value, are those of
the event at which an FMU has stopped."""

LATE = 1e-6
"""An event is late if it is detected when all its indicators are farther below 0."""

MOST_LATE = 20
"""So often an event may be late."""


class Late(NamedTuple):
    """How often an event was found late, and the first time."""

    times: int
    time: float
    """[s]"""
    indicator: float
    """The largest of its indicators then."""

    def text(self, name: str) -> str:
        """A warning."""
        often = "once" if self.times == 1 else f"{self.times} times"
        return (
            f"the event '{name}' was found late {often}, first at t = {self.time:.12g} s, when the largest of its "
            f"indicators was {self.indicator:.3g} already: take smaller steps, above all after events"
        )


class EventHandler:
    """Lets events happen: those that FMUs ask for, those whose time has come, and those that an event clock fires.

    Each event has a program, which is found out once for each combination of whom it concerns and what is fired.
    """

    def __init__(
        self,
        plan: Plan,
        ways: Sequence[StepWay],
        executor: Executor,
        state: RunState,
        clock: EventClock | None,
        indicators: Indicators,
    ) -> None:
        self.plan = plan
        self.executor = executor
        self.state = state
        self.clock = clock
        self.indicators = indicators
        self.changes = Changes(plan, executor)
        self.watches_inputs = bool(self.changes.inputs)
        """Whether a change of a discrete input is an event."""
        self.next_time = inf
        """Time in s of the next event that an FMU has named."""
        self.ends_the_run = False
        """Whether an FMU has asked for it at an event."""
        self.late: dict[str, Late] = {}
        """Events that were found when their indicators were well below 0, by name."""
        self._ways = ways
        self._names = [instance.name for instance in plan.instances]
        self._accumulating = EventHistory()
        self._events: dict[
            tuple[frozenset[int], frozenset[int], bool, int],
            tuple[tuple[int, ...], Program, frozenset[int]],
        ] = {}

    def prepare(self) -> None:
        """Write and check the program of each event that may be fired alone, before anything is simulated."""
        if self.clock is not None and self.clock.fires:
            for e in range(len(self.plan.events)):
                self._event(NONE, frozenset({e}), False)

    def begin(self) -> None:
        """Look at all that belongs to the start."""
        self.changes.note()
        self._ask_for_next_time()
        if self.clock is not None:
            self.indicators.check_finite(self.state.time.seconds)
            self._check_agreement(range(len(self.plan.events)))

    def names(self, instances: Iterable[int]) -> str:
        """Names of instances, for messages."""
        return " and ".join(self._names[i] for i in instances) or "an FMU"

    def _ask_for_next_time(self) -> None:
        self.next_time = float(self.executor.next_events.min())
        if isnan(self.next_time):
            names = self.names(np.flatnonzero(np.isnan(self.executor.next_events)).tolist())
            raise SimulationError(
                f"UpdateDiscreteStates of {names} says that the time of its next event is NaN, at "
                f"t = {self.state.time.seconds:.12g} s. Expected a time in s, or that there is none. Ask the FMU's vendor."
            )

    def happen(self, due: frozenset[int], asked: Sequence[int]) -> bool:
        """Let the events of the present instant happen; whether there was any.

        Parameters
        ----------
        due
            Events that the event clock has decided to fire now.
        asked
            Instances that want an event.
        """
        s, clock = self.state, self.clock
        found = NONE
        if clock is not None:
            fired_now = s.fired | due if due else s.fired
            found = clock.detect(self.indicators, fired_now)
            # what is not a number is not above 0, so that it looks like an event
            if found or asked or not clock.fires:
                self.indicators.check_finite(s.time.seconds)
        is_due = self.next_time <= s.time.seconds
        if not (found or due or asked or is_due or self.watches_inputs):
            return False
        asking = {*asked, *self._due(), *self.changes.inputs_changed()}
        fired = set(due)
        how = dict.fromkeys(fired, "predicted")
        if asking and self.plan.events:
            stopped = self.indicators.stopped_at(AT_EVENT, frozenset(asked)) - s.fired
            how |= {e: f"early return of {self.names(asked)}" for e in stopped}
            fired |= stopped
            self._refuse_unknown(asked, stopped)
        if found:
            how = dict.fromkeys(found, "detected") | how
            self._note_late(found)
            fired |= found
        if not asking and not fired:
            return False
        whom, program, late = self._event(frozenset(asking), frozenset(fired), bool(asked))
        self.executor.next_events[list(whom)] = inf
        answer = self.executor.run(program, s.time.seconds, s.time.seconds)
        if answer.stopped is not None:
            raise self._endless(whom)
        self.ends_the_run = answer.terminate
        s.fired = frozenset(fired)
        s.previous = 0.0
        s.outdated |= late
        self.changes.note()
        self._ask_for_next_time()
        self.indicators.renew()
        self._note(fired, how, asking, asked)
        modes = [i.event_mode for i in self.plan.instances]
        self._check_agreement(
            e for e in fired if all(modes[i] for i in self.plan.events[e].instances)
        )
        return True

    def _event(
        self, asking: frozenset[int], fired: frozenset[int], early: bool
    ) -> tuple[tuple[int, ...], Program, frozenset[int]]:
        """Whom an event concerns, its program, and whose outputs are outdated by it; found out once for each case."""
        way = self.state.way
        key = asking, fired, early, way
        if key not in self._events:
            events = [self.plan.events[e] for e in sorted(fired)]
            first = asking.union(*(event.instances for event in events))
            modes = [i.event_mode for i in self.plan.instances]
            whom = concerned(first, self.plan.trigger_plans, self.plan.links, modes)
            triggers = tuple(
                m.trigger for event in events for m in event.members if m.trigger is not None
            )
            program = self._ways[way].event(whom, triggers, early)
            # who is without Event Mode and was not triggered has only been asked
            changed = {i for i in whom if modes[i]}
            changed |= {self.plan.triggers[k].instance for k in triggers}
            self._events[key] = whom, program, outdated(self.plan, changed)
        return self._events[key]

    def _note_late(self, found: frozenset[int]) -> None:
        s = self.state
        for e in found:
            largest = self.indicators.largest(e)
            if largest < -LATE:
                name = self.plan.events[e].name
                before = self.late.get(name, Late(0, s.time.seconds, largest))
                self.late[name] = before._replace(times=before.times + 1)
                if before.times + 1 == MOST_LATE:
                    raise SimulationError(
                        f"The event '{name}' was found late {MOST_LATE} times, with all its indicators well below 0: first "
                        f"at t = {before.time:.12g} s ({before.indicator:.3g}), now at t = {s.time.seconds:.12g} s "
                        f"({largest:.3g}). It happens more often than steps can follow; perhaps its events accumulate. "
                        "Take smaller steps, or the event clock EarlyReturn, which tells the time at which they do."
                    )

    def _due(self) -> list[int]:
        """Instances that have named the present time for an event."""
        due: list[int] = np.flatnonzero(
            self.executor.next_events <= self.state.time.seconds
        ).tolist()
        return due

    def _note(
        self, fired: set[int], how: dict[int, str], asking: set[int], asked: Sequence[int]
    ) -> None:
        s = self.state
        time = s.time.seconds
        members = {m.instance for e in fired for m in self.plan.events[e].members}
        for e in sorted(fired):
            event = self.plan.events[e]
            who = tuple(self._names[i] for i in sorted(event.instances))
            s.event_log.add(time, event.name, event.scope.value, who, how[e])
            self._zeno(event.name, time)
            self._check_left(e)
        for i in sorted(asking - members):
            kind = "state event" if i in asked else "time event or change of an input"
            s.event_log.add(time, f"event of {self._names[i]}", "private", (self._names[i],), kind)
            self._zeno(i, time)
        if self._accumulating.too_many_at(time):
            raise self._endless(sorted(asking | members))

    def _zeno(self, kind: object, time: float) -> None:
        limit = self._accumulating.add(kind, time)
        if limit is not None:
            name = kind if isinstance(kind, str) else f"events of {self._names[kind]}"  # type: ignore[call-overload]
            raise ZenoError(
                f"zeno: {name}: events accumulate at t = {limit:.12g} s; the last one was at t = {time:.12g} s, and the "
                "gaps between them shrink like those of a geometric series. The model needs a state of rest, such as a "
                "smallest rebound speed.",
                time=time,
                limit=limit,
            )

    def _check_agreement(self, events: Iterable[int]) -> None:
        """Raise if members disagree on shared events; where inputs are synchronous: at the start, and in Event Mode."""
        for e in events:
            self.indicators.check_members_agree(e, self.state.time.seconds)

    def _check_left(self, e: int) -> None:
        """Raise if the indicators of an event are all still on after it has happened."""
        event = self.plan.events[e]
        if not self.indicators.still_on(e):
            return
        names = ", ".join(
            f"{self._names[m.instance]}.{i.name}"
            for m in event.members
            for i in m.declaration.indicators
        )
        raise SimulationError(
            f"The event '{event.name}' is still on after it has happened at t = {self.state.time.seconds:.12g} s: all its "
            f"indicators ({names}) are at or below 0. After the reset at least one must be positive; check the FMU's "
            "reset, and that the trigger reaches it."
        )

    def _refuse_unknown(self, asked: Sequence[int], found: frozenset[int]) -> None:
        """Raise if an FMU without Event Mode has stopped at no event that is known."""
        for i in asked:
            known = any(i in self.plan.events[e].instances for e in found)
            if not known and not self.plan.instances[i].event_mode:
                raise SimulationError(
                    f"'{self._names[i]}' has discarded a step at t = {self.state.time.seconds:.12g} s, but none of its "
                    "event indicators is at or below 0 there, so it is not known which event it is."
                )

    def _endless(self, instances: Sequence[int]) -> SimulationError:
        """The error for events that do not end at one time."""
        names = ", ".join(f"'{self._names[i]}'" for i in instances)
        return SimulationError(
            f"Events at t = {self.state.time.seconds:.12g} s do not come to an end: {names} want another one again and "
            f"again (limit: {MOST_AT_ONE_TIME} events, 100 updates in each). Look for a discrete loop without delay."
        )


def outdated(plan: Plan, changed: Collection[int]) -> frozenset[int]:
    """Instances without Event Mode that are not themselves changed by an event, but have outputs that depend directly on
    the outputs of who is, and that somebody uses: FMI lets them be read only after a step."""
    return frozenset(
        link.target
        for link in plan.links
        if link.source in changed
        and link.target not in changed
        and not plan.instances[link.target].event_mode
        and link.input.is_continuous
        and any(
            link.input.name in plan.instances[link.target].model.dependencies.get(output, ())
            for output in _used_outputs(plan, link.target)
        )
    )


def _used_outputs(plan: Plan, i: int) -> set[str]:
    """Names of the outputs of an instance that feed others or indicate events."""
    fed = {k.output.name for k in plan.links if k.source == i}
    slopes = {v.name for v in plan.instances[i].model.variables if v.derivative_of in fed}
    indicators = {
        k.name
        for event in plan.events
        for m in event.members
        if m.instance == i
        for k in m.declaration.indicators
    }
    return fed | slopes | indicators


class Changes:
    """Discrete values whose change is an event for who has Event Mode, or is located."""

    def __init__(self, plan: Plan, executor: Executor) -> None:
        self._store = executor.store
        self.inputs = [
            (route.source_type, route.source, i)
            for (i, group), routes in plan.routes.items()
            if group is Group.DISCRETE and plan.instances[i].event_mode
            for route in routes
        ]
        self._outputs = [
            (route.source_type, route.source, plan.instances[route.link.source].name)
            for (_, group), routes in plan.routes.items()
            if group is Group.DISCRETE
            for route in routes
        ]
        self._before: list[object] = []
        self._outputs_before: list[object] = []
        self.who: list[str] = []
        """Instances of which a discrete output has changed."""

    def note(self) -> None:
        """The values as they are now are known to everyone."""
        values = self._store.values
        self._before = [values[k][s].tolist() for k, s, _ in self.inputs]
        self._outputs_before = [values[k][s].tolist() for k, s, _ in self._outputs]

    def inputs_changed(self) -> set[int]:
        """Instances with Event Mode that have a new discrete input."""
        if not self.inputs:
            return set()
        values = self._store.values
        return {
            i
            for (k, s, i), before in zip(self.inputs, self._before, strict=True)
            if values[k][s].tolist() != before
        }

    def outputs_changed(self) -> bool:
        """Whether a connected discrete output has changed since the last note."""
        values = self._store.values
        self.who = [
            name
            for (k, s, name), before in zip(self._outputs, self._outputs_before, strict=True)
            if values[k][s].tolist() != before
        ]
        return bool(self.who)
