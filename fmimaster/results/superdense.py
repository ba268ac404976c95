"""Figures of superdense time: the rows of an instant side by side, so that their order is seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from fmimaster.results.table import Table

Array = NDArray[np.float64]

_WIDTH = 0.012
"""Distance of two rows of an instant, as a part of the time span: a digit has room there."""
_MOST_OF_GAP = 0.7
"""Part of the time until the next instant that the rows may take at most."""
_NARROWEST = 0.002
"""Distances below this part of the span show nothing."""
_DIGITS = 6.0
"""Size of the superdense indices in points."""
_ROOM = 0.9 * _WIDTH
"""Distance from which on two digits can be read."""
_BAND: dict[str, Any] = {"color": "0.92", "linewidth": 0.0, "zorder": 0.1}


class Spread(NamedTuple):
    """Where the rows of a table are drawn.

    A jump has two rows, before and after it, which are drawn at the same place. The rows of an instant with more than two
    are drawn side by side.
    """

    places: Array
    """Of each row, in s; shape (n,)."""
    first: NDArray[np.intp]
    """The first row of each instant that is spread, in the order of time."""
    last: NDArray[np.intp]
    """Its last row."""

    def course(self, values: Array) -> tuple[Array, Array]:
        """Places and values of the points of a line: within an instant a value is held until the next row."""
        here = np.zeros(len(self.places), bool)
        for first, last in zip(self.first, self.last, strict=True):
            here[first + 1 : last + 1] = True
        rows = np.flatnonzero(here)
        places = np.insert(self.places, rows, self.places[rows])
        return places, np.insert(values, rows, values[rows - 1])


def spread(table: Table) -> Spread:
    """Where the rows of a table are drawn in a figure of all its rows."""
    time, index = table.time, table.index
    starts = np.flatnonzero(index == 0)
    ends = np.append(starts[1:], len(time)) - 1
    many = np.flatnonzero(ends - starts >= 2)
    none = np.empty(0, np.intp)
    if not len(many):
        return Spread(time, none, none)
    span = float(time[-1] - time[0]) or 1.0
    after = np.append(time[starts[1:]], time[-1] + span)[many]
    rows = ends[many] - starts[many]
    apart = np.minimum(_WIDTH * span, _MOST_OF_GAP * (after - time[starts[many]]) / rows)
    many, apart = many[apart >= _NARROWEST * span], apart[apart >= _NARROWEST * span]
    places = time.copy()
    for k, width in zip(many.tolist(), apart.tolist(), strict=True):
        here = slice(starts[k], ends[k] + 1)
        places[here] += width * index[here]
    return Spread(places, starts[many], ends[many])


def mark_instants(axes: Axes, table: Table, drawn: Spread, *, with_index: bool) -> None:
    """A pale band behind each instant that is spread; above it the superdense indices of its rows, as far as there is
    room."""
    room = _ROOM * float(np.ptp(table.time)) if table.rows else 0.0
    for first, last in zip(drawn.first.tolist(), drawn.last.tolist(), strict=True):
        start, end = float(drawn.places[first]), float(drawn.places[last])
        axes.axvspan(start, end, **_BAND)
        if not with_index:
            continue
        if end - start >= room * (last - first):
            for row in range(first, last + 1):
                _note(axes, float(drawn.places[row]), f"{table.index[row]}")
        else:
            _note(axes, (start + end) / 2, f"0–{table.index[last]}")


def key_of_instants(drawn: Spread) -> list[tuple[str, Patch]]:
    """The legend for the bands: a label and what it is about; empty if there are none."""
    return [("rows of one instant, side by side", Patch(**_BAND))] if len(drawn.first) else []


def _note(axes: Axes, place: float, text: str) -> None:
    axes.annotate(
        text,
        (place, 1.0),
        xycoords=axes.get_xaxis_transform(),
        ha="center",
        va="bottom",
        fontsize=_DIGITS,
        color="0.4",
        annotation_clip=False,
    )
