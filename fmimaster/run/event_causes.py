"""Why events happen at the present instant, and in which instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fmimaster.instants.grid import rounding
from fmimaster.record.causes import Cause, Kind
from fmimaster.run.changes import Changes
from fmimaster.run.log import Delay
from fmimaster.run.loop import Loop
from fmimaster.system.model import Scope


class EventCauses:
    """Finds the causes of events of instances, and names what happens."""

    def __init__(self, loop: Loop, changes: Changes) -> None:
        self._plan, self._executor, self._state = loop.plan, loop.executor, loop.state
        self._names, self._changes = loop.names, changes
        self._size = float(loop.rule.exact_size)
        self._merged = loop.state.calendar.merged_seconds

    def names(self, instances: Iterable[int]) -> tuple[str, ...]:
        """The names of instances."""
        return tuple(self._names[i] for i in instances)

    def of_instances(self, requests: Sequence[int], jumped: frozenset[int]) -> dict[int, Cause]:
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

    def at_own_times(self, causes: dict[int, Cause]) -> dict[int, Cause]:
        """Causes without those of instances that stand ahead, which have their events at their own times; and with those
        of instances that stood ahead until now."""
        s = self._state
        if not (s.ahead or s.late):
            return causes
        late = s.late | (causes.keys() & s.ahead)
        s.late = late & s.ahead
        late_now = {i: Cause(Kind.SEEN_LATE, (self._names[i],)) for i in sorted(late - s.ahead)}
        return late_now | {i: cause for i, cause in causes.items() if i not in s.ahead}

    def happening(
        self, causes: dict[int, Cause], fired: dict[int, Cause]
    ) -> list[tuple[str, bool, tuple[str, ...], Cause]]:
        """Name, whether it is shared, components and cause: of events that are fired, then of all other instances."""
        events = self._plan.events
        found = [
            (
                events[e].name,
                events[e].scope is Scope.SHARED,
                self.names(sorted(events[e].instances)),
                fired[e],
            )
            for e in sorted(fired)
        ]
        members = {i for e in fired for i in events[e].instances}
        for i in sorted(causes.keys() - members):
            found.append((f"event of {self._names[i]}", False, (self._names[i],), causes[i]))
        return found
