"""What decides about the run of an FMU alone, before it is unpacked: its names and capabilities, and the times of the run.
These are those of its reference (``MODEL_ref.opt``), otherwise those that it suggests.

Source: FMI cross-check rules 4.1, section 9.1.4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil, floor, isfinite
from pathlib import Path

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, ModelError, OptionError, did_you_mean
from fmimaster.base.files import read_whole
from fmimaster.conformance.cases import FmuCase
from fmimaster.fmu.description.findings import Findings
from fmimaster.fmu.description.model_description import (
    interface_element,
    read_capabilities,
    read_experiment,
)
from fmimaster.instants.instant import exact
from fmimaster.steps.schedule import DEFAULT_STEPS, round_to_125
from fmimaster.system.archive import open_archive
from fmimaster.system.declarations import Capabilities, Experiment
from fmimaster.system.model import Source
from fmimaster.system.xml import Element, child, children, local_name, parse_xml

MOST_LOCALS = 20
"""So many local variables are recorded of an FMU without outputs."""

_NOT_RECORDED = ("Binary", "Clock")
"""Types of FMI 3.0 without columns in results."""


@dataclass(frozen=True)
class FmuDescription:
    """Facts from a model description.

    Attributes
    ----------
    names : frozenset of str
        Of all variables.
    recorded : frozenset of str
        Those that can be columns of results.
    inputs : frozenset of str
    instead_of_outputs : tuple of str
        Local variables that are recorded, if there are no outputs.
    experiment : Experiment
    capabilities : Capabilities
        Of the interface.
    """

    names: frozenset[str]
    recorded: frozenset[str]
    inputs: frozenset[str]
    instead_of_outputs: tuple[str, ...]
    experiment: Experiment
    capabilities: Capabilities


def read_facts(case: FmuCase) -> FmuDescription:
    """Read the facts of an FMU; its variables are not checked, because the run does that.

    Raises
    ------
    FileError, ModelError
        If there is no model description that can be read, or it does not offer the interface.
    """
    if case.problem:
        raise ModelError(case.problem)
    if case.fmi_version.startswith("1."):
        raise ModelError(
            f"'{case.fmu}' is of FMI {case.fmi_version}. Expected FMI 2.0 or 3.0: export it again."
        )
    if case.interface is None:
        raise ModelError(
            f"'{case.fmu}' offers neither Co-Simulation nor Model Exchange. Expected one of them."
        )
    with open_archive(Source(case.path)) as archive:
        text = archive.read("modelDescription.xml")
    root = parse_xml(text, f"{case.fmu}/modelDescription.xml")
    used = interface_element(root, case.interface, case.fmu)
    variables = list(child(root, "ModelVariables") or ())
    outputs = [v for v in variables if v.get("causality") == "output" and _is_recorded(v)]
    local = [v.get("name") or "" for v in variables if _is_changing(v) and _is_recorded(v)]
    findings = Findings()
    return FmuDescription(
        frozenset(_names(variables)),
        frozenset(_names([v for v in variables if _is_recorded(v)])),
        frozenset(v.get("name") or "" for v in variables if v.get("causality") == "input"),
        () if outputs else tuple(local[:MOST_LOCALS]),
        read_experiment(root, findings),
        read_capabilities(
            used,
            case.interface,
            is_fmi2=case.fmi_version.startswith("2."),
            findings=findings,
        ),
    )


def _names(variables: list[Element]) -> Iterator[str]:
    for variable in variables:
        yield variable.get("name") or ""
        for alias in children(variable, "Alias"):
            yield alias.get("name") or ""


def _is_recorded(variable: Element) -> bool:
    return local_name(variable) not in _NOT_RECORDED and not variable.get("clocks")


def _is_changing(variable: Element) -> bool:
    is_local = (variable.get("causality") or "local") == "local"
    return is_local and variable.get("variability") not in ("constant", "fixed")


_NUMBERS = ("StartTime", "StopTime", "StepSize", "RelTol", "AbsTol", "OutputIntervalLength")
_TEXTS = ("SolverType",)


@dataclass(frozen=True)
class ReferenceOptions:
    """What the file ``MODEL_ref.opt`` beside an FMU has: how its reference was made. Times in s, None without a value.

    Attributes
    ----------
    start_time, stop_time : float or None
    step_size : float or None
        Of the solver; None for a solver with variable steps, for which the file has 0.
    tolerance : float or None
        Relative tolerance of the solver.
    output_interval : float or None
        Between two rows of the reference.
    """

    start_time: float | None = None
    stop_time: float | None = None
    step_size: float | None = None
    tolerance: float | None = None
    output_interval: float | None = None


def read_options(path: Path) -> ReferenceOptions:
    """Read the file ``MODEL_ref.opt``: lines ``NAME, VALUE``, in any order, with comments after ``//``.

    Raises
    ------
    FileError
        If it cannot be read, or a value is none.
    """
    found = dict(_entry(path, number, line) for number, line in _lines(path))
    start, stop = found.get("StartTime"), found.get("StopTime")
    if start is not None and stop is not None and not stop > start:
        raise FileError(
            f"'{path.name}': the stop time {stop:g} s is not after the start time {start:g} s."
        )
    positive = (_positive(found, name) for name in ("StepSize", "RelTol", "OutputIntervalLength"))
    return ReferenceOptions(start, stop, *positive)


def _lines(path: Path) -> list[tuple[int, str]]:
    text = read_whole(path).decode("utf-8-sig", "replace")
    lines = [line.partition("//")[0].strip() for line in text.splitlines()]
    return [(number, line) for number, line in enumerate(lines, 1) if line]


def _entry(path: Path, number: int, line: str) -> tuple[str, float | None]:
    name, _, value = (part.strip() for part in line.partition(","))
    where = f"'{path.name}', line {number}"
    if name in _TEXTS:
        return name, None
    if name not in _NUMBERS:
        known = (*_NUMBERS, *_TEXTS)
        raise FileError(
            f"{where}: '{name}' is not an option of a reference.{did_you_mean(name, known)} Expected one of: "
            f"{', '.join(known)}."
        )
    if not value:
        return name, None
    try:
        read = float(value)
    except ValueError:
        read = float("nan")
    if not isfinite(read):
        raise FileError(f"{where}: {name} is '{value}', expected a number.")
    return name, read


def _positive(found: Mapping[str, float | None], name: str) -> float | None:
    value = found.get(name)
    return value if value is not None and value > 0.0 else None


MOST_STEPS = 10_000
"""A run without a reference ends after so many steps: some FMUs suggest a stop time of 1e8 s."""

_USUAL_SPAN = Fraction(1)
"""In s, for FMUs that suggest no stop time."""


@dataclass(frozen=True)
class RunTimes:
    """The times of a run, in s, and notes about choices."""

    start: Fraction
    stop: Fraction
    step: Fraction
    notes: tuple[str, ...] = ()


def times_of(
    experiment: Experiment,
    capabilities: Capabilities,
    options: ReferenceOptions,
    covered: tuple[float, float] | None,
) -> RunTimes:
    """Choose the times of a run.

    Parameters
    ----------
    options
        Of the reference; without values if there is no such file.
    covered
        The first and the last time of the reference, in s; None if there is none.

    Raises
    ------
    OptionError
        If the stop time is not after the start time.
    """
    notes = []
    first, last = covered or (experiment.start_time or 0.0, experiment.stop_time)
    start = exact(first if options.start_time is None else options.start_time)
    given = last if options.stop_time is None else options.stop_time
    by_fmu = options.stop_time is None and covered is None
    if given is None or (by_fmu and not exact(given) > start):
        given = None
        notes.append(
            f"the FMU suggests no stop time after the start: {float(_USUAL_SPAN):g} s after it is used"
        )
    stop = start + _USUAL_SPAN if given is None else exact(given)
    if not stop > start:
        raise OptionError(
            f"The stop time {float(stop):g} s is not after the start time {float(start):g} s."
        )
    step = _step(experiment, capabilities, options, stop - start)
    if covered is None and (stop - start) / step > MOST_STEPS:
        notes.append(
            f"the run ends after {MOST_STEPS} steps of {float(step):g} s, before the stop time {float(stop):g} s"
        )
        stop = start + MOST_STEPS * step
    if not capabilities.can_handle_variable_communication_step_size and (stop - start) % step:
        rounded = start + (floor if covered is None else ceil)((stop - start) / step) * step
        notes.append(
            f"the stop time is {float(rounded):g} s instead of {float(stop):g} s, because all steps must have the same size"
        )
        stop = rounded
    return RunTimes(start, stop, step, tuple(notes))


def _step(
    experiment: Experiment,
    capabilities: Capabilities,
    options: ReferenceOptions,
    span: Fraction,
) -> Fraction:
    given = (
        options.step_size
        or options.output_interval
        or experiment.step_size
        or capabilities.fixed_internal_step_size
    )
    step = round_to_125(span / DEFAULT_STEPS) if given is None else exact(given)
    return min(step, span)
