"""Sequences with different results: two give the same results if they order every connected pair the same way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.structure import topological_order


def canonical(graph: UnitGraph, sequence: Sequence[int]) -> tuple[int, ...]:
    """Of all sequences that order every connected pair as this one, the first one by names."""
    position = {unit: k for k, unit in enumerate(sequence)}
    behind = {
        a: [b for b in near if position[a] < position[b]] for a, near in enumerate(graph.neighbours)
    }
    return tuple(topological_order(behind))


def orientations(graph: UnitGraph) -> Iterator[tuple[int, ...]]:
    """All sequences that differ in their results, each in its canonical form, in the order of the names.

    They are the acyclic orientations of the undirected graph. A canonical sequence goes on with a unit only if that unit
    could not have stepped before a later one by name: Cartier and Foata (1969), lexicographic normal form of traces.
    """
    order: list[int] = []
    left = [iter(range(graph.size))]
    used = [False] * graph.size
    while left:
        for unit in left[-1]:
            if not used[unit] and _may_follow(graph, order, unit):
                order.append(unit)
                used[unit] = True
                if len(order) == graph.size:
                    yield tuple(order)
                left.append(iter(range(graph.size)))
                break
        else:
            left.pop()
            if order:
                used[order.pop()] = False


def _may_follow(graph: UnitGraph, order: Sequence[int], unit: int) -> bool:
    near = graph.neighbours[unit]
    for before in reversed(order):
        if before in near:
            return True
        if before > unit:
            return False
    return True
