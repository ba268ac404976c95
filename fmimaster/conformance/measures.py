"""How far the results of an FMU are from its reference: by each measure, for each variable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.text import count, named
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.conformance.reference_file import shaped
from fmimaster.results.columns import numbers
from fmimaster.results.comparison import Comparison, Deviation, compare, jumps, percent_of
from fmimaster.results.deviations import JumpTimes, band, jump_times
from fmimaster.results.table import Table

OUTSIDE = 0.1
"""Largest permitted share of samples outside the band, as in the FMI cross-check: published results were decided by it, so
ours can be compared with them. The band is wide; so the other measures are in each report."""
_SAME_TIME = 1e-9
"""Part of the time span by which results may end earlier: sums of steps are rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceLimits(TypedArguments):
    """The largest permitted value of each measure, for each variable; only the cross-check band has a limit by default.

    Attributes
    ----------
    outside : float
        Share of the samples outside the band of the FMI cross-check, 0 to 1.
    relative_rms : float
        Root mean square of the deviation over time, relative to the range of the reference.
    largest : float
        The largest deviation, relative to the range of the reference.
    jump_time : float
        Difference of the times of a jump in the results and in the reference, in s; with a limit, every jump of the
        reference must be in the results, and no others.
    """

    outside: float = OUTSIDE
    relative_rms: float = inf
    largest: float = inf
    jump_time: float = inf

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value >= 0.0:
                raise OptionError(
                    f"The limit '{name}' of a conformance run is {value:g}; expected 0 or a positive number."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How far a variable is from its reference.

    Attributes
    ----------
    deviation : Deviation
        Root mean square, largest error and its time.
    outside : float
        Share of the samples outside the band of the FMI cross-check, 0 to 1.
    jumps : JumpTimes, optional
        Times of the jumps beside those of the reference; None if the reference does not show when there are jumps.
    problem : str
        Which limit is exceeded, as a sentence; empty if none is.
    """

    deviation: Deviation
    outside: float
    jumps: JumpTimes | None
    problem: str

    def to_json(self) -> dict[str, Any]:
        """The measure as JSON values; infinite numbers are None."""
        facts = {name: json_number(v) for name, v in asdict(self.deviation).items()}
        jumps = None if self.jumps is None else asdict(self.jumps)
        return {**facts, "outside": self.outside, "jumps": jumps, "problem": self.problem}

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> Measure:
        """The measure from :meth:`to_json`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the facts are of another form.
        """
        span, rms, largest, time = (_number(facts[n]) for n in ("range", "rms", "largest", "time"))
        name, unit = str(facts["name"]), str(facts["unit"])
        jumps = None if facts["jumps"] is None else _jumps(**facts["jumps"])
        return Measure(
            deviation=Deviation(name, unit, span, rms, largest, time, int(facts.get("alone", 0))),
            outside=float(facts["outside"]),
            jumps=jumps,
            problem=str(facts["problem"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuMeasures:
    """The results of an FMU beside its reference.

    Attributes
    ----------
    measures : tuple of Measure
        One for each variable, the largest deviation first.
    notes : tuple of str
        What was not compared, as sentences.
    problem : str
        Why the results differ too much, as a sentence; empty if they do not.
    """

    measures: tuple[Measure, ...]
    notes: tuple[str, ...]
    problem: str

    @property
    def passed(self) -> bool:
        """Whether all variables are within all limits, and the results cover the whole run."""
        return not self.problem


def measure(
    results: Table,
    reference: Table,
    start_time: float,
    stop_time: float,
    limits: ConformanceLimits | None = None,
) -> FmuMeasures:
    """Measure how far results are from a reference.

    Parameters
    ----------
    start_time, stop_time
        Of the run, in s; results that cover less do not pass. Compared is what the reference covers of it.
    limits
        What is permitted; default: the band of the FMI cross-check.

    Raises
    ------
    OptionError
        If the results lack all columns of the reference, or it has no column with numbers, or no time of the run.
    """
    limits = limits or ConformanceLimits()
    results, reference = results.expand(), shaped(reference, results).expand()
    lacking = _lacking(results, reference)
    columns = {name: values for name, values in reference.columns.items() if name not in lacking}
    reference = replace(reference, columns=columns)
    found = compare(results, reference)
    measures = tuple(_measures(results, reference, found, limits))
    too_short = _too_short(results, start_time, stop_time)
    problem = too_short or next((m.problem for m in measures if m.problem), "")
    others = sum(bool(m.problem) for m in measures) - 1
    if others > 0 and not too_short:
        problem += f" Beyond the limits as well: {count(others, 'other variable')}."
    return FmuMeasures(
        measures=measures,
        notes=tuple(_notes(found, lacking, reference, start_time, stop_time)),
        problem=problem,
    )


def _lacking(results: Table, reference: Table) -> list[str]:
    """Columns of the reference that the results lack; not all of them may."""
    lacking = [name for name in reference.names if name not in results]
    if lacking and len(lacking) == len(reference.columns):
        near = did_you_mean(lacking[0], results.names)
        raise OptionError(
            f"The results have no column of the reference, which has {named(lacking)}.{near} The results have "
            f"{named(results.names)}."
        )
    return lacking


def _too_short(results: Table, start: float, stop: float) -> str:
    slack = _SAME_TIME * (stop - start)
    first, last = results.time[[0, -1]]
    if results.rows < 2:
        return "The results have one row only; expected at least two."
    if first > start + slack:
        return f"The results begin at t = {first:g} s, after the start time {start:g} s."
    if last < stop - slack:
        return f"The results end at t = {last:g} s, before the stop time {stop:g} s."
    return ""


def _notes(
    found: Comparison, lacking: list[str], reference: Table, start: float, stop: float
) -> Iterator[str]:
    if lacking:
        yield f"Not compared, because the results lack these columns of the reference: {named(lacking)}."
    slack = _SAME_TIME * (stop - start)
    first, last = reference.time[[0, -1]]
    if first > start + slack or last < stop - slack:
        yield (
            f"The reference covers t = {first:g} s to {last:g} s, the run {start:g} s to {stop:g} s. "
            "Only the common part is compared."
        )
    if found.missing:
        yield f"Not compared, because they hold no numbers: {named(found.missing)}."


def _measures(
    results: Table, reference: Table, found: Comparison, limits: ConformanceLimits
) -> Iterator[Measure]:
    rows = (results.time >= found.start_time) & (results.time <= found.stop_time)
    time = results.time[rows]
    has_repeated = bool((np.diff(reference.time) == 0.0).any())
    for deviation in found.deviations:
        columns = results[deviation.name], reference[deviation.name]
        if any(map(np.ma.isMaskedArray, columns)):  # a band and jumps need a value at each time
            problem = " ".join(_problems(deviation, 0.0, None, limits))
            yield Measure(deviation=deviation, outside=0.0, jumps=None, problem=problem)
            continue
        held = reference[deviation.name].dtype.kind != "f"
        values = numbers(results[deviation.name])[rows]
        there = numbers(reference[deviation.name])
        limit = band(reference.time, there, found.start_time, found.stop_time)
        outside = limit.outside(time, values)
        times = (
            jump_times(jumps(time, values, held), jumps(reference.time, there, held))
            if held or has_repeated
            else None
        )
        problem = " ".join(_problems(deviation, outside, times, limits))
        yield Measure(deviation=deviation, outside=outside, jumps=times, problem=problem)


def _problems(
    d: Deviation, outside: float, jumps: JumpTimes | None, limits: ConformanceLimits
) -> Iterator[str]:
    if d.alone:
        yield (
            f"'{d.name}': only one of results and reference has {count(d.alone, 'value')}, the first at "
            f"t = {d.time:.6g} s."
        )
        return
    if outside > limits.outside:
        yield (
            f"'{d.name}': {percent_of(outside)} of the samples are outside the band around the reference; "
            f"the limit is {percent_of(limits.outside)}."
        )
    if d.relative > limits.relative_rms:
        yield (
            f"'{d.name}': the root mean square of the deviation is {percent_of(d.relative)} of the range; "
            f"the limit is {percent_of(limits.relative_rms)}."
        )
    if d.largest > limits.largest * d.range:
        yield (
            f"'{d.name}': the largest deviation is {d.largest:.3g} {d.unit}".rstrip()
            + f" at t = {d.time:.6g} s; the limit is {percent_of(limits.largest)} of the range."
        )
    if jumps is not None and isfinite(limits.jump_time):
        if jumps.missed or jumps.added:
            yield (
                f"'{d.name}': of {count(jumps.known, 'jump')} of the reference {jumps.missed} are missing, "
                f"and there are {jumps.added} additional ones."
            )
        if jumps.largest > limits.jump_time:
            yield (
                f"'{d.name}': the jump at t = {jumps.time:.6g} s is {jumps.largest:.3g} s away in the results; "
                f"the limit is {limits.jump_time:g} s."
            )


def _jumps(known: int, missed: int, added: int, largest: float, time: float) -> JumpTimes:
    return JumpTimes(int(known), int(missed), int(added), float(largest), float(time))


def _number(value: Any) -> float:
    """The number from JSON, which has no infinite ones."""
    return inf if value is None else float(value)


def json_number(value: Any) -> Any:
    """A value for JSON, which has no infinite numbers."""
    return None if isinstance(value, float) and not isfinite(value) else value
