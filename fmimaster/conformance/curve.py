"""Curves of a report: few points of results and of a reference, which look like all rows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import floor, inf, isfinite, log10

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.results.columns import numbers
from fmimaster.results.deviations import band
from fmimaster.results.table import Table

MOST_CURVES = 10
"""Most curves of an FMU: as many as a reference of the cross-check may have."""
_DIGITS = 4
"""Decimal digits of a number relative to the span of its axis: finer than a pixel."""

_PARTS = 120
"""Parts of the time span of which first, last, smallest and largest value are kept."""
_FLAT = 0.002
"""Deviation of a line from the rows that it replaces, relative to the height of the figure: less than a pixel."""

Array = NDArray[np.float64]
Numbers = tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCurve:
    """A variable over time, and its reference.

    Attributes
    ----------
    name, unit : str
        Of the variable.
    held : bool
        Whether values are held until the next point.
    time, values : tuple
        In s and in the unit; None for values that are no finite number.
    reference_time, reference_values : tuple
        The same for the reference; empty without one.
    band_time, lower, upper : tuple
        The band of the cross-check, if a sample is outside; else empty.
    """

    name: str
    unit: str
    held: bool
    time: Numbers
    values: Numbers
    reference_time: Numbers = ()
    reference_values: Numbers = ()
    band_time: Numbers = ()
    lower: Numbers = ()
    upper: Numbers = ()


def curves(
    results: Table, reference: Table | None = None, first: Iterable[str] = ()
) -> tuple[ComparedCurve, ...]:
    """Curves of the columns with numbers, at most :data:`MOST_CURVES`.

    Parameters
    ----------
    reference
        Then only of columns that it has.
    first
        Names of columns in their order, such as those with the largest deviations.
    """
    results = results.expand()
    reference = None if reference is None else reference.expand()
    order = dict.fromkeys([*first, *(results if reference is None else reference).names])
    names = [n for n in order if n in results and results[n].dtype.kind != "O"]
    if reference is not None:
        names = [n for n in names if n in reference and reference[n].dtype.kind != "O"]
    return tuple(_curve(results, reference, name) for name in names[:MOST_CURVES])


def _curve(results: Table, reference: Table | None, name: str) -> ComparedCurve:
    time, values = _points(results, name)
    known_time, known = ((), ()) if reference is None else _points(reference, name)
    band_time, lower, upper = ((), (), ()) if reference is None else _band(results, reference, name)
    return ComparedCurve(
        name=name,
        unit=results.units.get(name, ""),
        held=results[name].dtype.kind != "f",
        time=time,
        values=values,
        reference_time=known_time,
        reference_values=known,
        band_time=band_time,
        lower=lower,
        upper=upper,
    )


def _points(table: Table, name: str) -> tuple[Numbers, Numbers]:
    values = numbers(table[name])
    if not len(values):
        return (), ()
    places = thinned(table.time, values, table[name].dtype.kind != "f")
    return _rounded(table.time[places]), _rounded(values[places])


def _band(results: Table, reference: Table, name: str) -> tuple[Numbers, Numbers, Numbers]:
    if np.ma.isMaskedArray(results[name]) or np.ma.isMaskedArray(reference[name]):
        return (), (), ()
    values, known = numbers(results[name]), numbers(reference[name])
    start = max(results.time[:1].tolist() + reference.time[:1].tolist(), default=0.0)
    stop = min(results.time[-1:].tolist() + reference.time[-1:].tolist(), default=0.0)
    if not (len(values) and len(known) and start < stop):
        return (), (), ()
    limits = band(reference.time, known, start, stop)
    if limits.outside(results.time, values) == 0.0:
        return (), (), ()
    places = np.union1d(thinned(limits.time, limits.lower), thinned(limits.time, limits.upper))
    lower, upper = _rounded(limits.lower[places]), _rounded(limits.upper[places])
    return _rounded(limits.time[places]), lower, upper


def _rounded(values: Array) -> Numbers:
    finite = values[np.isfinite(values)]
    span = float(np.ptp(finite)) if len(finite) else 0.0
    scale = span or (float(np.abs(finite).max()) if len(finite) else 0.0)
    decimals = _DIGITS - floor(log10(scale)) if scale > 0.0 and isfinite(scale) else _DIGITS
    return tuple(x if isfinite(x) else None for x in np.round(values, decimals).tolist())


def thinned(time: Array, values: Array, held: bool = False) -> NDArray[np.intp]:
    """Places of at most ``4 * 120 + 2`` rows; lines between them look like those between all rows.

    Parameters
    ----------
    held
        Whether values are held until the next row. Then only rows at which the value changes are kept.
    """
    if held:
        differs = np.flatnonzero(values[1:] != values[:-1]) + 1
        changes = np.concatenate(([0], differs, [len(time) - 1]))
        return _parts(time, values, np.unique(changes[changes >= 0]))
    places = _parts(time, values, np.arange(len(time)))
    finite = values[np.isfinite(values)]
    height = float(np.ptp(finite)) if len(finite) else 0.0
    return places[_corners(time[places], values[places], _FLAT * height)]


def _parts(time: Array, values: Array, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first, last, smallest and largest of each part of the span, if there are too many."""
    if len(places) <= 4 * _PARTS:
        return places
    here = time[places]
    ends = np.searchsorted(here, np.linspace(here[0], here[-1], _PARTS + 1))
    ends[-1] = len(places)
    kept = [np.array([0, len(places) - 1])]
    for first, last in pairwise(ends.tolist()):
        part = values[places[first:last]]
        if len(part):
            inside = [0, len(part) - 1]
            if not np.isnan(part).all():
                inside += [int(np.nanargmin(part)), int(np.nanargmax(part))]
            kept.append(first + np.array(inside))
    chosen: NDArray[np.intp] = places[np.unique(np.concatenate(kept))]
    return chosen


def _corners(time: Array, values: Array, tolerance: float) -> list[int]:
    """Rows between which all others are within the tolerance of a line.

    Source: swinging door, E. H. Bristol (1990), Swinging door trending.
    """
    if not len(time):
        return []
    t, x = time.tolist(), values.tolist()
    kept, low, high = [0], -inf, inf
    for k in range(1, len(t)):
        start = kept[-1]
        width = t[k] - t[start]
        slope = (x[k] - x[start]) / width if width > 0.0 else None
        # a jump, a value that is no number, or a row that no line through the start can reach
        if slope is None or not low <= slope <= high:
            if k - 1 > start:
                kept.append(k - 1)
            start = kept[-1]
            width = t[k] - t[start]
            low, high = -inf, inf
            if not (width > 0.0 and x[k] - x[start] < inf):
                kept.append(k)
                continue
        low = max(low, (x[k] - tolerance - x[start]) / width)
        high = min(high, (x[k] + tolerance - x[start]) / width)
    if kept[-1] != len(t) - 1:
        kept.append(len(t) - 1)
    return kept
