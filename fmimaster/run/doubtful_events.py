"""Events that FMUs execute themselves, at a time that may be wrong: no event clock fires them.

Inputs inside a step are those from its start, and each member of a shared event executes it alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.events import counter_of
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.program.store import OutputCopy
from fmimaster.run.log import Lateness
from fmimaster.run.loop import Loop
from fmimaster.system.declarations import Scope
from fmimaster.system.model import DataType

NOBODY: frozenset[int] = frozenset()

UNFORESEEN = 0.25
"""Of a usual step: an event that an FMU executes inside a longer one was not foreseen."""

MOVED = 1e-6
"""An input has moved if its source has changed by more than this part of its largest value."""


class Doubts:
    """Notes events that FMUs may have executed at a wrong time, or that are not shared, because no clock fires them.

    An event inside a step has the inputs from its start. That is right if inputs do not move, and good enough if the step
    is short. Each member of a shared event executes it alone.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._sources = {
            (s.event, s.instance): _sources(loop.plan, s) for s in loop.indicators.sets
        }
        events = loop.plan.events
        self._unseen = [
            (s.event, s.instance)
            for s in loop.indicators.sets
            if self._sources[s.event, s.instance]
            and events[s.event].scope is not Scope.SHARED
            and slot_of_counter(loop.plan, s) is None
            and not loop.plan.instances[s.instance].may_return_early
        ]
        """Events of one FMU that depend on inputs, and that cannot be seen for certain."""

    def look(self, event: int, instances: Sequence[int]) -> None:
        """Look at an event that instances have executed inside the step that ends at the present time."""
        loop, now = self._loop, self._loop.state.time.seconds
        planned = loop.plan.events[event]
        for i in instances:
            if self._is_doubtful(event, i):
                self._note(event, i, Lateness.UNFORESEEN)
        if planned.scope is Scope.SHARED:
            since, others = loop.state.alone.pop(event, (now, NOBODY))
            if not others.isdisjoint(instances):
                self._note_alone(event, since, others)
                since, others = now, NOBODY
            members = others.union(instances)
            if members != frozenset(planned.instances):
                loop.state.alone[event] = since, members

    def look_at_steps(self) -> None:
        """Look at the step that ends at the present time, for events that nobody has seen."""
        now, alone = self._loop.state.time.seconds, self._loop.state.alone
        for event, (since, instances) in list(alone.items()) if alone else ():
            if now - since > self._loop.indicators.step:
                self._note_alone(event, since, instances)
                del alone[event]
        for place in [p for p in self._unseen if self._is_doubtful(*p)]:
            self._unseen.remove(place)
            name = _name_of(self._loop, *place), Lateness.NOT_SEEN.name
            if name not in self._loop.state.event_log.delayed:  # before the checkpoint
                self._note(*place, Lateness.NOT_SEEN)

    @property
    def _start(self) -> OutputCopy:
        """The outputs at the start of the last step, and when they were read."""
        return self._loop.executor.store.history[self._loop.indicators.distance]

    def _is_doubtful(self, event: int, instance: int) -> bool:
        """Whether the last step was long, and an input has moved in it on which the indicators of an event depend."""
        before, read = self._start
        if not self._length(read, instance) > UNFORESEEN * self._loop.indicators.step:  # NaN, too
            return False
        store = self._loop.executor.store
        now, then = store.outputs[DataType.FLOAT64], before[DataType.FLOAT64]
        return any(
            abs(now.item(k) - then.item(k)) > MOVED * store.largest.item(k)
            for k in self._sources[event, instance]
        )

    def _length(self, read: NDArray[np.float64], instance: int) -> float:
        return self._loop.state.time.seconds - read.item(instance)

    def _note(self, event: int, instance: int, why: Lateness) -> None:
        loop, (_, read) = self._loop, self._start
        name, length = _name_of(loop, event, instance), self._length(read, instance)
        loop.state.event_log.note_delay(name, why, loop.state.time.seconds, length)

    def _note_alone(self, event: int, time: float, instances: frozenset[int]) -> None:
        log = self._loop.state.event_log
        for i in sorted(instances):
            log.note_delay(_name_of(self._loop, event, i), Lateness.ALONE, time, 0.0)


def _name_of(loop: Loop, event: int, instance: int) -> str:
    members = loop.plan.events[event].members
    declared = next(m.declaration for m in members if m.instance == instance)
    return f"{loop.names[instance]}.{declared.name}"


def _sources(plan: Plan, s: IndicatorSet) -> tuple[int, ...]:
    """Slots of the outputs that feed inputs on which the indicators of a set depend directly."""
    member = next(m for m in plan.events[s.event].members if m.instance == s.instance)
    known = plan.instances[s.instance].model.dependencies
    needed = {name for z in member.declaration.indicators for name in known.get(z.name, ())}
    slots = set[int]()
    for link in plan.links.into_instance.get(s.instance, ()):
        if link.input.name in needed and link.output.type is DataType.FLOAT64:
            _, slot = plan.layout.slots[link.source, Group.OUTPUTS, link.output.name]
            slots.update(range(slot.start, slot.stop))
    return tuple(sorted(slots))


def slot_of_counter(plan: Plan, s: IndicatorSet) -> tuple[DataType, int] | None:
    """Type and slot of the output that counts an event; None if there is none."""
    member = next(m for m in plan.events[s.event].members if m.instance == s.instance)
    name = counter_of(plan.instances[s.instance].model, member.declaration)
    if name is None:
        return None
    kind, slot = plan.layout.slots[s.instance, Group.OUTPUTS, name]
    return kind, slot.start
