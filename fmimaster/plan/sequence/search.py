"""The sequence whose stale connections weigh least, and a quick one that is not the best."""

from __future__ import annotations

import heapq

import numpy as np

from fmimaster.plan.sequence.graph import Arc, UnitGraph
from fmimaster.plan.sequence.structure import strong_components
from fmimaster.plan.sequence.subsets import MOST_UNITS, best_by_subsets


def least_stale(graph: UnitGraph) -> tuple[int, ...]:
    """The sequence of least cost; of several the first one by names."""
    cut: list[Arc] = []
    for part in strong_components(dict(enumerate(graph.successors))):
        if len(part) > 1:
            cut += _cut(graph, part)
    return graph.ordered(cut)


def _cut(graph: UnitGraph, part: list[int]) -> list[Arc]:
    """Arcs inside a component without which it has no cycle."""
    place = {unit: k for k, unit in enumerate(part)}
    inside = {
        (place[a], place[b]): w for (a, b), w in graph.weights.items() if a in place and b in place
    }
    own = UnitGraph(tuple(graph.names[k] for k in part), inside)
    if len(part) <= MOST_UNITS:
        matrix = np.zeros((len(part), len(part)))
        for arc, w in inside.items():
            matrix[arc] = w
        order = best_by_subsets(matrix)
    else:
        order = nearest_neighbour(own)
    return [(part[a], part[b]) for a, b in own.stale(order)]


def nearest_neighbour(graph: UnitGraph) -> tuple[int, ...]:
    """Step next the unit whose connections from units that have not stepped yet weigh least; of several the first by name.

    Source: Holzinger and Benedikt (2019), section 2.3.
    """
    left = [0.0] * graph.size
    for (_, b), w in graph.weights.items():
        left[b] += w
    ready = [(w, k) for k, w in enumerate(left)]
    heapq.heapify(ready)
    done = [False] * graph.size
    order: list[int] = []
    while ready:
        w, a = heapq.heappop(ready)
        if done[a] or w != left[a]:  # it has been put in again with less
            continue
        done[a] = True
        order.append(a)
        for b in graph.successors[a]:
            if not done[b]:
                left[b] -= graph.weights[a, b]
                heapq.heappush(ready, (left[b], b))
    return tuple(order)
