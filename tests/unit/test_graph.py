"""Algebraic loops, the order of exchange at one instant, and the order of stepping."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from graph_cases import CASES, plan_of_case, units_of
from hypothesis import given
from hypothesis import strategies as st
from python_fmu import PythonFmu, PythonInstance, plan_of

from fmimaster.plan.graph import (
    Arcs,
    DependencyGraph,
    Node,
    components,
    dependency_arcs,
)
from fmimaster.plan.plan import Plan
from fmimaster.plan.visits import Visit, visits


def named(nodes: Iterable[Node], plan: Plan) -> list[str]:
    return sorted(f"{plan.instances[i].name}.{name}" for i, name in nodes)


def connected(case: Mapping[str, Any]) -> set[str]:
    """Outputs, and the inputs that something feeds: the others are no nodes of the graph."""
    outputs = {f"{n}.{y}" for n, unit in case["units"].items() for y in unit["outputs"]}
    return outputs | {target for _, target in case["connections"]}


@pytest.mark.parametrize("name", CASES)
def test_loops_between_variables_are_those_of_the_case(name: str) -> None:
    """loops.md 7.1, G1 to G6."""
    plan = plan_of_case(CASES[name])
    expected = sorted(map(sorted, CASES[name]["expected_variable_loops"]))
    assert sorted(named(loop.variables, plan) for loop in plan.step_loops) == expected
    assert sorted(named(loop.variables, plan) for loop in plan.initial_loops) == expected


@pytest.mark.parametrize("name", CASES)
def test_loops_between_units_are_those_of_the_case(name: str) -> None:
    """loops.md 7.1, G1 to G6."""
    plan = plan_of_case(CASES[name])
    feeds: dict[Node, list[Node]] = {(i, ""): [] for i in range(len(plan.instances))}
    for link in plan.links:
        feeds[link.source, ""].append((link.target, ""))
    rings = [sorted(plan.instances[i].name for i, _ in part) for part in components(feeds)]
    assert [ring for ring in rings if len(ring) > 1] == CASES[name]["expected_unit_level_loops"]


@pytest.mark.parametrize("name", CASES)
def test_parts_of_the_graph_are_those_of_the_case(name: str) -> None:
    """loops.md 7.1, G1 to G6."""
    case = CASES[name]
    plan = plan_of_case(case)
    models = [instance.model for instance in plan.instances]
    arcs = dependency_arcs(models, plan.links, initial=False)
    nodes = connected(case)
    expected = [sorted(part) for part in case["expected_order"] if set(part) <= nodes]
    assert sorted(named(part, plan) for part in components(arcs)) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "assumed"), [("G2", [False]), ("G3", [True]), ("G5", [False] * 2)]
)
def test_a_loop_that_exists_only_by_undeclared_dependencies_is_assumed(
    name: str, assumed: list[bool]
) -> None:
    plan = plan_of_case(CASES[name])
    assert [loop.assumed for loop in plan.initial_loops] == assumed
    assert [loop.assumed for loop in plan.step_loops] == assumed


def test_a_declared_loop_beside_undeclared_dependencies_is_not_assumed() -> None:
    case = CASES["G2"]
    units = units_of(case)
    units["A"] = PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: 0.0, "z": lambda v: 0.0},
        depends={"y": ["u"]},
        undeclared=["z"],
    )
    plan = plan_of(units, ["A.y -> B.u", "B.y -> A.u"])
    assert [loop.assumed for loop in plan.step_loops] == [False]


def stops(plan: Plan) -> list[list[str]]:
    return [[plan.instances[i].name for i in visit.instances] for visit in plan.visits]


def test_an_instance_is_visited_again_if_its_outputs_are_needed_before_its_inputs() -> None:
    # G1: A.y1 -> B.u -> B.y -> A.u2 -> A.y2; without A.u1 connected, y1 is ready at once
    assert stops(plan_of_case(CASES["G1"])) == [["A"], ["B"], ["A"]]


def test_two_loops_through_one_unit_are_solved_separately() -> None:
    plan = plan_of_case(CASES["G5"])
    loops = [visit for visit in plan.visits if visit.loop]
    assert [[plan.instances[i].name for i in v.instances] for v in loops] == [
        ["A", "B"],
        ["A", "C"],
    ]


# What visits are for: after them, every value is right -------------------------------------------------------------------


@st.composite
def systems(draw: st.DrawFn) -> tuple[dict[str, PythonFmu], list[str]]:
    """Units with random feedthrough whose outputs tell on what they depend, connected without algebraic loops."""
    n = draw(st.integers(2, 5))
    units, connections = {}, []
    rank = draw(
        st.permutations(range(2 * n))
    )  # of outputs: an output uses inputs fed by smaller ranks only
    outputs = [(f"m{i}", f"y{k}") for i in range(n) for k in (0, 1)]
    for i in range(n):
        inputs: dict[str, float] = {}
        depends: dict[str, list[str]] = {}
        for k in (0, 1):
            mine = rank[2 * i + k]
            sources = [
                o for o, r in zip(outputs, rank, strict=True) if r < mine and o[0] != f"m{i}"
            ]
            fed = (
                draw(st.lists(st.sampled_from(sources), max_size=2, unique=True)) if sources else []
            )
            depends[f"y{k}"] = []
            for j, (unit, y) in enumerate(fed):
                inputs[f"u{k}{j}"] = -1000.0
                depends[f"y{k}"].append(f"u{k}{j}")
                connections.append(f"{unit}.{y} -> m{i}.u{k}{j}")

        def value(names: tuple[str, ...], base: int, v: Any) -> float:
            return base + sum(float(getattr(v, name)) for name in names)

        units[f"m{i}"] = PythonFmu(
            inputs=inputs,
            outputs={y: partial(value, tuple(on), 10 * i + int(y[1])) for y, on in depends.items()},
            depends=depends,
        )
    return units, connections


@given(systems())
def test_after_all_visits_every_output_agrees_with_its_inputs(
    system: tuple[dict[str, PythonFmu], list[str]],
) -> None:
    units, connections = system
    plan = plan_of(units, connections)
    assert all(visit.loop is None for visit in plan.visits)
    instances = {name: PythonInstance(unit, name) for name, unit in units.items()}
    for visit in plan.visits:
        name = plan.instances[visit.instances[0]].name
        for link in plan.links:
            if plan.instances[link.target].name == name:
                source = instances[plan.instances[link.source].name]
                setattr(instances[name].values, link.input.name, source._value(link.output.name))
    for link in plan.links:
        source, target = (instances[plan.instances[i].name] for i in (link.source, link.target))
        assert getattr(target.values, link.input.name) == source._value(link.output.name)
        assert getattr(target.values, link.input.name) >= 0  # never computed from a start value


# Components against the definition ------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_components_are_the_nodes_that_reach_each_other(pairs: list[tuple[int, int]]) -> None:
    nodes = [(i, "x") for i in range(7)]
    arcs = {node: [nodes[b] for a, b in pairs if nodes[a] == node] for node in nodes}
    reach = {node: _reached(node, arcs) for node in nodes}
    expected = {frozenset(m for m in nodes if m in reach[n] and n in reach[m]) for n in nodes}
    found = components(arcs)
    assert {frozenset(part) for part in found} == expected
    assert len(found) == len(expected)


def _reached(node: Node, arcs: Arcs) -> set[Node]:
    seen, waiting = {node}, [node]
    while waiting:
        fresh = set(arcs[waiting.pop()]) - seen
        seen |= fresh
        waiting += fresh
    return seen


def test_an_arc_that_is_given_twice_counts_once() -> None:
    a, b, c = (0, "y"), (1, "u"), (2, "u")
    assert components({a: [b, b, c, c], b: [a, a], c: []}) == [[a, b], [c]]


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Among so many new objects, Python's search for garbage takes longer than the test."""
    gc.disable()
    yield
    gc.enable()


def chain(length: int, *, closed: bool) -> tuple[dict[Node, list[Node]], Sequence[int]]:
    arcs = {(i, "x"): [(i + 1, "x")] for i in range(length - 1)}
    arcs[length - 1, "x"] = [(0, "x")] if closed else []
    return arcs, range(length)


def graph_of(arcs: Arcs, certain: Arcs | None = None) -> DependencyGraph:
    """A graph of outputs."""
    names = tuple(f"m{i:06}" for i in range(len(arcs)))
    return DependencyGraph(arcs, arcs if certain is None else certain, names, frozenset(arcs))


@pytest.mark.usefixtures("no_collections")
def test_a_chain_of_a_hundred_thousand_nodes_needs_no_deep_recursion() -> None:
    """loops.md 7.1."""
    arcs, sequence = chain(100_000, closed=False)
    order = visits(graph_of(arcs), sequence)
    assert order == tuple(Visit((i,)) for i in range(100_000))


@pytest.mark.thorough
@pytest.mark.usefixtures("no_collections")
def test_a_ring_of_a_hundred_thousand_nodes_is_one_loop_that_is_cut_once() -> None:
    """loops.md 7.1."""
    arcs, sequence = chain(100_000, closed=True)
    (visit,) = visits(graph_of(arcs), sequence)
    assert visit.instances == tuple(range(100_000))
    assert visit.loop is not None
    assert len(visit.loop.variables) == 100_000
    assert visit.loop.torn == ((0, "x"),)
    assert [v.instances[0] for v in visit.loop.sweep] == [*range(1, 100_000), 0]


class Unseen(frozenset[str]):
    """Names that must not be looked through one by one."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("one step for each input, of each output")


def test_inputs_that_nothing_feeds_cost_nothing() -> None:
    names = [f"u{k}" for k in range(100)]
    unit = PythonFmu("a", inputs=dict.fromkeys(names, 0.0), outputs={"y": lambda s: s.u0})
    model = replace(unit.model, dependencies={"y": Unseen(names)})
    assert dependency_arcs([model], [], initial=False) == {(0, "y"): []}


def test_a_variable_that_depends_on_itself_is_a_loop() -> None:
    arcs: Arcs = {(0, "y"): [(0, "u")], (0, "u"): [(0, "y")]}
    (visit,) = visits(graph_of(arcs, {(0, "y"): [(0, "u")], (0, "u"): []}), [0])
    assert visit.loop is not None
    assert (visit.instances, visit.loop.assumed) == ((0,), True)
