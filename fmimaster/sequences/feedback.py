"""Arcs without which a graph has no cycle, and which weigh least: the minimum weighted feedback arc set.

The graph is split into independent parts and reduced, both exactly. What is left is solved
exactly if it is small, or if a linear programme solves it; else the solution of the programme is rounded and improved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from fmimaster.sequences.graph import Arc, UnitGraph
from fmimaster.sequences.structure import blocks, strong_components


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


Arcs = Mapping[Arc, float]

AT_ONCE = 12
"""Components of so many units are solved by subsets as they are, in some milliseconds."""

MOST_ROUNDED = 15_000
"""More arcs are not added one after the other: the time grows faster than their number."""

BEFORE_CYCLES = 15
"""So many units are solved by subsets; a linear programme takes as long for more."""


def least_stale(graph: UnitGraph) -> tuple[int, ...]:
    """The sequence of least cost; between equal ones names decide.

    Exact for rings of up to 20 units, and for larger ones if the linear programme of their cycles has a solution in whole
    numbers; else as good as the local search finds. The result depends on names and weights only.
    """
    return graph.ordered(feedback_arcs(graph.weights))


def feedback_arcs(arcs: Arcs) -> set[Arc]:
    """Arcs to cut, so that those that are left have no cycle. Arcs of weight 0 do not count."""
    cut: set[Arc] = set()
    waiting = [Kernel({arc: w for arc, w in arcs.items() if w > 0})]
    while waiting:
        kernel = waiting.pop()
        for part in _components(kernel):
            if len(part.units) <= AT_ONCE:
                cut.update(part.stands_for(_by_subsets(part.arcs)))
                continue
            for block in _blocks(part):
                size = len(block.arcs)
                cut.update(block.reduce())
                if not block.arcs:
                    continue
                if len(block.arcs) < size:
                    waiting.append(block)
                else:
                    cut.update(block.stands_for(_solved(block.arcs)))
    return cut


def _components(kernel: Kernel) -> Iterator[Kernel]:
    """Strong components of more than one unit: the arcs between components are in no cycle."""
    successors: dict[int, list[int]] = {unit: [] for unit in sorted(kernel.units)}
    for a, b in kernel.arcs:
        successors[a].append(b)
    part_of = {}
    parts = [part for part in strong_components(successors) if len(part) > 1]
    for k, part in enumerate(parts):
        part_of.update(dict.fromkeys(part, k))
    inside: list[list[Arc]] = [[] for _ in parts]
    for a, b in kernel.arcs:
        if a in part_of and part_of[a] == part_of.get(b):
            inside[part_of[a]].append((a, b))
    return map(kernel.part, inside)


def _blocks(kernel: Kernel) -> Iterator[Kernel]:
    """Biconnected blocks: every cycle lies in one of them."""
    neighbours: dict[int, set[int]] = {unit: set() for unit in sorted(kernel.units)}
    for a, b in kernel.arcs:
        neighbours[a].add(b)
        neighbours[b].add(a)
    ordered = {unit: sorted(near) for unit, near in neighbours.items()}
    for block in blocks(ordered):
        inside = set(block)
        yield kernel.part(
            [(a, b) for a in block for b in ordered[a] if b in inside and (a, b) in kernel.arcs]
        )


def _solved(arcs: Arcs) -> list[Arc]:
    """The arcs to cut in a block."""
    # only a graph with cycles needs them
    from fmimaster.sequences.exact import MOST_ARCS, MOST_UNITS, cut_cycles
    from fmimaster.sequences.insertion import greedy, improved, rounded

    n = len({unit for arc in arcs for unit in arc})
    if n <= BEFORE_CYCLES:
        return _by_subsets(arcs)
    if len(arcs) > MOST_ROUNDED:
        return improved(arcs, greedy(arcs))
    if len(arcs) > MOST_ARCS:
        return improved(arcs, rounded(arcs, dict.fromkeys(arcs, 0.0)))
    shares, whole = cut_cycles(arcs)
    if whole:
        return [arc for arc, share in shares.items() if share > 0.5]
    return _by_subsets(arcs) if n <= MOST_UNITS else improved(arcs, rounded(arcs, shares))


def _by_subsets(arcs: Arcs) -> list[Arc]:
    # only a graph with cycles needs it
    from fmimaster.sequences.exact import best_by_subsets

    units = sorted({unit for arc in arcs for unit in arc})
    place = {unit: k for k, unit in enumerate(units)}
    d = np.zeros((len(units), len(units)))
    for (a, b), w in arcs.items():
        d[place[a], place[b]] = w
    position = {units[k]: p for p, k in enumerate(best_by_subsets(d))}
    return [(a, b) for a, b in arcs if position[a] > position[b]]
