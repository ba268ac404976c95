"""Arcs without which a graph has no cycle, and which weigh least: the minimum weighted feedback arc set.

The graph is split into independent parts and reduced, both exactly. What is left is solved
exactly if it is small, or if a linear programme solves it; else the solution of the programme is rounded and improved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from fmimaster.sequences.graph import Arc, UnitGraph
from fmimaster.sequences.reductions import Kernel
from fmimaster.sequences.structure import blocks, strong_components

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
    from fmimaster.sequences.cycles import MOST_ARCS, cut_cycles
    from fmimaster.sequences.insertion import greedy, improved, rounded
    from fmimaster.sequences.subsets import MOST_UNITS

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
    from fmimaster.sequences.subsets import best_by_subsets

    units = sorted({unit for arc in arcs for unit in arc})
    place = {unit: k for k, unit in enumerate(units)}
    d = np.zeros((len(units), len(units)))
    for (a, b), w in arcs.items():
        d[place[a], place[b]] = w
    position = {units[k]: p for p, k in enumerate(best_by_subsets(d))}
    return [(a, b) for a, b in arcs if position[a] > position[b]]
