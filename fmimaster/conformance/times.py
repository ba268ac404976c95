"""Times of the run of an FMU alone: those of its reference (``MODEL_ref.opt``), otherwise those that it suggests.

Source: FMI cross-check rules 4.1, section 9.1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isfinite
from pathlib import Path

from fmimaster.base.errors import FileError, OptionError, did_you_mean
from fmimaster.base.files import read_whole
from fmimaster.instants.instant import exact
from fmimaster.steps.schedule import DEFAULT_STEPS, round_to_125
from fmimaster.system.declarations import Capabilities, DefaultExperiment

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
    """Read such a file: lines ``NAME, VALUE``, in any order, with comments after ``//``.

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
    experiment: DefaultExperiment,
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
    experiment: DefaultExperiment,
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
