"""Algebraic loops: where they are cut, and what one sweep over them computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

import pytest
from graph_cases import CASES, plan_of_case
from hypothesis import given, settings
from hypothesis import strategies as st
from python_fmu import PythonFmu, plan_of

from fmimaster.plan.graph import DependencyGraph, Node, components, is_loop
from fmimaster.plan.plan import Plan
from fmimaster.plan.tearing import MOST_EXACT, Preference, cuts
from fmimaster.plan.visits import AlgebraicLoop, Visit, visits
from fmimaster.system.model import DataType, DependencyKind

# Cuts -----------------------------------------------------------------------------------------------------------------

Numbers = dict[int, set[int]]


def numbered(pairs: Iterable[tuple[int, int]], n: int) -> Numbers:
    arcs: Numbers = {k: set() for k in range(n)}
    for a, b in pairs:
        arcs[a].add(b)
    return arcs


def named(arcs: Mapping[int, object]) -> dict[int, Preference]:
    return {k: Preference((0, 0, 0), f"n{k:05}") for k in arcs}


def is_acyclic(arcs: Numbers, without: Iterable[int]) -> bool:
    gone = set(without)
    left = {(k, "y"): [(h, "y") for h in of - gone] for k, of in arcs.items() if k not in gone}
    return not any(is_loop(part, left) for part in components(left))


graphs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=25).map(
    lambda pairs: numbered(pairs, 7)
)


@given(graphs)
def test_no_smaller_set_of_cuts_leaves_no_circle(arcs: Numbers) -> None:
    """loops.md 1: exact up to 15."""
    chosen = cuts(arcs, named(arcs))
    assert is_acyclic(arcs, chosen)
    fewer = max(len(chosen) - 1, 0)
    assert not chosen or not any(is_acyclic(arcs, s) for s in combinations(arcs, fewer))


@pytest.mark.parametrize("seed", range(5))
def test_of_many_nodes_none_is_cut_that_need_not_be(seed: int) -> None:
    """loops.md 1: drop unnecessary ones."""
    draw = Random(seed)
    n = 60
    arcs = numbered(((draw.randrange(n), draw.randrange(n)) for _ in range(150)), n)
    chosen = cuts(arcs, named(arcs))
    assert is_acyclic(arcs, chosen)
    assert not any(is_acyclic(arcs, [k for k in chosen if k != needed]) for needed in chosen)


def test_a_large_graph_is_cut_nearly_as_little_as_a_small_one() -> None:
    """Forty rings of five nodes in a ring need one cut each."""
    rings = 40
    pairs = [(5 * r + k, 5 * r + (k + 1) % 5) for r in range(rings) for k in range(5)]
    pairs += [(5 * r, (5 * r + 5) % (5 * rings)) for r in range(rings)]
    arcs = numbered(pairs, 5 * rings)
    assert len(cuts(arcs, named(arcs))) == rings


def test_cuts_that_cannot_all_be_examined_stay() -> None:
    """Rings of which each one leads to the next ones, so that a search for a cycle visits nearly all of them."""
    rings, size = 200, 8
    names = Random(1).sample(range(rings * size), rings * size)

    def node(ring: int, k: int) -> int:
        return names[ring * size + k % size]

    pairs = [(node(r, k), node(r, k + 1)) for r in range(rings) for k in range(size)]
    pairs += [
        (node(r, k), node(r + further, k))
        for further in (1, 2, 3)
        for r in range(rings - further)
        for k in range(size)
    ]
    arcs = numbered(pairs, rings * size)
    assert is_acyclic(arcs, cuts(arcs, named(arcs)))


@pytest.mark.parametrize("n", [MOST_EXACT - 1, 40])
def test_of_sets_of_one_size_the_least_penalties_decide_and_then_the_names(n: int) -> None:
    ring = numbered(((k, (k + 1) % n) for k in range(n)), n)
    assert cuts(ring, named(ring)) == (0,)
    preferred = named(ring) | {k: Preference((0, 1, 0), f"n{k:05}") for k in ring if k != 7}
    assert cuts(ring, preferred) == (7,)


@given(graphs, st.permutations(range(7)))
def test_cuts_do_not_depend_on_the_order_of_nodes(arcs: Numbers, order: Sequence[int]) -> None:
    """loops.md 7.4."""
    preferences = named(arcs)
    assert cuts({k: arcs[k] for k in order}, preferences) == cuts(arcs, preferences)


# Which outputs are torn -----------------------------------------------------------------------------------------------


def gain(**attributes: Any) -> PythonFmu:
    return PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: v.u},
        depends={"y": ["u"]},
        attributes=attributes,
    )


RING = ["a.y -> b.u", "b.y -> c.u", "c.y -> a.u"]


def ring(**units: PythonFmu) -> dict[str, PythonFmu]:
    return {name: units.get(name) or gain() for name in "abc"}


def only_loop(plan: Plan) -> AlgebraicLoop:
    (loop,) = plan.initial_loops
    return loop


def torn(plan: Plan) -> list[str]:
    return names_of(only_loop(plan).torn, plan)


def names_of(nodes: Iterable[Node], plan: Plan) -> list[str]:
    return [f"{plan.instances[i].name}.{name}" for i, name in nodes]


def test_an_output_is_torn_whose_input_has_a_start_value_of_the_user() -> None:
    assert torn(plan_of(ring(), RING)) == ["a.y"]
    assert torn(plan_of(ring(), RING, {"a.u": 0.3})) == ["c.y"]


def test_of_outputs_without_start_values_one_with_a_nominal_value_is_torn() -> None:
    scaled = {"u": {"nominal": 10.0, "has_nominal": True}}
    assert torn(plan_of(ring(c=gain(**scaled)), RING)) == ["b.y"]
    assert torn(plan_of(ring(c=gain(**scaled)), RING, {"a.u": 0.3})) == ["c.y"]


def test_an_input_that_may_be_set_once_only_is_not_torn_if_another_one_can_be() -> None:
    once = {"u": {"can_be_set_repeatedly": False}}
    units = ring(b=gain(**once))
    assert torn(plan_of(units, RING, {"b.u": 0.3})) == ["b.y"]


@pytest.mark.parametrize(
    ("name", "torn"), [("G2", [["A.y"]]), ("G3", [["A.y1"]]), ("G5", [["A.y"], ["A.z"]])]
)
def test_a_loop_of_the_cases_is_torn_once(name: str, torn: list[list[str]]) -> None:
    """loops.md 7.1, G2, G3 and G5."""
    plan = plan_of_case(CASES[name])
    assert [names_of(loop.torn, plan) for loop in plan.initial_loops] == torn
    assert [names_of(loop.torn, plan) for loop in plan.step_loops] == torn


def test_a_loop_of_several_circles_is_torn_as_little_as_possible() -> None:
    """loops.md 4, L5."""
    feeds = ["24", "13", "124", "23"]
    units = {
        f"S{k + 1}": PythonFmu(
            inputs={f"u{j}": 0.0 for j in sources},
            outputs={"y": lambda v: 0.0},
            depends={"y": [f"u{j}" for j in sources]},
        )
        for k, sources in enumerate(feeds)
    }
    connections = [f"S{j}.y -> S{k + 1}.u{j}" for k, of in enumerate(feeds) for j in of]
    loop = only_loop(plan_of(units, connections))
    assert len(loop.torn) == 2
    assert not loop.is_linear


def boolean(value: Any = lambda v: not v.u) -> PythonFmu:
    kinds = {name: {"type": DataType.BOOLEAN} for name in ("u", "y")}
    return PythonFmu(
        inputs={"u": False}, outputs={"y": value}, depends={"y": ["u"]}, attributes=kinds
    )


def switch() -> PythonFmu:
    return PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: v.u > 0.5},
        depends={"y": ["u"]},
        attributes={"y": {"type": DataType.BOOLEAN}},
    )


def test_a_loop_with_a_discrete_output_is_cut_there() -> None:
    """loops.md 5, B3."""
    plan = plan_of({"a": gain(), "b": switch(), "c": gain()}, RING)
    loop = only_loop(plan)
    assert (loop.torn, names_of(loop.discrete, plan)) == ((), ["b.y"])
    assert [plan.instances[v.instances[0]].name for v in loop.sweep] == ["c", "a", "b"]


def test_what_is_left_of_a_loop_with_discrete_outputs_frozen_is_a_loop_in_its_sweep() -> None:
    """loops.md 5: continuous loops inside an event iteration."""
    both = PythonFmu(
        inputs={"u": 0.0, "w": 0.0}, outputs={"y": lambda v: v.u}, depends={"y": ["u", "w"]}
    )
    units = {"a": both, "b": switch(), "c": gain()}
    plan = plan_of(units, ["a.y -> c.u", "c.y -> a.u", "c.y -> b.u", "b.y -> a.w"])
    loop = only_loop(plan)
    assert (loop.torn, names_of(loop.discrete, plan)) == ((), ["b.y"])
    (inner,) = [visit.loop for visit in loop.sweep if visit.loop]
    assert (names_of(inner.torn, plan), inner.discrete) == (["a.y"], ())


# Linear loops ---------------------------------------------------------------------------------------------------------


def declared(kind: DependencyKind) -> PythonFmu:
    unit = gain()
    kinds = {"y": {"u": kind}}
    model = replace(unit.model, dependency_kinds=kinds, initial_dependency_kinds=kinds)
    unit.model = model
    return unit


@pytest.mark.parametrize("kind", DependencyKind)
def test_a_loop_is_linear_if_all_of_its_dependencies_are(kind: DependencyKind) -> None:
    """sequence.md 6.1: constant, fixed, tunable, discrete."""
    is_linear = kind is not DependencyKind.DEPENDENT
    loops = plan_of(ring(**{name: declared(kind) for name in "abc"}), RING).step_loops
    assert [loop.is_linear for loop in loops] == [is_linear]
    loops = plan_of(ring(a=declared(kind), b=declared(kind)), RING).step_loops
    assert [loop.is_linear for loop in loops] == [False]


# Listing order --------------------------------------------------------------------------------------------------------


@given(st.permutations(range(4)), st.permutations(range(4)), st.integers(0, 3))
def test_cuts_do_not_depend_on_the_order_in_which_units_and_connections_are_listed(
    units: Sequence[int], connections: Sequence[int], started: int
) -> None:
    """loops.md 7.4."""
    names = "abcd"
    ends = [f"{a}.y -> {b}.u" for a, b in zip(names, names[1:] + names[:1], strict=True)]
    plan = plan_of(
        {names[k]: gain() for k in units},
        [ends[k] for k in connections],
        {f"{names[started]}.u": 1.0},
    )
    assert torn(plan) == [f"{names[started - 1]}.y"]
    variables = names_of(only_loop(plan).variables, plan)
    assert variables == sorted(variables)


# What a sweep computes ------------------------------------------------------------------------------------------------


@st.composite
def graphs_of_units(draw: st.DrawFn) -> DependencyGraph:
    """Units with some inputs and outputs each, connected and dependent at random, some outputs discrete."""
    n = draw(st.integers(1, 4))
    outputs = [(i, f"y{k}") for i in range(n) for k in range(draw(st.integers(1, 3)))]
    arcs: dict[Node, list[Node]] = {node: [] for node in outputs}
    for i in range(n):
        mine = [node for node in outputs if node[0] == i]
        for k in range(draw(st.integers(1, 3))):
            arcs[draw(st.sampled_from(outputs))].append((i, f"u{k}"))
            arcs[i, f"u{k}"] = draw(st.lists(st.sampled_from(mine), unique=True, max_size=3))
    discrete = frozenset(draw(st.lists(st.sampled_from(outputs), max_size=3)))
    names = tuple(f"m{i}" for i in range(n))
    return DependencyGraph(arcs, arcs, names, frozenset(outputs), discrete)


class Values:
    """Outputs in the store and inputs in the units; a value is the tuple of what it was computed from."""

    def __init__(self, graph: DependencyGraph) -> None:
        self.graph = graph
        self.store: dict[Node, Any] = {node: ("never", node) for node in graph.outputs}
        self.inputs: dict[Node, Any] = {
            node: ("never", node) for node in graph.arcs if node not in graph.outputs
        }
        self.source = {h: o for o in graph.outputs for h in graph.arcs[o]}
        self.solved: dict[Node, Any] = {}
        """Outputs that come out as they were assumed, because the loop that is cut there is solved."""
        self.knowns: dict[Node, list[Node]] = {o: [] for o in graph.outputs}
        for u in self.inputs:
            for o in graph.arcs[u]:
                self.knowns[o].append(u)

    def exchange(self, visit: Visit, assumed: Mapping[Node, Any]) -> None:
        (i,) = visit.instances
        if visit.sets:
            for u in self.inputs:
                if u[0] == i:
                    self.inputs[u] = self.store[self.source[u]]
        if visit.gets:
            for o in self.store:
                if o[0] == i:
                    value = (o, tuple(self.inputs[u] for u in self.knowns[o]))
                    self.store[o] = self.solved.get(o, value)
        for o in visit.held:
            self.store[o] = assumed[o]

    def value(self, node: Node, given: Mapping[Node, Any]) -> Any:
        """An output computed from the given ones by its definition."""
        if node in given:
            return given[node]
        return node, tuple(self.value(self.source[u], given) for u in self.knowns[node])


def sweep(values: Values, loop: AlgebraicLoop, outer: Mapping[Node, Any]) -> dict[Node, Any]:
    """One sweep over a loop with made-up values for what is cut, which solve the loops inside it."""
    assumed = {**outer, **{node: ("assumed", node) for node in loop.cut}}
    for node in loop.cut:
        values.store[node] = assumed[node]
    for visit in loop.sweep:
        if visit.loop is None:
            values.exchange(visit, assumed)
        else:
            inner = sweep(values, visit.loop, assumed)
            values.solved |= {node: inner[node] for node in visit.loop.cut}
            values.store |= values.solved
    return assumed


@settings(max_examples=60)
@given(graphs_of_units())
def test_a_sweep_computes_what_is_cut_from_assumed_values_only(graph: DependencyGraph) -> None:
    """loops.md 1: one sweep G(u) is a function of u, whatever was in the store before."""
    for visit in visits(graph, range(len(graph.names))):
        if visit.loop is None:
            continue
        values, loop = Values(graph), visit.loop
        inside = set(loop.variables)
        before = {o: ("before", o) for o in graph.outputs if o not in inside}
        values.solved |= before
        values.store |= before
        given = sweep(values, loop, before) | values.solved
        for node in loop.cut:
            expected = [values.value(values.source[u], given) for u in values.knowns[node]]
            assert values.store[node] == (node, tuple(expected))


@settings(max_examples=60)
@given(graphs_of_units())
def test_loops_are_cut_at_discrete_outputs_and_those_inside_at_continuous_ones(
    graph: DependencyGraph,
) -> None:
    for visit in visits(graph, range(len(graph.names))):
        for loop in [visit.loop] if visit.loop else []:
            assert bool(loop.torn) != bool(loop.discrete)
            assert set(loop.discrete) <= graph.discrete
            for inner in (v.loop for v in loop.sweep if v.loop):
                assert loop.discrete
                assert inner.torn
                assert graph.discrete.isdisjoint({*inner.variables})
