"""Duration of one step if units step at the same time: list scheduling, and the compromise with the cost."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.sequences.feedback import least_stale
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.insertion import SMALLEST_GAIN
from fmimaster.sequences.structure import topological_order

MOST_ENUMERATED = 8
"""Up to this number of units all sequences that differ are compared; for more units, some are searched."""

PRICES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Costs in a search of a makespan equal to the sum of all run times, relative to the weight of all inputs."""


@dataclass(frozen=True, slots=True)
class Compromise:
    """A sequence for which no other one is better both in cost and in makespan."""

    sequence: tuple[int, ...]
    """Canonical."""
    cost: float
    """Weight of the stale inputs."""
    makespan: float
    """Duration of one step of the whole system, in s."""


def start_times(
    graph: UnitGraph, sequence: Sequence[int], run_times: Sequence[float], cores: int
) -> list[float]:
    """When each unit starts, in s after the start of the step, if each waits for its fresh inputs and for a free core only.

    List scheduling (Graham 1969): of the units that are ready, the one with the longest chain of waiting units after it
    starts first; of equal ones the first by name. No unit waits for a whole level.

    Parameters
    ----------
    run_times : shape (units,), in s
        How long each unit takes for one step.
    """
    position = {unit: k for k, unit in enumerate(sequence)}
    after = [
        [b for b in graph.successors[a] if position[a] < position[b]] for a in range(graph.size)
    ]
    chain = [0.0] * graph.size
    waits = [0] * graph.size
    for a in reversed(sequence):
        chain[a] = run_times[a] + max((chain[b] for b in after[a]), default=0.0)
        for b in after[a]:
            waits[b] += 1
    ready = [(-chain[a], a) for a in range(graph.size) if waits[a] == 0]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    starts = [0.0] * graph.size
    now = 0.0
    while ready or running:
        while ready and len(running) < cores:
            _, a = heapq.heappop(ready)
            starts[a] = now
            heapq.heappush(running, (now + run_times[a], a))
        now, a = heapq.heappop(running)
        for b in after[a]:
            waits[b] -= 1
            if waits[b] == 0:
                heapq.heappush(ready, (-chain[b], b))
    return starts


def makespan(
    graph: UnitGraph, sequence: Sequence[int], run_times: Sequence[float], cores: int
) -> float:
    """Duration of one step in s, by :func:`start_times`."""
    starts = start_times(graph, sequence, run_times, cores)
    return max((s + t for s, t in zip(starts, run_times, strict=True)), default=0.0)


def pareto_front(
    graph: UnitGraph, run_times: Mapping[str, float], cores: int
) -> tuple[Compromise, ...]:
    """The best compromises between accuracy and speed, the cheapest first.

    Of up to 8 units all sequences that differ are compared. For more, a search over moves of single units minimises
    ``cost + price * makespan`` for some prices: then better ones may exist.

    Parameters
    ----------
    run_times : name → s
        How long each unit takes for one step, as measured.
    cores : int
        How many units can step at the same time.

    Raises
    ------
    OptionError
        If a run time is missing, negative or not finite, or ``cores`` is not positive.
    """
    if cores < 1:
        raise OptionError(f"cores: {cores}, expected 1 or more.")
    missing = [name for name in graph.names if name not in run_times]
    if missing:
        raise OptionError(f"run_times: '{missing[0]}' is missing. Give the run time of each unit.")
    for name, time in run_times.items():
        if not (isfinite(time) and time >= 0):
            raise OptionError(f"run_times: {time!r} for '{name}', expected a time in s.")
    times = [run_times[name] for name in graph.names]
    few = graph.size <= MOST_ENUMERATED
    sequences: Iterable[tuple[int, ...]] = (
        orientations(graph) if few else _searched(graph, times, cores)
    )
    found = sorted(
        (Compromise(s, graph.cost(s), makespan(graph, s, times, cores)) for s in sequences),
        key=lambda c: (c.cost, c.makespan, c.sequence),
    )
    front: list[Compromise] = []
    for c in found:
        if not front or c.makespan < front[-1].makespan * (1 - SMALLEST_GAIN):
            front.append(c)
    return tuple(front)


def _searched(graph: UnitGraph, times: Sequence[float], cores: int) -> set[tuple[int, ...]]:
    """For each price the sequence that no move of one unit makes better, from the one of the price before."""
    scale = sum(graph.weights.values()) / (sum(times) or 1.0)
    order = canonical(graph, least_stale(graph))
    found = {order}
    for price in PRICES:

        def value(s: Sequence[int], price: float = price) -> float:
            return graph.cost(s) + price * scale * makespan(graph, s, times, cores)

        best, better = value(order), True
        while better:
            better = False
            for unit in range(graph.size):
                others = [u for u in order if u != unit]
                near = graph.neighbours[unit]
                # only places directly behind a connected unit differ
                places = [0, *(k + 1 for k, u in enumerate(others) if u in near)]
                for place in places:
                    tried = (*others[:place], unit, *others[place:])
                    if (v := value(tried)) < best * (1 - SMALLEST_GAIN):
                        order, best, better = tried, v, True
        order = canonical(graph, order)
        found.add(order)
    return found


def canonical(graph: UnitGraph, sequence: Sequence[int]) -> tuple[int, ...]:
    """Of all sequences that order every connected pair as this one, the first one by names."""
    position = {unit: k for k, unit in enumerate(sequence)}
    behind = {
        a: [b for b in near if position[a] < position[b]] for a, near in enumerate(graph.neighbours)
    }
    return tuple(topological_order(behind))


def orientations(graph: UnitGraph) -> Iterator[tuple[int, ...]]:
    """All sequences that differ in their results, each in its canonical form, in the order of the names.

    They are the acyclic orientations of the undirected graph. A canonical sequence goes on with a unit only if that unit
    could not have stepped before a later one by name: Cartier and Foata (1969), lexicographic normal form of traces.
    """
    order: list[int] = []
    left = [iter(range(graph.size))]
    used = [False] * graph.size
    while left:
        for unit in left[-1]:
            if not used[unit] and _may_follow(graph, order, unit):
                order.append(unit)
                used[unit] = True
                if len(order) == graph.size:
                    yield tuple(order)
                left.append(iter(range(graph.size)))
                break
        else:
            left.pop()
            if order:
                used[order.pop()] = False


def _may_follow(graph: UnitGraph, order: Sequence[int], unit: int) -> bool:
    near = graph.neighbours[unit]
    for before in reversed(order):
        if before in near:
            return True
        if before > unit:
            return False
    return True
