"""Runs around a run: a second one with half the steps puts a number on the error of the coupling."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from time import process_time
from typing import TYPE_CHECKING, Any, TypeVar

from fmimaster.apart import shared_run
from fmimaster.base.errors import (
    AccuracyError,
    FileError,
    FmimasterError,
    Interrupted,
    warn_of,
)
from fmimaster.base.files import given_path
from fmimaster.base.text import count
from fmimaster.configure.settings import Settings
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.plan.layout import Group
from fmimaster.prepare.prepared import Prepared
from fmimaster.record.causes import Kind
from fmimaster.results.files import write_intermediate, write_metadata
from fmimaster.results.results import Results
from fmimaster.results.statistics import CouplingError, OutputError, share_in_words
from fmimaster.session.launch import OutputFile, attended_run
from fmimaster.session.work_thread import ProgressCallback, Signals, silent
from fmimaster.system.description import Component

if TYPE_CHECKING:
    from fmimaster.front.accuracy_pair import Pair

log = logging.getLogger("fmimaster")

AnySettings = TypeVar("AnySettings", bound=Settings)

MOST_SECONDS = 2.0
"""CPU time in s of a run up to which a second one is not asked for: it takes twice as long."""

MOST_VALUES = 2_000_000
"""Values of a file up to which it is read back to be compared."""

WARNED_ABOVE = 0.05
"""Coupling error above which the results are less accurate than they should be."""

AIM = 0.01
"""Coupling error at which the step size of a warning aims."""

NOTHING = 1e-12
"""Largest value of an output, relative to the usual one, that may be a rounding error of 0."""


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
        """The settings of the run: those that are given, with those that were chosen."""
        return self.structures[0].completed(settings)


def judge(settings: Settings, found: tuple[str, ...], results: Results) -> None:
    """Warn if results are less accurate than they should be; raise an error if ``strict``."""
    if settings.strict and found:
        raise AccuracyError(found, results)
    warn_of(found)


def simulated(
    settings: Settings,
    progress: ProgressCallback,
    output_file: OutputFile = None,
    resume_from: str | os.PathLike[str] | None = None,
    complete: Callable[[Ran], Ran] = lambda ran: ran,
) -> Ran:
    """One run; an interrupt that comes too late for it has the results.

    Parameters
    ----------
    complete
        Adds to the run what is known only when it has ended.
    """
    ran = None
    try:
        with Signals() as signals:
            ran = _attended(settings, signals, progress, output_file, resume_from)
            ran = complete(ran)
    except KeyboardInterrupt as error:
        if isinstance(error, Interrupted):
            raise
        begun = "when the simulation had ended"
        when = "before the simulation began" if ran is None else begun
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
) -> Ran:
    """Run, and complete the files."""
    begun = _cpu_seconds()
    with ExitStack() as files:
        run = attended_run(settings, signals, progress, output_file, files, resume_from)
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
    return Ran(results, found, run.every_structure, _cpu_seconds() - begun)


def _cpu_seconds() -> float:
    """CPU time in s of this process and of those below it that have ended."""
    times = os.times()
    return process_time() + times.children_user + times.children_system


# The error of the coupling --------------------------------------------------------------------------------------------


def run_with_number(
    settings: AnySettings,
    progress: ProgressCallback,
    output_file: OutputFile = None,
    resume_from: str | os.PathLike[str] | None = None,
    take: Callable[[Pair], None] = lambda _: None,
) -> Results:
    """A run, and the error of its coupling by a second run with half the steps; it gives the warnings of both.

    Parameters
    ----------
    take
        Gets both runs, if there was a second one.
    """

    def complete(ran: Ran) -> Ran:
        if settings.error_estimate is False or not any(map(couples, ran.structures)):
            return ran
        reason = _why_not(settings, ran, resume_from)
        try:
            first = ran.results if reason else _whole(ran.results, output_file)
            found = (
                CouplingError(reason=reason) if reason else _estimated(settings, ran, first, take)
            )
        except Exception as error:  # whatever it is, the first run is complete
            found = CouplingError(reason=_first_sentence(error))
        return _completed(settings, ran, found, output_file)

    ran = simulated(settings, progress, output_file, resume_from, complete)
    judge(settings, ran.found, ran.results)
    return ran.results


def couples(prepared: Prepared) -> bool:
    """Whether a continuous output of a component feeds another one; signals that the user gives are none."""
    return any(
        group is Group.CONTINUOUS
        and route.link.source != route.link.target
        and not route.has_discrete_source
        and not _is_given(prepared.components[route.link.source])
        for (_, group), routes in prepared.plan.routes.items()
        for route in routes
    )


def _is_given(component: Component) -> bool:
    """Whether it is a table, and not an FMU or a component that is computed."""
    computed = component.constraint, component.python, component.adaptation
    source = component.source
    is_csv = (source.member or source.path.name).lower().endswith(".csv")
    return is_csv or (not source.is_file and all(other is None for other in computed))


class _NotComparableError(Exception):
    """The rows of both runs cannot be compared."""


def _why_not(settings: Settings, ran: Ran, resume_from: object) -> str:
    """Why there is no second run; empty if there is one."""
    prepared, asked = ran.structures[0], settings.error_estimate is True
    asks = "--check-step (error_estimate=True) measures it"
    if resume_from is not None:
        return "the run continues from a checkpoint"
    if settings.used.on_fault.isolates:
        return "a second run may have other faults (--on-fault)"
    if ran.results.metadata["end_time"] < float(prepared.schedule.stop):
        return "the run has ended before its stop time"
    if settings.output_interval is not None and prepared.schedule.rule.halved() is None:
        return "only some of the communication points are recorded (--output-interval)"
    if asked:
        return ""
    every = (c for structure in ran.structures for c in structure.components)
    outside = next((c.name for c in every if c.python and not c.python.can_go_back), None)
    if outside is not None:
        return f"'{outside}' acts outside of the run (can_go_back is False); {asks}"
    if ran.seconds > MOST_SECONDS:
        return f"the run took {ran.seconds:.2g} s; {asks}"
    return ""


def _whole(results: Results, output_file: OutputFile) -> Results:
    """All rows of a run, also those that it has written to a file only."""
    rows, columns = results.statistics.rows, max(1, len(results.names))
    if results.rows == rows:
        return results
    if not isinstance(output_file, str | os.PathLike) or not given_path(output_file).is_file():
        raise _NotComparableError("the rows were written to a stream, and are not kept")
    if rows * columns > MOST_VALUES:
        raise _NotComparableError(
            f"the file of results is large ({rows} rows); a run without --output-file can be measured"
        )
    return Results.read(output_file)


def second_run(settings: AnySettings, ran: Ran, first: Results) -> Results:
    """A run with half the steps that nobody sees: it writes nothing, and its messages are not shown."""
    from fmimaster.front.accuracy_pair import half

    hidden = replace(
        ran.completed(settings),  # else other methods could be chosen for the halved steps
        step_size=half(ran.structures[0].schedule.rule, first),
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
    )
    with _unheard(), _further_process():
        return simulated(hidden, silent).results


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
    """In the process of a run, a further run gets a process below it: a crash there cannot harm what this one has."""
    before = shared_run.current, shared_run.is_command
    shared_run.current, shared_run.is_command = None, False
    try:
        yield
    finally:
        shared_run.current, shared_run.is_command = before


def _estimated(
    settings: AnySettings, ran: Ran, first: Results, take: Callable[[Pair], None]
) -> CouplingError:
    from fmimaster.front.accuracy_pair import Pair  # runs of a single FMU do not need it

    order = order_of(ran.completed(settings))
    fine = second_run(settings, ran, first)
    recorded = {c.name: c for structure in ran.structures for c in structure.plan.recorded}
    # the table of --check-step has more of them
    take(Pair(first, fine, [c.name for c in recorded.values() if c.is_comparable]))
    names = [c.name for c in recorded.values() if c.is_judged]
    if not names:
        raise _NotComparableError("no continuous output is recorded")
    found = [
        # that of the first run
        OutputError(d.name, d.relative * 2.0**order)
        for d in Pair(first, fine, names, order).differences()
        if d.scale > NOTHING * (recorded[d.name.partition("[")[0]].usual or 1.0)
    ]
    if any(not isfinite(d.error) for d in found):
        raise _NotComparableError("outputs are infinite or not a number")
    return CouplingError(tuple(found), (_executed(first), _executed(fine)))


def order_of(settings: Settings) -> float:
    """The power of the step size with which the error of the coupling decreases.

    It is 2 for inputs that follow a line or more. Held inputs have 1. So have events, whose errors decrease at
    least so fast: with 1 the estimate is the larger one, by a factor of 1.5.
    """
    given: list[Polynomial] = [settings.algorithm_used.course, *settings.used.inputs.values()]
    clock = settings.clock_used
    is_held = any(course.is_constant for course in given)
    return 1.0 if is_held or (clock is not None and clock.fires) else 2.0


def _executed(results: Results) -> int:
    """Number of events; a discrete input may follow a continuous output, and then changes with each step."""
    return sum(event.cause.kind is not Kind.CHANGED_INPUT for event in results.events)


def _first_sentence(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    if not isinstance(error, FmimasterError | _NotComparableError):
        return f"{type(error).__name__}: {text}"
    prefix = "" if isinstance(error, _NotComparableError) else "the second run has failed: "
    return prefix + text.partition(". ")[0].rstrip(".")


def _completed(settings: Settings, ran: Ran, found: CouplingError, output_file: OutputFile) -> Ran:
    """The run with its number, also in its files."""
    results, warnings = ran.results, tuple(_warnings(ran.completed(settings), ran, found))
    statistics = replace(
        results.statistics,
        coupling_error=found,
        warnings=(*results.statistics.warnings, *warnings),
    )
    metadata: dict[str, Any] = {
        **results.metadata,
        "coupling_error": {o.name: o.error for o in found.outputs}
        or f"not measured: {found.reason}",
        "warnings": list(statistics.warnings),
    }
    results = replace(results, statistics=statistics, metadata=metadata)
    if isinstance(output_file, str | os.PathLike):
        try:
            write_metadata(given_path(output_file), metadata)
        except (FileError, OSError) as error:
            log.warning("The coupling error is not in '%s': %s", output_file, error)
    return replace(ran, results=results, found=(*ran.found, *warnings))


def _warnings(settings: Settings, ran: Ran, found: CouplingError) -> Iterator[str]:
    """Why the results are less accurate than they should be."""
    first, second = found.events
    if first != second:
        yield (
            f"with half the steps there are {count(second, 'event')} instead of {first}: events are missed, or depend on "
            f"the steps. Take smaller steps: step_size (--step-size){_or_a_clock(settings)}"
        )
    if found.worst is not None and found.worst.error > WARNED_ABOVE:
        size = float(ran.structures[0].schedule.rule.exact_size)
        shorter = size * (AIM / min(found.worst.error, 1.0)) ** (1.0 / order_of(settings))
        yield (
            f"the coupling error of '{found.worst.name}' is {share_in_words(found.worst.error)} of its largest value (root "
            "mean square over time, estimated by a second run with half the steps). Take smaller steps: step_size "
            f"(--step-size), about {shorter:.1g} s{_or_a_clock(settings)}"
        )


def _or_a_clock(settings: Settings) -> str:
    is_open = settings.clock_used is None
    return (
        "; or an event clock, if FMUs have events: event_clock (--event-clock)" if is_open else ""
    )
