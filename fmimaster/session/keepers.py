"""What a run passes on: its rows to the recorder; its events and causes of steps to the file beside the table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.apart import shared_run
from fmimaster.apart.shared_run import SharedNumber, SharedRun
from fmimaster.base.errors import FmimasterError
from fmimaster.configure.settings import Settings
from fmimaster.plan.variables import Recorded
from fmimaster.prepare.prepared import Prepared
from fmimaster.record.causes import Event, Steps
from fmimaster.record.plain_data import event_facts
from fmimaster.record.step_series import Part, RepeatedSteps, StepSeries, with_more
from fmimaster.results.facts_writer import FactsWriter, line
from fmimaster.results.growth import Growth, Watched
from fmimaster.results.recorder import Recorder
from fmimaster.results.row_writer import RowWriter
from fmimaster.run.goal import REFRESH
from fmimaster.run.loop import RunState
from fmimaster.run.rows import RowBlock
from fmimaster.system.model import DataType

if TYPE_CHECKING:
    from fmimaster.results.passed_events import PassedEvents

Rows = tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]
"""Times, and the values per type, shape (rows, columns)."""

OLDEST = 0.8
"""Wall time in s after which rows are passed on although their block is not full."""


class RowKeeper:
    """Passes rows on.

    The thread that calls FMUs empties the block. The listening thread copies rows from it early, while others may be
    added, so they are written to the file even during a long call of an FMU. The counter of the block is written after the
    row: rows that are counted are complete. This is the only lock between the two threads.
    """

    def __init__(self, rows: RowBlock, recorder: Recorder) -> None:
        self.recorder = recorder
        self.error: FmimasterError | None = None
        """The error because of which rows cannot be passed on any more."""
        self.recording_seconds = self.writing_seconds = 0.0
        """Wall time in s of the thread that calls FMUs: rows checked and kept, and rows written."""
        self._rows = rows
        self.arrange: Callable[..., Rows] | None = None
        """Brings rows into the columns of the recorder, if its columns are those of several structures."""
        self._lock = threading.RLock()
        self.is_held = False
        """Whether no rows are passed on: those of the earlier part of the run come first."""
        self.is_passing_on = False
        """Whether the thread that calls FMUs passes rows on now, or waits until it can."""
        self._is_closed = False
        self._when = perf_counter()
        """Time at which rows were passed on last."""

    def hand_on(self) -> None:
        """Pass on all rows, and make room for others; only for the thread that fills the block.

        Raises
        ------
        NotANumberError, FileError
            If a value is NaN, or the rows cannot be written; also for rows that were passed on early.
        """
        with self._timed(), self._lock:
            rows = self._rows.take_early()
            try:
                if self.error is not None:
                    raise self.error
                if self._is_closed or self.is_held:
                    return
                self._pass_on(rows)
            except FmimasterError as error:
                self.error = error
                raise
            finally:  # not before they are passed on: what ends the process then does not end them
                self._rows.clear()
                self.lend()
                if (shared := shared_run.keeper_of_rows()) is not None:
                    shared.numbers[SharedNumber.PASSED] = 0
                self._when = perf_counter()

    def lend(self) -> None:
        """Let the next rows be taken where they are kept. There must be none in the block."""
        rows = self._rows
        if self.arrange is None and rows.is_movable:
            rows.move(self.recorder.room_for(rows.least, rows.most, rows.values))

    def hand_on_early(self) -> None:
        """Pass on the present rows; for another thread. Errors are raised in the thread that fills the block."""
        with self._lock:
            if self.error is not None or self._is_closed or self.is_held:
                return
            self._when = perf_counter()
            try:
                self._pass_on(self._rows.take_early())
                self.recorder.flush()
            except FmimasterError as error:
                self.error = error

    def _pass_on(self, rows: Rows) -> None:
        if self.arrange is None:
            self.recorder.take(*rows, self._rows.looked)
        else:
            self.recorder.take(*self.arrange(*rows))
        if (shared := shared_run.keeper_of_rows()) is not None and len(rows[0]):
            shared.passed_on(len(rows[0]), float(rows[0][-1]), self.recorder.committed())

    def change(self, rows: RowBlock, arrange: Callable[..., Rows]) -> None:
        """Pass on the rows so far, and go on with those of another block in another arrangement."""
        self.hand_on()
        with self._lock:
            self._rows, self.arrange = rows, arrange

    def hand_on_if_old(self) -> None:
        """Pass on rows that have waited for some time."""
        if perf_counter() - self._when > OLDEST:
            self.hand_on_early()

    def settled(self, act: Callable[[], None]) -> None:
        """Pass on the present rows, which stay in the block, and call a function while no others are passed on.

        It is not called if rows cannot be passed on; :meth:`hand_on` then raises the error.
        """
        with self._lock:
            if self.error is not None or self._is_closed:
                return
            try:
                self._pass_on(self._rows.take_early())
            except FmimasterError as error:
                self.error = error
                return
            act()

    def finish(self) -> None:
        """After the last row: it is kept for every output interval, and all rows are written."""
        with self._timed(), self._lock:
            if not self._is_closed:
                self.recorder.finish()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun, written = perf_counter(), self.recorder.writing_seconds
        self.is_passing_on = True
        try:
            yield
        finally:
            self.is_passing_on = False
            writing = self.recorder.writing_seconds - written
            self.writing_seconds += writing
            self.recording_seconds += max(0.0, perf_counter() - begun - writing)

    def close(self, patience: float) -> None:
        """Pass on the present rows and accept no more, instead of a thread that does not return; within this wall time
        in s."""
        try:
            if self._lock.acquire(
                timeout=patience
            ):  # otherwise it is blocked while writing to a pipe that is not read
                try:
                    self.hand_on_early()
                    self.finish()
                finally:
                    self._lock.release()
        finally:
            self._is_closed = True


def recorder_of(
    columns: Sequence[Recorded],
    settings: Settings,
    prepared: Prepared,
    writer: RowWriter | None,
) -> Recorder:
    """The recorder of a run: its columns, the rows that it keeps, which of them may grow, and the events that it counts."""
    schedule = prepared.schedule
    recorder = Recorder(
        columns,
        expected_rows=schedule.expected_rows(settings.output_interval),
        writer=writer,
        start=float(schedule.start),
        interval=settings.output_interval,
        growth=Growth(
            [
                Watched(c.name, c.type, c.column, c.usual, c.unit, c.is_coupled)
                for c in columns
                if c.usual is not None and c.present is None
            ]
        ),
        passed=_passed_events(columns, prepared) if prepared.unclocked else None,
        allow_nan=settings.allow_nan,
    )
    if (shared := shared_run.keeper_of_rows()) is not None:
        recorder.spool = shared.put_rows
    return recorder


def _passed_events(columns: Sequence[Recorded], prepared: Prepared) -> PassedEvents:
    """Counts the events that need an event clock, as far as outputs show them that are recorded in any case."""
    from fmimaster.results.passed_events import Indicated, PassedEvents  # few runs need it

    at = {c.name: (c.type, c.column.start) for c in columns if c.present is None}
    found = []
    for name, event in (event for one in prepared.unclocked for event in one.events):
        counter = at.get(f"{name}.{event.announce}")
        pairs = [
            (at.get(f"{name}.{z.name}"), at.get(f"{name}.{z.derivative}")) for z in event.indicators
        ]
        shown = [(z[1], -1 if dz is None else dz[1]) for z, dz in pairs if z is not None]
        if counter is not None or (pairs and len(shown) == len(pairs)):
            found.append(Indicated(f"{name}.{event.name}", counter, tuple(shown)))
    return PassedEvents(found, DataType.FLOAT64)


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
            # always so many at a time: which patterns are found then does not depend on when this is called
            n = max((steps.ended - 1) // MOST_STEPS - 1, 0) * MOST_STEPS
            self.before_removal()
            for first in range(0, n, MOST_STEPS):
                more = steps.part(first, first + MOST_STEPS)
                self._parts = with_more(self._parts, more, REFRESH)
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
