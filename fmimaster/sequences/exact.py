"""Exact solutions: how to cut all cycles of a graph most cheaply, and the best sequence of a few units.

The cycles are cut by a linear programme, to which cycles are added when they are needed. The sequence is found by dynamic
programming over subsets: Held and Karp (1962), A dynamic programming approach to sequencing problems. Its time and memory
double with each unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.sequences.graph import Arc

MOST_ARCS = 5000
"""With more arcs the linear programme takes too long."""

MOST_CYCLES = 2500
"""With more cycles it is not solved again: each solution takes seconds then, and is unlikely to be in whole numbers."""

MOST_SOLUTIONS = 8
"""Largest number of solutions; if cycles are violated even then, there are many of them."""

TOLERANCE = 1e-6
"""Tolerance of the sum 1 of the shares along a cut cycle, and of the shares 0 and 1."""

_SHORT = 1e-9
"""Length of each arc in addition to its share: of paths of equal shares, the one with the fewest arcs is found."""


def cut_cycles(arcs: Mapping[Arc, float]) -> tuple[dict[Arc, float], bool]:
    """How much of each arc is cut, so that the shares along each cycle sum up to at least 1, and the weight is least.

    ``min sum w x`` with ``0 <= x <= 1`` and ``sum x >= 1`` over each cycle. Cycles that are violated are added until there
    are none, or too many: the shortest one through each arc, by lengths x.

    Parameters
    ----------
    arcs
        Arc → weight, positive; a strongly connected graph.

    Returns
    -------
    Arc → share from 0 to 1, whose weight is a lower bound; and whether it is the best solution: no cycle is violated, and
    all shares are 0 or 1.

    Source: Grötschel, Jünger and Reinelt (1985), On the acyclic subgraph polytope.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    order = sorted(arcs)
    units = sorted({unit for arc in order for unit in arc})
    place = {unit: k for k, unit in enumerate(units)}
    ends = np.array([(place[a], place[b]) for a, b in order])
    weights = np.array([arcs[arc] for arc in order])
    x = np.zeros(len(order))
    cycles: dict[tuple[int, ...], None] = {}
    for solutions in count():
        new = [c for c in _violated(ends, x, len(units)) if c not in cycles]
        if not new:
            break
        if solutions == MOST_SOLUTIONS or (solutions and len(cycles) + len(new) > MOST_CYCLES):
            return _shares(order, x), False
        cycles.update(dict.fromkeys(new))
        rows = [k for k, cycle in enumerate(cycles) for _ in cycle]
        columns = [k for cycle in cycles for k in cycle]
        matrix = csr_array((-np.ones(len(rows)), (rows, columns)), (len(cycles), len(order)))
        solution = linprog(
            weights, matrix, -np.ones(len(cycles)), bounds=(0.0, 1.0), method="highs-ds"
        )
        if (
            solution.x is None
        ):  # numerical trouble: what was found before is as good a start for a search
            return _shares(order, x), False
        x = np.clip(solution.x, 0.0, 1.0)
    return _shares(order, x), bool(np.all(np.minimum(x, 1.0 - x) <= TOLERANCE))


def _shares(order: Sequence[Arc], x: NDArray[np.float64]) -> dict[Arc, float]:
    return dict(zip(order, x.tolist(), strict=True))


def _violated(ends: NDArray[np.intp], x: NDArray[np.float64], n: int) -> Iterator[tuple[int, ...]]:
    """The shortest cycle through each arc, if its shares sum up to less than 1; as sorted numbers of arcs."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    number = {(a, b): k for k, (a, b) in enumerate(ends.tolist())}
    lengths = csr_array((x + _SHORT, (ends[:, 0], ends[:, 1])), (n, n))
    distance: Any
    found: dict[tuple[int, ...], None] = {}
    for begin in range(0, n, _SOURCES):
        sources = np.arange(begin, min(n, begin + _SOURCES))
        distance, above = dijkstra(lengths, indices=sources, return_predecessors=True, limit=1.0)
        chosen = np.flatnonzero((ends[:, 1] >= begin) & (ends[:, 1] < begin + _SOURCES))
        back = distance[ends[chosen, 1] - begin, ends[chosen, 0]]
        for k in chosen[back + x[chosen] < 1.0 - TOLERANCE].tolist():
            a, b = ends[k].tolist()
            tree = above[b - begin]
            cycle, at = [k], a
            while at != b:
                cycle.append(number[int(tree[at]), at])
                at = int(tree[at])
            found[tuple(sorted(cycle))] = None
    yield from found


_SOURCES = 256
"""Number of simultaneous searches: memory is this times the number of units."""


MOST_UNITS = 20
"""More would need too much memory and time: 20 units take 40 MB and some tenths of a second."""

TIE = 1e-12
"""Costs that differ by less, relative to the sum of all weights, are equal."""


def best_by_subsets(d: NDArray[np.float64]) -> tuple[int, ...]:
    """The sequence of least cost; of several the first one by indices.

    Parameters
    ----------
    d : shape (units, units)
        Weight of the arcs from row to column; the diagonal does not count.

    Source: the task is that of Holzinger and Benedikt (2019), equation 8. With ``f(R)`` the least cost of those that step
    last, ``f(R) = min over j in R of f(R without j) + sum over k in R without j of d[k, j]``.
    """
    m = len(d)
    if m > MOST_UNITS:
        raise ValueError(f"{m} units, at most {MOST_UNITS}")
    d = d - np.diag(np.diag(d))
    least = _least_costs(d)
    tolerance = TIE * float(d.sum())
    left, order = (1 << m) - 1, []
    members = list(range(m))
    while members:
        for j in members:
            cost = least[left & ~(1 << j)] + sum(d[k, j] for k in members)
            if cost <= least[left] + tolerance:
                break
        order.append(j)
        members.remove(j)
        left &= ~(1 << j)
    return tuple(order)


def _least_costs(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each set of units, as bits of an index, the least cost if they step last; shape (2 ** units,)."""
    m = len(d)
    least = np.full(1 << m, np.inf)
    least[0] = 0.0
    low = m // 2
    tables = [(_sums(d[:low, j]), _sums(d[low:, j])) for j in range(m)]
    for sets in _by_size(m)[1:]:
        best = np.full(len(sets), np.inf)
        for j, (of_low, of_high) in enumerate(tables):
            rows = np.flatnonzero(sets & (1 << j))
            with_j = sets[rows]
            cost = least[with_j ^ (1 << j)]
            cost += of_low[with_j & ((1 << low) - 1)]
            cost += of_high[with_j >> low]
            best[rows] = np.minimum(best[rows], cost)
        least[sets] = best
    return least


def _sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each set of values, as bits of an index, their sum."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


@lru_cache(maxsize=2)
def _by_size(m: int) -> list[NDArray[np.int32]]:
    """All sets of m units, as bits of a number, by the number of their units."""
    size = np.zeros(1, np.int8)
    for _ in range(m):
        size = np.concatenate([size, size + 1])
    ordered = np.argsort(size, kind="stable").astype(np.int32)
    return np.split(ordered, np.cumsum(np.bincount(size, minlength=m + 1))[:-1])
