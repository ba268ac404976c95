"""Content and layout of the figure of a plan: components as boxes, connections as lines, placed by Graphviz.

Graphviz's ``dot`` gets sizes in points and no text, so the layout does not depend on fonts: the same plan always has
the same layout.

Source: Gansner, Koutsofios, North and Vo (1993), A technique for drawing directed graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fmimaster.base.installation import optional
from fmimaster.base.text import count, in_a_line

LINE = 11.0
"""[pt] Distance of two lines of text."""
MARGIN = 7.0
"""[pt] Margin around the text of a component."""
POINTS = 72.0
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
class Arc:
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


def arcs_of(facts: Mapping[str, Any]) -> list[Arc]:
    """The connections between two components as few lines: one each for fresh ones, stale ones, and ones in a loop."""
    in_loops = [set(loop["variables"]) for loop in facts["stepLoops"]]
    found: dict[tuple[Any, ...], Arc] = {}
    for c in facts["connections"]:
        inside = any({c["source"], c["target"]} <= variables for variables in in_loops)
        key = c["sourceComponent"], c["targetComponent"], c["fresh"], inside
        arc = found.setdefault(key, Arc(*key))
        output = c["source"].removeprefix(f"{arc.source}.")
        arc.labels.append(_short(f"{output} → {c['target'].removeprefix(f'{arc.target}.')}"))
    if len(found) > _MOST_LABELLED:
        return [replace(arc, labels=[]) for arc in found.values()]
    return list(found.values())


def text_of(name: str, facts: Mapping[str, Any]) -> list[str]:
    component = next(c for c in facts["components"] if c["name"] == name)
    place = facts["order"].index(name) + 1
    return [_short(f"{place}. {name}"), _short(component["modelName"])]


def _short(text: str) -> str:
    text = in_a_line(text)
    half = (_LONGEST - 1) // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"


def size_of(lines: Sequence[str]) -> tuple[float, float]:
    """Width and height of lines of text in points."""
    return _LETTER * max(map(len, lines)), LINE * len(lines)


# Where it is drawn ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FigureLayout:
    """Places in points; y upwards."""

    width: float
    height: float
    places: dict[str, tuple[float, float]]
    """Component → its middle."""
    lines: list[np.ndarray[Any, Any]]
    """Control points of cubic Bézier curves, shape (3 n + 1, 2), in the order of the arcs; the last point is the tip."""
    labels: list[tuple[float, float]]
    """Middles of the labels."""


def layout(
    levels: Sequence[Sequence[str]], boxes: Mapping[str, Sequence[str]], arcs: Sequence[Arc]
) -> FigureLayout:
    graph = _graphviz()(directed=True, strict=False, rankdir="LR", nodesep="0.35", ranksep="0.45")
    graph.node_attr.update(shape="box", fixedsize="true", label="")
    number = {name: str(k) for k, name in enumerate(boxes)}
    for name, lines in boxes.items():
        width, height = (size + 2 * MARGIN for size in size_of(lines))
        graph.add_node(number[name], width=width / POINTS, height=height / POINTS)
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
    edges = {edge.key: edge for edge in map(graph.get_edge, *_ends(graph))}
    *_, width, height = map(float, graph.graph_attr["bb"].split(","))
    curves = [_curve(edges[str(k)].attr["pos"]) for k in range(len(arcs))]
    return FigureLayout(
        width,
        height,
        {name: _point(graph.get_node(n).attr["pos"]) for name, n in number.items()},
        curves,
        [_middle(edges[str(k)].attr["lp"], curve) for k, curve in enumerate(curves)],
    )


def _graphviz() -> Any:
    return optional("pygraphviz", "graph", "A figure of the plan").AGraph


def _empty_label(lines: Sequence[str]) -> str:
    """A label without text that occupies the space of these lines: Graphviz needs no fonts for it."""
    width, height = size_of(lines)
    size = f'FIXEDSIZE="TRUE" WIDTH="{width + 6:.0f}" HEIGHT="{height + 4:.0f}"'
    cell = f'<TD FIXEDSIZE="TRUE" WIDTH="{width:.0f}" HEIGHT="{height:.0f}"></TD>'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" {size}><TR>{cell}</TR></TABLE>>'


def _ends(graph: Any) -> tuple[list[str], list[str], list[str]]:
    """Tails, heads and keys of the visible lines."""
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
