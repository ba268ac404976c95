"""What a figure shows in its axes: lines, ticks and events, and the rows of an instant side by side, so that their order is
seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from fmimaster.record.causes import Event
from fmimaster.results.columns import Array, is_clocked, is_present, numbers
from fmimaster.results.panels import Panel
from fmimaster.results.table import Table

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of Okabe and Ito (2008), which colour-blind readers can distinguish, without yellow, which is hard to see on
white."""
LINE: dict[str, Any] = {"linewidth": 1.2}
MARKS = ("o", "s", "^", "D", "v", "P", "X")
"""Marks of clocked variables, one for each colour."""
MARK, _MANY_TICKS = 3.5, 300
"""Size of a mark in points, and how many of them may have it."""
HELD: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.35}
"""The value of a clocked variable between ticks, where it is absent."""
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
"""Solid, dashed, dotted, dash-dotted: one per table."""
_WIDEST, _NARROWEST, _PALEST = 3.4, 1.1, 0.4
"""Of several tables, the first one has the widest and palest lines, so that later ones do not hide it."""
REFERENCE: dict[str, Any] = {"linewidth": 3.5, "alpha": 0.35, "solid_capstyle": "butt"}
_COINCIDE = 1 / 200
"""Part of the height of an axes within which one line hides another."""
_OFTEN = 0.2
"""Part of the rows in which a line must hide another for both to be drawn in turns."""
_TURN = 5.0
"""Length of a piece of each of them, in line widths."""
MARGIN = 0.08
"""Part of the axes that stays empty below and above the data."""
GREY = "0.35"
"""Of what is not data."""
_TICK_HEIGHT = 0.035
"""Height of a tick, as a part of the axes."""
_TICKS_APART = 1 / 3000
"""Part of the time span below which two ticks cannot be distinguished, even in print."""
_FEW_EVENTS = 40
"""So many are marked by lines over the whole height; more, by ticks at the top, which hide nothing."""
_EVENT_STYLES: dict[bool, Any] = {
    True: {"color": "0.5", "linewidth": 0.7, "linestyle": "-"},
    False: {"color": "0.4", "linewidth": 0.8, "linestyle": (0, (1, 2))},
}
"""Shared or not → how an event is marked."""
_WIDTH = 0.012
"""Distance of two rows of an instant, as a part of the time span: a digit has room there."""
_MOST_OF_GAP = 0.7
"""Part of the time until the next instant that the rows may take at most."""
_LEAST_APART = 0.002
"""Distances below this part of the span show nothing."""
_DIGITS = 6.0
"""Size of the superdense indices in points."""
_ROOM = 0.9 * _WIDTH
"""Distance from which on two digits can be read."""
_BAND: dict[str, Any] = {"color": "0.92", "linewidth": 0.0, "zorder": 0.1}


def styles_of(tables: int) -> list[dict[str, Any]]:
    """How the lines of each table are drawn, from wide and pale to narrow and dark."""
    if tables == 1:
        return [LINE]
    parts = np.linspace(0.0, 1.0, tables)
    return [
        {
            "linewidth": _WIDEST + part * (_NARROWEST - _WIDEST),
            "alpha": _PALEST + part * (1.0 - _PALEST),
            "linestyle": dashes,
        }
        for part, dashes in zip(parts, DASHES, strict=False)
    ]


def in_turns(panel: Panel, table: Table) -> list[dict[str, Any]]:
    """How each line of a panel is drawn: solid, or over a line that it hides, in pieces between which that one is seen."""
    columns = [numbers(table[name]) for name in panel.names]
    with np.errstate(invalid="ignore"):  # infinite values
        values = np.concatenate(columns)
        finite = values[np.isfinite(values)]
        near = _COINCIDE * float(np.ptp(finite)) if len(finite) else 0.0
        groups: list[list[int]] = []
        for k, column in enumerate(columns):
            for group in groups:
                if _coincide(columns[group[0]], column, near):
                    group.append(k)
                    break
            else:
                groups.append([k])
    styles = [LINE] * len(columns)
    for group in groups:
        for place, k in enumerate(group[1:], 1):
            pieces = (place * _TURN, (_TURN, (len(group) - 1) * _TURN))
            styles[k] = {**LINE, "linestyle": pieces, "dash_capstyle": "butt"}
    return styles


def _coincide(a: NDArray[np.float64], b: NDArray[np.float64], near: float) -> bool:
    return len(a) > 0 and bool(np.mean(np.abs(a - b) <= near) >= _OFTEN)


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
    many, apart = many[apart >= _LEAST_APART * span], apart[apart >= _LEAST_APART * span]
    places = time.copy()
    for k, width in zip(many.tolist(), apart.tolist(), strict=True):
        here = slice(starts[k], ends[k] + 1)
        places[here] += width * index[here]
    return Spread(places, starts[many], ends[many])


def as_they_are(table: Table) -> Spread:
    """All rows at their times."""
    none = np.empty(0, np.intp)
    return Spread(table.time, none, none)


def draw(
    axes: Axes, panel: Panel, table: Table, places: Spread, styles: Sequence[Mapping[str, Any]]
) -> None:
    if panel.clocks:
        _draw_clocks(axes, panel, table, places)
        return
    marks = zip(panel.names, COLOURS, MARKS, styles, strict=False)
    for name, colour, mark, style in marks:
        if name not in table:
            continue
        if is_clocked(table.time, table[name]):
            _draw_clocked(axes, table, name, places, {"color": colour, "marker": mark})
        else:
            kind = "steps-post" if panel.steps else "default"
            x, y = places.course(numbers(table[name]))
            axes.plot(x, y, color=colour, drawstyle=kind, **style)


def _draw_clocked(
    axes: Axes, table: Table, name: str, places: Spread, style: Mapping[str, Any]
) -> None:
    """A mark at each tick, and a pale line that holds the value."""
    present = is_present(table[name])
    x, y = places.places[present], numbers(table[name])[present]
    if len(x):
        held = {**HELD, "color": style["color"], "drawstyle": "steps-post"}
        axes.plot([*x, places.places[-1]], [*y, y[-1]], **held)
        size = MARK if len(x) <= _MANY_TICKS else MARK / 3
        axes.plot(x, y, linestyle="", markersize=size, clip_on=False, **style)


def _draw_clocks(axes: Axes, panel: Panel, table: Table, places: Spread) -> None:
    """A line of bars for each clock, the first one at the top."""
    axes.set_ylim(0.0, len(panel.names))
    axes.set_yticks([])
    for k, (name, colour) in enumerate(zip(panel.names, COLOURS, strict=False), start=1):
        if name in table:
            x = places.places[numbers(table[name]) == 1.0]
            apart = _TICKS_APART * float(np.ptp(table.time)) or 1.0
            _, distinct = np.unique(np.round((x - table.time[0]) / apart), return_index=True)
            low = len(panel.names) - k
            bars: dict[str, Any] = {"color": colour, "linewidth": 1.0, "clip_on": False}
            axes.vlines(x[distinct], low + 0.15, low + 0.85, **bars)


def draw_ticks(axes: Axes, tables: Sequence[Table]) -> None:
    """A line of ticks per table at its rows; of ticks that would overlap, one."""
    height = min(_TICK_HEIGHT, MARGIN / len(tables))
    for line, time in enumerate(table.time for table in tables if table.rows):
        apart = _TICKS_APART * float(time[-1] - time[0]) or 1.0
        _, distinct = np.unique(np.round((time - time[0]) / apart), return_index=True)
        axes.vlines(
            time[distinct],
            line * height,
            (line + 0.8) * height,
            transform=axes.get_xaxis_transform(),
            color=GREY,
            linewidth=0.4,
        )


def mark_events(axes: Axes, events: Sequence[Event]) -> None:
    """Draw a line at each event: solid if it is shared, dotted if it is private."""
    few = len(events) <= _FEW_EVENTS
    span = max((e.time for e in events), default=0.0) or 1.0
    for shared, style in _EVENT_STYLES.items():
        times = np.array([e.time for e in events if e.shared is shared])
        _, distinct = np.unique(np.round(times / (span * _TICKS_APART)), return_index=True)
        lowest = 0.0 if few else 1.0 - (2 if shared else 1) * _TICK_HEIGHT
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
