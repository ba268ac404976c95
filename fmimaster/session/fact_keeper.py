"""Passes the events and the causes of steps of a run to the file beside the table."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fmimaster.causes import Event, Steps
from fmimaster.results.facts_writer import FactsWriter
from fmimaster.results.row_writer import RowWriter
from fmimaster.run.state import RunState

MOST_EVENTS, MOST_STEPS = 1000, 10_000
"""Most events, and entries of steps, that stay in memory if there is a file for them: a few MB."""


class FactKeeper:
    """Passes events and steps on, except the last ones.

    Parameters
    ----------
    writer : FactsWriter or None
        Without it, all stay in memory.
    table : RowWriter or None
        Writer of the table that they belong to: once it replaces an older table, the older facts are removed.
    """

    def __init__(
        self, state: RunState, writer: FactsWriter | None, table: RowWriter | None
    ) -> None:
        self._state = state
        self._writer = writer
        self._lock = threading.Lock()
        self._is_closed = False
        self._table = table
        self.before_removal: Callable[[], None] = lambda: None
        """Called before entries are removed from the state of the run."""

    def hand_on(self) -> None:
        """Pass surplus entries on; only for the thread that steps.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        events, steps = self._state.event_log.events, self._state.step_log.ended
        writer = self._writer
        if writer is not None and self._table is not None and self._table.has_written:
            self._table = None
            with self._lock:
                if not self._is_closed:
                    writer.remove_older()
        if writer is None or (len(events) <= 2 * MOST_EVENTS and len(steps) <= 2 * MOST_STEPS):
            return
        with self._lock:
            if self._is_closed:
                return
            old_events = events[: max(len(events) - MOST_EVENTS, 0)]
            n = max(len(steps) - MOST_STEPS, 0)
            self.before_removal()
            writer.take(old_events, steps.first(n))
            steps.remove(n)
            self._state.step_log.handed_on += n
            del events[: len(old_events)]
            self._state.event_log.handed_on += len(old_events)

    def close(self, patience: float) -> None:
        """Pass no more on, instead of a thread that does not return; within this wall time in s."""
        if self._lock.acquire(timeout=patience):  # otherwise the disk does not respond
            self._lock.release()
        self._is_closed = True

    @property
    def events(self) -> tuple[Event, ...]:
        """The events so far; only the last ones if there is a file for all of them."""
        last = 0 if self._writer is None else -MOST_EVENTS
        return tuple(self._state.event_log.events[last:])

    def steps(self, reached: float) -> tuple[Steps, ...]:
        """The steps so far, in the same way; the executor works on an interval with this start in s."""
        last = 0 if self._writer is None else -MOST_STEPS
        return self._state.entries(reached)[last:]
