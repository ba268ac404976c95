"""What cannot be at an event: endless events, events that are still on, members that disagree, and events that are late."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from fmimaster.base.errors import SimulationError
from fmimaster.events.zeno import FEW
from fmimaster.instants.grid import rounding
from fmimaster.run.failures import (
    accumulating,
    illegitimate,
    still_on,
    too_often_late,
    unknown_event,
)
from fmimaster.run.log import Late
from fmimaster.run.loop import Loop, LoopPart

MOST_LATE = 20
"""So much more often than in time an event may be late: a rate, so that long runs may have many events that are late."""

_log = logging.getLogger("fmimaster")


class EventChecks(LoopPart):
    """Checks events that have happened."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._size = float(loop.rule.exact_size)
        self._told_by_fmus = frozenset(
            k
            for k, trigger in enumerate(loop.plan.triggers)
            if trigger.clock is not None and not trigger.clock.is_periodic
        )
        """Time-based clocks whose ticks can accumulate: FMUs give their intervals one by one."""

    def check_happened(
        self, causes: Collection[int], fired: Collection[int], ticks: frozenset[int]
    ) -> None:
        """Raise if events accumulate, do not end, are still on, or are seen differently by their members."""
        s, time, events = self._state, self._state.time.seconds, self._plan.events
        for e in sorted(fired):
            self._check_accumulation(events[e].name, time)
            if e not in self._indicators.by_themselves and self._indicators.still_on(e):
                raise still_on(self._plan, events[e], time, s.event_log.late.get(events[e].name))
        members = {i for e in fired for i in events[e].instances}
        for i in sorted({*causes} - members):
            self._check_accumulation(f"events of {self._names[i]}", time)
        for k in sorted(ticks & self._told_by_fmus):
            trigger = self._plan.triggers[k]
            self._check_accumulation(f"{self._names[trigger.instance]}.{trigger.name}", time)
        ticking = {self._plan.triggers[k].instance for k in ticks}
        who = frozenset({*causes} | members | ticking)
        if s.accumulating.too_many_at(time, rounding(time, self._size), who):
            raise self.illegitimate(s.accumulating.causes)
        self.check_members(
            e for e in fired if all(self._plan.instances[i].event_mode for i in events[e].instances)
        )

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
            self._indicators.check_members_agree(e, self._state.time.seconds)

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
        if unknown and self._state.accumulating.too_many_at(time, rounding(time, self._size)):
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
