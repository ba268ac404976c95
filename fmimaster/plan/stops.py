"""Variables in the order of their dependencies; those of one instance are together if possible."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from fmimaster.plan.graph import Arcs, Node, components, is_loop

ALL_SET = ""
"""Instead of the name of a variable: a node that comes after all inputs of the instance and is not visited itself."""


@dataclass(slots=True)
class ReadStop:
    """Variables that are reached together: some of one instance, or those of a loop."""

    instances: tuple[int, ...]
    nodes: list[Node]
    is_loop: bool
    fed: set[Node] = field(default_factory=set)
    """Inputs of the instance that are connected to its own outputs: they are known only after this stop."""


def stops(arcs: Arcs, outputs: Collection[Node], position: Mapping[int, int]) -> Iterator[ReadStop]:
    """Strongly connected components in topological order.

    Parameters
    ----------
    outputs
        Those nodes that are outputs.
    position
        Instance → its place in the trigger sequence, which decides between what is ready.
    """
    parts = _Parts(arcs, position)
    stop: ReadStop | None = None
    for instances, nodes in parts:
        if is_loop(nodes, arcs):
            if stop is not None:
                yield stop
            yield ReadStop(instances, nodes, is_loop=True)
            stop = None
            parts.at = ()
            continue
        (node,) = nodes
        if stop is not None and (stop.instances != instances or node in stop.fed):
            yield stop
            stop = None
        stop = stop or ReadStop(instances, [], is_loop=False)
        stop.nodes.append(node)
        if node in outputs:
            stop.fed.update(head for head in arcs[node] if head[0] == node[0])
    if stop is not None:
        yield stop


class _Parts:
    """Components, each when all on which it depends have been taken; those of the same instances as the last one first."""

    def __init__(self, arcs: Arcs, position: Mapping[int, int]) -> None:
        self.parts = components(arcs)
        self.position = position
        self.instance_at = sorted(position, key=position.__getitem__)
        part_of = {node: k for k, part in enumerate(self.parts) for node in part}
        self.waits = [0] * len(self.parts)
        self.followers: list[set[int]] = [set() for _ in self.parts]
        for node, heads in arcs.items():
            for head in heads:
                a, b = part_of[node], part_of[head]
                if a != b and b not in self.followers[a]:
                    self.followers[a].add(b)
                    self.waits[b] += 1
        self.at: tuple[int, ...] = ()
        """Where the last one was: positions of its instances in the sequence."""
        self._ready: dict[tuple[int, ...], deque[int]] = {}
        """By the positions of their instances: the parts that are ready."""
        self._next_ones: list[tuple[int, ...]] = []
        """A heap of these keys; one that is not among them any more has been used up."""

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], list[Node]]]:
        """Instances and nodes of each."""
        for part in [part for part, count in enumerate(self.waits) if count == 0]:
            self._add(part)
        while self._ready:
            while self.at not in self._ready:
                self.at = heapq.heappop(self._next_ones)
            part = self._ready[self.at].popleft()
            if not self._ready[self.at]:
                del self._ready[self.at]
            else:
                heapq.heappush(self._next_ones, self.at)
            yield tuple(self.instance_at[k] for k in self.at), self.parts[part]
            self._release(part)

    def _add(self, part: int) -> None:
        if self.parts[part][0][1] == ALL_SET:
            self._release(part)
            return
        key = tuple(sorted({self.position[i] for i, _ in self.parts[part]}))
        if key not in self._ready:
            self._ready[key] = deque()
            heapq.heappush(self._next_ones, key)
        self._ready[key].append(part)

    def _release(self, part: int) -> None:
        for follower in sorted(self.followers[part]):
            self.waits[follower] -= 1
            if self.waits[follower] == 0:
                self._add(follower)
