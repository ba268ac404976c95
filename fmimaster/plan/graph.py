"""Dependencies between variables, algebraic loops, and the orders that follow from them.

Nodes are pairs (instance index, variable name). An arc leads from an input to each output of the same instance that
depends on it directly, and from an output to each input that it feeds. Strongly connected components of more than one
node are algebraic loops (Tarjan 1972; here by SciPy).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmimaster.system.model import Causality, Model
from fmimaster.system.resolve import Link

Node = tuple[int, str]
"""An input or output: instance index and variable name."""

Arcs = Mapping[Node, Sequence[Node]]
"""Node → the nodes that depend on it directly."""


@dataclass(frozen=True, slots=True)
class AlgebraicLoop:
    """Variables that depend on each other directly, over several instances or within one."""

    instances: tuple[int, ...]
    """In the order in which they are evaluated."""
    variables: tuple[Node, ...]
    assumed: bool
    """Whether it exists only because an FMU does not declare on what its outputs depend."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One place in the order in which values are exchanged at one instant: an instance, or a loop of them."""

    instances: tuple[int, ...]
    loop: AlgebraicLoop | None = None


def dependency_arcs(
    models: Sequence[Model], links: Iterable[Link], *, initial: bool, assumed: bool = True
) -> dict[Node, list[Node]]:
    """Arcs between all outputs and the connected inputs.

    Parameters
    ----------
    initial : bool
        Whether the dependencies of Initialization Mode count, else those of Step Mode.
    assumed : bool
        Whether outputs whose dependencies are not declared depend on all inputs.
    """
    arcs: dict[Node, list[Node]] = {}
    fed: list[set[str]] = [set() for _ in models]
    for i, model in enumerate(models):
        for variable in model.with_causality(Causality.OUTPUT):
            arcs.setdefault((i, variable.name), [])
    for link in links:
        arcs.setdefault((link.source, link.output.name), []).append((link.target, link.input.name))
        arcs.setdefault((link.target, link.input.name), [])
        fed[link.target].add(link.input.name)
    for i, model in enumerate(models):
        declared = model.initial_dependencies if initial else model.dependencies
        undeclared = model.assumed_initial_dependencies if initial else model.assumed_dependencies
        for output, inputs in declared.items():
            if output in undeclared and not assumed:
                continue
            if (i, output) in arcs:
                for name in inputs & fed[i]:  # an output may depend on thousands that nothing feeds
                    arcs[i, name].append((i, output))
    return arcs


def components(arcs: Arcs) -> list[list[Node]]:
    """Strongly connected components; their members and they themselves in the order of the nodes in ``arcs``."""
    nodes = list(arcs)
    index = {node: k for k, node in enumerate(nodes)}
    # importing it takes longer than importing NumPy
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    # its search does not end if an arc is given twice
    rows = [sorted({index[head] for head in arcs[node]}) for node in nodes]
    heads = [head for row in rows for head in row]
    starts = np.cumsum([0, *map(len, rows)])
    matrix = csr_matrix((np.ones(len(heads)), heads, starts), shape=(len(nodes), len(nodes)))
    _, labels = connected_components(matrix, directed=True, connection="strong")
    found: dict[int, list[Node]] = {}
    for node, label in zip(nodes, labels.tolist(), strict=True):
        found.setdefault(label, []).append(node)
    return list(found.values())


def visits(arcs: Arcs, without_assumed: Arcs, sequence: Sequence[int]) -> tuple[Visit, ...]:
    """The order in which one exchange at one instant reaches every variable, upstream first.

    An instance recurs if some of its outputs are needed before some of its inputs are known. A visit lasts as long as
    something of the instance is ready; then the next ready one in ``sequence`` follows.
    """
    position = {instance: k for k, instance in enumerate(sequence)}
    parts = components(arcs)
    part_of = {node: k for k, part in enumerate(parts) for node in part}
    waits = [0] * len(parts)
    followers: list[set[int]] = [set() for _ in parts]
    for node, heads in arcs.items():
        for head in heads:
            a, b = part_of[node], part_of[head]
            if a != b and b not in followers[a]:
                followers[a].add(b)
                waits[b] += 1

    # per instance, or instances of a loop, given by their positions in the sequence: the parts that are ready
    ready: dict[tuple[int, ...], deque[int]] = {}
    # a heap of its keys; one that is not in it any more has been used up
    next_ones: list[tuple[int, ...]] = []

    def add(part: int) -> None:
        key = tuple(sorted({position[i] for i, _ in parts[part]}))
        if key not in ready:
            ready[key] = deque()
            heapq.heappush(next_ones, key)
        ready[key].append(part)

    for part, count in enumerate(waits):
        if count == 0:
            add(part)
    order: list[Visit] = []
    last: tuple[int, ...] = ()
    while ready:
        at = last
        while at not in ready:
            at = heapq.heappop(next_ones)
        part = ready[at].popleft()
        if not ready[at]:
            del ready[at]
        else:
            heapq.heappush(next_ones, at)
        instances = tuple(sequence[k] for k in at)
        if _is_loop(parts[part], arcs):
            order.append(Visit(instances, _loop(instances, parts[part], without_assumed)))
            last = ()
        elif at != last:
            order.append(Visit(instances))
            last = at
        for follower in sorted(followers[part]):
            waits[follower] -= 1
            if waits[follower] == 0:
                add(follower)
    return tuple(order)


def _is_loop(part: list[Node], arcs: Arcs) -> bool:
    return len(part) > 1 or part[0] in arcs[part[0]]


def _loop(instances: tuple[int, ...], part: list[Node], without_assumed: Arcs) -> AlgebraicLoop:
    inside = set(part)
    certain = {n: [h for h in without_assumed[n] if h in inside] for n in part}
    real = any(_is_loop(p, certain) for p in components(certain))
    return AlgebraicLoop(instances, tuple(part), assumed=not real)


def trigger_sequence(models: Sequence[Model], links: Iterable[Link]) -> tuple[int, ...]:
    """Order of stepping: an instance comes after those that feed it.

    Among instances that feed each other in a ring, one whose connected outputs depend directly on connected inputs comes
    after the others, since it needs new values to give new values; else the order is that of the description.
    """
    links = list(links)
    feeds: dict[Node, list[Node]] = {(i, ""): [] for i in range(len(models))}
    for link in links:
        feeds[link.source, ""].append((link.target, ""))
    direct = dependency_arcs(models, links, initial=False)
    passes_on = {
        head[0]
        for node, heads in direct.items()
        for head in heads
        if head[0] == node[0] and direct[head]
    }
    rings = components(feeds)
    ring_of = {node[0]: k for k, ring in enumerate(rings) for node in ring}
    waits = [0] * len(rings)
    for node, heads in feeds.items():
        for head in heads:
            waits[ring_of[head[0]]] += ring_of[head[0]] != ring_of[node[0]]
    ready = [(min(rings[k]), k) for k, count in enumerate(waits) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, k = heapq.heappop(ready)
        members = sorted((i for i, _ in rings[k]), key=lambda i: (i in passes_on, i))
        order += members
        for fed, _ in (head for i in members for head in feeds[i, ""]):
            follower = ring_of[fed]
            if follower != k:
                waits[follower] -= 1
                if waits[follower] == 0:
                    heapq.heappush(ready, (min(rings[follower]), follower))
    return tuple(order)
