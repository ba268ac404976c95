"""Levels: units that may step at the same time; also with a bounded number of levels."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError
from fmimaster.sequences.feedback import least_stale
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.insertion import SEED, SMALLEST_GAIN, rounds_for


def level_sets(
    sequence: Sequence[int],
    arcs: Collection[tuple[int, int]],
    stale: Collection[tuple[int, int]] = (),
) -> tuple[tuple[int, ...], ...]:
    """The instances of each level of a trigger sequence, in the order of the sequence.

    An instance is one level above the highest of those that feed it and step before it; those that step after it, or whose
    arc is stale on purpose, do not count.

    Parameters
    ----------
    sequence
        Instances in the order in which they step.
    arcs
        Pairs of a source and a target.
    stale
        Those of the arcs whose target is given the source's outputs at the start of the step in any case.

    Source: Holzinger and Benedikt (2019), section 4 (hierarchical scheduling); the longest path of an acyclic graph.
    """
    position = {i: k for k, i in enumerate(sequence)}
    fresh: dict[int, list[int]] = {i: [] for i in sequence}
    for source, target in set(arcs) - set(stale):
        if source in position and target in position and position[source] < position[target]:
            fresh[target].append(source)
    level, sets = dict[int, int](), list[list[int]]()
    for i in sequence:
        level[i] = 1 + max((level[k] for k in fresh[i]), default=-1)
        if level[i] == len(sets):
            sets.append([])
        sets[level[i]].append(i)
    return tuple(map(tuple, sets))


Levels = tuple[tuple[int, ...], ...]
"""Units of the first level, of the second, ...; the units of one level in the order of their names."""

MOST_EXACT = 8
"""Up to this number of units a bounded number of levels is exact: 3 ** 8 pairs of sets are compared for each level."""


def levels_of(graph: UnitGraph, sequence: Sequence[int]) -> Levels:
    """Units that may step at the same time without any change of the results."""
    return tuple(tuple(sorted(units)) for units in level_sets(sequence, graph.weights))


def bounded_levels(graph: UnitGraph, most: int) -> Levels:
    """At most ``most`` levels, with the least weight of stale inputs.

    Exact for up to 8 units; for more, as good as a local search finds.

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
    """Levels merged to at most ``most``, and improved by a local search."""
    level = [0] * graph.size
    for k, units in enumerate(levels):
        for unit in units:
            level[unit] = k * most // len(levels)
    search = _Search(graph, level, most)
    search.improve(range(graph.size))
    chance = random.Random(SEED)
    best, level = search.cost(), list(search.level)
    for _ in range(rounds_for(graph.size, len(graph.weights))):
        moved = chance.sample(range(graph.size), min(graph.size, chance.randint(*MOVED)))
        for unit in moved:
            search.level[unit] = chance.randrange(most)
        search.improve(moved)
        cost = search.cost()
        if cost <= best:
            best, level = cost, list(search.level)
        else:
            search.level = list(level)
    return tuple(
        units
        for k in range(most)
        if (units := tuple(u for u in range(graph.size) if level[u] == k))
    )


class _Search:
    """A level for each unit; a local search moves single units to better levels."""

    def __init__(self, graph: UnitGraph, level: Sequence[int], most: int):
        self.level, self._most, self._weights = list(level), most, graph.weights
        self._before: list[list[tuple[int, float]]] = [[] for _ in level]
        self._after: list[list[tuple[int, float]]] = [[] for _ in level]
        for (a, b), w in graph.weights.items():
            self._after[a].append((b, w))
            self._before[b].append((a, w))
        self._least = SMALLEST_GAIN * sum(graph.weights.values())

    def cost(self) -> float:
        level = self.level
        return sum(w for (a, b), w in self._weights.items() if level[a] >= level[b])

    def improve(self, units: Iterable[int]) -> None:
        """Move units, and those that are connected with moved ones, until no move of one unit gains."""
        waiting = dict.fromkeys(units)
        while waiting:
            unit = next(iter(waiting))
            del waiting[unit]
            costs = self._costs(unit)
            best = min(costs)
            if best < costs[self.level[unit]] - self._least:
                self.level[unit] = costs.index(best)
                near = (*self._before[unit], *self._after[unit])
                waiting.update(dict.fromkeys(other for other, _ in near))

    def _costs(self, unit: int) -> list[float]:
        """Weight of the stale arcs of a unit on each level."""
        costs = [0.0] * self._most
        for a, w in self._before[unit]:  # stale on its level and those before
            costs[self.level[a]] += w
        for k in range(self._most - 2, -1, -1):
            costs[k] += costs[k + 1]
        late = [0.0] * self._most
        for b, w in self._after[unit]:  # stale on its level and those behind
            late[self.level[b]] += w
        total = 0.0
        for k, w in enumerate(late):
            total += w
            costs[k] += total
        return costs


MOVED = (1, 6)
"""Least and most units that are moved at random before a search goes on."""
