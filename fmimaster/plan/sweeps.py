"""One sweep over an algebraic loop: the order in which its instances are set and read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fmimaster.plan.graph import Arcs, DependencyGraph, Node
from fmimaster.plan.loops import AlgebraicLoop, Visit
from fmimaster.plan.stops import ALL_SET, Stop, stops


def sweep(
    graph: DependencyGraph,
    arcs: Arcs,
    cut: Collection[Node],
    position: Mapping[int, int],
    loop_of: Callable[[Collection[Node]], AlgebraicLoop],
) -> tuple[Visit, ...]:
    """The order of one sweep: outputs that are cut are read last, after all instances that they feed have been set.

    Parameters
    ----------
    arcs
        Of the loop.
    cut
        Outputs whose values are assumed.
    position
        Instance → its place in the trigger sequence.
    loop_of
        What makes a loop of nodes that are one even when these outputs are cut.
    """
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
        open_arcs[target, ALL_SET] = []
        for node in inputs[target]:
            open_arcs[node].append((target, ALL_SET))
    for node in cut:
        for target in waiting_for[node[0]] & inputs.keys():
            open_arcs[target, ALL_SET].append(node)
    reached = list(stops(open_arcs, graph.outputs, position))
    return tuple(_held(reached, _swept(graph, reached, loop_of), fed_by_cut, inputs))


def _swept(
    graph: DependencyGraph,
    reached: Iterable[Stop],
    loop_of: Callable[[Collection[Node]], AlgebraicLoop],
) -> Iterator[Visit]:
    for stop in reached:
        if stop.is_loop:
            yield Visit(stop.instances, loop_of(stop.nodes))
            continue
        is_output = [node in graph.outputs for node in stop.nodes]
        yield Visit(
            stop.instances,
            sets=not all(is_output),
            gets=any(is_output),
            parameters=not graph.parameters.isdisjoint(stop.nodes),
        )


def _held(
    reached: Sequence[Stop],
    visits: Iterable[Visit],
    fed_by_cut: Mapping[Node, set[int]],
    inputs: Mapping[int, Sequence[Node]],
) -> Iterator[Visit]:
    """The visits, with the outputs that they must reset to the assumed values."""
    is_input = {node for nodes in inputs.values() for node in nodes}
    left = {i: len(nodes) for i, nodes in inputs.items()}  # inputs that have not been set yet
    cut_in: dict[int, list[Node]] = {}
    for node in fed_by_cut:
        cut_in.setdefault(node[0], []).append(node)
    for stop, visit in zip(reached, visits, strict=True):
        set_now = [i for i, name in stop.nodes if (i, name) in is_input]
        if stop.is_loop:  # it is swept repeatedly: its inputs are set again
            held = _needed(stop, cut_in, fed_by_cut, left)
        for i in set_now:
            left[i] -= 1
        if not stop.is_loop:
            held = _needed(stop, cut_in, fed_by_cut, left)
        yield _holding(visit, held)


def _needed(
    stop: Stop,
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
