"""The file ``MODEL_ref.opt`` beside an FMU: how its reference was made.

Source: FMI cross-check rules 4.1, section 9.1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from fmimaster.base.errors import FileError, did_you_mean
from fmimaster.base.files import read_whole

_NUMBERS = ("StartTime", "StopTime", "StepSize", "RelTol", "AbsTol", "OutputIntervalLength")
_TEXTS = ("SolverType",)


@dataclass(frozen=True)
class ReferenceOptions:
    """What such a file has; times in s, None if it has no value.

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
