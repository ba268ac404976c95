"""The run of one FMU for its verdict. It is called in a process of its own, because the FMU may crash or not return."""

from __future__ import annotations

import logging
import os
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.base.errors import (
    FileError,
    FmimasterError,
    InputError,
    ModelError,
    OptionError,
    SimulationError,
)
from fmimaster.base.text import named
from fmimaster.conformance.cases import NOT_COMPLIANT, FmuCase
from fmimaster.conformance.curve import curves
from fmimaster.conformance.experiment import (
    FmuDescription,
    ReferenceOptions,
    read_facts,
    read_options,
    times_of,
)
from fmimaster.conformance.measures import ConformanceLimits, measure
from fmimaster.conformance.reference_file import of_array, read_carried, read_reference
from fmimaster.conformance.verdict import Verdict, VerdictCause, VerdictOutcome
from fmimaster.conformance.verdict_files import LOG_FILE, shorten
from fmimaster.fmu.model_exchange.integrator import Integrator
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.system.archive import file_hash
from fmimaster.system.declarations import Interface
from fmimaster.system.description import Component, System, SystemDescription
from fmimaster.system.model import Source

MOST_LOG = 2**20
"""Bytes of a log file; later messages are not written."""

SAME_TIME = 1e-9
"""Part of the time span by which the last row may be before the stop time: sums of steps are rounded."""

log = logging.getLogger("fmimaster")


@dataclass
class _Run:
    """What is known about a run so far."""

    case: FmuCase
    verdict: Verdict
    results: Results | None = None
    reference: Results | None = None
    problems: list[str] = field(default_factory=list)
    """Of the reference and its options; the FMU is run nevertheless."""

    def put(self, **values: Any) -> None:
        """Change the verdict."""
        self.verdict = replace(self.verdict, **values)

    def note(self, *notes: str) -> None:
        """Add notes to the verdict."""
        self.put(notes=(*self.verdict.notes, *notes))

    def end(
        self, outcome: VerdictOutcome, cause: VerdictCause = VerdictCause.NONE, reason: str = ""
    ) -> None:
        """Give the verdict."""
        self.put(outcome=outcome, cause=cause, reason=reason)


def blank_verdict(case: FmuCase) -> Verdict:
    """What is known about an FMU before its run."""
    return Verdict(
        name=case.name,
        fmu=case.fmu,
        outcome=VerdictOutcome.FAILED,
        model=case.model,
        exporter=case.exporter,
        exporter_version=case.exporter_version,
        fmi_version=case.fmi_version,
        interface=case.interface.value if case.interface else "",
        platform=case.platform,
        reference=case.beside(case.reference),
        results=case.results,
    )


def run_case(
    case: FmuCase,
    folder: Path,
    work: Path,
    limits: ConformanceLimits,
    solver: str | Integrator | None,
) -> Verdict:
    """Run an FMU and compare its results with its reference, in a process of its own.

    Results are written while it runs, into ``MODEL_out.csv``, and the log into ``log.txt``.

    Parameters
    ----------
    folder
        An existing folder for these files.
    work
        An empty folder: the working directory, and for temporary files. Its owner deletes it.
    solver
        For a Model Exchange FMU.
    """
    os.chdir(work)
    os.environ["TMPDIR"] = tempfile.tempdir = str(work)
    run = _Run(case, blank_verdict(case))
    with _logged(folder / LOG_FILE):
        try:
            run.put(sha256=file_hash(case.path))
            _simulate(run, folder, solver)
            _judge(run, limits)
        except FmimasterError as error:
            log.error("%s", error)
            run.end(*_meaning(error, case), _about(case, str(error)))
        except Exception as error:
            log.error("%s", traceback.format_exc())
            reason = f"A defect of fmimaster: {type(error).__name__}: {error}"
            run.end(VerdictOutcome.FAILED, VerdictCause.INTERNAL, reason)
    return run.verdict


class _Capped(logging.FileHandler):
    """A log file that does not grow for ever: some FMUs write messages at each step."""

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        stream.reconfigure(newline="\n")  # on every system
        return stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, if there is room."""
        if self.stream is None or self.stream.tell() < MOST_LOG:
            super().emit(record)


@contextmanager
def _logged(file: Path) -> Iterator[None]:
    """Write the log into a file, line by line: it is there after a crash as well."""
    handler = _Capped(file, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are in the log
            yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        handler.close()


def _simulate(run: _Run, folder: Path, solver: str | Integrator | None) -> None:
    case = run.case
    if not case.follows_rules:
        return
    facts = read_facts(case)
    options, signals = _options(run), _inputs(run, facts)
    run.reference = _reference(run, facts)
    covered = None if run.reference is None else run.reference.time[[0, -1]].tolist()
    times = times_of(facts.experiment, facts.capabilities, options, covered)
    run.note(*times.notes)
    run.put(
        start_time=float(times.start),
        stop_time=float(times.stop),
        step_size=float(times.step),
    )
    simulation = Simulation(
        _system(case),
        start_time=times.start,
        stop_time=times.stop,
        step_size=times.step,
        tolerance=options.tolerance,
        input=signals,
        ignore_further_columns=True,
        output_variables=_columns(run.reference, facts),
        allow_nan=True,
        error_estimate=False,
        event_clock="none",
        solver=solver if case.interface is Interface.MODEL_EXCHANGE else None,
    )
    file = folder / f"{case.model}_out.csv"
    begun = time.perf_counter()
    try:
        simulation.run(output_file=file)
    finally:
        run.put(seconds=time.perf_counter() - begun)
        if file.is_file():
            run.results = Results.read(file)
            run.put(rows=run.results.rows, curves=curves(run.results))
            run.note(*shorten(file))


def _options(run: _Run) -> ReferenceOptions:
    file = run.case.options
    if file is not None:
        try:
            return read_options(file)
        except FileError as error:
            run.problems.append(str(error))
    return ReferenceOptions()


def _reference(run: _Run, facts: FmuDescription) -> Results | None:
    """The reference beside the FMU, or the results that it carries."""
    file = run.case.reference
    if file is None:
        reference, name, notes = read_carried(run.case, facts.names)
        run.put(reference=f"{run.case.fmu}/{name}" if name else "")
        run.note(*notes)
        return reference
    try:
        reference, notes = read_reference(file)
    except InputError as error:
        run.problems.append(str(error))
        return None
    if not reference.rows:
        run.problems.append(f"'{file.name}' has no rows.")
        return None
    run.note(*notes)
    return reference


def _inputs(run: _Run, facts: FmuDescription) -> Path | None:
    file = run.case.inputs
    if file is None:
        return None
    others = [name for name in Results.read(file).names if name not in facts.inputs]
    if others:
        run.note(f"'{file.name}': no inputs of these names: {named(others)}")
    return file


def _columns(reference: Results | None, facts: FmuDescription) -> list[str]:
    """The variables that are recorded; none means all outputs."""
    names = () if reference is None else reference.names
    # columns can be elements of an array
    of_reference = (n if n in facts.names else of_array(n) for n in names)
    recorded = dict.fromkeys(n for n in of_reference if n in facts.recorded)
    return list(recorded) or list(facts.instead_of_outputs)


def _system(case: FmuCase) -> SystemDescription:
    """The FMU as a system, used by the interface of the case."""
    component = Component(case.model, Source(case.path), interface=case.interface)
    return SystemDescription(System(case.model, (component,)), source=case.path, is_single_fmu=True)


def _judge(run: _Run, limits: ConformanceLimits) -> None:
    """The verdict about a run that has reached its end."""
    verdict, results = run.verdict, run.results
    if not run.case.follows_rules:
        reason = f"The FMU is not run, because there is a file '{NOT_COMPLIANT}' beside it."
        run.end(VerdictOutcome.REJECTED, VerdictCause.RULES, reason)
        return
    if results is None or verdict.start_time is None or verdict.stop_time is None:
        raise SimulationError("The run has no results.")
    run.note(*_oddities(results, verdict.start_time, verdict.stop_time))
    if run.problems:
        run.end(VerdictOutcome.REJECTED, VerdictCause.REFERENCE, " ".join(run.problems))
        return
    if run.reference is None:
        run.end(VerdictOutcome.PASSED)
        return
    try:
        stop = _compared_until(results, run.reference, verdict.start_time, verdict.stop_time)
        found = measure(results, run.reference, verdict.start_time, stop, limits)
    except OptionError as error:
        run.end(VerdictOutcome.REJECTED, VerdictCause.REFERENCE, str(error))
        return
    run.note(*found.notes)
    run.put(
        measures=found.measures,
        curves=curves(results, run.reference, [m.deviation.name for m in found.measures]),
    )
    if found.passed:
        run.end(VerdictOutcome.PASSED)
    else:
        run.end(VerdictOutcome.FAILED, VerdictCause.DEVIATION, found.problem)


def _compared_until(results: Results, reference: Results, start: float, stop: float) -> float:
    """The stop time; if the FMU has ended the run, and the reference ends there as well, that time."""
    slack = SAME_TIME * (stop - start)
    reached, covered = float(results.time[-1]), float(reference.time[-1])
    return covered if covered - slack <= reached < stop - slack else stop


def _oddities(results: Results, start: float, stop: float) -> Iterator[str]:
    """What a reader should know about results that are no failure."""
    if results.rows and results.time[-1] < stop - SAME_TIME * (stop - start):
        yield f"the FMU has ended the run at t = {results.time[-1]:g} s, before the stop time {stop:g} s"
    table = results.expand()
    wrong = [
        name
        for name, column in table.columns.items()
        if column.dtype.kind == "f" and not np.isfinite(column).all()
    ]
    if wrong:
        yield f"values that are no finite numbers: {named(wrong)}"


def _about(case: FmuCase, text: str) -> str:
    """A message without paths of this machine."""
    for path in (case.path, case.fmu):
        text = text.replace(f"'{path}'", "the FMU")
    for file in filter(None, (case.inputs, case.reference, case.options)):
        text = text.replace(str(file), file.name)
    return f"T{text[1:]}" if text.startswith("the FMU") else text


def _meaning(error: FmimasterError, case: FmuCase) -> tuple[VerdictOutcome, VerdictCause]:
    """What an error says about an FMU."""
    if isinstance(error, SimulationError):
        return VerdictOutcome.FAILED, VerdictCause.ERROR
    if isinstance(error, FileError) and case.inputs is not None and str(case.inputs) in str(error):
        return VerdictOutcome.REJECTED, VerdictCause.REFERENCE
    if isinstance(error, ModelError) and _can_be_prepared(case):
        return VerdictOutcome.REJECTED, VerdictCause.LIBRARY
    return VerdictOutcome.REJECTED, VerdictCause.REFUSED


def _can_be_prepared(case: FmuCase) -> bool:
    """Whether an FMU is fit for a run as far as it can be said without its library."""
    try:
        Simulation(_system(case), start_time=0.0, stop_time=1.0, step_size=1.0).prepare()
    except (FmimasterError, TypeError):
        return False
    return True
