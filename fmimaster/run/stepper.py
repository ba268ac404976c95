"""The one loop over time: it decides, programs do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, Protocol

import numpy as np

from fmimaster.control.event_clock import NONE, EventClock, Indicators
from fmimaster.control.instant import Goal, Instant
from fmimaster.control.step_size import Grid, Ramped
from fmimaster.control.zeno import MOST_AT_ONE_TIME, EventHistory
from fmimaster.errors import CallError, ConvergenceError, SimulationError, ZenoError
from fmimaster.plan.events import concerned
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions import Program
from fmimaster.program.outcome import Outcome, Reason, Stop
from fmimaster.run.executor import Executor
from fmimaster.run.happened import EventLog, StepLog
from fmimaster.run.timeline import Timeline

NO_TIMES = np.empty(0)

OFTEN = 16
"""After so many single steps the loop lets others have their turn: far fewer than a block of rows has room for."""

SLIVER = 1e-9
"""A step that would leave less than this part of itself until the stop time goes to the stop time."""

LATE = 1e-6
"""An event is late if it is detected when all its indicators are farther below 0."""

REFRESH = 1e-5
"""Length of the step that renews outputs after an event elsewhere, as a part of the step that was due."""

AT_EVENT = 1e-9
"""Indicators at or below it are those of the event at which an FMU has stopped."""


class EventProgram(Protocol):
    """Instances, triggers, and whether an early return is the cause → the program of their event."""

    def __call__(
        self, instances: tuple[int, ...], fired: tuple[int, ...], early: bool
    ) -> Program: ...


class StepWay(Protocol):
    """One way to step."""

    @property
    def attempt(self) -> Program: ...
    @property
    def tune(self) -> Program: ...
    @property
    def event(self) -> EventProgram: ...
    @property
    def first(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class StepPrograms:
    """The programs that the loop runs."""

    ways: Sequence[StepWay]
    commit: Program
    restart: Program | None = None
    """The attempt at a step without history, if that is another one."""
    rollback: Program | None = None
    renew: Program | None = None
    """Forgets the history but for the present point."""
    choose: Callable[[Indicators, float, int], int] | None = None
    """(indicators, length of a whole step in s, present way) → the way that the next step takes."""


class Late(NamedTuple):
    """How often an event was found late, and the first time."""

    times: int
    time: float
    """[s]"""
    indicator: float
    """The largest of its indicators then."""

    def text(self, name: str) -> str:
        """A warning."""
        return (
            f"the event '{name}' was found late {self.times} times, first at t = {self.time:.12g} s, when the largest of "
            f"its indicators was {self.indicator:.3g} already: take smaller steps, above all after events"
        )


@dataclass
class RunState:
    """All that changes in Python during a run."""

    time: Instant
    timeline: Timeline
    attempts: int = 0
    steps: int = 0
    way: int = 0
    """In which of the ways it is stepped."""
    previous: float = 0.0
    """Length of the last step in s; 0 at the start and after an event."""
    fired: frozenset[int] = frozenset()
    """Events that have happened at the present time."""
    outdated: frozenset[int] = frozenset()
    """Instances whose outputs depend on inputs that have jumped, and that cannot tell before their next step."""
    bracket: tuple[float, float] | None = None
    """While a change is located: step lengths in s without it and with it."""
    step_log: StepLog = field(default_factory=StepLog)
    event_log: EventLog = field(default_factory=EventLog)
    late: dict[str, Late] = field(default_factory=dict)
    """Events that were found when their indicators were well below 0, by name."""


class Stepper:
    """Brings all instances of a plan from instant to instant.

    Each end of a step is the earliest instant that anyone asks for, with a reason. A quiet stretch of the grid is left
    to the executor, which comes back with an attempt that is not yet committed. Events happen after a step was accepted,
    so that nothing of an event is ever undone.
    """

    def __init__(
        self,
        plan: Plan,
        programs: StepPrograms,
        executor: Executor,
        rule: Grid | Ramped,
        state: RunState,
        clock: EventClock | None = None,
        history: int = 0,
    ) -> None:
        self.plan = plan
        self.programs = programs
        self.executor = executor
        self.rule = rule
        self.state = state
        self.clock = clock
        self.indicators = Indicators(plan, executor.store, history)
        self.accumulating = EventHistory()
        self._watched = _Changes(plan, executor)
        self._names = [instance.name for instance in plan.instances]
        self._has_event_mode = any(instance.event_mode for instance in plan.instances)
        self.indicators.first = programs.ways[0].first
        self._is_fixed = isinstance(rule, Grid) and clock is None and not self._has_event_mode
        self._may_undo = clock is not None and clock.locates > 0
        self._may_repeat = (
            isinstance(rule, Grid)
            and clock is None
            and programs.choose is None
            and not self._watched
        )
        """Whether stretches of the grid can be left to the executor: nobody wants to be asked in between."""
        self._next_event = inf
        self._events: dict[
            tuple[frozenset[int], frozenset[int], bool, int],
            tuple[tuple[int, ...], Program, frozenset[int]],
        ] = {}

    def prepare(self) -> None:
        """Write and check the program of each event that may be fired alone, before anything is simulated."""
        if self.clock is not None and self.clock.fires:
            for e in range(len(self.plan.events)):
                self._event(NONE, frozenset({e}), False)

    def advance(self, until: Instant) -> Iterator[None]:
        """Step until an instant is reached or an FMU ends the run; yields after each stretch of steps, after each
        event, and after some single steps.

        Raises
        ------
        SimulationError
            If a step was discarded or did not converge: nothing can be done about it with a fixed step; or if events
            accumulate.
        """
        s = self.state
        self._watched.note()
        self._ask_for_next_event()
        if self.clock is not None:  # all inputs and outputs belong to the start
            self.indicators.check_finite(s.time.seconds)
            self._check_agreement(range(len(self.plan.events)))
        locates = self.clock is not None and self.clock.locates > 0
        unseen = 0
        while s.time < until:
            goal = self.goal(s.time, until)
            outcome: Outcome | None = None
            if goal.end.seconds > s.time.seconds:  # FMI: a step has a positive length
                goal, outcome = self.attempt(goal, until)
                if outcome is None:
                    self._accepted(goal.end, goal.reason)
                elif outcome.stopped is not None:
                    raise self.failure(outcome.stopped, goal)
                elif locates and self._goes_back(goal, outcome):
                    continue
                else:
                    self._accept(goal, outcome)
            else:
                s.time = max(s.time, goal.end)
            happened = outcome is not None
            if not self._is_fixed and (outcome is None or not outcome.terminate):
                happened |= self._happen(goal, () if outcome is None else outcome.events)
            unseen += 1
            if happened or unseen == OFTEN or s.time >= until:
                unseen = 0
                yield
            if outcome is not None and outcome.terminate:
                return

    def _accept(self, goal: Goal, outcome: Outcome) -> None:
        """Commit an attempt in which something has happened, up to where all stand."""
        end = goal.end if outcome.end == goal.end.seconds else Instant(outcome.end)
        # if an FMU has ended the run within the step, the others are ahead of it: no row belongs to all
        together = not outcome.terminate or end == goal.end or len(self.plan.instances) == 1
        if together and end.seconds > self.state.time.seconds:
            self.executor.run(self.programs.commit, end.seconds, end.seconds)
            reason = goal.reason
            if end != goal.end:
                reason = f"early return of {self._askers(outcome.events)}"
            self._accepted(end, reason)

    def _accepted(self, end: Instant, reason: str) -> None:
        """Take up that all stand at the end of a step, which is committed."""
        s = self.state
        self.indicators.renew()
        s.step_log.add(s.time.seconds, end.seconds, reason)
        s.previous = end.seconds - s.time.seconds
        s.time, s.bracket = end, None
        s.steps += 1
        if not s.outdated:
            s.fired = NONE
            return
        # what was outdated before this step must not serve a polynomial; the step after the event is still to come
        if self.programs.renew is not None:
            self.executor.run(self.programs.renew, end.seconds, end.seconds)
        s.previous, s.outdated = 0.0, NONE

    def _askers(self, events: Sequence[int]) -> str:
        return " and ".join(self._names[i] for i in events) or "an FMU"

    def goal(self, now: Instant, until: Instant) -> Goal:
        """The earliest instant after now that anyone asks for, with the reason."""
        s = self.state
        goal = self.rule.propose(now, s.previous)
        if s.timeline.points and (point := s.timeline.after(now)) <= goal.end:
            goal = Goal(point, "imposed point")
        if self._next_event <= goal.end.seconds:
            name = self._names[int(self.executor.next_events.argmin())]
            goal = Goal(Instant(max(self._next_event, now.seconds)), f"time event of {name}")
        if s.outdated:
            names = " and ".join(self._names[i] for i in sorted(s.outdated))
            length = REFRESH * (goal.end.seconds - now.seconds)
            goal = Goal(Instant(now.seconds + length), f"outputs of {names} after an event")
        if until.seconds - goal.end.seconds <= SLIVER * (goal.end.seconds - now.seconds):
            goal = Goal(until, "stop time")
        if self.clock is None:
            return goal
        if s.bracket is not None:
            low, high = s.bracket
            length = high if high - low <= self.clock.locates else (low + high) / 2
            return Goal(Instant(now.seconds + length), "change of discrete outputs located")
        return self.clock.clip(goal, now, self.indicators, s.fired)

    def attempt(self, goal: Goal, until: Instant) -> tuple[Goal, Outcome | None]:
        """Try one step, or as many as the quiet grid allows; returns the goal of the last one and its outcome, which is not
        yet committed; None for the outcome if it is."""
        s = self.state
        if self.programs.choose is not None:
            self._choose_way(self.programs.choose)
        program = self.programs.ways[s.way].attempt
        if s.previous == 0.0 and self.programs.restart is not None:
            program = self.programs.restart
        begin, between = s.time.seconds, NO_TIMES
        if self._may_repeat and goal.reason == "grid" and program is not self.programs.restart:
            assert isinstance(self.rule, Grid)
            last = min(until, s.timeline.after(s.time), Instant(self._next_event))
            between = self.rule.seconds_between(goal.end, last, self.executor.rows.capacity)
        if not len(between):
            s.attempts += 1
            if self._may_undo:
                return goal, self.executor.run(program, begin, goal.end.seconds)
            return goal, self.executor.step(program, self.programs.commit, begin, goal.end.seconds)
        times = np.concatenate([[begin, goal.end.seconds], between])
        done, outcome = self.executor.repeat(program, self.programs.commit, times)
        s.steps += done
        s.attempts += done + 1
        if done:
            assert isinstance(self.rule, Grid)
            first = goal.end
            s.time = first if done == 1 else self.rule.point_after(first, done - 2)
            goal = Goal(self.rule.point_after(first, done - 1), self.rule.reason)
            s.step_log.add(begin, s.time.seconds, self.rule.reason, done)
            s.previous = s.time.seconds - float(times[done - 1])
        return goal, outcome

    def _choose_way(self, choose: Callable[[Indicators, float, int], int]) -> None:
        s = self.state
        way = choose(self.indicators, self.rule.step / self.rule.base.resolution, s.way)
        if way != s.way:
            s.way = way
            self.executor.run(self.programs.ways[way].tune, s.time.seconds, s.time.seconds)
            self.indicators.renew()
        self.indicators.first = self.programs.ways[way].first

    def _ask_for_next_event(self) -> None:
        """When the next event is that an FMU has named."""
        self._next_event = float(self.executor.next_events.min())

    # Events

    def _happen(self, goal: Goal, asked: Sequence[int]) -> bool:
        """Let the events of the present instant happen; whether there was any. ``asked`` are FMUs that want one."""
        s, clock = self.state, self.clock
        found = NONE
        if clock is not None:
            fired_now = s.fired | goal.fire if goal.fire else s.fired
            found = clock.detect(self.indicators, fired_now)
            # what is not a number is not above 0, so that it looks like an event
            if found or asked or not clock.fires:
                self.indicators.check_finite(s.time.seconds)
        is_due = self._next_event <= s.time.seconds
        if not (found or goal.fire or asked or is_due or self._watched):
            return False
        asking = {*asked, *self._due(), *self._watched.changed()}
        fired = set(goal.fire)
        how = dict.fromkeys(fired, "predicted")
        if asking and self.plan.events:
            stopped = self.indicators.at(AT_EVENT, frozenset(asked)) - s.fired
            how |= {e: f"early return of {self._askers(asked)}" for e in stopped}
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
            raise self.endless(whom)
        s.fired |= frozenset(fired)
        s.previous = 0.0
        s.outdated |= late
        self._watched.note()
        self._ask_for_next_event()
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
            program = self.programs.ways[way].event(whom, triggers, early)
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
                before = s.late.get(name, Late(0, s.time.seconds, largest))
                s.late[name] = before._replace(times=before.times + 1)

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
        if self.accumulating.too_many_at(time):
            raise self.endless(sorted(asking | members))

    def _zeno(self, kind: object, time: float) -> None:
        limit = self.accumulating.add(kind, time)
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

    def endless(self, instances: Sequence[int]) -> SimulationError:
        """The error for events that do not end at one time."""
        names = ", ".join(f"'{self._names[i]}'" for i in instances)
        return SimulationError(
            f"Events at t = {self.state.time.seconds:.12g} s do not come to an end: {names} want another one again and "
            f"again (limit: {MOST_AT_ONE_TIME} events, 100 updates in each). Look for a discrete loop without delay."
        )

    # Locating by going back

    def _goes_back(self, goal: Goal, outcome: Outcome) -> bool:
        """Whether a change of discrete outputs in the attempt is to be located more closely; if so it is undone."""
        s = self.state
        assert self.clock is not None
        assert self.programs.rollback is not None
        length = goal.end.seconds - s.time.seconds
        changed = self._watched.outputs_changed()
        if s.bracket is None and not changed:
            return False
        low, high = s.bracket or (0.0, length)
        if s.bracket is not None:
            low, high = (low, length) if changed else (length, high)
        if changed and high - low <= self.clock.locates:
            s.event_log.add(
                goal.end.seconds,
                "change of discrete outputs",
                "private",
                tuple(self._watched.who),
                "located by going back",
            )
            self._watched.note()
            s.previous = 0.0
            return False
        self.executor.run(self.programs.rollback, s.time.seconds, s.time.seconds)
        s.bracket = low, high
        return True

    def failure(self, stop: Stop, goal: Goal) -> SimulationError:
        """The error for an attempt that stopped, in words."""
        begin, size = self.state.time.seconds, goal.end.seconds - self.state.time.seconds
        if stop.reason is Reason.NOT_CONVERGED:
            return ConvergenceError(
                f"An iteration did not come to rest in the step from t = {begin:.12g} s (size {size:.6g} s): outputs "
                f"still change by {stop.change:.3g} (relative). Use a smaller step size.",
                time=begin,
            )
        name = self.plan.instances[stop.instance].name
        if stop.reason is Reason.EARLY:
            return CallError(
                f"DoStep of '{name}' from t = {begin:.12g} s (size {size:.6g} s) returned early at t = {stop.time:.17g} s, "
                "which is not inside the step, or was not allowed. Ask the FMU's vendor, or run it without Event Mode "
                "(event_mode=False, --no-event-mode).",
                instance=name,
                function="DoStep",
                status="early return",
                time=begin,
            )
        said = "".join(f"\n  {name}: {message}" for message in stop.messages[-5:])
        return CallError(
            f"DoStep of '{name}' was discarded at t = {begin:.12g} s (step {size:.6g} s); it came to "
            f"t = {stop.time:.12g} s. A fixed step cannot be made smaller during the run. Use a smaller step size."
            + (f" The FMU says:{said}" if said else ""),
            instance=name,
            function="DoStep",
            status="Discard",
            messages=stop.messages,
            time=begin,
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


class _Changes:
    """Discrete values whose change is an event for who has Event Mode, or is located."""

    def __init__(self, plan: Plan, executor: Executor) -> None:
        self._store = executor.store
        self._inputs = [
            (wire.source_type, wire.source, i)
            for (i, group), wires in plan.wires.items()
            if group is Group.DISCRETE and plan.instances[i].event_mode
            for wire in wires
        ]
        self._outputs = [
            (wire.source_type, wire.source, plan.instances[wire.link.source].name)
            for (_, group), wires in plan.wires.items()
            if group is Group.DISCRETE
            for wire in wires
        ]
        self._before: list[object] = []
        self._outputs_before: list[object] = []
        self.who: list[str] = []
        """Instances of which a discrete output has changed."""

    def __bool__(self) -> bool:
        return bool(self._inputs)

    def note(self) -> None:
        """The values as they are now are known to everyone."""
        values = self._store.values
        self._before = [values[k][s].tolist() for k, s, _ in self._inputs]
        self._outputs_before = [values[k][s].tolist() for k, s, _ in self._outputs]

    def changed(self) -> set[int]:
        """Instances with Event Mode that have a new discrete input."""
        if not self._inputs:
            return set()
        values = self._store.values
        return {
            i
            for (k, s, i), before in zip(self._inputs, self._before, strict=True)
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
