"""Figures of results, made to be printed: one axes per unit, time below, legends beside the data.

Figures are plain :class:`matplotlib.figure.Figure` objects: no window opens, no global list grows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fmimaster.causes import Event
from fmimaster.errors import FileError, OptionError
from fmimaster.given_path import given_path
from fmimaster.results.table import Table, matching
from fmimaster.visible import in_a_line

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of Okabe and Ito (2008), chosen for the colour-blind; their yellow is lost on white paper."""
_STYLES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
"""Solid, dashed, dotted, dash-dotted: one per table."""
_MAX_AXES = 8
"""More do not fit on a page."""
_FORMATS = (".pdf", ".png", ".svg")

_GREY = "0.35"
"""Of what is not data."""
_REFERENCE: dict[str, Any] = {"linewidth": 3.5, "alpha": 0.35, "solid_capstyle": "butt"}
_TEXT = 8.0
"""Size in points, that of a figure caption."""
_LETTER = 0.062
"""Mean width of a letter of this size in inches."""
_TICK_HEIGHT = 0.035
"""Height of the ticks of communication points, as a part of the axes."""
_MARGIN = 0.08
"""Part of the axes that stays free below and above the data."""
_FEW_EVENTS = 40
"""So many are marked by lines over the whole height; more, by ticks at the top, which hide nothing."""
_EVENT_STYLES: dict[bool, Any] = {
    True: {"color": "0.5", "linewidth": 0.7, "linestyle": "-"},
    False: {"color": "0.4", "linewidth": 0.8, "linestyle": (0, (1, 2))},
}
"""Shared or not → how an event is marked."""
_TICKS_APART = 1 / 3000
"""Part of the time span below which two ticks cannot be distinguished, even in print."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """What one axes shows: columns that share the unit, or else the last part of the name."""

    names: tuple[str, ...]
    unit: str
    steps: bool
    """Whether values hold until the next row, as those of integers and Booleans."""

    @property
    def label(self) -> str:
        """The quantity, if all columns agree on it, and the unit: ``"v in m/s"``."""
        quantities = {_quantity(name) for name in self.names}
        quantity = quantities.pop() if len(quantities) == 1 else ""
        return f"{quantity} in {self.unit}".strip() if self.unit else quantity


def plot_results(
    results: Table | Sequence[tuple[str, Table]],
    names: str | Sequence[str] | None = None,
    *,
    communication_points: bool = False,
    title: str | None = None,
    reference: Table | None = None,
) -> Figure:
    """Figure of columns over time, with one axes per unit.

    Columns without a unit share an axes if the last parts of their names agree. Integers and
    Booleans are drawn as steps, rows at the same time are joined by a vertical line, text is
    left out. Events of a table that is drawn alone are marked, by lines or, if they are many, by
    ticks at the top.

    Parameters
    ----------
    results
        A table; or up to four with their labels, which are drawn with different dashes.
    names
        Columns, or patterns as in :meth:`Table.select`; all if not given.
    communication_points
        Whether ticks at the bottom mark the rows; of several tables, those of the first are lowest.
    reference
        Table whose columns of the same names are drawn as broad pale lines below the others.
    """
    labels, tables = _labelled(results)
    reference = None if reference is None else reference.expand()
    events = tables[0].events if len(tables) == 1 else ()
    panels = _panels(tables, reference, names)
    figure, all_axes = _empty_figure(panels, title)
    for axes, panel in zip(all_axes, panels, strict=True):
        mark_events(axes, events)
        if reference is not None:
            _draw(axes, panel, reference, _REFERENCE)
        for table, style in zip(tables, _STYLES, strict=False):
            _draw(axes, panel, table, {"linewidth": 1.1, "linestyle": style})
        if communication_points:
            _draw_ticks(axes, tables)
        _add_legend(axes, panel)
    _add_key(figure, labels, communication_points, reference is not None, events)
    return figure


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
    """What the marks of events mean: label and line of each kind that there is."""
    few = len(events) <= _FEW_EVENTS
    kinds = {e.shared for e in events}
    words = {
        True: "shared events" if few else "shared events (long ticks at the top)",
        False: "private events" if few else "private events (short ticks at the top)",
    }
    tick: dict[str, Any] = {"linestyle": "", "marker": "|", "color": _GREY}
    return [
        (words[shared], Line2D([], [], **(style if few else tick)))
        for shared, style in _EVENT_STYLES.items()
        if shared in kinds
    ]


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a .pdf, .png or .svg file. The same figure gives the same bytes."""
    check_format(path)
    path = given_path(path)
    dates = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    try:
        with rc_context({"svg.hashsalt": "fmimaster"}):
            figure.savefig(path, dpi=200, metadata=dates.get(path.suffix.lower()))
    except OSError as error:
        raise FileError(f"The figure '{path}' cannot be written: {error.strerror}.") from error


def check_format(path: str | os.PathLike[str]) -> None:
    """Refuse a path whose suffix is not that of a format that :func:`save_figure` can write."""
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise OptionError(
            f"The figure '{path}' has the suffix '{suffix}'; expected {', '.join(_FORMATS)}."
        )


def _labelled(
    results: Table | Sequence[tuple[str, Table]],
) -> tuple[list[str], list[Table]]:
    given = [("", results)] if isinstance(results, Table) else results
    if len(given) > len(_STYLES):
        raise OptionError(
            f"There are {len(given)} tables to plot; a figure can tell {len(_STYLES)} apart."
            " Plot fewer at a time."
        )
    return [label for label, _ in given], [table.expand() for _, table in given]


def _panels(
    tables: Sequence[Table], reference: Table | None, patterns: str | Sequence[str] | None
) -> list[_Panel]:
    """Columns by unit, or else by quantity, as they come; floats apart from what moves in steps."""
    columns = {n: values for table in reversed(tables) for n, values in table.columns.items()}
    known = dict.fromkeys(name for table in tables for name in table.names)
    units = _units([*tables, reference] if reference is not None else tables)
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for name in known if patterns is None else matching(patterns, known):
        kind, unit = columns[name].dtype.kind, units.get(name, "")
        if kind != "O":
            groups.setdefault((unit, "" if unit else _quantity(name), kind != "f"), []).append(name)
    panels = [
        _Panel(names=tuple(part), unit=unit, steps=steps)
        for (unit, _, steps), group in groups.items()
        for part in _parts(group)
    ]
    if not panels:
        raise OptionError("There is nothing to plot: no column that was chosen holds numbers.")
    if len(panels) > _MAX_AXES:
        raise OptionError(
            f"{sum(map(len, groups.values()))} columns need {len(panels)} axes;"
            f" a figure has room for {_MAX_AXES}."
            " Choose fewer columns by name, or by a pattern such as 'engine.*'."
        )
    return panels


def _units(tables: Sequence[Table]) -> Mapping[str, str]:
    """Units that any table gives; none may contradict another, since nothing is converted."""
    units: dict[str, str] = {}
    for table in tables:
        for name, unit in table.units.items():
            if units.setdefault(name, unit) != unit:
                raise OptionError(
                    f"Column '{name}' is in {units[name]} in one table and in {unit} in another;"
                    " expected one unit."
                )
    return units


def _quantity(name: str) -> str:
    """Last part of a dotted name, without the index of an array element."""
    return name.rpartition(".")[2].partition("[")[0]


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Parts of about the same length, none with more names than there are colours."""
    number = -(-len(names) // len(_COLOURS))
    length = -(-len(names) // number)
    for first in range(0, len(names), length):
        yield names[first : first + length]


def _empty_figure(panels: Sequence[_Panel], title: str | None) -> tuple[Figure, list[Axes]]:
    """One axes per panel above a common time axis; as wide as the legend needs."""
    heights = [0.9 if panel.steps else 1.6 for panel in panels]
    if len(panels) == 1:
        heights = [2.8]
    letters = max(len(name) for panel in panels for name in panel.names)
    size = (6.2 + _LETTER * letters, 0.7 + sum(heights))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(
        len(panels), sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    all_axes: list[Axes] = list(grid[:, 0])
    for axes, panel in zip(all_axes, panels, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set(color=_GREY, linewidth=0.6)
        axes.grid(linewidth=0.4, color="0.88")
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=_TEXT, color=_GREY, width=0.6, length=3.0)
        axes.margins(x=0.0, y=_MARGIN / (1.0 - 2.0 * _MARGIN))  # matplotlib: as a part of the data
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=panel.steps))
        axes.set_ylabel(_plain(panel.label), fontsize=_TEXT)
    all_axes[-1].set_xlabel("time in s", fontsize=_TEXT)
    figure.align_ylabels(all_axes)
    if title:
        all_axes[0].set_title(_plain(title), fontsize=_TEXT + 2, loc="left")
    return figure, all_axes


def _draw(axes: Axes, panel: _Panel, table: Table, style: Mapping[str, Any]) -> None:
    for name, colour in zip(panel.names, _COLOURS, strict=False):
        if name in table:
            values = np.asarray(table[name], np.float64)
            kind = "steps-post" if panel.steps else "default"
            axes.plot(table.time, values, color=colour, drawstyle=kind, **style)


def _draw_ticks(axes: Axes, tables: Sequence[Table]) -> None:
    """A line of ticks per table at its rows; of ticks that would overlap, one."""
    height = min(_TICK_HEIGHT, _MARGIN / len(tables))
    for line, time in enumerate(table.time for table in tables if table.rows):
        apart = _TICKS_APART * float(time[-1] - time[0]) or 1.0
        _, distinct = np.unique(np.round((time - time[0]) / apart), return_index=True)
        axes.vlines(
            time[distinct],
            line * height,
            (line + 0.8) * height,
            transform=axes.get_xaxis_transform(),
            color=_GREY,
            linewidth=0.4,
        )


def _add_legend(axes: Axes, panel: _Panel) -> None:
    """Names beside the axes, where they cover no data."""
    colours = zip(panel.names, _COLOURS, strict=False)
    lines = [Line2D([], [], color=colour, linewidth=1.4) for _, colour in colours]
    axes.legend(
        lines,
        [_plain(name) for name in panel.names],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        fontsize=_TEXT,
        frameon=False,
        handlelength=1.2,
        borderaxespad=0.0,
    )


def _add_key(
    figure: Figure, labels: Sequence[str], ticks: bool, reference: bool, events: Sequence[Event]
) -> None:
    """Below all axes: what the dashes, the pale lines, the ticks and the lines at events mean."""
    key = [
        (label, Line2D([], [], color=_GREY, linewidth=1.1, linestyle=style))
        for label, style in zip(labels, _STYLES, strict=False)
        if label
    ]
    if reference:
        key.append(("reference", Line2D([], [], color=_GREY, **_REFERENCE)))
    if ticks:
        key.append(("communication points", Line2D([], [], color=_GREY, linestyle="", marker="|")))
    key += event_key(events)
    if key:
        figure.legend(
            [line for _, line in key],
            [_plain(label) for label, _ in key],
            loc="outside lower center",
            ncols=len(key),
            fontsize=_TEXT,
            frameon=False,
        )


def _plain(text: str) -> str:
    """Text that matplotlib does not take for a formula, without control characters."""
    return in_a_line(text).replace("$", r"\$")
