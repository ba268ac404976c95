"""Levels: units that may step at the same time, and how few of them there can be."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from fmimaster.errors import OptionError
from fmimaster.plan.levels import level_sets
from fmimaster.plan.sequence.graph import UnitGraph
from fmimaster.plan.sequence.search import least_stale

Levels = tuple[tuple[int, ...], ...]
"""Units of the first level, of the second, ...; the units of one level in the order of their names."""

MOST_EXACT = 8
"""So many units are put into a bounded number of levels exactly: 3 ** 8 pairs of sets are compared for each level."""


def levels_of(graph: UnitGraph, sequence: Sequence[int]) -> Levels:
    """Units that may step at the same time without any change of the results."""
    return tuple(tuple(sorted(units)) for units in level_sets(sequence, graph.weights))


def cost_of_levels(graph: UnitGraph, levels: Levels) -> float:
    """Weight of the stale inputs if the units of a level step at the same time: those within a level are stale, too."""
    level = {unit: k for k, units in enumerate(levels) for unit in units}
    return sum(w for (a, b), w in graph.weights.items() if level[a] >= level[b])


def bounded_levels(graph: UnitGraph, most: int) -> Levels:
    """At most so many levels, such that the stale inputs weigh least.

    Exact for up to 8 units; for more, units move between levels until no move of one unit is better.

    Raises
    ------
    OptionError
        If ``most`` is not positive.
    """
    if most < 1:
        raise OptionError(f"levels: {most}, expected 1 or more.")
    best = levels_of(graph, least_stale(graph))
    if len(best) <= most or not graph.size:
        return best
    if graph.size <= MOST_EXACT:
        return _exact(graph.matrix, most)
    return _improved(graph, best, most)


def _exact(d: NDArray[np.float64], most: int) -> Levels:
    """The levels of least cost: which sets step first is found from the end (dynamic programming over pairs of sets)."""
    m = len(d)
    full = (1 << m) - 1
    # into[left, j]: weight of the arcs from a set of units to j
    into = np.zeros((1 << m, m))
    for left in range(1, 1 << m):
        lowest = left & -left
        into[left] = into[left ^ lowest] + d[lowest.bit_length() - 1]
    # cost[left]: least cost if these units are still to step in so many levels; and the first of these levels
    cost = [0.0] + [inf] * full
    first: list[list[int]] = []
    for _ in range(most):
        best, chosen = [0.0] + [inf] * full, [0] * (full + 1)
        for left in range(1, full + 1):
            stale = into[left].tolist()
            part = left
            while part:
                value = cost[left ^ part]
                if value < best[left]:
                    value += sum(stale[j] for j in range(m) if part >> j & 1)
                    if value < best[left]:
                        best[left], chosen[left] = value, part
                part = (part - 1) & left
        cost = best
        first.append(chosen)
    levels, left = [], full
    for chosen in reversed(first):
        if left:
            part = chosen[left]
            levels.append(tuple(j for j in range(m) if part >> j & 1))
            left ^= part
    return tuple(levels)


def _improved(graph: UnitGraph, levels: Levels, most: int) -> Levels:
    """Levels put together to so many, of which no move of one unit to another level is better."""
    level = [0] * graph.size
    for k, units in enumerate(levels):
        for unit in units:
            level[unit] = k * most // len(levels)
    before: list[list[tuple[int, float]]] = [[] for _ in graph.names]
    after: list[list[tuple[int, float]]] = [[] for _ in graph.names]
    for (a, b), w in graph.weights.items():
        after[a].append((b, w))
        before[b].append((a, w))
    waiting = dict.fromkeys(range(graph.size))
    while waiting:
        unit = next(iter(waiting))
        del waiting[unit]
        costs = [
            sum(w for a, w in before[unit] if level[a] >= k)
            + sum(w for b, w in after[unit] if level[b] <= k)
            for k in range(most)
        ]
        best = min(costs)
        if best < costs[level[unit]] - _SMALLEST_GAIN * (costs[level[unit]] or 1.0):
            level[unit] = costs.index(best)
            waiting.update(dict.fromkeys(other for other, _ in (*before[unit], *after[unit])))
    found: list[list[int]] = [[] for _ in range(most)]
    for unit, k in enumerate(level):
        found[k].append(unit)
    return tuple(tuple(units) for units in found if units)


_SMALLEST_GAIN = 1e-12
"""Of the cost of one unit: a move that gains less is none, so that moves end."""
