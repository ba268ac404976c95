"""Finds entries of steps that repeat, so that a long run with periodic clocks does not keep each of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import lcm

import numpy as np
from numpy.typing import NDArray

from fmimaster.record.causes import Kind
from fmimaster.record.step_series import LARGEST, Part, RepeatedSteps, StepColumns

MOST_PLACES = 1000
"""Most entries of a pattern that is found."""

NEAR = 1e-9
"""Relative difference up to which two step sizes may be equal but for rounding."""

FIRST = 32
"""So many entries are compared before all are."""

DENOMINATORS = tuple(10**k for k in range(10))
"""Bounds that are tried for the denominator of a time."""


def with_more(parts: tuple[Part, ...], columns: StepColumns, share: float) -> tuple[Part, ...]:
    """Parts of a series with more entries behind them, of which those that repeat become one part.

    Parameters
    ----------
    share
        Part of the way to the end of the next entry at which an entry for outdated outputs ends.
    """
    if parts and isinstance(last := parts[-1], RepeatedSteps):
        n = last.continued(columns)
        parts = (*parts[:-1], last.with_more(n))
        columns = columns.part(n)
    found = _repeated(columns, share)
    if found is not None:
        rest = columns.part(0, len(columns) - len(found))
        return (*parts, rest, found) if len(rest) else (*parts, found)
    return (*parts, columns) if len(columns) else parts


def _repeated(columns: StepColumns, share: float) -> RepeatedSteps | None:
    """The last entries, if they repeat at least since the middle."""
    n = len(columns)
    middle = n // 2
    before, behind = columns.part(0, middle), columns.part(middle)
    for size in _sizes(behind):
        found = _pattern(behind, size, share)
        if found is not None and found.continued(behind.part(size)) == n - middle - size:
            like = found.is_like(before, -middle)
            more = middle if like.all() else int(like[::-1].argmin())
            whole = found.with_more(n - middle - size)
            return whole.begun_before(more, columns.begins[middle - more])
    return None


def _sizes(columns: StepColumns) -> Iterator[int]:
    """Numbers of entries after which all seem to repeat, in increasing order."""
    numbers = {cause: k for k, cause in enumerate(dict.fromkeys(columns.causes))}
    codes = np.array([numbers[cause] for cause in columns.causes])
    counts, ends = np.array(columns.counts), np.array(columns.ends)
    sizes = (ends - np.array(columns.begins)) / counts
    rounding = NEAR * sizes + 4 * np.spacing(np.abs(ends))

    def are_alike(one: slice, other: slice) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (codes[one] == codes[other]) & (counts[one] == counts[other])
        found &= np.abs(sizes[one] - sizes[other]) <= rounding[one] + rounding[other]
        return found

    most = min(len(columns) // 2, MOST_PLACES)
    for size in np.flatnonzero(are_alike(slice(1, most + 1), slice(0, 1))) + 1:
        few, rest = slice(size, size + FIRST), slice(size, None)
        if (
            are_alike(few, slice(len(codes[few]))).all()
            and are_alike(rest, slice(len(codes[rest]))).all()
        ):
            yield int(size)


def _pattern(columns: StepColumns, size: int, share: float) -> RepeatedSteps | None:
    """The first entries as a pattern, if their times are short fractions."""
    is_way = [cause.kind is Kind.OUTDATED_OUTPUTS for cause in columns.causes[:size]]
    if any(one and other for one, other in zip(is_way, [*is_way[1:], is_way[0]], strict=True)):
        return None
    times, resolution = list[Fraction](), 1
    for k, way in enumerate(is_way):
        times.append(Fraction(0) if way else _short(columns.ends[k]))
        resolution = lcm(resolution, times[-1].denominator)
        if max(resolution, int(abs(times[-1]) * resolution)) >= LARGEST:
            return None  # it only grows with more times, which take long to shorten
    at = is_way.index(False)
    period = _short(columns.ends[at + size]) - times[at]
    resolution = lcm(resolution, period.denominator)
    ticks = tuple(int(time * resolution) for time in times)
    if max(resolution, *map(abs, ticks)) >= LARGEST:
        return None
    return RepeatedSteps(
        columns.begins[0],
        size,
        int(period * resolution),
        resolution,
        ticks,
        tuple(share if way else 0.0 for way in is_way),
        tuple(columns.causes[:size]),
        tuple(columns.counts[:size]),
    )


@lru_cache(4 * MOST_PLACES)
def _short(time: float) -> Fraction:
    """A fraction with a small denominator whose nearest double is a time; kept, because patterns of many sizes are tried on
    the same times."""
    exact = Fraction(time)
    tried = (exact.limit_denominator(most) for most in DENOMINATORS)
    return next((short for short in tried if float(short) == time), exact)
