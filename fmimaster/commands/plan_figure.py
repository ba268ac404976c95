"""The graph of a plan as a figure: components by levels, fresh and stale connections, algebraic loops.

The same plan gives the same figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from scipy.spatial import ConvexHull

from fmimaster.commands.plan_layout import (
    LINE,
    MARGIN,
    POINTS,
    Arc,
    FigureLayout,
    arcs_of,
    layout,
    size_of,
    text_of,
)

_FRESH, _STALE, _GREY = "#0072B2", "#D55E00", "0.35"
_LOOPS = {False: "#F7E6EF", True: "0.94"}
"""Assumed or not → the colour of the area of a loop."""
_FILL, _EDGE = "#F4F6F8", "0.25"
_TEXT = 8.0
"""[pt] Size of the text."""
_HEAD = 34.0
"""[pt] Space above the graph, for the names of the levels."""
_LEGEND = 30.0
"""[pt] Space below the graph."""
_LEAST_WIDTH = 520.0
"""[pt] Smallest width of the figure: the legend has room."""
_LARGEST = 100.0
"""[in] Longest side of a figure; a larger graph is scaled down."""
_STYLES: Mapping[bool, Mapping[str, Any]] = {
    True: {"color": _FRESH, "linestyle": "-"},
    False: {"color": _STALE, "linestyle": (0, (4, 2))},
}
"""Fresh or not → style of the line."""


def plan_figure(facts: Mapping[str, Any]) -> Figure:
    """Draw the graph of a plan.

    Parameters
    ----------
    facts
        The plan as plain data: ``fmimaster plan --json``.

    Raises
    ------
    OptionError
        If pygraphviz is not installed.
    """
    arcs = arcs_of(facts)
    boxes = {name: text_of(name, facts) for level in facts["sequence"]["levels"] for name in level}
    drawn = layout(facts["sequence"]["levels"], boxes, arcs)
    width, height = drawn.width, drawn.height
    wide = max(width + 2 * MARGIN, _LEAST_WIDTH)
    key = _key(arcs, facts["stepLoops"])
    below = _LEGEND if _columns(key) == len(key) else 1.6 * _LEGEND
    size = np.array([wide, height + _HEAD + below]) / POINTS
    scale = min(1.0, _LARGEST / size.max())
    figure = Figure(figsize=tuple(scale * size))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim((width - wide) / 2, (width + wide) / 2)
    axes.set_ylim(-below, height + _HEAD)
    for loop in facts["stepLoops"]:
        _draw_loop(axes, loop, drawn, boxes)
    for k, arc in enumerate(arcs):
        _draw_arc(axes, arc, drawn.lines[k], drawn.labels[k])
    for name, (x, y) in drawn.places.items():
        _draw_box(axes, boxes[name], x, y)
    _draw_levels(axes, facts["sequence"]["levels"], drawn)
    axes.text(
        width / 2,
        height + _HEAD - 4,
        _plain(_title(facts)),
        fontsize=_TEXT + 2,
        ha="center",
        va="top",
    )
    _draw_key(axes, key)
    if scale < 1.0:
        _shrink(axes, scale)
    return figure


def _title(facts: Mapping[str, Any]) -> str:
    algorithm = str(facts["algorithm"]).partition("(")[0]
    levels = len(facts["sequence"]["levels"])
    return f"{facts['system']}, {algorithm}" + (f": {levels} levels" if levels > 1 else "")


# How it is drawn ------------------------------------------------------------------------------------------------------


def _draw_arc(
    axes: Axes, arc: Arc, curve: np.ndarray[Any, Any], label: tuple[float, float]
) -> None:
    style = _STYLES[arc.fresh]
    *points, tip = curve
    path = Path(points, [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1))
    width = 2.2 if arc.in_loop else 1.1
    axes.add_patch(PathPatch(path, fill=False, linewidth=width, capstyle="butt", **style))
    axes.annotate(
        "",
        xy=tip,
        xytext=points[-1],
        arrowprops={
            "arrowstyle": "-|>,head_width=0.22,head_length=0.5",
            "color": style["color"],
            "shrinkA": 0,
            "shrinkB": 0,
            "linewidth": width,
        },
    )
    _draw_text(axes, arc.text, *label, color=style["color"], fontsize=_TEXT - 1)


def _draw_box(axes: Axes, lines: Sequence[str], x: float, y: float) -> None:
    width, height = (size + 2 * MARGIN for size in size_of(lines))
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2 + 3, y - height / 2 + 3),
            width - 6,
            height - 6,
            boxstyle="round,pad=3,rounding_size=4",
            facecolor=_FILL,
            edgecolor=_EDGE,
            linewidth=0.9,
            zorder=3,
        )
    )
    name, *others = lines
    axes.text(
        x, y + LINE * len(others) / 2, _plain(name), weight="bold", **_centred, fontsize=_TEXT
    )
    for k, line in enumerate(others):
        at = y - LINE * (k + 1 - len(others) / 2)
        axes.text(x, at, _plain(line), color=_GREY, **_centred, fontsize=_TEXT - 1)


_BEHIND = [withStroke(linewidth=2.5, foreground="white")]
"""Background of the labels of lines, which lines may cross."""
_centred: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4}


def _draw_text(axes: Axes, lines: Sequence[str], x: float, y: float, **style: Any) -> None:
    for k, line in enumerate(lines):
        at = y + LINE * ((len(lines) - 1) / 2 - k)
        axes.text(x, at, _plain(line), path_effects=_BEHIND, **_centred, **style)


def _draw_loop(
    axes: Axes, loop: Mapping[str, Any], drawn: FigureLayout, boxes: Mapping[str, Sequence[str]]
) -> None:
    """A pale area around the components of a loop."""
    corners = [
        corner
        for name in loop["components"]
        if name in boxes
        for corner in _corners(name, drawn, boxes)
    ]
    if not corners:
        return
    axes.add_patch(
        Polygon(
            np.array(corners)[ConvexHull(corners).vertices],
            facecolor=_LOOPS[loop["assumed"]],
            edgecolor=_LOOPS[loop["assumed"]],
            linewidth=14,
            joinstyle="round",
            zorder=0.5,
        )
    )


def _corners(
    name: str, drawn: FigureLayout, boxes: Mapping[str, Sequence[str]]
) -> Iterable[tuple[float, float]]:
    x, y = drawn.places[name]
    width, height = (size / 2 + MARGIN for size in size_of(boxes[name]))
    return [(x + a * width, y + b * height) for a in (-1, 1) for b in (-1, 1)]


def _draw_levels(axes: Axes, levels: Sequence[Sequence[str]], drawn: FigureLayout) -> None:
    """The number of each level above its column; nothing if there is only one level."""
    if len(levels) < 2:
        return
    for k, level in enumerate(levels):
        x = float(np.mean([drawn.places[name][0] for name in level]))
        axes.text(
            x,
            drawn.height + 6,
            f"level {k + 1}",
            color=_GREY,
            fontsize=_TEXT,
            ha="center",
            va="bottom",
        )


def _key(arcs: Sequence[Arc], loops: Sequence[Mapping[str, Any]]) -> list[tuple[str, Line2D]]:
    """Label and line of each element in the figure."""
    words = {
        True: "fresh: the value at the end of the step",
        False: "stale: from an earlier time",
    }
    key = [
        (words[fresh], Line2D([], [], linewidth=1.3, **_STYLES[fresh]))
        for fresh in (True, False)
        if any(arc.fresh is fresh for arc in arcs)
    ]
    for assumed, label in ((False, "algebraic loop"), (True, "assumed loop")):
        if any(loop["assumed"] is assumed for loop in loops):
            key.append(
                (f"{label} (thick lines)", Line2D([], [], color=_LOOPS[assumed], linewidth=8))
            )
    return key


def _draw_key(axes: Axes, key: Sequence[tuple[str, Line2D]]) -> None:
    axes.legend(
        [line for _, line in key],
        [label for label, _ in key],
        loc="lower center",
        ncols=_columns(key),
        fontsize=_TEXT,
        frameon=False,
        handlelength=2.4,
    )


def _shrink(axes: Axes, scale: float) -> None:
    """Scale text, lines and arrow heads, as the positions were scaled."""
    for text in axes.findobj(Text):
        text.set_fontsize(scale * float(text.get_fontsize()))
        text.set_path_effects([])
        arrow = getattr(text, "arrow_patch", None)
        if arrow is not None:
            arrow.set_mutation_scale(scale * arrow.get_mutation_scale())
            arrow.set_linewidth(scale * arrow.get_linewidth())
    for patch in axes.findobj(Patch):
        patch.set_linewidth(scale * patch.get_linewidth())


def _columns(key: Sequence[object]) -> int:
    """Columns of the legend: three labels fit into a row."""
    return len(key) if len(key) < 4 else 2


def _plain(text: str) -> str:
    """Text that matplotlib does not interpret as a formula."""
    return text.replace("$", r"\$")
