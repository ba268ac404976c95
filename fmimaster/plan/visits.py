"""Visits: the order of exchange at one instant, and the algebraic loops in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from fmimaster.base.data import dataclass
from fmimaster.plan.graph import (
    ALL_SET,
    Arcs,
    DependencyGraph,
    Node,
    ReadStop,
    collected,
    components,
    is_loop,
    stops,
)

if TYPE_CHECKING:
    from fmimaster.plan.tearing import Preference

MAY_BE_NONE = " It may not be a loop: an FMU does not declare on which inputs its outputs depend (ModelStructure)."
"""A sentence of messages about assumed loops."""


@dataclass(frozen=True, slots=True)
class AlgebraicLoop:
    """Variables that depend on each other directly, over several instances or within one.

    A loop with discrete outputs is cut at discrete outputs only, and at as few as possible: so there are few states, and
    a ring of a negation has the period 2, however many units it has. A remaining loop among continuous outputs is a
    separate loop in the sweep.
    """

    instances: tuple[int, ...]
    """In the order of the trigger sequence."""
    variables: tuple[Node, ...]
    """By name."""
    assumed: bool
    """Whether it exists only because an FMU does not declare the dependencies of its outputs."""
    torn: tuple[Node, ...] = ()
    """Continuous outputs that are cut, by name: the unknowns of a solver."""
    discrete: tuple[Node, ...] = ()
    """Discrete outputs that are cut, by name: compared exactly from sweep to sweep."""
    sweep: tuple[Visit, ...] = ()
    """The exchange of one sweep, in order; an instance may recur."""
    is_linear: bool = False
    """Whether all dependencies in it are declared as linear, with factors that do not change between events."""

    @property
    def cut(self) -> tuple[Node, ...]:
        """The outputs whose values are assumed at the start of a sweep, and read at its end."""
        return self.torn or self.discrete


@dataclass(frozen=True, slots=True)
class Visit:
    """One place in the order in which values are exchanged at one instant: an instance, or a loop of them.

    In the sweep of a loop, a visit may only set or only read: inputs that get the value of an output that is cut are set
    before that output is read. So a sweep is a function of the assumed values only, on which Newton's method relies.
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
    """Cut outputs that this visit reads although others still need their assumed values, which are restored right after
    it."""


class Visits(tuple[Visit, ...]):
    """The order in which values are exchanged. Plans for parts of a system share it."""

    @cached_property
    def loops(self) -> tuple[AlgebraicLoop, ...]:
        """The algebraic loops in it."""
        return tuple(visit.loop for visit in self if visit.loop is not None)

    @cached_property
    def loop_of(self) -> Mapping[Node, AlgebraicLoop]:
        """Variable → its loop; variables without a loop are missing."""
        return {node: loop for loop in self.loops for node in loop.variables}


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
    inputs = collected((node[0], node) for node in arcs if node not in graph.outputs)
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
    reached: Iterable[ReadStop],
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
    reached: Sequence[ReadStop],
    visits: Iterable[Visit],
    fed_by_cut: Mapping[Node, set[int]],
    inputs: Mapping[int, Sequence[Node]],
) -> Iterator[Visit]:
    """The visits, with the outputs that they must reset to the assumed values."""
    is_input = {node for nodes in inputs.values() for node in nodes}
    left = {i: len(nodes) for i, nodes in inputs.items()}  # inputs that have not been set yet
    cut_in = collected((node[0], node) for node in fed_by_cut)
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
    stop: ReadStop,
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


MOST_SEARCHED = 10_000_000
"""Largest product of the nodes of a loop and its discrete outputs for which few of these outputs are cut; beyond it all
are cut, because the search takes as many steps."""


def visits(graph: DependencyGraph, sequence: Sequence[int]) -> Visits:
    """The order in which one exchange at one instant reaches every variable, upstream first.

    An instance recurs if some of its outputs are needed before some of its inputs are known. A visit contains all
    variables of the instance that are ready; then the next ready instance in ``sequence`` follows.
    """
    position = {instance: k for k, instance in enumerate(sequence)}
    return Visits(
        Visit(stop.instances, _loop(graph, stop.nodes, position))
        if stop.is_loop
        else Visit(stop.instances, parameters=not graph.parameters.isdisjoint(stop.nodes))
        for stop in stops(graph.arcs, graph.outputs, position)
    )


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
