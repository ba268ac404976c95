"""The nodes of a graph to cut so that no cycle is left (a feedback vertex set): a smallest set, or a small one.

Small graphs are solved exactly, by trying all sets. Large graphs are reduced first: nodes on no cycle are removed, and
a node with one predecessor or one successor is merged into it. The rest is cut at the nodes with most paths.

Source: Levy and Low (1988), A contraction algorithm for finding small cycle cutsets, Journal of Algorithms 9.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

N = TypeVar("N", bound=Hashable)

MOST_EXACT = 15
"""Largest number of nodes for which all sets are tried; each further node doubles the time, which is at most 0.1 s."""

MOST_CHECKS = 50
"""Largest number of searches of the whole graph for unnecessary cuts, to keep the time linear."""


class Preference(NamedTuple):
    """Preference for the choice between two nodes: the node with the smaller value is cut."""

    penalties: tuple[int, ...]
    """Penalties, the most important first; those of a set are summed."""
    name: str
    """Decides a tie, so that the choice does not depend on the order of the nodes."""


def cuts(arcs: Mapping[N, Collection[N]], preferences: Mapping[N, Preference]) -> tuple[N, ...]:
    """Nodes without which the graph has no cycle, by name.

    Up to ``MOST_EXACT`` nodes: a smallest set, of those the one with the smallest sum of penalties, of those the first by
    names. More nodes: linear time on sparse graphs; no node of the set can be left out, as far as ``MOST_CHECKS`` allows
    to find that.

    Parameters
    ----------
    arcs
        Node → its successors, all of them nodes.
    preferences
        Of each node; names differ.
    """
    nodes = sorted(arcs, key=preferences.__getitem__)
    number = {node: k for k, node in enumerate(nodes)}
    heads = [{number[head] for head in arcs[node]} for node in nodes]
    if len(nodes) <= MOST_EXACT:
        chosen = _smallest(heads, [preferences[node] for node in nodes])
    else:
        chosen = _without_needless(heads, _small(heads))
    return tuple(sorted((nodes[k] for k in chosen), key=lambda node: preferences[node].name))


# Exact ----------------------------------------------------------------------------------------------------------------


def _smallest(heads: Sequence[set[int]], preferences: Sequence[Preference]) -> Collection[int]:
    """By trying all sets of one size, then of the next."""
    masks = [sum(1 << head for head in of) for of in heads]
    every = (1 << len(heads)) - 1
    own = [k for k, of in enumerate(heads) if k in of]
    others = [k for k in range(len(heads)) if k not in own]
    for size in range(len(others) + 1):
        found = [
            (*own, *chosen)
            for chosen in combinations(others, size)
            if _is_acyclic(masks, every & ~sum(1 << k for k in (*own, *chosen)))
        ]
        if found:
            return min(found, key=lambda chosen: _cost(preferences[k] for k in chosen))
    raise AssertionError("without all of its nodes a graph has no cycle")


def _cost(chosen: Iterable[Preference]) -> tuple[list[int], list[str]]:
    preferences = list(chosen)
    sums = [sum(column) for column in zip(*(p.penalties for p in preferences), strict=True)]
    return sums, sorted(p.name for p in preferences)


def _is_acyclic(masks: Sequence[int], left: int) -> bool:
    """Whether the remaining nodes, one bit for each, have no cycle."""
    before = 0
    while left and left != before:
        before = left
        for k, mask in enumerate(masks):
            if left >> k & 1 and not mask & left:
                left &= ~(1 << k)
    return not left


# Linear time ----------------------------------------------------------------------------------------------------------


def _small(heads: Sequence[set[int]]) -> list[int]:
    """By reductions and, where none is possible, by the node with the largest product of predecessors and successors.

    The numbers of the nodes are in the order of preferences, which decides ties.
    """
    graph = _Reducible(heads)
    chosen: list[int] = []
    waiting = list(range(len(heads)))
    busiest = [(-graph.paths_over(k), k) for k in waiting]
    heapq.heapify(busiest)

    def look_at(changed: Iterable[int]) -> None:
        for k in changed:
            heapq.heappush(waiting, k)
            heapq.heappush(busiest, (-graph.paths_over(k), k))

    while waiting or busiest:
        while waiting:
            k = heapq.heappop(waiting)
            if graph.is_alive[k]:
                if k in graph.heads[k]:
                    chosen.append(k)
                look_at(graph.reduce(k))
        paths, k = heapq.heappop(busiest)
        if graph.is_alive[k] and -paths == graph.paths_over(k):
            chosen.append(k)
            look_at(graph.remove(k))
    return chosen


class _Reducible:
    """A graph that is reduced without changing the nodes to cut."""

    def __init__(self, heads: Sequence[set[int]]) -> None:
        self.heads = [set(of) for of in heads]
        self.tails: list[set[int]] = [set() for _ in heads]
        for k, of in enumerate(heads):
            for head in of:
                self.tails[head].add(k)
        self.is_alive = [True] * len(heads)

    def paths_over(self, k: int) -> int:
        """Predecessors times successors."""
        return len(self.heads[k]) * len(self.tails[k])

    def reduce(self, k: int) -> set[int]:
        """Remove a node without a cycle or with a cycle to itself, or merge it; returns the nodes that have changed."""
        heads, tails = self.heads[k], self.tails[k]
        if k in heads or not heads or not tails:
            return self.remove(k)
        for before, after in ((tails, self.heads), (heads, self.tails)):
            if len(before) == 1:
                (other,) = before
                # every cycle through k leads through the other one; if this is mutual, the preferred node is kept
                if len(after[other]) == 1 and k < other:
                    return self.merge(other, k)
                return self.merge(k, other)
        return set()

    def remove(self, k: int) -> set[int]:
        """Remove a node; its neighbours."""
        self.is_alive[k] = False
        neighbours = (self.heads[k] | self.tails[k]) - {k}
        for other in neighbours:
            self.heads[other].discard(k)
            self.tails[other].discard(k)
        self.heads[k], self.tails[k] = set(), set()
        return neighbours

    def merge(self, k: int, into: int) -> set[int]:
        """Move the arcs of a node to one of its neighbours; returns the nodes that have changed."""
        heads, tails = self.heads[k], self.tails[k]
        changed = self.remove(k)
        for head in heads - {k} if into in tails else ():
            self.heads[into].add(head)
            self.tails[head].add(into)
        for tail in tails - {k} if into in heads else ():
            self.tails[into].add(tail)
            self.heads[tail].add(into)
        return changed


def _without_needless(heads: Sequence[set[int]], chosen: Sequence[int]) -> list[int]:
    """The chosen nodes without those that close no cycle if they are not cut; the least preferred nodes are tried
    first."""
    is_cut = [False] * len(heads)
    for k in chosen:
        is_cut[k] = True
    budget = MOST_CHECKS * (len(heads) + sum(map(len, heads)))
    for k in sorted(chosen, reverse=True):
        seen, waiting = {k}, [k]
        closes = False
        while waiting and not closes and budget > 0:
            for head in heads[waiting.pop()]:
                budget -= 1
                closes |= head == k
                if not is_cut[head] and head not in seen:
                    seen.add(head)
                    waiting.append(head)
        if budget <= 0:
            break
        is_cut[k] = closes
    return [k for k in chosen if is_cut[k]]
