"""Events that FMUs execute themselves, at a time that may be wrong: no event clock fires them.

Inputs inside a step are those from its start, and each member of a shared event executes it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from fmimaster.plan.layout import Group
from fmimaster.program.indicator_set import IndicatorSet, slot_of_counter
from fmimaster.program.indicators import STOPPED, Indicators
from fmimaster.run.log import Lateness
from fmimaster.system.declarations import Scope
from fmimaster.system.model import DataType

if TYPE_CHECKING:
    from fmimaster.run.loop import Loop

NOBODY: frozenset[int] = frozenset()

UNFORESEEN = 0.25
"""Of a usual step: an event that an FMU executes inside a longer one was not foreseen."""

MOVED = 1e-6
"""An input has moved if its source has changed by more than this part of its largest value, and of the largest value of an
indicator in the same unit."""


Outputs = Mapping[DataType, NDArray[Any]]
"""All outputs at a point."""


class Doubts:
    """Notes events that FMUs may have executed at a wrong time, or that are not shared, because no clock fires them.

    An event inside a step has the inputs from its start. That is right if inputs do not move, and good enough if the step
    is short. Each member of a shared event executes it alone.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._sources = {
            (s.event, s.instance): _sources(loop.indicators, s) for s in loop.indicators.sets
        }
        events = loop.plan.events
        self._never_seen = [
            (s.event, s.instance)
            for s in loop.indicators.sets
            if self._sources[s.event, s.instance]
            and events[s.event].scope is not Scope.SHARED
            and slot_of_counter(loop.plan, s) is None
            and not loop.plan.instances[s.instance].may_return_early
        ]
        """Events of one FMU that depend on inputs, and that cannot be seen for certain."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing is noted yet."""
        self._unseen = [*self._never_seen]

    def look(self, event: int, instances: Sequence[int]) -> None:
        """Look at an event that instances have executed inside the step that ends at the present time."""
        loop, now = self._loop, self._loop.state.time.seconds
        planned = loop.plan.events[event]
        for i in instances:
            if doubt := self._doubt(event, i):
                self._note(event, i, Lateness.UNFORESEEN, now, doubt)
        if planned.scope is Scope.SHARED:
            since, others = loop.state.alone.pop(event, (now, NOBODY))
            if not others.isdisjoint(instances):
                self._note_alone(event, others, since)
                since, others = now, NOBODY
            members = others.union(instances)
            # a wall, which does not move, need not show that it has executed an event
            if members != frozenset(planned.instances) and self._others_move(event, instances):
                loop.state.alone[event] = since, members

    def look_at_steps(self) -> None:
        """Look at the step that ends at the present time, for events that nobody has seen."""
        now, alone = self._loop.state.time.seconds, self._loop.state.alone
        for event, (since, instances) in list(alone.items()) if alone else ():
            if now - since > self._loop.indicators.step:
                self._note_alone(event, instances, since)
                del alone[event]
        for event, instance in list(self._unseen):
            if doubt := self._doubt(event, instance):
                self._unseen.remove((event, instance))
                name = _name_of(self._loop, event, instance), Lateness.NOT_SEEN.name
                if name not in self._loop.state.event_log.delayed:  # before the checkpoint
                    self._note(event, instance, Lateness.NOT_SEEN, now, doubt)

    def _others_move(self, event: int, instances: Iterable[int]) -> bool:
        """Whether inputs of these instances from other members have moved in the last step."""
        after = self._loop.executor.store.outputs
        return any(
            self._have_moved(event, i, before, after)
            for i in instances
            for _, before in islice(self._last_steps(i), 1)
        )

    def _doubt(self, event: int, instance: int) -> float:
        """By how many seconds an event may be late that an instance has executed in the last step; 0 if by few.

        Inputs inside the step are those from its start. An event that depends on them alone may have been due in the step
        before.
        """
        loop, now = self._loop, self._loop.state.time.seconds
        end, after, doubt = now, cast(Outputs, loop.executor.store.outputs), 0.0
        steps = 1 if loop.plan.events[event].scope is Scope.SHARED else 2
        for start, before in islice(self._last_steps(instance), steps):
            is_long = end - start > UNFORESEEN * loop.indicators.step
            if is_long and self._have_moved(event, instance, before, after):
                doubt = now - start
            end, after = start, before
        return doubt

    def _last_steps(self, instance: int) -> Iterator[tuple[float, Outputs]]:
        """The starts in s of the last steps, the newest first, with the outputs there. An FMU may stop at the start of a
        step: that is none."""
        end = self._loop.state.time.seconds
        for values, read in self._loop.indicators.older_points:
            start = read.item(instance)
            if not start < inf:  # NaN: there is no history
                return
            if end - start > STOPPED * self._loop.indicators.step:
                yield start, values
                end = start

    def _have_moved(self, event: int, instance: int, before: Outputs, after: Outputs) -> bool:
        """Whether an input of an instance has moved on which the indicators of an event depend."""
        largest = self._loop.executor.store.largest
        then, now = before[DataType.FLOAT64], after[DataType.FLOAT64]
        return any(
            abs(now.item(k) - then.item(k)) > MOVED * largest[[k, *alike]].max()
            for k, alike in self._sources.get((event, instance), ())
        )

    def _note(
        self, event: int, instance: int, why: Lateness, time: float, delay: float = 0.0
    ) -> None:
        name = _name_of(self._loop, event, instance)
        self._loop.state.event_log.note_delay(name, why, time, delay)

    def _note_alone(self, event: int, instances: Iterable[int], time: float) -> None:
        for i in sorted(instances):
            self._note(event, i, Lateness.ALONE, time)


def _name_of(loop: Loop, event: int, instance: int) -> str:
    members = loop.plan.events[event].members
    declared = next(m.declaration for m in members if m.instance == instance)
    return f"{loop.names[instance]}.{declared.name}"


def _sources(indicators: Indicators, s: IndicatorSet) -> tuple[tuple[int, list[int]], ...]:
    """Slots of the outputs that feed inputs on which the indicators of a set depend directly, each with the slots of those
    indicators and derivatives that have the same unit."""
    plan, alike = indicators.plan, dict[int, list[int]]()
    for k in (k for pair in s.pairs for k in pair if k >= 0):
        for j, _ in indicators.scales.sources(k):
            alike.setdefault(j, []).append(k)
    known = plan.instances[s.instance].model.dependencies
    declared = s.declaration
    needed = {name for z in declared.indicators for name in known.get(z.name, ())}
    for link in plan.links.into_instance.get(s.instance, ()):
        if link.input.name in needed and link.output.type is DataType.FLOAT64:
            _, slot = plan.layout.slots[link.source, Group.OUTPUTS, link.output.name]
            for j in range(slot.start, slot.stop):
                alike.setdefault(j, [])
    return tuple(sorted(alike.items()))
