"""Few points that look like all rows of a column: for figures in files that must stay small."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_PARTS = 120
"""Parts of the time span of which first, last, smallest and largest value are kept."""
_FLAT = 0.002
"""Deviation of a line from the rows that it replaces, relative to the height of the figure: less than a pixel."""


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
