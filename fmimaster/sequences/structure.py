"""Topological orders, and parts of a graph that can be ordered on their own: strong components, and blocks inside them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import TypeVar

Unit = TypeVar("Unit", int, str)
"""A unit by its number or its name."""


def strong_components(successors: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Units that reach each other; the members in order, a component after all that it reaches.

    Source: Tarjan (1972), Depth-first search and linear graph algorithms; with an explicit stack instead of recursion.
    """
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    waiting: list[int] = []
    is_waiting: set[int] = set()
    found: list[list[int]] = []
    for root in successors:
        if root in number:
            continue
        number[root] = lowest[root] = len(number)
        waiting.append(root)
        is_waiting.add(root)
        path = [(root, iter(successors[root]))]
        while path:
            a, rest = path[-1]
            for b in rest:
                if b not in number:
                    number[b] = lowest[b] = len(number)
                    waiting.append(b)
                    is_waiting.add(b)
                    path.append((b, iter(successors[b])))
                    break
                if b in is_waiting:
                    lowest[a] = min(lowest[a], number[b])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[a])
                if lowest[a] == number[a]:
                    part: list[int] = []
                    while not part or part[-1] != a:
                        part.append(waiting.pop())
                        is_waiting.discard(part[-1])
                    found.append(sorted(part))
    return found


def blocks(neighbours: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Biconnected blocks of an undirected graph: two of them share at most one unit, and every cycle is in one of them.

    A unit without neighbours is in none. Source: Hopcroft and Tarjan (1973), Algorithm 447.
    """
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    found: list[list[int]] = []
    for root in neighbours:
        if root in number:
            continue
        number[root] = lowest[root] = len(number)
        edges: list[tuple[int, int]] = []
        path = [(root, root, iter(neighbours[root]))]
        while path:
            a, above, rest = path[-1]
            for b in rest:
                if b not in number:
                    number[b] = lowest[b] = len(number)
                    edges.append((a, b))
                    path.append((b, a, iter(neighbours[b])))
                    break
                if b != above and number[b] < number[a]:
                    edges.append((a, b))
                    lowest[a] = min(lowest[a], number[b])
            else:
                path.pop()
                if path:
                    lowest[above] = min(lowest[above], lowest[a])
                    if lowest[a] >= number[above]:
                        found.append(_cut_off(edges, (above, a)))
    return found


def _cut_off(edges: list[tuple[int, int]], first: tuple[int, int]) -> list[int]:
    """The units of the newest edges down to the first one of a block, which leave the list."""
    units: set[int] = set()
    edge = None
    while edge != first:
        edge = edges.pop()
        units.update(edge)
    return sorted(units)


def topological_order(successors: Mapping[Unit, Iterable[Unit]]) -> list[Unit]:
    """All units, each before those to which its arcs lead; of several such orders the first one by numbers or names.

    Raises
    ------
    ValueError
        If the arcs have a cycle.
    """
    waits = dict.fromkeys(successors, 0)
    for heads in successors.values():
        for b in heads:
            waits[b] += 1
    ready = [unit for unit, count in waits.items() if count == 0]
    heapq.heapify(ready)
    order: list[Unit] = []
    while ready:
        a = heapq.heappop(ready)
        order.append(a)
        for b in successors[a]:
            waits[b] -= 1
            if waits[b] == 0:
                heapq.heappush(ready, b)
    if len(order) < len(waits):
        raise ValueError("the arcs have a cycle")
    return order


class AcyclicGraph:
    """A graph that accepts an arc only if it closes no cycle.

    A topological order is kept, and only the part between the ends of a new arc is looked at: Pearce and Kelly (2006), A
    dynamic topological sort algorithm for directed acyclic graphs.
    """

    def __init__(self, units: Iterable[int]):
        self._place = {unit: k for k, unit in enumerate(sorted(units))}
        self._after: dict[int, list[int]] = {unit: [] for unit in self._place}
        self._before: dict[int, list[int]] = {unit: [] for unit in self._place}

    def add(self, a: int, b: int) -> bool:
        """Add the arc from a to b unless a path leads from b to a; whether it is added."""
        place = self._place
        low, high = place[b], place[a]
        if low <= high:
            behind = self._reached(b, self._after, low, high)
            if a in behind:
                return False
            ahead = self._reached(a, self._before, low, high)
            moved = sorted(ahead, key=place.__getitem__) + sorted(behind, key=place.__getitem__)
            places = sorted(place[unit] for unit in moved)
            place.update(zip(moved, places, strict=True))
        self._after[a].append(b)
        self._before[b].append(a)
        return True

    def _reached(self, start: int, arcs: dict[int, list[int]], low: int, high: int) -> set[int]:
        """Units between two places to which a path leads."""
        found, waiting = {start}, [start]
        while waiting:
            for unit in arcs[waiting.pop()]:
                if low <= self._place[unit] <= high and unit not in found:
                    found.add(unit)
                    waiting.append(unit)
        return found

    def ordered(self) -> list[int]:
        """The topological order that comes first by numbers of units."""
        return topological_order(self._after)
