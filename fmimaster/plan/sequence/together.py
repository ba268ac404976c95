"""Units that must follow each other directly count as one while the others are put in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fmimaster.plan.sequence.graph import UnitGraph

Chooser = Callable[[UnitGraph], tuple[int, ...]]
"""A graph → its units in the order in which they step."""


def chosen_together(
    graph: UnitGraph, together: Iterable[Sequence[str]], choose: Chooser
) -> tuple[str, ...]:
    """The sequence of a graph in which the units of each group follow each other directly.

    A group takes part under the name of its first unit by name; its own units are put in order by the same choice.
    """
    groups = [sorted(group) for group in together if len(group) > 1]
    if not groups:
        return graph.named(choose(graph))
    head = {name: group[0] for group in groups for name in group}
    stands_for = [head.get(name, name) for name in graph.names]
    outer = UnitGraph.made(
        dict.fromkeys(stands_for),
        ((stands_for[a], stands_for[b], w) for (a, b), w in graph.weights.items()),
    )
    inside: dict[str, Sequence[str]] = {
        group[0]: (part := _part(graph, group)).named(choose(part)) for group in groups
    }
    return tuple(name for unit in outer.named(choose(outer)) for name in inside.get(unit, (unit,)))


def _part(graph: UnitGraph, names: Sequence[str]) -> UnitGraph:
    inside = set(names)
    return UnitGraph.made(
        names,
        (
            (graph.names[a], graph.names[b], w)
            for (a, b), w in graph.weights.items()
            if graph.names[a] in inside and graph.names[b] in inside
        ),
    )
