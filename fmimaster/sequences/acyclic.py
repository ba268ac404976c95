"""A graph without cycles to which arcs are added one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from fmimaster.sequences.structure import topological_order


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
