"""Marks in figures: events, and the rows of an instant side by side, so that their order is seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from fmimaster.record.causes import Event
from fmimaster.results.table import Table

GREY = "0.35"
"""Of what is not data."""
TICK_HEIGHT = 0.035
"""Height of a tick, as a part of the axes."""
TICKS_APART = 1 / 3000
"""Part of the time span below which two ticks cannot be distinguished, even in print."""
_FEW_EVENTS = 40
"""So many are marked by lines over the whole height; more, by ticks at the top, which hide nothing."""
_EVENT_STYLES: dict[bool, Any] = {
    True: {"color": "0.5", "linewidth": 0.7, "linestyle": "-"},
    False: {"color": "0.4", "linewidth": 0.8, "linestyle": (0, (1, 2))},
}
"""Shared or not → how an event is marked."""


def mark_events(axes: Axes, events: Sequence[Event]) -> None:
    """Draw a line at each event: solid if it is shared, dotted if it is private."""
    few = len(events) <= _FEW_EVENTS
    span = max((e.time for e in events), default=0.0) or 1.0
    for shared, style in _EVENT_STYLES.items():
        times = np.array([e.time for e in events if e.shared is shared])
        _, distinct = np.unique(np.round(times / (span * TICKS_APART)), return_index=True)
        lowest = 0.0 if few else 1.0 - (2 if shared else 1) * TICK_HEIGHT
        if len(times):
            axes.vlines(
                times[distinct],
                lowest,
                1.0,
                transform=axes.get_xaxis_transform(),
                color=style["color"],
                linewidth=style["linewidth"],
                linestyles=style["linestyle"] if few else "-",
                zorder=0.5,
            )


def event_key(events: Sequence[Event]) -> list[tuple[str, Line2D]]:
    """The legend for marks of events: label and line of each kind present."""
    few = len(events) <= _FEW_EVENTS
    kinds = {e.shared for e in events}
    words = {
        True: "shared events" if few else "shared events (long ticks at the top)",
        False: "private events" if few else "private events (short ticks at the top)",
    }
    tick: dict[str, Any] = {"linestyle": "", "marker": "|", "color": GREY}
    return [
        (words[shared], Line2D([], [], **(style if few else tick)))
        for shared, style in _EVENT_STYLES.items()
        if shared in kinds
    ]


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
