"""Exact reductions of a graph whose cycles are to be cut: what is left has fewer units, and the same least cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from fmimaster.sequences.graph import Arc


class Kernel:
    """A graph that is reduced, and the arcs of the first graph that each of its arcs represents.

    To cut an arc is to cut all arcs that it represents; its weight is their sum.
    """

    def __init__(self, arcs: Mapping[Arc, float], origin: Mapping[Arc, list[Arc]] | None = None):
        self.arcs = dict(arcs)
        self._origin = {arc: [arc] for arc in arcs} if origin is None else dict(origin)

    @property
    def units(self) -> set[int]:
        """All ends of arcs."""
        return {unit for arc in self.arcs for unit in arc}

    def part(self, arcs: Iterable[Arc]) -> Kernel:
        """The graph of some of its arcs."""
        chosen = sorted(arcs)
        return Kernel(
            {arc: self.arcs[arc] for arc in chosen}, {arc: self._origin[arc] for arc in chosen}
        )

    def stands_for(self, arcs: Iterable[Arc]) -> list[Arc]:
        """The arcs of the first graph that these arcs represent."""
        return [original for arc in arcs for original in self._origin[arc]]

    def reduce(self) -> list[Arc]:
        """Reduce until nothing changes.

        A unit without arcs in or out is in no cycle. A unit with a single arc in, which weighs at least as much as all its
        arcs out, becomes one with its predecessor: instead of that arc all arcs out could be cut. The same holds the other
        way round. An arc that then leads from a unit to itself is cut.

        Returns
        -------
        The arcs of the first graph that are cut.
        """
        before: dict[int, set[int]] = {unit: set() for unit in self.units}
        after: dict[int, set[int]] = {unit: set() for unit in before}
        for a, b in self.arcs:
            after[a].add(b)
            before[b].add(a)
        cut: list[Arc] = []
        # the last by name first: of equal arcs in a ring, the one into its first unit is cut
        waiting = deque(sorted(before, reverse=True))
        queued = set(waiting)
        while waiting:
            unit = waiting.popleft()
            queued.discard(unit)
            into, out = before[unit], after[unit]
            if not into and not out:
                continue
            if not into or not out:
                touched = into | out
                for arc in [(a, unit) for a in into] + [(unit, b) for b in out]:
                    self._drop(arc, before, after)
            elif len(into) == 1 and self._weight((a, unit) for a in into) >= self._weight(
                (unit, b) for b in sorted(out)
            ):
                touched = self._merge((next(iter(into)), unit), unit, before, after, cut)
            elif len(out) == 1 and self._weight((unit, b) for b in out) >= self._weight(
                (a, unit) for a in sorted(into)
            ):
                touched = self._merge((unit, next(iter(out))), unit, before, after, cut)
            else:
                continue
            for other in sorted(touched - queued - {unit}, reverse=True):
                waiting.append(other)
                queued.add(other)
        return cut

    def _weight(self, arcs: Iterable[Arc]) -> float:
        return sum(self.arcs[arc] for arc in arcs)

    def _drop(self, arc: Arc, before: dict[int, set[int]], after: dict[int, set[int]]) -> None:
        a, b = arc
        del self.arcs[arc], self._origin[arc]
        after[a].discard(b)
        before[b].discard(a)

    def _merge(
        self,
        kept: Arc,
        unit: int,
        before: dict[int, set[int]],
        after: dict[int, set[int]],
        cut: list[Arc],
    ) -> set[int]:
        """Make one unit of both ends of an arc that is never cut: the arcs of the one begin and end at the other."""
        other = kept[0] if kept[1] == unit else kept[1]
        touched = {other}
        ends = [(a, unit) for a in sorted(before[unit])] + [(unit, b) for b in sorted(after[unit])]
        for arc in ends:
            a, b = arc
            weight, origin = self.arcs[arc], self._origin[arc]
            self._drop(arc, before, after)
            if arc == kept:
                continue
            new = (other if a == unit else a, other if b == unit else b)
            touched.update(new)
            if new[0] == new[1]:
                cut += origin
            elif new in self.arcs:
                self.arcs[new] += weight
                self._origin[new] = self._origin[new] + origin
            else:
                self.arcs[new], self._origin[new] = weight, origin
                after[new[0]].add(new[1])
                before[new[1]].add(new[0])
        return touched
