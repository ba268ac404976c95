"""Comparison of results with those of another run, another tool, or a measurement: the deviation of each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.text import aligned, count, named
from fmimaster.results.columns import (
    SAME_TIME,
    TOLERANCE,
    Array,
    is_present,
    numbers,
    paired,
    spans,
)
from fmimaster.results.panels import units_of
from fmimaster.results.table import Table


@dataclass(frozen=True, slots=True)
class Deviation:
    """Deviation of a column from the reference.

    Attributes
    ----------
    name, unit : str
        Of the column.
    range : float
        Largest minus smallest value of the reference, in the unit; for a constant, its absolute value.
    rms : float
        Root mean square of the deviation over time, in the unit; infinite if one of the two is NaN somewhere.
    largest : float
        The largest absolute deviation, in the unit.
    time : float
        When it occurs, in s; if there are values that only one of the two has, the time of the first of these.
    alone : int
        How many values only one of the two has: ticks of a clock that the other one lacks, or rows in a time in which the
        other one has no value.
    """

    name: str
    unit: str
    range: float
    rms: float
    largest: float
    time: float
    alone: int = 0

    @property
    def relative(self) -> float:
        """The root mean square relative to the range; infinite if only the reference is constantly 0, or if only one of the
        two has a value somewhere."""
        if self.alone:
            return inf
        if self.rms == 0.0:
            return 0.0
        return self.rms / self.range if self.range > 0.0 else inf


@dataclass(frozen=True, slots=True)
class PhaseError:
    """A discrete column that changes more or less often than that of the reference.

    From the first change that one of them lacks, the times of the changes belong to different cycles: they cannot be
    compared.

    Attributes
    ----------
    name : str
        Of the column.
    found, known : int
        How often it changes in the results and in the reference, in the time that both cover.
    """

    name: str
    found: int
    known: int

    def __str__(self) -> str:
        return (
            f"phase error: '{self.name}' changes {self.found} times, {self.known} times in the reference: the times of "
            "later changes cannot be compared"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The deviations of all columns that both results and reference have; as text, a table.

    Attributes
    ----------
    deviations : tuple of Deviation
        Sorted by the relative deviation, the largest first.
    tolerance : float
        The largest permitted :attr:`Deviation.relative`.
    start_time, stop_time : float
        The first and the last time of the results that the reference covers, in s.
    missing : tuple of str
        Columns of the reference that the results do not have.
    phase_errors : tuple of PhaseError
        Discrete columns that change more or less often than in the reference.
    """

    deviations: tuple[Deviation, ...]
    tolerance: float
    start_time: float
    stop_time: float
    missing: tuple[str, ...]
    phase_errors: tuple[PhaseError, ...] = ()

    @property
    def is_within(self) -> bool:
        """Whether no column deviates by more than the tolerance."""
        return not self.beyond

    @property
    def beyond(self) -> tuple[Deviation, ...]:
        """Columns that deviate by more than the tolerance."""
        return tuple(d for d in self.deviations if not d.relative <= self.tolerance)

    def __str__(self) -> str:
        head = ("variable", "unit", "RMS deviation", "of the range", "largest", "at t", "")
        return "\n".join([*aligned([head, *map(self._row, self.deviations)], ""), *self._end()])

    def _row(self, d: Deviation) -> tuple[str, ...]:
        verdict = "" if d.relative <= self.tolerance else "beyond"
        if d.alone:
            verdict += f": {count(d.alone, 'value')} of one only"
        numbers = (f"{d.rms:.3g}", percent_of(d.relative), f"{d.largest:.3g}", f"{d.time:.6g} s")
        return d.name, d.unit, *numbers, verdict

    def _end(self) -> Iterator[str]:
        span = f"from t = {self.start_time:g} s to {self.stop_time:g} s"
        of = count(len(self.deviations), "variable")
        wrong = f"{len(self.beyond)} of {of} beyond" if self.beyond else f"{of} within"
        yield f"compared with the reference {span}: {wrong} the tolerance of {percent_of(self.tolerance)}"
        yield from map(str, self.phase_errors)
        if self.missing:
            yield f"not compared, because the results lack them: {named(self.missing)}"


def compare(results: Table, reference: Table, tolerance: float = TOLERANCE) -> Comparison:
    """Compare columns with the same names at those rows of the results whose times the reference covers.

    Between its rows the reference is interpolated linearly; integers and Booleans are held. If it has several rows at
    one time, every value between them is treated as equal to the reference.

    Where values can be absent, they are compared where both are present, and each value that only one of the two has counts
    as a deviation beyond any tolerance. Values at ticks of a clock are compared tick by tick: of several at one time the
    first with the first, the second with the second, ….

    The root mean square decides, not the largest deviation: an event that is found a microsecond later is a deviation of
    the whole jump in one row, and no failure.

    Parameters
    ----------
    tolerance
        Largest permitted root mean square of a deviation, relative to the range of the reference.

    Raises
    ------
    OptionError
        If there is no common column with numbers, no common time, or a unit differs.
    """
    if not tolerance >= 0.0:
        raise OptionError(
            f"The tolerance of a comparison is {tolerance:g}; expected 0 or a positive number, such as {TOLERANCE}."
        )
    results, reference = results.expand(), reference.expand()
    units = units_of([reference, results])
    known = [name for name in reference.names if reference[name].dtype.kind != "O"]
    common = [name for name in known if name in results and results[name].dtype.kind != "O"]
    if not known:
        raise OptionError("The reference has no column with numbers.")
    if not common:
        raise OptionError(
            f"The results have none of the columns of the reference: {named(reference.names)}. "
            f"The results have {named(results.names)}."
        )
    first, last = reference.time[[0, -1]] if reference.rows else (0.0, -1.0)
    rows = np.flatnonzero((results.time >= first) & (results.time <= last))
    if not len(rows):
        raise OptionError(
            "No row of the results is in the time range of the reference, "
            + (f"t = {first:g} s to {last:g} s." if reference.rows else "which has no rows.")
        )
    time = results.time[rows]
    found = [_compared(name, units.get(name, ""), results, rows, reference) for name in common]
    return Comparison(
        tuple(sorted(found, key=lambda d: (-d.relative, d.name))),
        tolerance,
        float(time[0]),
        float(time[-1]),
        tuple(name for name in reference.names if name not in common),
        tuple(_phase_errors(common, results, reference)),
    )


def jumps(time: Array, values: Array, held: bool) -> Array:
    """When a column jumps: between its rows at one time, and if its values are held, at each change.

    Returns
    -------
    shape (n, 2), in s
        Each jump is between these two times. They are equal for rows at one time.
    """
    differs = ~((values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1])))
    here = np.flatnonzero(differs & (held | (time[1:] == time[:-1])))
    return np.unique(np.column_stack((time[here], time[here + 1])), axis=0)


def _phase_errors(names: Sequence[str], results: Table, reference: Table) -> Iterator[PhaseError]:
    """Those of the columns that are discrete and always present in both."""
    first = max(results.time[0], reference.time[0])
    last = min(results.time[-1], reference.time[-1])
    for name in names:
        if any(
            t[name].dtype.kind == "f" or np.ma.isMaskedArray(t[name]) for t in (results, reference)
        ):
            continue
        counts = []
        for table in (results, reference):
            rows = (table.time >= first) & (table.time <= last)
            counts.append(len(jumps(table.time[rows], numbers(table[name][rows]), held=True)))
        if counts[0] != counts[1]:
            yield PhaseError(name, *counts)


def percent_of(part: float) -> str:
    """``"2.13 %"``."""
    return f"{100 * part:.3g} %"


def _compared(
    name: str, unit: str, results: Table, rows: NDArray[np.intp], reference: Table
) -> Deviation:
    """The deviation of a column in some rows of the results."""
    time, column, known = results.time[rows], results[name][rows], reference[name]
    is_whole = not (np.ma.isMaskedArray(column) or np.ma.isMaskedArray(known))
    if is_whole:
        apart = _apart(time, numbers(column), reference.time, known)
        return _deviation(name, unit, known, time, apart)
    if spans(column).are_ticks(time):
        return _of_ticks(name, unit, time, column, reference, results.time[[0, -1]])
    return _of_spans(name, unit, time, column, reference)


def _deviation(
    name: str,
    unit: str,
    known: NDArray[Any],
    time: Array,
    apart: Array,
    alone: Sequence[float] = (),
    rms: float | None = None,
) -> Deviation:
    """The deviation with these distances; the times in s of values that only one of the two has do not decrease."""
    there = numbers(known)
    finite = there[np.isfinite(there)]
    scale = float(np.ptp(finite) or np.abs(finite[0])) if len(finite) else 0.0
    if not len(time):
        return Deviation(name, unit, scale, 0.0, 0.0, alone[0] if alone else 0.0, len(alone))
    worst = int(apart.argmax())
    when = alone[0] if alone else float(time[worst])
    rms = _rms(time, apart) if rms is None else rms
    return Deviation(name, unit, scale, rms, float(apart[worst]), when, len(alone))


def _of_ticks(
    name: str, unit: str, time: Array, column: NDArray[Any], reference: Table, run: Array
) -> Deviation:
    """The deviation of values that are present at instants only; the run has these ends."""
    known, there = reference[name], reference.time
    ours, theirs = is_present(column), is_present(known) & (there >= run[0]) & (there <= run[1])
    pairs = paired(time[ours], there[theirs])
    a, b = numbers(column)[ours][pairs.ours], numbers(known)[theirs][pairs.theirs]
    apart = _distance(a, b, b)
    rms = float(np.sqrt(np.mean(apart**2))) if len(apart) else 0.0
    return _deviation(name, unit, known, time[ours][pairs.ours], apart, pairs.alone, rms)


def _of_spans(
    name: str, unit: str, time: Array, column: NDArray[Any], reference: Table
) -> Deviation:
    """The deviation of values that are present over spans of time, as those of components that exist in a part of the run.

    At the ends of a span a row may have a value or not: there is one of each.
    """
    known, there = reference[name], reference.time
    present = is_present(column)
    apart, is_inside = np.full(len(time), inf), np.zeros(len(time), bool)
    alone: list[float] = []
    for first, last in zip(*spans(known), strict=True):
        start, end = there[first], there[last]
        near = SAME_TIME * max(abs(start), abs(end))
        inside = (time >= start - near) & (time <= end + near)
        is_inside |= inside
        lacking = ~present & (time > start + near) & (time < end - near)
        alone += time[lacking].tolist()
        here, part = np.flatnonzero(inside & present), slice(first, last + 1)
        if len(here):
            times = np.clip(time[here], start, end)
            apart[here] = _apart(times, numbers(column)[here], there[part], known[part])
        elif not lacking.any() and time[0] <= start <= time[-1]:
            alone.append(float(start))
    alone += time[present & ~is_inside].tolist()
    both = present & is_inside
    return _deviation(name, unit, known, time[both], apart[both], sorted({*alone}))


def _apart(time: Array, values: Array, there: Array, known: NDArray[Any]) -> Array:
    """Distance of values from a reference, which has values in all rows."""
    with np.errstate(invalid="ignore"):  # infinite values
        low, high = _at(time, there, numbers(known), known.dtype.kind != "f")
    return _distance(values, low, high)


def _distance(values: Array, low: Array, high: Array) -> Array:
    """Distance of values from a range; infinite if only one of the two is NaN."""
    with np.errstate(invalid="ignore"):  # infinite values
        apart = np.maximum(np.maximum(low - values, values - high), 0.0)
    apart[np.isnan(apart)] = inf
    apart[(np.isnan(low) & np.isnan(values)) | (low == values) | (high == values)] = 0.0
    return apart


def _at(time: Array, known: Array, values: Array, held: bool) -> tuple[Array, Array]:
    """The smallest and the largest value at each time; they differ where there are several rows."""
    first = np.searchsorted(known, time, "left")
    last = np.searchsorted(known, time, "right") - 1
    is_row = known[first] == time
    before, after = last, np.minimum(last + 1, len(known) - 1)
    width = np.where(is_row, 1.0, known[after] - known[before])
    part = np.where(is_row | held, 0.0, (time - known[before]) / width)
    there = np.where(
        part > 0.0, values[before] + part * (values[after] - values[before]), values[before]
    )
    at_first = np.where(is_row, values[first], there)
    at_last = np.where(is_row, values[last], there)
    return np.minimum(at_first, at_last), np.maximum(at_first, at_last)


def _rms(time: Array, values: Array) -> float:
    """Root mean square over time, by the trapezoidal rule; the largest value if there is one time only."""
    h = np.diff(time)
    if not np.sum(h) > 0.0 or not np.isfinite(values).all():
        return float(values.max())
    return float(np.sqrt(np.sum((values[1:] ** 2 + values[:-1] ** 2) / 2.0 * h) / np.sum(h)))
