"""Passes the events and the causes of steps of a run to the file beside the table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from fmimaster.apart import shared_run
from fmimaster.apart.shared_run import SharedRun
from fmimaster.record.causes import Event, Steps
from fmimaster.record.plain_data import event_facts
from fmimaster.record.step_series import Part, RepeatedSteps, StepSeries, with_more
from fmimaster.results.facts_writer import FactsWriter, line
from fmimaster.results.row_writer import RowWriter
from fmimaster.run.goal import REFRESH
from fmimaster.run.loop import RunState

MOST_EVENTS, MOST_STEPS = 1000, 10_000
"""Most events, and entries of steps, that stay in the state of the run: a few MB."""


class FactKeeper:
    """Passes events and steps on, except the last ones; before that, it folds steps that repeat.

    They are folded here, not in the log: folding at each step would cost all runs. A pattern is kept only if it gives each
    entry in every bit. 10^6 ticks with two entries each need 70 MB in all, 454 MB without.

    Parameters
    ----------
    writer : FactsWriter or None
        Without it, all stay in memory, steps that repeat as a few numbers.
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
        self._shared = 0
        """Number of events that are kept outside of this process."""
        self._parts: tuple[Part, ...] = ()
        """Entries of steps behind those that were written, and before those in the state."""
        self.before_removal: Callable[[], None] = lambda: None
        """Called before entries are removed from the state of the run."""

    def hand_on(self) -> None:
        """Pass surplus entries on; only for the thread that steps.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        events, steps = self._state.event_log.events, self._state.step_log
        if (shared := shared_run.keeper_of_rows()) is not None:
            self._share(shared)
        writer = self._writer
        if writer is not None and self._table is not None and self._table.has_written:
            self._table = None
            with self._lock:
                if not self._is_closed:
                    writer.remove_older()
        most_events = len(events) if writer is None else 2 * MOST_EVENTS
        if len(events) <= most_events and steps.ended <= 2 * MOST_STEPS:
            return
        with self._lock:
            if self._is_closed:
                return
            n = max(steps.ended - MOST_STEPS, 0)
            self.before_removal()
            self._parts = with_more(self._parts, steps.part(0, n), REFRESH)
            if writer is not None:
                self._write(writer)
            steps.remove(n)

    def _share(self, shared: SharedRun) -> None:
        """Keep new events outside of this process."""
        log = self._state.event_log
        for event in log.events[max(self._shared - log.handed_on, 0) :]:
            shared.put(shared_run.EVENTS, line(event_facts(event)).encode())
        self._shared = log.handed_on + len(log.events)

    def _write(self, writer: FactsWriter) -> None:
        """Write surplus events, and all entries of steps but those that may repeat further."""
        events = self._state.event_log.events
        old_events = events[: max(len(events) - MOST_EVENTS, 0)]
        n = len(self._parts)
        if n and isinstance(self._parts[-1], RepeatedSteps):
            n -= 1
        writer.take(old_events, StepSeries(self._parts[:n]))
        self._parts = self._parts[n:]
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

    def steps(self, reached: float) -> Sequence[Steps]:
        """The steps so far, in the same way; the executor works on an interval with this start in s."""
        if self._writer is None:
            return self.new_steps(reached)
        entries = self._state.entries(reached)
        return tuple(entries.part(max(len(entries) - MOST_STEPS, 0)).objects())

    def new_steps(self, reached: float) -> Sequence[Steps]:
        """The steps that were not written during the run, likewise."""
        parts, entries = self._parts, self._state.entries(reached)
        if not parts:
            return tuple(entries.objects())
        return StepSeries(with_more(parts, entries, REFRESH))
