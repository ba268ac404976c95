"""Units that must follow each other directly count as one while the others are put in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fmimaster.sequences.graph import UnitGraph

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
    inside = {
        head: part.named(choose(part)) for head, part in _parts(graph, groups, stands_for).items()
    }
    return tuple(name for unit in outer.named(choose(outer)) for name in inside.get(unit, (unit,)))


def _parts(
    graph: UnitGraph, groups: Iterable[Sequence[str]], stands_for: Sequence[str]
) -> dict[str, UnitGraph]:
    """The graph of each group, by its first unit."""
    weights: dict[str, list[tuple[str, str, float]]] = {group[0]: [] for group in groups}
    for (a, b), w in graph.weights.items():
        if stands_for[a] == stands_for[b] and stands_for[a] in weights:
            weights[stands_for[a]].append((graph.names[a], graph.names[b], w))
    return {group[0]: UnitGraph.made(group, weights[group[0]]) for group in groups}
