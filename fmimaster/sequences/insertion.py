"""Sequences of many units: a quick first one, one rounded from shares of arcs, moves of single units that improve it."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Mapping, Sequence

from fmimaster.sequences.graph import Arc
from fmimaster.sequences.structure import AcyclicGraph

Arcs = Mapping[Arc, float]

SEED = 1
"""Seed of the shuffles: the same system has the same sequence in each run."""

MOST_ROUNDS = 3000
"""Largest number of times that a part of the sequence is shuffled and improved again."""

LEAST_ROUNDS = 20
"""Least number of rounds."""

WORK_OF_UNITS, WORK_OF_ALL = 14_000, 6_000_000
"""The rounds times the mean number of arcs of a unit, and times the number of all units and arcs. They limit a search to
some seconds, with the same result on each machine."""

WINDOW = (2, 40)
"""Least and most units that are shuffled."""

SMALLEST_GAIN = 1e-12
"""Relative to the weight of all arcs: a move that gains less is not done. Thus the moves end."""


def greedy(arcs: Mapping[Arc, float]) -> list[int]:
    """All units: sources first, sinks last, else the unit with the largest weight of outgoing minus incoming arcs.

    Source: Eades, Lin and Smyth (1993), A fast and effective heuristic for the feedback arc set problem; with weights.
    """
    before: dict[int, dict[int, float]] = {unit: {} for arc in sorted(arcs) for unit in arc}
    after: dict[int, dict[int, float]] = {unit: {} for unit in before}
    for (a, b), weight in arcs.items():
        after[a][b] = before[b][a] = weight
    gain = {u: sum(after[u].values()) - sum(before[u].values()) for u in before}
    by_gain = [(-g, u) for u, g in gain.items()]
    heapq.heapify(by_gain)
    ends = sorted((u for u in before if not before[u] or not after[u]), reverse=True)
    front: list[int] = []
    back: list[int] = []
    left = set(before)
    while left:
        if ends:
            unit = ends.pop()
        else:
            g, unit = heapq.heappop(by_gain)
            if unit in left and g != -gain[unit]:  # it has been put in again
                continue
        if unit not in left:
            continue
        left.discard(unit)
        (front if after[unit] or not before[unit] else back).append(unit)
        for b, weight in after[unit].items():
            del before[b][unit]
            gain[b] += weight
        for a, weight in before[unit].items():
            del after[a][unit]
            gain[a] -= weight
        for near in sorted({*after[unit], *before[unit]}):
            if not before[near] or not after[near]:
                ends.append(near)
            else:
                heapq.heappush(by_gain, (-gain[near], near))
    return front + back[::-1]


def rounded(arcs: Arcs, shares: Mapping[Arc, float]) -> list[int]:
    """All units in an order that keeps arcs of small shares: they are taken one after the other unless they close a cycle.

    Of equal shares the heavier arc comes first, then names decide.
    """
    kept = AcyclicGraph({unit for arc in arcs for unit in arc})
    for arc in sorted(arcs, key=lambda arc: (shares[arc], -arcs[arc], arc)):
        kept.add(*arc)
    return kept.ordered()


def rounds_for(units: int, arcs: int) -> int:
    """Number of rounds of a search, by the numbers of units and arcs."""
    by_unit = WORK_OF_UNITS * units // (2 * arcs)
    return max(LEAST_ROUNDS, min(MOST_ROUNDS, by_unit, WORK_OF_ALL // (units + arcs)))


def improved(arcs: Arcs, sequence: Sequence[int], rounds: int | None = None) -> list[Arc]:
    """The arcs that are stale in the best sequence that a local search finds.

    A unit moves to the place where its stale arcs weigh least, until no unit gains. Then a random part of the
    sequence is repeatedly shuffled and improved; a sequence that is not worse is kept.
    """
    search = _Search(arcs, sequence)
    search.improve(sequence)
    chance = random.Random(SEED)
    best = search.cost()
    for _ in range(rounds_for(len(sequence), len(arcs)) if rounds is None else rounds):
        order = search.order()
        size = min(chance.randint(*WINDOW), len(order))
        start = chance.randrange(len(order) - size + 1)
        window = order[start : start + size]
        saved = list(search.key)
        shuffled = list(window)
        chance.shuffle(shuffled)
        search.put(shuffled, [search.key[search.place[unit]] for unit in window])
        search.improve(shuffled)
        cost = search.cost()
        if cost <= best:
            best = cost
        else:
            search.key = saved
    return search.stale()


class _Search:
    """A sequence as a key for each unit, by which they are ordered: only neighbours of a unit matter for its place."""

    def __init__(self, arcs: Arcs, sequence: Sequence[int]):
        self.units = sorted(sequence)
        self.place = {unit: k for k, unit in enumerate(self.units)}
        self.arcs = [(self.place[a], self.place[b], w) for (a, b), w in sorted(arcs.items())]
        self.least = SMALLEST_GAIN * sum(w for _, _, w in self.arcs)
        change: list[dict[int, float]] = [{} for _ in self.units]
        for a, b, w in self.arcs:
            change[a][b] = change[a].get(b, 0.0) + w
            change[b][a] = change[b].get(a, 0.0) - w
        # additional cost if the unit steps after the neighbour
        self.change = [sorted(c.items()) for c in change]
        self.key = [0.0] * len(self.units)
        self.put(sequence, range(len(self.units)))

    def put(self, units: Sequence[int], keys: Sequence[float]) -> None:
        for unit, key in zip(units, keys, strict=True):
            self.key[self.place[unit]] = float(key)

    def order(self) -> list[int]:
        """All units in the present order, whose keys become whole numbers again."""
        key = self.key
        order = sorted(range(len(key)), key=key.__getitem__)
        for k, unit in enumerate(order):
            key[unit] = float(k)
        return [self.units[k] for k in order]

    def cost(self) -> float:
        key = self.key
        return sum(w for a, b, w in self.arcs if key[a] > key[b])

    def stale(self) -> list[Arc]:
        key, units = self.key, self.units
        return [(units[a], units[b]) for a, b, _ in self.arcs if key[a] > key[b]]

    def improve(self, units: Sequence[int]) -> None:
        """Move units, and those that are near to moved ones, until no move gains."""
        waiting = deque(self.place[unit] for unit in units)
        queued = set(waiting)
        while waiting:
            unit = waiting.popleft()
            queued.discard(unit)
            if self._move(unit):
                for near, _ in self.change[unit]:
                    if near not in queued:
                        waiting.append(near)
                        queued.add(near)

    def _move(self, unit: int) -> bool:
        """Move a unit to its best place; return whether the cost has decreased."""
        key = self.key
        near = sorted([(key[other], change) for other, change in self.change[unit]])
        mine = key[unit]
        cost = best = present = 0.0
        at = -1
        for k, (there, change) in enumerate(near):
            cost += change
            if there < mine:
                present = cost
            if cost < best:
                best, at = cost, k
        if best >= present - self.least:
            return False
        if at < 0:
            key[unit] = near[0][0] - 1.0
        elif at == len(near) - 1:
            key[unit] = near[-1][0] + 1.0
        else:
            low, high = near[at][0], near[at + 1][0]
            middle = (low + high) / 2
            if not low < middle < high:  # the keys have become too near
                self.order()
                return self._move(unit)
            key[unit] = middle
        return True
