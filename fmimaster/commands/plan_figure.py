"""The graph of a plan as a figure: components by levels, fresh and stale connections, algebraic loops.

Places of components, lines and labels are those of Graphviz's ``dot`` (Gansner, Koutsofios, North and Vo, 1993, A technique
for drawing directed graphs); matplotlib draws them. Sizes are given to Graphviz in points and without text, so that no
fonts of the machine matter: the same plan gives the same figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from fmimaster.commands.text import count
from fmimaster.errors import OptionError
from fmimaster.visible import in_a_line

_FRESH, _STALE, _LOOP, _GREY = "#0072B2", "#D55E00", "#F7E6EF", "0.35"
_FILL, _EDGE = "#F4F6F8", "0.25"
_TEXT = 8.0
"""[pt] Size of the text."""
_LETTER = 4.9
"""[pt] Width of a broad letter of that size: no text is cut off."""
_LINE = 11.0
"""[pt] Distance of two lines of text."""
_MARGIN = 7.0
"""[pt] Around the text of a component."""
_HEAD = 34.0
"""[pt] Above the graph, for the names of the levels."""
_LEGEND = 30.0
"""[pt] Below the graph."""
_LEAST_WIDTH = 520.0
"""[pt] Of the figure: the legend has room."""
_POINTS = 72.0
"""Points of an inch."""
_MOST_LABELLED = 150
"""Lines of a figure in which lines are labelled; in one with more, labels would hide the lines."""
_LABELS = 3
"""Connections between two components that are named at their line; the rest is counted."""
_LONGEST = 34
"""Letters of a line of text; longer names lose their middle."""
_STYLES: Mapping[bool, Mapping[str, Any]] = {
    True: {"color": _FRESH, "linestyle": "-"},
    False: {"color": _STALE, "linestyle": (0, (4, 2))},
}
"""Fresh or not → how a line is drawn."""


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
    arcs = _arcs(facts)
    boxes = {name: _text_of(name, facts) for level in facts["sequence"]["levels"] for name in level}
    drawn = _layout(facts["sequence"]["levels"], boxes, arcs)
    width, height = drawn.width, drawn.height
    wide = max(width + 2 * _MARGIN, _LEAST_WIDTH)
    figure = Figure(figsize=(wide / _POINTS, (height + _HEAD + _LEGEND) / _POINTS))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim((width - wide) / 2, (width + wide) / 2)
    axes.set_ylim(-_LEGEND, height + _HEAD)
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
    _draw_key(axes, arcs, bool(facts["stepLoops"]))
    return figure


def _title(facts: Mapping[str, Any]) -> str:
    algorithm = str(facts["algorithm"]).partition("(")[0]
    return f"{facts['system']}, {algorithm}: {count(len(facts['sequence']['levels']), 'level')}"


# What is drawn --------------------------------------------------------------------------------------------------------


def _arcs(facts: Mapping[str, Any]) -> list[_Arc]:
    """The connections between two components as few lines: those that are fresh, stale or in a loop together."""
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


def _size(lines: Sequence[str]) -> tuple[float, float]:
    """Width and height of lines of text in points."""
    return _LETTER * max(map(len, lines)), _LINE * len(lines)


# Where it is drawn ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
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
) -> _Layout:
    graph = _graphviz()(directed=True, strict=False, rankdir="LR", nodesep="0.35", ranksep="0.45")
    graph.node_attr.update(shape="box", fixedsize="true", label="")
    number = {name: str(k) for k, name in enumerate(boxes)}
    for name, lines in boxes.items():
        width, height = (size + 2 * _MARGIN for size in _size(lines))
        graph.add_node(number[name], width=width / _POINTS, height=height / _POINTS)
    level_of = {name: k for k, level in enumerate(levels) for name in level}
    if len(levels) > 1:
        for level in levels:
            graph.add_subgraph([number[name] for name in level], rank="same")
        for level, following in pairwise(levels):
            graph.add_edge(number[level[0]], number[following[0]], key="order", style="invis")
    for k, arc in enumerate(arcs):
        tail, head = number[arc.source], number[arc.target]
        back = level_of[arc.target] < level_of[arc.source]  # all lines lead to higher levels
        ends = (head, tail) if back else (tail, head)
        graph.add_edge(*ends, key=str(k), dir="back" if back else "forward")
        # labels of lines within a level are placed by us: dot ends the process if it fails to order them
        if arc.text and (len(levels) == 1 or level_of[arc.source] != level_of[arc.target]):
            graph.get_edge(*ends, key=str(k)).attr["label"] = _empty_label(arc.text)
    graph.layout(prog="dot")
    edges = {edge.key: edge for edge in map(graph.get_edge, *_ends(graph))}
    *_, width, height = map(float, graph.graph_attr["bb"].split(","))
    curves = [_curve(edges[str(k)].attr["pos"]) for k in range(len(arcs))]
    return _Layout(
        width,
        height,
        {name: _point(graph.get_node(n).attr["pos"]) for name, n in number.items()},
        curves,
        [_middle(edges[str(k)].attr["lp"], curve) for k, curve in enumerate(curves)],
    )


def _graphviz() -> Any:
    try:
        from pygraphviz import AGraph  # loads Graphviz, which nothing else needs
    except ImportError as error:
        raise OptionError(
            f"A figure of the plan needs pygraphviz, which cannot be imported: {error}."
            " Install it (pip install pygraphviz), or leave --figure out."
        ) from error
    return AGraph


def _empty_label(lines: Sequence[str]) -> str:
    """A label that takes the room of these lines, and has no text: Graphviz needs no fonts for it."""
    width, height = _size(lines)
    size = f'FIXEDSIZE="TRUE" WIDTH="{width + 6:.0f}" HEIGHT="{height + 4:.0f}"'
    cell = f'<TD FIXEDSIZE="TRUE" WIDTH="{width:.0f}" HEIGHT="{height:.0f}"></TD>'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" {size}><TR>{cell}</TR></TABLE>>'


def _ends(graph: Any) -> tuple[list[str], list[str], list[str]]:
    """Tails, heads and keys of the lines that are seen."""
    edges = [e for e in graph.edges(keys=True) if e[2] != "order"]
    return [e[0] for e in edges], [e[1] for e in edges], [e[2] for e in edges]


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
    width, height = (size + 2 * _MARGIN for size in _size(lines))
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
"""Behind the labels of lines, which may cross them."""
_centred: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4}


def _draw_text(axes: Axes, lines: Sequence[str], x: float, y: float, **style: Any) -> None:
    for k, line in enumerate(lines):
        at = y + _LINE * ((len(lines) - 1) / 2 - k)
        axes.text(x, at, _plain(line), path_effects=_BEHIND, **_centred, **style)


def _draw_loop(
    axes: Axes, loop: Mapping[str, Any], drawn: _Layout, boxes: Mapping[str, Sequence[str]]
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
            _hull(corners),
            facecolor=_LOOP,
            edgecolor=_LOOP,
            linewidth=14,
            joinstyle="round",
            zorder=0.5,
        )
    )


def _corners(
    name: str, drawn: _Layout, boxes: Mapping[str, Sequence[str]]
) -> Iterable[tuple[float, float]]:
    x, y = drawn.places[name]
    width, height = (size / 2 + _MARGIN for size in _size(boxes[name]))
    return [(x + a * width, y + b * height) for a in (-1, 1) for b in (-1, 1)]


def _hull(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Corners of the convex hull (Andrew, 1979)."""

    def half(ordered: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        found: list[tuple[float, float]] = []
        for p in ordered:
            while len(found) > 1 and _turn(found[-2], found[-1], p) <= 0:
                found.pop()
            found.append(p)
        return found[:-1]

    ordered = sorted(set(points))
    return half(ordered) + half(reversed(ordered))


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _draw_levels(axes: Axes, levels: Sequence[Sequence[str]], drawn: _Layout) -> None:
    """The number of each level above its column; nothing if there is one level only."""
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


def _draw_key(axes: Axes, arcs: Sequence[_Arc], loops: bool) -> None:
    words = {
        True: "fresh: the value of the end of the step",
        False: "stale: from an earlier time",
    }
    key = [
        (words[fresh], Line2D([], [], linewidth=1.3, **_STYLES[fresh]))
        for fresh in (True, False)
        if any(arc.fresh is fresh for arc in arcs)
    ]
    if loops:
        key.append(("algebraic loop (thick lines)", Line2D([], [], color=_LOOP, linewidth=8)))
    axes.legend(
        [line for _, line in key],
        [label for label, _ in key],
        loc="lower center",
        ncols=len(key),
        fontsize=_TEXT,
        frameon=False,
        handlelength=2.4,
    )


def _plain(text: str) -> str:
    """Text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")
