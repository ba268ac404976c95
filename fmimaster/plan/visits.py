"""The order in which values are exchanged at one instant, and where the algebraic loops in it are cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from fmimaster.plan.graph import Arcs, DependencyGraph, Node, components, is_loop
from fmimaster.plan.loops import AlgebraicLoop, Visit
from fmimaster.plan.stops import stops

if TYPE_CHECKING:
    from fmimaster.plan.tearing import Preference

MOST_SEARCHED = 10_000_000
"""Largest product of the nodes of a loop and its discrete outputs for which few of these outputs are cut; beyond it all
are cut, because the search takes as many steps."""


def visits(graph: DependencyGraph, sequence: Sequence[int]) -> tuple[Visit, ...]:
    """The order in which one exchange at one instant reaches every variable, upstream first.

    An instance recurs if some of its outputs are needed before some of its inputs are known. A visit contains all
    variables of the instance that are ready; then the next ready instance in ``sequence`` follows.
    """
    position = {instance: k for k, instance in enumerate(sequence)}
    return tuple(
        Visit(stop.instances, _loop(graph, stop.nodes, position))
        if stop.is_loop
        else Visit(stop.instances, parameters=not graph.parameters.isdisjoint(stop.nodes))
        for stop in stops(graph.arcs, graph.outputs, position)
    )


def _loop(
    graph: DependencyGraph, part: Collection[Node], position: Mapping[int, int]
) -> AlgebraicLoop:
    """A component as a loop: cut, and with its sweep."""
    # only systems with algebraic loops need it
    from fmimaster.plan.sweeps import sweep

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
        sweep=sweep(graph, arcs, cut, position, lambda inner: _loop(graph, inner, position)),
        is_linear=not discrete and _is_linear(graph, arcs),
    )


def _is_assumed(graph: DependencyGraph, inside: Collection[Node]) -> bool:
    certain = {node: [h for h in graph.certain[node] if h in inside] for node in inside}
    return not any(is_loop(part, certain) for part in components(certain))


def _cut(graph: DependencyGraph, arcs: Arcs, candidates: frozenset[Node]) -> tuple[Node, ...]:
    """Candidates to cut so that no cycle contains a candidate."""
    # only systems with algebraic loops need it
    from fmimaster.plan.tearing import cuts

    if len(candidates) * len(arcs) > MOST_SEARCHED and candidates & graph.discrete:
        return tuple(sorted(candidates, key=graph.name))
    between = {node: _next_ones(node, arcs, candidates) for node in candidates}
    return cuts(between, {node: _preference(graph, node, arcs) for node in candidates})


def _next_ones(start: Node, arcs: Arcs, candidates: Collection[Node]) -> set[Node]:
    """Candidates that are reached without another candidate on the way."""
    if all(head in candidates for head in arcs[start]):
        return set(arcs[start])
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
    """The preference of an output: values of an output with known start values of its inputs are assumed best."""
    # only systems with algebraic loops need it
    from fmimaster.plan.tearing import Preference

    ends = (output, *arcs[output])
    return Preference(
        (
            int(not graph.set_once.isdisjoint(ends)),
            int(graph.started.isdisjoint(ends)),
            int(graph.scaled.isdisjoint(ends)),
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
