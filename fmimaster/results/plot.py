"""Figures of results, made to be printed: one axes per unit and magnitude, time below, legends beside the data.

Figures are plain :class:`matplotlib.figure.Figure` objects: no window opens, no global list grows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import given_path, reason_of
from fmimaster.base.text import in_a_line
from fmimaster.record.causes import Event
from fmimaster.results.columns import is_clocked, numbers
from fmimaster.results.drawing import (
    COLOURS,
    DASHES,
    GREY,
    HELD,
    LINE,
    MARGIN,
    MARK,
    MARKS,
    REFERENCE,
    as_they_are,
    draw,
    draw_ticks,
    event_key,
    in_turns,
    key_of_instants,
    mark_events,
    mark_instants,
    spread,
    styles_of,
)
from fmimaster.results.panels import Panel, clocks_of, panels
from fmimaster.results.table import Table

_FORMATS = (".pdf", ".png", ".svg")
TEXT = 8.0
"""Size in points, that of a figure caption."""
_LETTER = 0.062
"""Mean width of a letter of this size in inches."""
_LEGEND_LINE = 0.165
"""Height of a line of a legend in inches."""
_LONGEST_LINE = 34
"""Letters; longer names continue on another line of the legend."""
_LONGEST_TEXT = 10 * _LONGEST_LINE
"""Letters of a name or title that are shown: a file of a stranger can have one of any length."""


_DOTS_PER_INCH = 110
"""Resolution in a notebook: a figure is about as wide as the text."""


class ResultsFigure(Figure):
    """A figure that a notebook shows if it is the last expression of a cell, without ``%matplotlib``."""

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        self.savefig(stream, format="png", dpi=_DOTS_PER_INCH)
        return stream.getvalue()


def plot_results(
    results: Table | Sequence[tuple[str, Table]],
    names: str | Sequence[str] | None = None,
    *,
    communication_points: bool = False,
    title: str | None = None,
    reference: Table | None = None,
    new_figure: Callable[..., Figure] = ResultsFigure,
) -> Figure:
    """Figure of columns over time, with an axes for each unit and magnitude.

    Columns with the same unit share an axes if all their variations are visible there. Columns without a unit must also
    have the same last part of their names. Integers and Booleans are drawn as steps, rows at the same time are joined
    by a vertical line, text is left out. Coinciding lines are drawn alternately in pieces. Events of a table that
    is drawn alone are marked, by lines or, if they are many, by ticks at the top.

    A clocked variable has a mark at each tick of its clock, and a pale line that holds the value until the next one. Clocks
    have an axes of their own, with a bar at each tick. If a table is drawn alone, the rows of an instant with more than two
    are drawn side by side, with their superdense indices above them, since a line at one place cannot show their order.

    Parameters
    ----------
    results
        A table, or up to four with their labels. The first one has wide and pale lines, the others narrower ones with
        different dashes.
    names
        Columns, or patterns as in :meth:`Table.select`. Default: all that fit; a line below the figure states how many
        do not.
    communication_points
        Whether ticks at the bottom mark the rows; of several tables, those of the first are lowest.
    reference
        Table whose columns of the same names are drawn as broad pale lines below the others.
    new_figure
        Function that makes the empty figure, with the arguments of :class:`matplotlib.figure.Figure`.

    Returns
    -------
    Figure
        A notebook shows it if it is the last expression of a cell.

    Raises
    ------
    OptionError
        If no column has such a name or contains numbers, the chosen columns do not fit, or units contradict each other.
    """
    labels, tables = _labelled(results)
    reference = None if reference is None else reference.expand()
    events = tables[0].events if len(tables) == 1 else ()
    drawn, left_out = panels(tables, reference, names)
    figure, all_axes = _empty_figure(drawn, title, new_figure)
    styles = styles_of(len(tables))
    is_alone = len(tables) == 1 and reference is None
    places = [spread(t) if is_alone else as_they_are(t) for t in tables]
    for axes, panel in zip(all_axes, drawn, strict=True):
        mark_events(axes, events)
        mark_instants(axes, tables[0], places[0], with_index=axes is all_axes[0])
        if reference is not None:
            draw(axes, panel, reference, as_they_are(reference), [REFERENCE] * len(panel.names))
        if len(tables) == 1:
            draw(axes, panel, tables[0], places[0], in_turns(panel, tables[0]))
        else:
            for table, place, style in zip(tables, places, styles, strict=True):
                draw(axes, panel, table, place, [style] * len(panel.names))
        if communication_points:
            draw_ticks(axes, tables)
        _add_legend(axes, panel, tables)
    key = _key(labels, styles, communication_points, reference is not None, events)
    key += key_of_instants(places[0])
    _add_key(figure, key, left_out)
    return figure


def plot_into(axes: Axes, table: Table, names: str | Sequence[str] | None = None) -> None:
    """Draw columns over time into an axes of the caller, with its colours, and add a legend and labels.

    Parameters
    ----------
    names
        Columns, or patterns as in :meth:`Table.select`; all if not given.
    """
    table = table.expand()
    chosen = table if names is None else table.select(names)
    drawn = [name for name in chosen.names if chosen[name].dtype.kind != "O"]
    if not drawn:
        raise OptionError("There is nothing to plot: no column that was chosen holds numbers.")
    units = {chosen.units.get(name, "") for name in drawn}
    clocks = clocks_of(chosen)
    for name in drawn:
        unit = chosen.units.get(name, "")
        label = f"{name} in {unit}" if unit and len(units) > 1 else name
        values = numbers(chosen[name])
        if name in clocks or is_clocked(chosen.time, chosen[name]):
            ticks = values == 1.0 if name in clocks else np.isfinite(values)
            axes.plot(
                chosen.time[ticks], values[ticks], "o", markersize=MARK, label=plain_label(label)
            )
            continue
        kind = "default" if chosen[name].dtype.kind == "f" else "steps-post"
        axes.plot(chosen.time, values, label=plain_label(label), drawstyle=kind)
    axes.set_xlabel("time in s")
    if len(units) == 1:
        panel = Panel(names=tuple(drawn), unit=units.pop(), steps=False)
        axes.set_ylabel(plain_label(panel.label(_LONGEST_LINE)))
    axes.legend()


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a .pdf, .png or .svg file. The same figure gives the same bytes."""
    check_format(path)
    path = given_path(path)
    suffix = path.suffix.lower()
    dates = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    try:
        # as bytes: each system would write its own ends of lines
        with rc_context({"svg.hashsalt": "fmimaster"}), path.open("wb") as stream:
            figure.savefig(stream, format=suffix[1:], dpi=200, metadata=dates.get(suffix))
    except OSError as error:
        raise FileError(f"The figure '{path}' cannot be written: {reason_of(error)}.") from error


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
    if len(given) > len(DASHES):
        raise OptionError(
            f"There are {len(given)} tables to plot; a figure can distinguish {len(DASHES)}."
            " Plot fewer at a time."
        )
    return [label for label, _ in given], [table.expand() for _, table in given]


def _empty_figure(
    drawn: Sequence[Panel], title: str | None, new_figure: Callable[..., Figure]
) -> tuple[Figure, list[Axes]]:
    """One axes per panel above a common time axis; as wide and high as the legends need."""
    legends = [[wrapped(name) for name in panel.names] for panel in drawn]
    lines = [line for names in legends for name in names for line in name.split("\n")]
    least = [2.8] if len(drawn) == 1 else [0.9 if panel.steps else 1.6 for panel in drawn]
    heights = [
        max(height, _LEGEND_LINE * (1 + sum(name.count("\n") + 1 for name in names)))
        for height, names in zip(least, legends, strict=True)
    ]
    size = (6.2 + _LETTER * max(map(len, lines)), 0.7 + sum(heights))
    figure = new_figure(figsize=size, layout="constrained")
    grid = figure.subplots(
        len(drawn), sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    all_axes: list[Axes] = list(grid[:, 0])
    for axes, panel, height in zip(all_axes, drawn, heights, strict=True):
        plain_axes(axes)
        axes.margins(x=0.0, y=MARGIN / (1.0 - 2.0 * MARGIN))  # matplotlib: as a part of the data
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=panel.steps))
        axes.set_ylabel(plain_label(panel.label(int(height / _LETTER))), fontsize=TEXT)
    all_axes[-1].set_xlabel("time in s", fontsize=TEXT)
    figure.align_ylabels(all_axes)
    if title:
        all_axes[0].set_title(plain_label(title), fontsize=TEXT + 2, loc="left")
    return figure, all_axes


def plain_axes(axes: Axes) -> None:
    """Axes with nothing that is not needed."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=GREY, linewidth=0.6)
    axes.grid(linewidth=0.4, color="0.88")
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=TEXT, color=GREY, width=0.6, length=3.0)


def _add_legend(axes: Axes, panel: Panel, tables: Sequence[Table]) -> None:
    """Names beside the axes, where they cover no data."""
    lines = []
    for name, colour, mark in zip(panel.names, COLOURS, MARKS, strict=False):
        ticks = any(name in t and is_clocked(t.time, t[name]) for t in tables)
        if panel.clocks:
            style: dict[str, Any] = {"linestyle": "", "marker": "|", "markersize": 2 * MARK}
        elif ticks:
            style = {**HELD, "alpha": 1.0, "marker": mark, "markersize": MARK}
        else:
            style = LINE
        lines.append(Line2D([], [], color=colour, **style))
    axes.legend(
        lines,
        [plain_label(wrapped(name)) for name in panel.names],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        fontsize=TEXT,
        frameon=False,
        handlelength=1.6,
        borderaxespad=0.0,
    )


_Key = list[tuple[str, Artist]]


def _key(
    labels: Sequence[str],
    styles: Sequence[Mapping[str, Any]],
    ticks: bool,
    reference: bool,
    events: Sequence[Event],
) -> _Key:
    """Legend of the dashes, the pale lines, the ticks and the lines at events."""
    key: _Key = [
        (label, Line2D([], [], color=GREY, **style))
        for label, style in zip(labels, styles, strict=True)
        if label
    ]
    if reference:
        key.append(("reference", Line2D([], [], color=GREY, **REFERENCE)))
    if ticks:
        key.append(("communication points", Line2D([], [], color=GREY, linestyle="", marker="|")))
    return [*key, *event_key(events)]


def _add_key(figure: Figure, key: _Key, left_out: int) -> None:
    """Below all axes: the key, and how many columns are not drawn."""
    if left_out:
        columns = "column has" if left_out == 1 else "columns have"
        text = f"{left_out} more {columns} no room here: choose some by name"
        key = [*key, (text, Line2D([], [], linestyle=""))]
    if key:
        figure.legend(
            [line for _, line in key],
            [plain_label(label) for label, _ in key],
            loc="outside lower center",
            ncols=len(key),
            fontsize=TEXT,
            frameon=False,
        )


def wrapped(name: str) -> str:
    """A name in lines that fit the legend, broken behind a dot where it has one."""
    return "\n".join(_lines(in_a_line(name[:_LONGEST_TEXT])))


def _lines(name: str) -> Iterator[str]:
    while len(name) > _LONGEST_LINE:
        cut = name.rfind(".", 1, _LONGEST_LINE) + 1 or _LONGEST_LINE
        yield name[:cut]
        name = "  " + name[cut:]
    yield name


def plain_label(text: str) -> str:
    """Text that matplotlib does not interpret as a formula, without control characters."""
    lines = (in_a_line(line[:_LONGEST_TEXT]) for line in text.split("\n"))
    return "\n".join(lines).replace("$", r"\$")
