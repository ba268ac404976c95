"""Algebraic loops: where they are cut, and in what order one sweep over them exchanges values.

An algebraic loop is a strongly connected component of the graph of :mod:`fmimaster.plan.graph`. Some of its outputs are
cut: values are assumed for them, with which all others can be computed in order. That is one sweep; it ends by reading the
outputs that were cut. A loop is solved if they come out as they were assumed.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fmimaster.plan.graph import Arcs, DependencyGraph, Node, components
from fmimaster.plan.tearing import Preference, cuts


@dataclass(frozen=True, slots=True)
class AlgebraicLoop:
    """Variables that depend on each other directly, over several instances or within one.

    A loop with discrete outputs is cut at discrete outputs only; what is then left of it among continuous outputs is a
    loop of its own in the sweep.
    """

    instances: tuple[int, ...]
    """In the order of the trigger sequence."""
    variables: tuple[Node, ...]
    """By name."""
    assumed: bool
    """Whether it exists only because an FMU does not declare on what its outputs depend."""
    torn: tuple[Node, ...] = ()
    """Continuous outputs that are cut, by name: the unknowns of a solver."""
    discrete: tuple[Node, ...] = ()
    """Discrete outputs that are cut, by name: compared exactly from sweep to sweep."""
    sweep: tuple[Visit, ...] = ()
    """What is exchanged in one sweep, in order; an instance may recur."""
    is_linear: bool = False
    """Whether all dependencies in it are declared as linear, with factors that do not change between events."""

    @property
    def cut(self) -> tuple[Node, ...]:
        """The outputs whose values are assumed in a sweep, and come out of it."""
        return self.torn or self.discrete


@dataclass(frozen=True, slots=True)
class Visit:
    """One place in the order in which values are exchanged at one instant: an instance, or a loop of them.

    In the sweep of a loop, a visit may only set or only read: inputs that get the value of an output that is cut are set
    before that output is read.
    """

    instances: tuple[int, ...]
    loop: AlgebraicLoop | None = None
    sets: bool = True
    """Whether the inputs of the instance are set."""
    gets: bool = True
    """Whether its outputs are read."""
    parameters: bool = False
    """Whether its connected parameters are set as well, which are all known then; in Initialization Mode."""
    held: tuple[Node, ...] = ()
    """Outputs that are cut and read by this visit in passing, while others still need the values that were assumed for
    them: they get these back right after it."""


def visits(graph: DependencyGraph, sequence: Sequence[int]) -> tuple[Visit, ...]:
    """The order in which one exchange at one instant reaches every variable, upstream first.

    An instance recurs if some of its outputs are needed before some of its inputs are known. A visit lasts as long as
    something of the instance is ready; then the next ready one in ``sequence`` follows.
    """
    position = {instance: k for k, instance in enumerate(sequence)}
    return tuple(
        Visit(stop.instances, _loop(graph, stop.nodes, position))
        if stop.is_loop
        else Visit(stop.instances, parameters=not graph.parameters.isdisjoint(stop.nodes))
        for stop in _stops(graph.arcs, graph.outputs, position)
    )


# Order ----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Stop:
    """Variables that are reached together: some of one instance, or those of a loop."""

    instances: tuple[int, ...]
    nodes: list[Node]
    is_loop: bool
    fed: set[Node] = field(default_factory=set)
    """Inputs of the instance that its own outputs feed: they are known after this visit only."""


_ALL_SET = ""
"""In place of a variable: a node that comes after all inputs of the instance, and is itself not visited."""


def _stops(arcs: Arcs, outputs: Collection[Node], position: Mapping[int, int]) -> Iterator[_Stop]:
    """Components in topological order, those of one instance together where that is possible."""
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

    instance_at = sorted(position, key=position.__getitem__)
    # per instance, or instances of a loop, given by their positions in the sequence: the parts that are ready
    ready: dict[tuple[int, ...], deque[int]] = {}
    # a heap of its keys; one that is not in it any more has been used up
    next_ones: list[tuple[int, ...]] = []

    def add(part: int) -> None:
        if parts[part][0][1] == _ALL_SET:
            release(part)
            return
        key = tuple(sorted({position[i] for i, _ in parts[part]}))
        if key not in ready:
            ready[key] = deque()
            heapq.heappush(next_ones, key)
        ready[key].append(part)

    def release(part: int) -> None:
        for follower in sorted(followers[part]):
            waits[follower] -= 1
            if waits[follower] == 0:
                add(follower)

    for part, count in enumerate(waits):
        if count == 0:
            add(part)
    stop: _Stop | None = None
    at: tuple[int, ...] = ()
    while ready:
        while at not in ready:
            at = heapq.heappop(next_ones)
        part = ready[at].popleft()
        if not ready[at]:
            del ready[at]
        else:
            heapq.heappush(next_ones, at)
        nodes, instances = parts[part], tuple(instance_at[k] for k in at)
        if is_loop(nodes, arcs):
            if stop is not None:
                yield stop
            yield _Stop(instances, nodes, is_loop=True)
            stop, at = None, ()
        else:
            node = nodes[0]
            if stop is not None and (stop.instances != instances or node in stop.fed):
                yield stop
                stop = None
            stop = stop or _Stop(instances, [], is_loop=False)
            stop.nodes.append(node)
            if node in outputs:
                stop.fed.update(head for head in arcs[node] if head[0] == node[0])
        release(part)
    if stop is not None:
        yield stop


def is_loop(part: Sequence[Node], arcs: Arcs) -> bool:
    """Whether the nodes of a component depend on themselves."""
    return len(part) > 1 or part[0] in arcs[part[0]]


# Loops ----------------------------------------------------------------------------------------------------------------


def _loop(
    graph: DependencyGraph, part: Collection[Node], position: Mapping[int, int]
) -> AlgebraicLoop:
    """A component as a loop: cut, and with its sweep."""
    inside = frozenset(part)
    arcs = {node: [head for head in graph.arcs[node] if head in inside] for node in part}
    discrete = inside & graph.discrete
    cut = _cut(graph, arcs, discrete or inside & graph.outputs)
    return AlgebraicLoop(
        tuple(sorted({i for i, _ in part}, key=position.__getitem__)),
        tuple(sorted(part, key=graph.name)),
        assumed=graph.certain is not graph.arcs and _is_assumed(graph, inside),
        torn=() if discrete else cut,
        discrete=cut if discrete else (),
        sweep=_sweep(graph, arcs, cut, position),
        is_linear=not discrete and _is_linear(graph, arcs),
    )


def _is_assumed(graph: DependencyGraph, inside: Collection[Node]) -> bool:
    certain = {node: [h for h in graph.certain[node] if h in inside] for node in inside}
    return not any(is_loop(part, certain) for part in components(certain))


MOST_SEARCHED = 10_000_000
"""Nodes of a loop times discrete outputs in it, up to which few of these are cut, which takes as many steps; beyond it,
all of them are."""


def _cut(graph: DependencyGraph, arcs: Arcs, candidates: frozenset[Node]) -> tuple[Node, ...]:
    """Candidates that are cut so that no circle leads over a candidate any more."""
    if len(candidates) * len(arcs) > MOST_SEARCHED and candidates & graph.discrete:
        return tuple(sorted(candidates, key=graph.name))
    between = {node: _next_ones(node, arcs, candidates) for node in candidates}
    return cuts(between, {node: _preference(graph, node, arcs) for node in candidates})


def _next_ones(start: Node, arcs: Arcs, candidates: Collection[Node]) -> set[Node]:
    """Candidates that are reached over no other candidate."""
    found, seen, waiting = set[Node](), set[Node](), [start]
    while waiting:
        for head in arcs[waiting.pop()]:
            if head in candidates:
                found.add(head)
            elif head not in seen:
                seen.add(head)
                waiting.append(head)
    return found


def _preference(graph: DependencyGraph, output: Node, arcs: Arcs) -> Preference:
    """A value can best be assumed for an output if it is known what its inputs are likely to be."""
    ends = {output, *arcs[output]}
    return Preference(
        (
            int(not ends.isdisjoint(graph.set_once)),
            int(ends.isdisjoint(graph.started)),
            int(ends.isdisjoint(graph.scaled)),
        ),
        graph.name(output),
    )


def _is_linear(graph: DependencyGraph, arcs: Arcs) -> bool:
    return all(
        (node, head) in graph.linear
        for node, heads in arcs.items()
        if node not in graph.outputs
        for head in heads
    )


# Sweeps ---------------------------------------------------------------------------------------------------------------


def _sweep(
    graph: DependencyGraph, arcs: Arcs, cut: Collection[Node], position: Mapping[int, int]
) -> tuple[Visit, ...]:
    """The order of one sweep: outputs that are cut are read last, after all instances that they feed have been set."""
    fed_by_cut = {node: {head[0] for head in arcs[node]} for node in cut}
    open_arcs: dict[Node, list[Node]] = {
        node: [] if node in fed_by_cut else list(heads) for node, heads in arcs.items()
    }
    inputs: dict[int, list[Node]] = {}
    for node in arcs:
        if node not in graph.outputs:
            inputs.setdefault(node[0], []).append(node)
    waiting_for: dict[int, set[int]] = {}
    for (i, _), fed in fed_by_cut.items():
        waiting_for.setdefault(i, set()).update(fed)
    for target in set().union(*fed_by_cut.values()) & inputs.keys():
        open_arcs[target, _ALL_SET] = []
        for node in inputs[target]:
            open_arcs[node].append((target, _ALL_SET))
    for node in cut:
        for target in waiting_for[node[0]] & inputs.keys():
            open_arcs[target, _ALL_SET].append(node)
    stops = list(_stops(open_arcs, graph.outputs, position))
    return tuple(_held(stops, _swept(graph, stops, position), fed_by_cut, inputs))


def _swept(
    graph: DependencyGraph, stops: Iterable[_Stop], position: Mapping[int, int]
) -> Iterator[Visit]:
    for stop in stops:
        if stop.is_loop:
            yield Visit(stop.instances, _loop(graph, stop.nodes, position))
            continue
        is_output = [node in graph.outputs for node in stop.nodes]
        yield Visit(
            stop.instances,
            sets=not all(is_output),
            gets=any(is_output),
            parameters=not graph.parameters.isdisjoint(stop.nodes),
        )


def _held(
    stops: Sequence[_Stop],
    sweep: Iterable[Visit],
    fed_by_cut: Mapping[Node, set[int]],
    inputs: Mapping[int, Sequence[Node]],
) -> Iterator[Visit]:
    """The visits, with the outputs that they must leave as they were assumed."""
    is_input = {node for nodes in inputs.values() for node in nodes}
    left = {i: len(nodes) for i, nodes in inputs.items()}  # inputs that have not been set yet
    cut_in: dict[int, list[Node]] = {}
    for node in fed_by_cut:
        cut_in.setdefault(node[0], []).append(node)
    for stop, visit in zip(stops, sweep, strict=True):
        set_now = [i for i, name in stop.nodes if (i, name) in is_input]
        if stop.is_loop:  # it is swept again and again: what it sets is set again
            held = _needed(stop, cut_in, fed_by_cut, left)
        for i in set_now:
            left[i] -= 1
        if not stop.is_loop:
            held = _needed(stop, cut_in, fed_by_cut, left)
        yield _holding(visit, held)


def _needed(
    stop: _Stop,
    cut_in: Mapping[int, Sequence[Node]],
    fed_by_cut: Mapping[Node, set[int]],
    left: Mapping[int, int],
) -> list[Node]:
    """Outputs that are cut, and whose assumed values are needed after a visit that reads them in passing."""
    return [
        node
        for i in stop.instances
        for node in cut_in.get(i, ())
        if node not in stop.nodes and any(left.get(fed) for fed in fed_by_cut[node])
    ]


def _holding(visit: Visit, held: Sequence[Node]) -> Visit:
    """The visit, or those of its loop, with these outputs held as well."""
    mine = tuple(node for node in held if node[0] in visit.instances)
    if not mine or not visit.gets:
        return visit
    if visit.loop is not None:
        sweep = tuple(_holding(v, mine) for v in visit.loop.sweep)
        return replace(visit, loop=replace(visit.loop, sweep=sweep))
    return replace(visit, held=(*visit.held, *mine))
