"""The graph of a plan as a figure: components by levels, fresh and stale connections, algebraic loops.

Graphviz's ``dot`` places components and lines. It gets sizes in points and no text, so the layout does not depend on
fonts: the same plan always gives the same figure.

Source: Gansner, Koutsofios, North and Vo (1993), A technique for drawing directed graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text
from scipy.spatial import ConvexHull

from fmimaster.base.data import dataclass
from fmimaster.base.installation import optional
from fmimaster.base.text import count, in_a_line

_LINE = 11.0
"""[pt] Distance of two lines of text."""
_MARGIN = 7.0
"""[pt] Margin around the text of a component."""
_POINTS = 72.0
"""Points in an inch."""
_LETTER = 4.9
"""[pt] Width of a wide letter: no text is cut off."""
_MOST_LABELLED = 150
"""Most lines in a figure with labelled lines; with more, labels would hide the lines."""
_LABELS = 3
"""Most connections between two components that are named at their line; the others are counted."""
_LONGEST = 34
"""Most letters in a line of text; longer names lose their middle."""


@dataclass
class _Arc:
    """All connections between two components that are alike."""

    source: str
    target: str
    fresh: bool
    in_loop: bool
    labels: list[str] = field(default_factory=list)

    @property
    def text(self) -> list[str]:
        """The names at the line."""
        more = len(self.labels) - _LABELS
        if more <= 0:
            return self.labels
        return [*self.labels[: _LABELS - 1], f"and {count(more + 1, 'connection')} more"]


# What is drawn --------------------------------------------------------------------------------------------------------


def _arcs_of(facts: Mapping[str, Any]) -> list[_Arc]:
    """The connections between two components as few lines: one each for fresh ones, stale ones, and ones in a loop."""
    in_loops = [set(loop["variables"]) for loop in facts["stepLoops"]]
    found: dict[tuple[Any, ...], _Arc] = {}
    for c in facts["connections"]:
        inside = any({c["source"], c["target"]} <= variables for variables in in_loops)
        key = c["sourceComponent"], c["targetComponent"], c["fresh"], inside
        arc = found.setdefault(key, _Arc(*key))
        output = c["source"].removeprefix(f"{arc.source}.")
        arc.labels.append(_short(f"{output} → {c['target'].removeprefix(f'{arc.target}.')}"))
    if len(found) > _MOST_LABELLED:
        return [replace(arc, labels=[]) for arc in found.values()]
    return list(found.values())


def _text_of(name: str, facts: Mapping[str, Any]) -> list[str]:
    component = next(c for c in facts["components"] if c["name"] == name)
    place = facts["order"].index(name) + 1
    return [_short(f"{place}. {name}"), _short(component["modelName"])]


def _short(text: str) -> str:
    text = in_a_line(text)
    half = (_LONGEST - 1) // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"


def _size_of(lines: Sequence[str]) -> tuple[float, float]:
    """Width and height of lines of text in points."""
    return _LETTER * max(map(len, lines)), _LINE * len(lines)


# Where it is drawn ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _FigureLayout:
    """Places in points; y upwards."""

    width: float
    height: float
    places: dict[str, tuple[float, float]]
    """Component → its middle."""
    lines: list[np.ndarray[Any, Any]]
    """Control points of cubic Bézier curves, shape (3 n + 1, 2), in the order of the arcs; the last point is the tip."""
    labels: list[tuple[float, float]]
    """Middles of the labels."""


def _layout(
    levels: Sequence[Sequence[str]], boxes: Mapping[str, Sequence[str]], arcs: Sequence[_Arc]
) -> _FigureLayout:
    graphviz = optional("pygraphviz", "graph", "A figure of the plan")
    graph = graphviz.AGraph(
        directed=True, strict=False, rankdir="LR", nodesep="0.35", ranksep="0.45"
    )
    graph.node_attr.update(shape="box", fixedsize="true", label="")
    number = {name: str(k) for k, name in enumerate(boxes)}
    for name, lines in boxes.items():
        width, height = (size + 2 * _MARGIN for size in _size_of(lines))
        graph.add_node(number[name], width=width / _POINTS, height=height / _POINTS)
    level_of = {name: k for k, level in enumerate(levels) for name in level}
    if len(levels) > 1:
        for level in levels:
            graph.add_subgraph([number[name] for name in level], rank="same")
        for level, following in pairwise(levels):
            graph.add_edge(number[level[0]], number[following[0]], key="order", style="invis")
    for k, arc in enumerate(arcs):
        tail, head = number[arc.source], number[arc.target]
        back = level_of[arc.target] < level_of[arc.source]  # all lines point to higher levels
        ends = (head, tail) if back else (tail, head)
        graph.add_edge(*ends, key=str(k), dir="back" if back else "forward")
        # labels of lines within a level are placed by us: dot ends the process if it fails to order them
        if arc.text and (len(levels) == 1 or level_of[arc.source] != level_of[arc.target]):
            graph.get_edge(*ends, key=str(k)).attr["label"] = _empty_label(arc.text)
    graph.layout(prog="dot")
    edges = {edge[2]: graph.get_edge(*edge) for edge in graph.edges(keys=True)}
    *_, width, height = map(float, graph.graph_attr["bb"].split(","))
    curves = [_curve(edges[str(k)].attr["pos"]) for k in range(len(arcs))]
    return _FigureLayout(
        width,
        height,
        {name: _point(graph.get_node(n).attr["pos"]) for name, n in number.items()},
        curves,
        [_middle(edges[str(k)].attr["lp"], curve) for k, curve in enumerate(curves)],
    )


def _empty_label(lines: Sequence[str]) -> str:
    """A label without text that occupies the space of these lines: Graphviz needs no fonts for it."""
    width, height = _size_of(lines)
    size = f'FIXEDSIZE="TRUE" WIDTH="{width + 6:.0f}" HEIGHT="{height + 4:.0f}"'
    cell = f'<TD FIXEDSIZE="TRUE" WIDTH="{width:.0f}" HEIGHT="{height:.0f}"></TD>'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" {size}><TR>{cell}</TR></TABLE>>'


def _point(text: str) -> tuple[float, float]:
    x, y = map(float, text.split(","))
    return x, y


def _curve(text: str) -> np.ndarray[Any, Any]:
    """Control points of a line of Graphviz, ``"e,TIP POINT POINT ..."``, or ``"s,TIP ..."`` of a line that leads back."""
    tip, *points = text.split()
    curve = list(map(_point, points))
    forward = tip.startswith("e,")
    return np.array([*(curve if forward else curve[::-1]), _point(tip[2:])])


def _middle(place: str | None, curve: np.ndarray[Any, Any]) -> tuple[float, float]:
    """The middle of a label, or of the line where Graphviz has placed none."""
    if place:
        return _point(place)
    x, y = curve[len(curve) // 2]
    return float(x), float(y)


# The figure -----------------------------------------------------------------------------------------------------------

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
    arcs = _arcs_of(facts)
    boxes = {name: _text_of(name, facts) for level in facts["sequence"]["levels"] for name in level}
    drawn = _layout(facts["sequence"]["levels"], boxes, arcs)
    width, height = drawn.width, drawn.height
    wide = max(width + 2 * _MARGIN, _LEAST_WIDTH)
    key = _key(arcs, facts["stepLoops"])
    below = _LEGEND if _columns(key) == len(key) else 1.6 * _LEGEND
    size = np.array([wide, height + _HEAD + below]) / _POINTS
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
    axes.legend(
        [line for _, line in key],
        [label for label, _ in key],
        loc="lower center",
        ncols=_columns(key),
        fontsize=_TEXT,
        frameon=False,
        handlelength=2.4,
    )
    if scale < 1.0:
        _shrink(axes, scale)
    return figure


def _title(facts: Mapping[str, Any]) -> str:
    algorithm = str(facts["algorithm"]).partition("(")[0]
    levels = len(facts["sequence"]["levels"])
    return f"{facts['system']}, {algorithm}" + (f": {levels} levels" if levels > 1 else "")


# How it is drawn ------------------------------------------------------------------------------------------------------


def _draw_arc(
    axes: Axes, arc: _Arc, curve: np.ndarray[Any, Any], label: tuple[float, float]
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
    width, height = (size + 2 * _MARGIN for size in _size_of(lines))
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
        x, y + _LINE * len(others) / 2, _plain(name), weight="bold", **_centred, fontsize=_TEXT
    )
    for k, line in enumerate(others):
        at = y - _LINE * (k + 1 - len(others) / 2)
        axes.text(x, at, _plain(line), color=_GREY, **_centred, fontsize=_TEXT - 1)


_BEHIND = [withStroke(linewidth=2.5, foreground="white")]
"""Background of the labels of lines, which lines may cross."""
_centred: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4}


def _draw_text(axes: Axes, lines: Sequence[str], x: float, y: float, **style: Any) -> None:
    for k, line in enumerate(lines):
        at = y + _LINE * ((len(lines) - 1) / 2 - k)
        axes.text(x, at, _plain(line), path_effects=_BEHIND, **_centred, **style)


def _draw_loop(
    axes: Axes, loop: Mapping[str, Any], drawn: _FigureLayout, boxes: Mapping[str, Sequence[str]]
) -> None:
    """A pale area around the components of a loop."""
    corners = list[np.ndarray[Any, Any]]()
    for name in (c for c in loop["components"] if c in boxes):
        half = np.array(_size_of(boxes[name])) / 2 + _MARGIN
        corners += [drawn.places[name] + np.array((a, b)) * half for a in (-1, 1) for b in (-1, 1)]
    if corners:
        area = np.array(corners)[ConvexHull(corners).vertices]
        colour = _LOOPS[loop["assumed"]]
        axes.add_patch(Polygon(area, color=colour, linewidth=14, joinstyle="round", zorder=0.5))


def _draw_levels(axes: Axes, levels: Sequence[Sequence[str]], drawn: _FigureLayout) -> None:
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


def _key(arcs: Sequence[_Arc], loops: Sequence[Mapping[str, Any]]) -> list[tuple[str, Line2D]]:
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


def _shrink(axes: Axes, scale: float) -> None:
    """Scale text, lines and arrow heads, as the positions were scaled."""
    for text in axes.findobj(Text):
        text.set_fontsize(scale * float(text.get_fontsize()))
        text.set_path_effects([])
        arrow = text.arrow_patch if isinstance(text, Annotation) else None
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
