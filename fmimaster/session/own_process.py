"""A run in a process of its own, begun before the library of an FMU is loaded; and its results, if that process is lost.

In a command, the process of the run does the rest of the command: it writes the rows, the figure, the answer. The process
that waits has the same objects, and goes on only if the other one is lost: then it takes the rows from shared memory, and
completes the files. A run in Python sends its results as plain data.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from fmimaster.apart import shared_run, watch
from fmimaster.apart.plain import DamagedError, decoded, encoded, error_of, plain_error
from fmimaster.apart.run_watch import Lost, RunWatch
from fmimaster.apart.shared_run import CommandPhase, SharedNumber, SharedRun
from fmimaster.base.codec import from_bytes
from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, SimulationError
from fmimaster.base.files import is_for_the_same
from fmimaster.base.text import count
from fmimaster.prepare.prepared import run_metadata
from fmimaster.record.causes import Event, Steps
from fmimaster.results.csv import CsvWriter
from fmimaster.results.facts import Facts
from fmimaster.results.facts_writer import lines
from fmimaster.results.recorder import Recorder
from fmimaster.results.results import Results
from fmimaster.results.statistics import NO_RUN, Statistics
from fmimaster.run.choice import native_executor
from fmimaster.run.rows import row_bytes, rows_in
from fmimaster.session import lost_run
from fmimaster.session.attendance import Attendance
from fmimaster.session.keepers import MOST_EVENTS, MOST_STEPS, recorder_of
from fmimaster.session.lost_run import (
    LeftRun,
    OutsideCalls,
    advice_for,
    hanging,
    lost_error,
    message_of,
    unnamed_file,
)
from fmimaster.session.work_thread import interrupted

log = logging.getLogger("fmimaster")

STATISTICS, WARNINGS, MEASURED, ERROR = b"s", b"w", b"m", b"x"
"""Further kinds of records: see :mod:`fmimaster.apart.shared_run`."""

NOTHING = Results(time=np.empty(0), columns={}, units={})


def run_in_own_process(run: Attendance, files: ExitStack) -> Results:
    """Run in a process of its own; in that process, and where there can be none, in this one.

    Parameters
    ----------
    files
        Those of the run; they are complete when it is closed.

    Raises
    ------
    SimulationError
        As a run does; FmuLostError if the process was lost, with all rows so far.
    """
    if (present := shared_run.current) is not None:  # of a command: started again, or a further run
        if present.keeps_rows:
            _begin(run, files, present)
        return run.run()
    if lost_run.left is not None:
        return _left_by_a_command(run, files, lost_run.left)
    if not watch.can_fork() or native_executor() is None:
        log.info(
            "The run has no process of its own: in Python, this needs Linux and the kernel in C."
        )
        return run.run()
    shared = SharedRun(_spool(run))
    _set(shared, run)
    process = watch.fork()
    if process is None:
        return _in_the_process(run, files, shared)
    end = RunWatch(shared, process, OutsideCalls(shared)).wait()
    if isinstance(end, int) and shared_run.is_command:
        os._exit(end)  # all was done there; nothing here may touch its files
    left = _LeftOver(run, shared)
    if isinstance(end, int):
        return left.answered(files)
    return left.rescued(files, end)


def _spool(run: Attendance) -> int:
    """A file without a name: in memory, where rows of a run without a file are anyway, else beside the file of results."""
    path = run.output_file
    if path is None or not Path(path).parent.is_dir():
        return os.memfd_create("fmimaster")
    return unnamed_file(Path(path).parent)


def _set(shared: SharedRun, run: Attendance) -> None:
    """A run begins with these limits, and keeps these rows."""
    shared.limit(run.settings.call_timeout, run.settings.memory_limit)
    shared.keeps_each_row = run.changes_structure
    shared.spools_rows = not isinstance(run.writer, CsvWriter)
    shared.begin()


# In the process of the run --------------------------------------------------------------------------------------------


def _begin(run: Attendance, files: ExitStack, shared: SharedRun) -> None:
    """A run that was prepared in this process begins."""
    _set(shared, run)
    run.when_complete = partial(_complete, run, files, shared)
    if run.writer is not None and run.writer.part is not None:
        shared.put(shared_run.PART, os.fsencode(run.writer.part))


def _in_the_process(run: Attendance, files: ExitStack, shared: SharedRun) -> Results:
    shared_run.current = shared
    run.when_complete = partial(_complete, run, files, shared)
    if shared_run.is_command:
        return run.run()
    status = 1
    try:
        with files:
            run.run()
        status = 0
    except BaseException as error:
        _complete(run, files, shared)
        shared.put(ERROR, plain_error(error))
        status = 0
    finally:
        shared_run.finish(status)
        os._exit(status)


def _complete(run: Attendance, files: ExitStack, shared: SharedRun) -> None:
    """All rows were recorded: what FMUs do from now on cannot harm the results."""
    if run.session is None or shared[SharedNumber.PHASE] != CommandPhase.RUNNING:
        return
    results = run.session.results()
    # as many as stay in the state of a run, if FMUs crash while they are freed
    events, steps = results.events[-MOST_EVENTS:], tuple(results.steps[-MOST_STEPS:])
    document = lines(events, steps, results.activations, results.units, results.metadata)
    shared.put(shared_run.FACTS, "\n".join(document).encode())
    shared.put(STATISTICS, encoded(results.statistics))
    shared.put(WARNINGS, json.dumps(run.session.accuracy_warnings).encode())
    if (measured := run.prepared.measured) is not None:
        shared.put(MEASURED, encoded(measured))
    files.close()
    shared.numbers[SharedNumber.PHASE] = CommandPhase.COMPLETE


def reached(phase: CommandPhase, status: int = 0) -> None:
    """In the process of a run: the command is so far, and would end with this status."""
    if (shared := shared_run.current) is not None:
        shared.numbers[SharedNumber.STATUS] = status
        shared.numbers[SharedNumber.PHASE] = phase


# In the process that waits --------------------------------------------------------------------------------------------


def _left_by_a_command(run: Attendance, files: ExitStack, left: LeftRun) -> Results:
    """The results of the command that was lost; its further runs have failed."""
    if left.is_taken:
        raise left.error
    left.take()
    try:
        return _LeftOver(run, left.shared).rescued(files, left.lost)
    except SimulationError as error:
        left.error = error
        raise


@dataclass(frozen=True)
class _LeftOver:
    """What the process of a run has left."""

    run: Attendance
    shared: SharedRun

    def answered(self, files: ExitStack) -> Results:
        """The results of a process that has ended as it should; its error is raised."""
        files.pop_all()  # it has completed them
        rows = self._rows(None)
        results, warnings, error = self._with_facts(rows)
        self.run.accuracy_warnings = warnings
        if error is not None:
            if isinstance(error, SimulationError):
                error.results = results
            raise error
        return results

    def rescued(self, files: ExitStack, lost: Lost) -> Results:
        """The results of a process that was lost after the last row; else its error is raised, with the rows so far."""
        phase = CommandPhase(min(max(self.shared[SharedNumber.PHASE], 0), max(CommandPhase)))
        results = NOTHING
        if not self.shared.is_forked:
            self._remove_part()
        if phase <= CommandPhase.MEASURING:
            results = self._rows(self.run.writer if phase is CommandPhase.RUNNING else None)
        last = self._last_time(results)
        if lost.time is None:
            lost = replace(lost, time=last)
        message = message_of(lost)
        if phase is not CommandPhase.RUNNING:
            completed = files.pop_all()
            if not self.shared.is_forked:
                completed.close()  # opened here, and nothing was written
        if phase is CommandPhase.ADVISING:
            log.warning("%s The results were written before.", message)
            os._exit(self.shared[SharedNumber.STATUS])
        if phase is CommandPhase.DELIVERED:
            written = "The results of the run itself were written before."
            raise lost_error(f"{message} {written}", lost, self.shared)
        if phase in (CommandPhase.COMPLETE, CommandPhase.MEASURING) and not lost.is_asked:
            if phase is CommandPhase.COMPLETE:  # else a warning tells of the hidden run
                log.warning("%s All rows had been recorded: the results are complete.", message)
            results, self.run.accuracy_warnings, _ = self._with_facts(results)
            return results
        self.run.loader.abandon()
        results = replace(results, metadata={**results.metadata, "failure": message})
        self.run.left = results.events, results.steps, results
        if lost.is_asked:
            interruption = interrupted(last, hanging(lost))
            interruption.results = results
            raise interruption
        kept = ""
        if results.statistics.rows and not shared_run.is_command:  # which says where they are
            kept = "The rows until then are kept. "
        error = lost_error(f"{message} {kept}{advice_for(lost)}", lost, self.shared)
        error.results = results
        raise error

    def _remove_part(self) -> None:
        """Remove the incomplete file of the other process: this one writes another."""
        own = None if self.run.writer is None else self.run.writer.part
        if own is None:
            return
        with suppress(FileError, OSError, ValueError):  # damaged, or no such file
            for kind, content in self.shared.records():
                found = Path(os.fsdecode(content)) if kind == shared_run.PART else own
                if found != own and is_for_the_same(own, found):
                    found.unlink()

    def _last_time(self, results: Results) -> float | None:
        """Time in s of the last row, which may be in a file only; None without rows."""
        if results.rows:
            return float(results.time[-1])
        last = self.shared.last[0] if self.shared[SharedNumber.RECORDED] else nan
        return None if isnan(last) else float(last)

    def _rows(self, writer: Any) -> Results:
        """All rows, also those that were not passed on; a writer gets those that are not in its file."""
        run, shared = self.run, self.shared
        shared.complete_change()
        prepared, settings = run.prepared, run.settings
        if isinstance(writer, CsvWriter):
            writer.go_on_behind(shared[SharedNumber.FILE_SIZE])
        recorder = recorder_of(run.columns, settings, prepared, writer)
        events, damage = self._take_records(recorder)
        recorded = shared[SharedNumber.RECORDED]
        is_in_file = isinstance(run.writer, CsvWriter)
        kept = recorded if is_in_file else recorder.rows
        if damage is not None:
            log.warning(
                "What the process of the run has recorded is damaged (%s). The results lack %s of it, and perhaps events. "
                "An FMU may have written into a file that is not its own.",
                damage,
                count(max(recorded - kept, 0), "row"),
            )
        recorder.go_on_behind(kept, float(shared.last[0]) if recorded else nan)
        try:
            if (block := self._block()) is not None:
                recorder.take(*block)
            recorder.finish()
        except SimulationError as error:  # a value that is not finite, or a full disk
            log.warning("%s", error)
        statistics = replace(
            NO_RUN,
            rows=recorder.rows,
            warnings=(*prepared.warnings, *recorder.growth.warnings()),
            notes=prepared.notes,
            events=len(events),
        )
        metadata = run_metadata(prepared, settings)
        return recorder.results(statistics, _events(events), metadata=metadata)

    def _take_records(self, recorder: Recorder) -> tuple[list[str], Exception | None]:
        """Give the recorder all rows of the spool that can be read.

        Returns
        -------
        The texts of the events there; and why something cannot be read: an FMU may write into any file of its process.
        """
        events: list[str] = []
        damage: Exception | None = None
        try:
            for kind, content in self.shared.records():
                if kind == shared_run.ROWS:
                    damage = _take_rows(recorder, content) or damage
                elif kind == shared_run.EVENTS:
                    events.append(content.decode("utf-8", "replace"))
        except FileError as error:
            damage = error
        return events, damage

    def _block(self) -> tuple[Any, Any] | None:
        """The rows that were not passed on; None if there are none."""
        shared, plan = self.shared, self.run.prepared.plan
        address, n = shared[SharedNumber.BLOCK], shared[SharedNumber.CAPACITY]
        size = row_bytes(plan) * n
        if (
            self.run.changes_structure
            or not 0 < n <= shared_run.SIZE
            or not shared.here(address, size)
        ):
            return None
        kernel = OutsideCalls(shared).kernel
        filled = shared[SharedNumber.COUNT] if kernel.rows is None else kernel.rows
        first, filled = shared[SharedNumber.PASSED], min(filled, n)
        if not 0 <= first < filled or any(kind.dtype == object for kind in plan.rows):
            return None
        times, values = rows_in(plan, n, shared.at(address, size))
        return times[first:filled], {kind: v[first:filled] for kind, v in values.items()}

    def _with_facts(self, results: Results) -> tuple[Results, tuple[str, ...], Exception | None]:
        """Results with what the run has said about itself, its reasons for less accuracy, and its error."""
        warnings: tuple[str, ...] = ()
        error: Exception | None = None
        try:
            for kind, content in self.shared.records():
                if kind == shared_run.FACTS:
                    facts = Facts(Path("results"), content)
                    results = replace(results, **facts.added_to(results))
                elif kind == STATISTICS:
                    results = replace(results, statistics=decoded(Statistics, content))
                elif kind == WARNINGS:
                    warnings = decoded(tuple[str, ...], encoded(json.loads(content)))
                elif kind == MEASURED:
                    from fmimaster.cards.measured import MeasuredAtStart  # few runs need it

                    self.run.prepare_as(decoded(MeasuredAtStart, content))
                elif kind == ERROR:
                    error = error_of(content)
        except (DamagedError, FileError, ValueError) as damaged:
            log.warning("The process of the run has left facts that cannot be read: %s", damaged)
        return results, warnings, error


def _take_rows(recorder: Recorder, content: bytes) -> Exception | None:
    """Add the rows of a record; returns why it has none that fit the columns."""
    try:
        rows = from_bytes(content)
        recorder.as_table(rows)
        recorder.add_again(*rows)
    except Exception as error:  # of whatever is there instead
        return error
    return None


def _events(texts: Sequence[str]) -> Iterator[Event]:
    empty: tuple[Steps, ...] = ()
    document = [*lines((), empty, (), {}, {})]
    at = next(k for k, line in enumerate(document) if line.startswith('"events"')) + 1
    document[at:at] = [*(f"{text}," for text in texts[:-1]), *texts[-1:]]
    try:
        return iter(tuple(Facts(Path("results"), "\n".join(document).encode()).events()))
    except FileError as error:
        log.warning("%s", error)
        return iter(())
