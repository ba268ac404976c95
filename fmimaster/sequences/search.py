"""The sequence whose stale connections weigh least, and a quick one that is not the best."""

from __future__ import annotations

import heapq

from fmimaster.sequences.feedback import feedback_arcs
from fmimaster.sequences.graph import UnitGraph


def least_stale(graph: UnitGraph) -> tuple[int, ...]:
    """The sequence of least cost; between equal ones names decide.

    Exact for rings of up to 20 units, and for larger ones if the linear programme of their cycles has a solution in whole
    numbers; else as good as the local search finds. The result depends on names and weights only.
    """
    return graph.ordered(feedback_arcs(graph.weights))


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
