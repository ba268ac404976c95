"""One run of a simulation, seen or hidden, and the judgement of its results."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from time import process_time
from typing import Any, TypeVar

from fmimaster.apart import shared_run
from fmimaster.base.data import dataclass
from fmimaster.base.errors import AccuracyError, Interrupted, warn_of
from fmimaster.base.files import given_path
from fmimaster.configure.settings import AT_ONCE, Settings
from fmimaster.inputs.given_inputs import fitting_inputs
from fmimaster.inputs.polynomial import HOLD
from fmimaster.instants.grid import rounding
from fmimaster.plan.layout import Group
from fmimaster.plan.variables import Recorded
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.files import write_intermediate
from fmimaster.results.results import NotComparableError, Results
from fmimaster.session.attendance import Attendance
from fmimaster.session.launch import OutputFile, attended_run
from fmimaster.session.work_thread import Progress, ProgressCallback, Signals, silent

log = logging.getLogger("fmimaster")

AnySettings = TypeVar("AnySettings", bound=Settings)

MOST_VALUES = 2_000_000
"""Values of a file up to which it is read back to be compared."""


@dataclass(frozen=True)
class Ran:
    """A run that has ended."""

    results: Results
    found: tuple[str, ...]
    """Reasons why the results are less accurate than they should be."""
    structures: Sequence[Prepared]
    """One, unless the structure of the system changes."""
    seconds: float
    """CPU time in s."""

    def completed(self, settings: AnySettings) -> AnySettings:
        """The settings of the run: those that are given, with those that were chosen, also for inputs in loops."""
        completed, plan = self.prepared.completed(settings), self.prepared.plan
        in_loops = self.prepared.programs.held_in_loops
        held = {f"{plan.instances[i].name}.{name}": HOLD for i, name in in_loops}
        return replace(completed, inputs={**completed.inputs, **fitting_inputs(plan, held)})

    @property
    def prepared(self) -> Prepared:
        """The structure at the start."""
        return self.structures[0]

    def reaches(self, time: float) -> bool:
        """Whether a time is the stop time: up to rounding, as in the loop, because events shift the ends of steps."""
        schedule = self.prepared.schedule
        stop = float(schedule.stop)
        return time >= stop - rounding(stop, float(schedule.rule.exact_size))

    @property
    def holds_some(self) -> bool:
        """Whether some connected continuous inputs are held: in loops, or because their FMUs take no polynomials."""
        return any(
            p.programs.held_in_loops
            or any(
                group is Group.CONTINUOUS and routes and i not in p.programs.polynomial_inputs
                for (i, group), routes in p.plan.routes.items()
            )
            for p in self.structures
        )

    @property
    def unsolved(self) -> tuple[str, ...]:
        """Warnings about loops."""
        every = (text for structure in self.structures for text in structure.programs.unsolved)
        return tuple(dict.fromkeys(every))

    @property
    def recorded(self) -> Mapping[str, Recorded]:
        """Name of a column → what it shows."""
        return {c.name: c for structure in self.structures for c in structure.plan.recorded}

    def whole(self, output_file: OutputFile) -> Results | None:
        """All rows, also those that were written to a file only; None if the file is large."""
        rows, columns = self.results.statistics.rows, max(1, len(self.results.names))
        if self.results.rows == rows:
            return self.results
        if not isinstance(output_file, str | os.PathLike) or not given_path(output_file).is_file():
            raise NotComparableError("the rows were written to a stream, and are not kept")
        return None if rows * columns > MOST_VALUES else Results.read(output_file)


def measured(ran: Ran, *, is_small: bool) -> Ran:
    """The run without the warnings that a measured error of the coupling replaces.

    Parameters
    ----------
    is_small
        Whether that a loop is not solved, or that events may be wrong, is a note, because it matters little.
    """
    statistics, metadata = ran.results.statistics, ran.results.metadata
    notes = (*ran.unsolved, *statistics.suspected) if is_small else ()
    replaced = {*statistics.leaping, *notes}
    if not replaced:
        return ran
    left = tuple(text for text in statistics.warnings if text not in replaced)
    results = replace(
        ran.results,
        statistics=replace(
            statistics,
            leaping=(),
            suspected=() if is_small else statistics.suspected,
            warnings=left,
            notes=(*statistics.notes, *notes),
        ),
        metadata={**metadata, "notes": [*metadata["notes"], *notes], "warnings": [*left]},
    )
    return replace(ran, results=results, found=tuple(t for t in ran.found if t not in replaced))


def judge(settings: Settings, found: tuple[str, ...], results: Results) -> None:
    """Warn if results are less accurate than they should be; raise an error if ``strict``."""
    if found and settings.strict:
        raise AccuracyError(found, results)
    if found:
        warn_of(found)


def simulated(
    settings: Settings,
    progress: ProgressCallback,
    output_file: OutputFile = None,
    resume_from: str | os.PathLike[str] | None = None,
    begun: Callable[[Prepared], None] = lambda _: None,
    complete: Callable[[Ran], Ran] = lambda ran: ran,
) -> Ran:
    """One run; an interrupt that comes too late for it has the results.

    Parameters
    ----------
    begun
        Gets what was prepared, before the first FMU is called.
    complete
        Adds to the run what is known only when it has ended.
    """
    ran = None
    try:
        with Signals() as signals:
            ran = _attended(settings, signals, progress, output_file, resume_from, begun)
            ran = complete(ran)
    except KeyboardInterrupt as error:
        if isinstance(error, Interrupted):
            raise
        ended = "when the simulation had ended"
        when = "before the simulation began" if ran is None else ended
        late = Interrupted(f"Interrupted {when}.")
        late.results = None if ran is None else ran.results
        raise late from None
    return ran


def _attended(
    settings: Settings,
    signals: Signals,
    progress: ProgressCallback,
    output_file: OutputFile,
    resume_from: str | os.PathLike[str] | None,
    begun: Callable[[Prepared], None],
) -> Ran:
    """Run, and complete the files."""
    before, number = _cpu_seconds(), os.getpid()
    with ExitStack() as files:
        run = attended_run(
            settings, signals, progress, output_file, files, resume_from, kind=Attendance
        )
        begun(run.prepared)
        try:
            with files.pop_all() as opened:
                if settings.process:
                    # in Python, few runs have one
                    from fmimaster.session.own_process import run_in_own_process

                    results = run_in_own_process(run, opened)
                else:
                    results = run.run()
        except KeyboardInterrupt as error:
            if isinstance(error, Interrupted):
                raise
            raise run.interrupted() from None  # the second Ctrl-C, while files were written
    if output_file is not None:
        write_intermediate(results, output_file)
    found = run.session.accuracy_warnings if run.session else run.accuracy_warnings
    if os.getpid() != number:
        before = 0.0  # a command goes on in the process of the run, whose clock has begun anew
    return Ran(results, found, run.every_structure, _cpu_seconds() - before)


def _cpu_seconds() -> float:
    """CPU time in s of this process and of those below it that have ended."""
    times = os.times()
    return process_time() + times.children_user + times.children_system


def within(seconds: float) -> ProgressCallback:
    """Ends a run after this wall time in s, which starts with the first step."""

    def goes_on(reached: Progress) -> bool:
        return reached.seconds <= seconds

    return goes_on


def hidden(settings: AnySettings, progress: ProgressCallback = silent, **changes: Any) -> Results:
    """A hidden run: it writes nothing, and its messages are not shown."""
    unseen = replace(
        settings,
        error_estimate=False,
        strict=False,
        output_interval=None,
        record_intermediate_values=False,
        final_fmu_state=None,
        checkpoint=None,
        checkpoint_interval=None,
        debug_logging=False,
        log_fmi_calls=False,
        fmi_log_file=None,
        **AT_ONCE,
        **changes,
    )
    with _unheard(), _further_process():
        return simulated(unseen, progress).results


@contextmanager
def _unheard() -> Iterator[None]:
    """Messages of this thread, and of threads that it starts, are not logged."""
    name = threading.current_thread().name

    def is_other(record: logging.LogRecord) -> bool:
        whose = record.threadName or ""
        return whose != name and not whose.startswith(f"{name} (")

    log.addFilter(is_other)
    try:
        yield
    finally:
        log.removeFilter(is_other)


@contextmanager
def _further_process() -> Iterator[None]:
    """In the process of a run, a further run gets a process below it: a crash there cannot harm what this one has. Where it
    cannot be forked, the process that waits keeps what this one has."""
    if shared_run.current is not None and not shared_run.current.is_forked:
        with shared_run.only_calls():
            yield
        return
    before = shared_run.current, shared_run.is_command
    shared_run.current, shared_run.is_command = None, False
    try:
        yield
    finally:
        shared_run.current, shared_run.is_command = before
