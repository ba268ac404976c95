"""What has changed after a step: outputs since the pass before, discrete values, and events that FMUs have executed.

Changes of discrete values are events for instances with Event Mode, or are located by a step-size rule. Events that FMUs
execute inside a step are observed at the next communication point: an output that counts them shows each; without such an
output, event indicators show them (:mod:`fmimaster.events.indicator_courses`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.events.event_clock import EventClock
from fmimaster.inputs.polynomial import MOST_POINTS
from fmimaster.plan.events import executes_itself
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.bond_powers import exclude_last_step
from fmimaster.program.hook import Twin
from fmimaster.program.indicator_set import IndicatorSet, slot_of_counter
from fmimaster.program.indicators import STOPPED
from fmimaster.program.store import ValueStore
from fmimaster.record.causes import Cause, Event, Kind
from fmimaster.run.loop import Loop, RunState
from fmimaster.system.declarations import Scope
from fmimaster.system.model import DataType

if TYPE_CHECKING:
    from fmimaster.events.indicator_courses import Course


def largest_change(
    before: dict[DataType, NDArray[Any]],
    store: ValueStore,
    nominals: dict[DataType, NDArray[np.float64]],
) -> float:
    """Largest change of an output, relative to the larger of nominal value and magnitude; inf if another one differs."""
    largest = 0.0
    for kind, now in store.outputs.items():
        if kind.is_float:
            scale = np.maximum(nominals[kind], np.abs(now))
            with np.errstate(invalid="ignore"):  # an output that became infinite has not converged
                change = np.abs(now - before[kind]) / scale
            largest = max(largest, np.inf if np.isnan(change).any() else float(np.max(change)))
        elif not np.array_equal(now, before[kind]):
            return np.inf
    return largest


class Changes:
    """Compares discrete variables with what they were; the old values are in the state of the run."""

    def __init__(self, plan: Plan, store: ValueStore, state: RunState) -> None:
        self._store = store
        self._state = state
        self.inputs = [
            (route.source_type, route.source, i)
            for (i, group), routes in plan.routes.items()
            if group is Group.DISCRETE and plan.instances[i].event_mode
            for route in routes
        ]
        self._outputs = [
            (route.source_type, route.source, plan.instances[route.link.source].name)
            for route in plan.discrete_routes
        ]
        self._lent: dict[DataType, NDArray[Any]] = {}
        """The old values of the inputs, type by type, as twins read them."""
        self._lent_from: list[list[Any]] | None = None

    def note(self) -> None:
        """Use the present values as reference for changes."""
        values = self._store.values
        self._state.discrete_inputs = [values[k][s].tolist() for k, s, _ in self.inputs]
        self.note_outputs()

    def note_outputs(self) -> None:
        """The same for outputs only: a located change is still an event of the instances with Event Mode that it feeds."""
        values = self._store.values
        self._state.discrete_outputs = [values[k][s].tolist() for k, s, _ in self._outputs]

    @property
    def watched(self) -> tuple[str, ...]:
        """Components with connected discrete outputs."""
        return tuple(dict.fromkeys(name for _, _, name in self._outputs))

    def outputs_of(self, component: str) -> tuple[list[list[Any]], list[list[Any]]]:
        """Connected discrete outputs of a component: the values that were noted, and those of now."""
        values, places = self._store.values, enumerate(self._outputs)
        mine = [(n, kind, s) for n, (kind, s, name) in places if name == component]
        noted = [self._state.discrete_outputs[n] for n, _, _ in mine]
        return noted, [values[kind][s].tolist() for _, kind, s in mine]

    def inputs_changed(self) -> set[int]:
        """Instances with Event Mode that have a new discrete input."""
        if not self.inputs:
            return set()
        values = self._store.values
        return {
            i
            for (k, s, i), before in zip(self.inputs, self._state.discrete_inputs, strict=True)
            if values[k][s].tolist() != before
        }

    def outputs_changed(self) -> tuple[str, ...]:
        """Components with a connected discrete output that has changed; one for each such connection."""
        values = self._store.values
        return tuple(
            name
            for (k, s, name), before in zip(
                self._outputs, self._state.discrete_outputs, strict=True
            )
            if values[k][s].tolist() != before
        )

    def twins(self) -> Sequence[Twin]:
        """The twins in C that detect whether an input has changed since :meth:`lend`: one for each type."""
        slots: dict[DataType, list[int]] = {}
        for kind, s, _ in self.inputs:
            slots.setdefault(kind, []).extend(range(s.start, s.stop))
        values = self._store.values
        self._lent = {k: np.zeros(len(found), values[k].dtype) for k, found in slots.items()}
        return [
            Twin(
                "changes",
                {
                    "n": len(found),
                    "size": kind.dtype.itemsize,
                    "is_float": kind.is_float,
                    "is_object": kind.dtype == object,
                },
                {
                    "slots": np.array(found, np.int64),
                    "values": values[kind],
                    "before": self._lent[kind],
                },
            )
            for kind, found in slots.items()
        ]

    def lend(self) -> None:
        """The twins count changes from the values from which this does."""
        if self._lent_from is self._state.discrete_inputs:
            return
        self._lent_from = self._state.discrete_inputs
        for kind, lent in self._lent.items():
            old = zip(self.inputs, self._state.discrete_inputs, strict=True)
            lent[:] = [x for (k, _, _), before in old if k is kind for x in before]


# Events that FMUs have executed ---------------------------------------------------------------------------------------

POINTS = 3
"""Accepted points that are read: the present one, the start of the step, and the one before."""

POINTS_OF_VALUES = 5
"""The same where an indicator has no derivative: a cubic takes two more."""


def points_to_observe(plan: Plan, clock: EventClock | None) -> int:
    """How many accepted points are needed to observe the events of a plan; 0 if there are none to observe."""
    own = [
        m.declaration
        for event in plan.events
        for m in event.members
        if clock is not None and executes_itself(m, clock.fires)
    ]
    if not own:
        return 0
    slopes = all(i.derivative is not None for d in own for i in d.indicators)
    return POINTS if slopes else POINTS_OF_VALUES


class Observer:
    """Finds the events that FMUs have executed inside the last step, and notes them.

    What it reads is in the value store: the outputs, and the history.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        plan, clock = loop.plan, loop.clock
        self._watched = [
            _Watched(s, slot_of_counter(plan, s))
            for s in loop.indicators.sets
            if clock is not None
            and any(
                m.instance == s.instance and executes_itself(m, clock.fires)
                for m in plan.events[s.event].members
            )
        ]
        self._forgets = bool(self._watched) and (
            loop.programs.extrapolates
            or len(loop.rule.estimators) > 0
            or (clock is not None and clock.fires)
        )
        """Whether something is extrapolated from points before the event: LookAhead alone only compares two points."""
        self._doubts = None
        if clock is not None and not clock.fires:
            from fmimaster.run.doubtful_events import Doubts  # most event clocks fire events

            self._doubts = Doubts(loop)

    def begin_anew(self) -> None:
        """As before the first step of a run."""
        if self._doubts is not None:
            self._doubts.begin_anew()

    @property
    def is_far(self) -> bool:
        """Whether the whole history is of points after the last event that was executed."""
        executed = self._loop.state.executed
        if executed == -inf:
            return True
        return not any((read <= executed).any() for _, read in self._loop.executor.store.history)

    def watch(self) -> Twin | None:
        """What the kernel looks at to tell that no event was executed, if the history is far from the last one; None if
        that cannot be told."""
        sets = [w.set for w in self._watched]
        if sets and (self._loop.programs.between or self._loop.indicators.history > MOST_POINTS):
            return None
        counters = [w.counter or (DataType.FLOAT64, -1) for w in self._watched]
        return Twin(
            "observer",
            {"n": len(sets), "near": STOPPED * self._loop.indicators.step},
            {
                "instances": np.array([s.instance for s in sets], np.int64),
                "counters": np.array([slot for _, slot in counters], np.int64),
                "types": np.array([list(DataType).index(kind) for kind, _ in counters], np.int64),
                "first": np.cumsum([0, *(len(s.pairs) for s in sets)], dtype=np.int64),
                "indicators": np.array([z for s in sets for z, _ in s.pairs], np.int64),
                "slopes": np.array([dz for s in sets for _, dz in s.pairs], np.int64),
            },
        )

    def look(self) -> bool:
        """Note the events that were executed inside the step that ends at the present time; whether there were any.

        Points before them are discarded, and the step-size rule restarts.
        """
        if not self._watched:
            return False
        # few systems have events that are executed inside of steps
        from fmimaster.events.indicator_courses import CERTAIN_JUMP, LEAST_JUMP

        seen: dict[int, dict[int, Course]] = {}
        for watched in self._watched:
            seen.setdefault(watched.set.event, {})[watched.set.instance] = self._course(watched)
        found = set[int]()
        for event, courses in seen.items():
            if any(c.was_due and c.jump >= CERTAIN_JUMP for c in courses.values()):
                jumped = [i for i, c in courses.items() if c.jump >= LEAST_JUMP]
                self._note(event, jumped)
                found.update(jumped)
                if self._doubts is not None:
                    self._doubts.look(event, jumped)
        if self._doubts is not None:
            self._doubts.look_at_steps()
        if not found:
            return False
        exclude_last_step(self._loop.plan.power_bonds, self._loop.executor.store, found)
        s, now = self._loop.state, self._loop.state.time.seconds
        s.executed = now
        if self._forgets:
            self._loop.executor.run(self._loop.programs.renew, now, now)
            s.previous = 0.0
            s.memory = self._loop.rule.restart(s.memory)
        return True

    def note_stops(self, events: Iterable[int], instances: Collection[int]) -> None:
        """Look at events at which these instances have stopped inside a step."""
        if self._doubts is None:
            return
        for event in events:
            members = self._loop.plan.events[event].instances
            self._doubts.look(event, [i for i in instances if i in members])

    def _note(self, event: int, instances: list[int]) -> None:
        loop, declared = self._loop, self._loop.plan.events[event]
        s, who = loop.state, tuple(loop.names[i] for i in sorted(instances))
        shared = declared.scope is Scope.SHARED
        cause = Cause(Kind.EXECUTED, who)
        right = loop.recorded(who)
        s.event_log.events.append(
            Event(s.time.seconds, s.index, declared.name, shared, who, cause, {}, right)
        )

    def _course(self, watched: _Watched) -> Course:
        """How a member has seen an event over the step; of its parts between points of the history, in the worst one."""
        parts = range(1 + self._loop.programs.between)
        return max(self._course_over(watched, part) for part in parts)

    def _course_over(self, watched: _Watched, part: int) -> Course:
        """How a member has seen an event over a part of the step, counted back from its end."""
        from fmimaster.events.indicator_courses import Course, course

        loop, s = self._loop, watched.set
        store, now = loop.executor.store, loop.state.time.seconds
        outputs = store.outputs
        if part:
            outputs, times = store.history[part]
            now = times.item(s.instance)
        (before, read), *older = store.history[1 + part : loop.indicators.history]
        begin = read.item(s.instance)
        if not begin < now:  # NaN: nothing is known from before
            return Course(False, 0.0)
        if watched.counter is not None:
            kind, slot = watched.counter
            has_counted = bool(outputs[kind][slot] != before[kind][slot])
            return Course(has_counted, float(has_counted))
        if begin <= loop.state.executed and loop.plan.has_inputs(s.instance):
            return Course(False, 0.0)
        end = outputs[DataType.FLOAT64].tolist() if part else loop.indicators.present()
        start = before[DataType.FLOAT64].tolist()
        earlier = [
            (values[DataType.FLOAT64].tolist(), time - begin)
            for values, at in older
            if loop.state.executed < (time := at.item(s.instance)) < begin
        ]
        near = STOPPED * loop.indicators.step
        return course(s, start, end, now - begin, earlier, near)


class _Watched(NamedTuple):
    """An event in one instance."""

    set: IndicatorSet
    counter: tuple[DataType, int] | None
    """Type and slot of the output that counts it."""
