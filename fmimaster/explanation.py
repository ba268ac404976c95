"""What the loop over time has noted → the events and steps that results carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fmimaster.plan.plan import Plan
from fmimaster.results.explained import Event, Steps
from fmimaster.results.recorder import ColumnSource
from fmimaster.run.executor import RowBlock
from fmimaster.run.log import EventEntry, EventLog, StepLog

_FOUND = {"located by going back": "located"}
"""Words of the loop, where they are not those of the results."""


class Explanation:
    """Reads the values around an event from the rows while they are there, so that it needs no row to be kept.

    Parameters
    ----------
    plan : Plan
    columns : sequence of ColumnSource
        Where each recorded variable is in the block; in the order of ``plan.recorded``.
    rows : RowBlock
    event_log, step_log
        What the loop writes to.
    """

    def __init__(
        self,
        plan: Plan,
        columns: Sequence[ColumnSource],
        rows: RowBlock,
        event_log: EventLog,
        step_log: StepLog,
    ) -> None:
        names = [instance.name for instance in plan.instances]
        self._columns = [
            (names[recorded.instance], column)
            for recorded, column in zip(plan.recorded, columns, strict=True)
        ]
        self._rows, self._entries, self._log = rows, event_log.entries, step_log
        self._handed_on = 0
        """Rows at the time of the last row that are in the block no more."""
        self._time = float("nan")
        """Time of the row that was handed on last."""
        self._kept: dict[str, Any] = {}
        """That row."""
        self._latest = (float("nan"), 0)
        """Time of the last event, and the index of its right limit."""
        self.events: list[Event] = []

    @property
    def steps(self) -> list[Steps]:
        """All steps so far."""
        return [Steps(*stretch) for stretch in self._log.stretches]

    def note(self) -> None:
        """Take up what the loop has noted since the last time; all of it has happened at one time."""
        while len(self.events) < len(self._entries):
            self.events.append(self._event(self._entries[len(self.events)]))
        if self.events:
            self._latest = self.events[-1].time, self.events[-1].index

    def before_handing_on(self) -> None:
        """Remember the last row, which may be the left limit of the next event."""
        self.note()
        if not self._rows.count:
            return
        last = self._rows.count - 1
        time = float(self._rows.times[last])
        self._handed_on = self._at(time)
        self._time = time
        self._kept = self._row(last, [column for _, column in self._columns])

    def _at(self, time: float) -> int:
        """How many rows at the end of the run so far have this time."""
        n = self._rows.count
        here = n - int(self._rows.times[:n].searchsorted(time))
        return here + (self._handed_on if time == self._time else 0)

    def _event(self, entry: EventEntry) -> Event:
        time = entry.time
        right = max(self._at(time) - 1, 0)
        left = self._latest[1] if self._latest[0] == time else 0
        located = entry.how == "located by going back"  # inside a step: there is no left limit
        return Event(
            time,
            right,
            entry.name,
            entry.scope == "shared",
            entry.components,
            self._found(entry),
            {} if located else self._values(entry.components, time, left),
            self._values(entry.components, time, right),
        )

    def _found(self, entry: EventEntry) -> str:
        if entry.how == "state event":
            return f"asked for by {entry.components[0]}"
        due = self._log.reason
        if due.startswith("time event of ") and entry.how.startswith("time event"):
            return due
        return _FOUND.get(entry.how, entry.how)

    def _values(self, components: tuple[str, ...], time: float, index: int) -> dict[str, Any]:
        n = self._rows.count
        k = n - self._at(time) + index
        mine = [column for component, column in self._columns if component in components]
        if 0 <= k < n:
            return self._row(k, mine)
        return {c.name: self._kept[c.name] for c in mine} if k == -1 and self._kept else {}

    def _row(self, k: int, columns: Sequence[ColumnSource]) -> dict[str, Any]:
        return {
            c.name: self._rows.values[c.kind][k, c.slot].reshape(c.shape).tolist()  # type: ignore[index]
            for c in columns
        }
