"""The best sequence of a few units, exact, by dynamic programming over subsets.

Held and Karp (1962), A dynamic programming approach to sequencing problems. Time and memory double with each unit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

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
