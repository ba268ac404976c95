"""The best trigger sequences, and which sequences differ: sections 1, 3 and 5 of sequence.md."""

from __future__ import annotations

import csv
import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx
from sequence_references import (
    brute_force,
    cost_of_levels,
    matrices,
    rotation_class,
    stale_connections,
)

from fmimaster.base.errors import OptionError
from fmimaster.sequences import exact, feedback, levels
from fmimaster.sequences.exact import best_by_subsets, cut_cycles
from fmimaster.sequences.feedback import feedback_arcs, least_stale
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.insertion import greedy, improved
from fmimaster.sequences.levels import bounded_levels, levels_of
from fmimaster.sequences.makespan import (
    canonical,
    makespan,
    orientations,
    pareto_front,
    start_times,
)
from fmimaster.sequences.methods import nearest_neighbour
from fmimaster.sequences.structure import AcyclicGraph
from fmimaster.sequences.weights import (
    Count,
    FeedThrough,
    GivenWeights,
    UnitConnection,
    Units,
    Weights,
)

DATA = Path(__file__).parents[1] / "data"

# The four units -------------------------------------------------------------------------------------------------------

FOUR = Units(
    ("S1", "S2", "S3", "S4"),
    tuple(
        UnitConnection(f"S{y[1]}", y, f"S{u[1]}", u, u in ("u11", "u21", "u42"))
        for u, y in {
            "u11": "y42",
            "u21": "y11",
            "u31": "y21",
            "u32": "y41",
            "u41": "y12",
            "u42": "y31",
        }.items()
    ),
)
ADVANCED = GivenWeights(
    {
        "S1.u11": 0.67,
        "S2.u21": 1.0,
        "S3.u31": 0.25,
        "S3.u32": 0.25,
        "S4.u41": 0.35,
        "S4.u42": 0.72,
    }
)
WEIGHTINGS: Mapping[str, Weights] = {
    "obj_count": Count(),
    "obj_feedthrough": FeedThrough(0.0),
    "obj_advanced": ADVANCED,
}
ROWS: list[dict[str, str]] = list(
    csv.DictReader((DATA / "seq_paper_24.csv").read_text(encoding="utf-8").splitlines())
)


def digits(graph: UnitGraph, sequence: Iterable[int]) -> str:
    return "".join(graph.named(sequence)).replace("S", "")


def four(weights: Weights) -> UnitGraph:
    return UnitGraph.of(FOUR, weights)


def sequence_of(graph: UnitGraph, text: str) -> tuple[int, ...]:
    return graph.indices(f"S{digit}" for digit in text)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (Count(), [[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 1, 0]]),
        (FeedThrough(0.0), [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]]),
        (ADVANCED, [[0, 1, 0, 0.35], [0, 0, 0.25, 0], [0, 0, 0, 0.72], [0.67, 0, 0.25, 0]]),
    ],
)
def test_the_matrix_of_weights_is_that_of_the_paper(
    weights: Weights, expected: list[list[float]]
) -> None:
    """sequence.md 7.1: D from the wiring, with the weights of equations 4, 13 and 14."""
    found = matrices(FOUR, weights)
    assert found.d.tolist() == expected
    assert UnitGraph.of(FOUR, weights).matrix.tolist() == expected


def test_inputs_are_outputs_by_a_permutation() -> None:
    """sequence.md 2.1: L has ones at (1,6), (2,1), (3,3), (4,5), (5,2), (6,4)."""
    found = matrices(FOUR, Count())
    assert [name[3:] for name in found.inputs] == ["u11", "u21", "u31", "u32", "u41", "u42"]
    assert [name[3:] for name in found.outputs] == ["y11", "y12", "y21", "y31", "y41", "y42"]
    assert (np.argmax(found.l, axis=1) + 1).tolist() == [6, 1, 3, 5, 2, 4]
    assert (found.l @ found.l.T).tolist() == np.eye(6).tolist()


@pytest.mark.parametrize("column", WEIGHTINGS)
def test_the_cost_of_each_of_the_24_sequences_is_that_of_the_table(column: str) -> None:
    """sequence.md 7.2: all 24 objective values for 3 weightings."""
    graph = four(WEIGHTINGS[column])
    found = {row["sequence"]: graph.cost(sequence_of(graph, row["sequence"])) for row in ROWS}
    assert len(found) == 24
    assert found == {row["sequence"]: approx(float(row[column]), abs=1e-12) for row in ROWS}


@pytest.mark.parametrize(
    ("column", "best", "least", "worst", "most"),
    [
        ("obj_count", {"4123", "1234", "1243", "1423"}, 2, {"4321", "3421", "3241", "3214"}, 4),
        ("obj_feedthrough", {"3412"}, 0, {"2143"}, 3),
        ("obj_advanced", {"3412"}, 0.85, {"2143"}, 2.39),
    ],
)
def test_the_best_and_worst_sequences_are_those_of_the_table(
    column: str, best: set[str], least: float, worst: set[str], most: float
) -> None:
    """sequence.md 2.1: verified optima; all solvers find the first of them by names."""
    graph = four(WEIGHTINGS[column])
    costs = {digits(graph, s): round(graph.cost(s), 12) for s in itertools.permutations(range(4))}
    assert {s for s, cost in costs.items() if cost == min(costs.values())} == best
    assert {s for s, cost in costs.items() if cost == max(costs.values())} == worst
    assert (min(costs.values()), max(costs.values())) == (least, most)
    assert digits(graph, best_by_subsets(graph.matrix)) == min(best)
    assert digits(graph, brute_force(graph)) == min(best)
    assert digits(graph, least_stale(graph)) == min(best)


def test_the_stale_connections_of_a_sequence_are_named() -> None:
    stale = stale_connections(FOUR, ("S3", "S4", "S1", "S2"))
    assert [str(c) for c in stale] == [
        "S2.y21 -> S3.u31",
        "S4.y41 -> S3.u32",
        "S1.y12 -> S4.u41",
    ]


# Which sequences differ -----------------------------------------------------------------------------------------------


def test_the_24_sequences_have_14_distinct_results() -> None:
    """sequence.md 7.5, count of classes: acyclic orientations of the coupling graph."""
    graph = four(Count())
    every = {canonical(graph, s) for s in itertools.permutations(range(4))}
    assert list(orientations(graph)) == sorted(every)
    assert len(every) == 14
    results: dict[tuple[int, ...], set[str]] = {}
    for row in ROWS:
        key = canonical(graph, sequence_of(graph, row["sequence"]))
        results.setdefault(key, set()).add(f"{row['lin_y11']} {row['lin_y12']}")
    assert [len(r) for r in results.values()] == [1] * 14
    assert len(set().union(*results.values())) == 14


def test_the_24_sequences_are_3_classes_by_rotation() -> None:
    """sequence.md 3: a rotation keeps the number of stale arcs on each cycle."""
    graph = four(Count())
    classes = {rotation_class(graph, s) for s in orientations(graph)}
    assert sorted(map(len, classes)) == [4, 4, 6]
    of = {s: c for c in classes for s in c}
    assert of[sequence_of(graph, "1234")] == of[sequence_of(graph, "3412")]
    assert of[sequence_of(graph, "1234")] != of[sequence_of(graph, "1243")]


def random_graph(seed: int, n: int, degree: float, weights: Sequence[float] = ()) -> UnitGraph:
    """Units a, b, ..., with so many arcs out on average; weights have one digit or are some of those given."""
    chance = random.Random(seed)
    names = [f"{chr(ord('a') + k // 26)}{chr(ord('a') + k % 26)}" for k in range(n)]
    given = weights or [k / 10 for k in range(1, 10)]
    arcs = [
        (a, b, chance.choice(given))
        for a in names
        for b in names
        if a != b and chance.random() < degree / (n - 1)
    ]
    return UnitGraph.made(names, arcs)


@given(st.integers(0, 10_000), st.integers(2, 5), st.floats(0.5, 3))
def test_orientations_are_all_canonical_sequences_each_once(
    seed: int, n: int, degree: float
) -> None:
    graph = random_graph(seed, n, degree)
    every = {canonical(graph, s) for s in itertools.permutations(range(n))}
    assert list(orientations(graph)) == sorted(every)


@given(st.integers(0, 10_000), st.permutations(range(6)))
def test_sequences_of_one_orientation_have_the_same_stale_arcs_and_levels(
    seed: int, sequence: list[int]
) -> None:
    graph = random_graph(seed, 6, 1.5)
    first = canonical(graph, sequence)
    assert graph.stale(first) == graph.stale(sequence)
    assert levels_of(graph, first) == levels_of(graph, sequence)


# Solvers --------------------------------------------------------------------------------------------------------------

INSTANCES: list[dict[str, Any]] = json.loads(
    (DATA / "seq_dp_instances.json").read_text(encoding="utf-8")
)


def graph_of(d: list[list[float]]) -> UnitGraph:
    names = [f"u{k:02}" for k in range(len(d))]
    return UnitGraph.made(
        names, ((names[a], names[b], w) for a, row in enumerate(d) for b, w in enumerate(row) if w)
    )


@pytest.mark.parametrize("case", INSTANCES, ids=lambda case: f"{case['n']} units")
def test_subsets_find_the_stored_optimum(case: dict[str, Any]) -> None:
    """sequence.md 7.3: dynamic programming equals the stored optimum; and brute force where that is possible."""
    graph = graph_of(case["D"])
    found = best_by_subsets(graph.matrix)
    assert graph.cost(found) == approx(case["optimum"], abs=1e-9)
    assert graph.cost(least_stale(graph)) == approx(case["optimum"], abs=1e-9)
    if case["n"] <= 10:
        assert brute_force(graph) == found
    # an order that another solver has found
    assert graph.cost([k - 1 for k in case["an_optimal_sequence"]]) == approx(case["optimum"])


@pytest.mark.parametrize("case", INSTANCES, ids=lambda case: f"{case['n']} units")
def test_the_nearest_neighbour_is_that_of_the_table(case: dict[str, Any]) -> None:
    """sequence.md 1.3: 2.748, 5.854, 8.199, 14.424, 10.133."""
    graph = graph_of(case["D"])
    assert graph.cost(nearest_neighbour(graph)) == approx(case["nearest_neighbour"], abs=1e-9)


@given(st.integers(0, 10_000), st.integers(2, 8), st.floats(0.5, 4))
def test_of_equal_sequences_the_first_by_names_is_taken(seed: int, n: int, degree: float) -> None:
    graph = random_graph(seed, n, degree, weights=[0.1, 0.2])
    found = best_by_subsets(graph.matrix)
    least = min(round(graph.cost(s), 9) for s in orientations(graph))
    assert (
        found
        == min(s for s in itertools.permutations(range(n)) if round(graph.cost(s), 9) == least)
        if n <= 5
        else round(graph.cost(found), 9) == least
    )
    assert brute_force(graph) == found


@pytest.mark.parametrize("seed", range(30))
def test_parts_reductions_and_cycles_cost_what_subsets_cost(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sequence.md 5.2, 5.3, 5.5: each is exact; small parts are not solved by subsets here unless nothing else is left."""
    graph = random_graph(seed, 9 + seed % 6, (1.3, 1.8, 2.5)[seed % 3])
    monkeypatch.setattr(feedback, "AT_ONCE", 1)
    monkeypatch.setattr(feedback, "BEFORE_CYCLES", 1)
    expected = graph.cost(best_by_subsets(graph.matrix))
    assert graph.cost(least_stale(graph)) == approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_linear_programme_is_a_lower_bound_and_what_is_whole_is_optimal(seed: int) -> None:
    graph = random_graph(seed, 12, 3.0)
    shares, whole = cut_cycles(graph.weights)
    bound = sum(graph.weights[arc] * share for arc, share in shares.items())
    least = graph.cost(best_by_subsets(graph.matrix))
    assert bound <= least + 1e-9
    assert not whole or bound == approx(least)


def test_a_programme_that_needs_too_many_cycles_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = random_graph(3, 40, 3.0)
    best = graph.cost(least_stale(graph))
    monkeypatch.setattr(exact, "MOST_CYCLES", 1)
    assert cut_cycles(graph.weights)[1] is False
    assert best <= graph.cost(least_stale(graph)) <= 1.05 * best


def test_units_that_only_give_step_first_and_those_that_only_take_last() -> None:
    arcs = {(3, 1): 1.0, (1, 2): 2.0, (2, 1): 1.0, (2, 0): 1.0}
    assert greedy(arcs) == [3, 1, 2, 0]


def test_moves_of_single_units_find_the_optimum_of_small_systems() -> None:
    for seed in range(5):
        graph = random_graph(seed, 12, 3.0)
        cut = improved(graph.weights, range(12), rounds=100)
        expected = graph.cost(best_by_subsets(graph.matrix))
        assert sum(graph.weights[arc] for arc in cut) == approx(expected)


@pytest.mark.parametrize(
    ("module", "limit"),
    [(exact, "MOST_ARCS"), (feedback, "MOST_ROUNDED")],
    ids=["arcs", "rounded"],
)
def test_more_arcs_than_the_programme_takes_are_ordered_by_weight_or_greedily_and_by_moves(
    module: ModuleType, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sequence.md 5.5: without a linear programme."""
    monkeypatch.setattr(module, limit, 10)
    graph = random_graph(3, 40, 2.0)
    quick = graph.cost(least_stale(graph))
    monkeypatch.undo()
    best = graph.cost(least_stale(graph))
    assert best <= quick + 1e-9
    assert quick <= 1.05 * best


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40))
def test_an_arc_is_added_unless_it_closes_a_cycle(arcs: list[tuple[int, int]]) -> None:
    graph = AcyclicGraph(range(8))
    after: dict[int, set[int]] = {k: set() for k in range(8)}
    for a, b in arcs:
        reached, waiting = {b}, [b]
        while waiting:
            new = after[waiting.pop()] - reached
            reached |= new
            waiting += new
        assert graph.add(a, b) is (a not in reached)
        if a not in reached:
            after[a].add(b)
    position = {unit: k for k, unit in enumerate(graph.ordered())}
    assert all(position[a] < position[b] for a in after for b in after[a])


def test_a_ring_and_a_chain_of_many_units_take_no_deep_recursion() -> None:
    n = 20_000
    chain = {(k, k + 1): 1.0 for k in range(n - 1)}
    assert feedback_arcs(chain) == set()
    assert feedback_arcs(chain | {(n - 1, 0): 0.5}) == {(n - 1, 0)}
    # of equal connections the one into the first unit by name is stale
    assert feedback_arcs(chain | {(n - 1, 0): 1.0}) == {(n - 1, 0)}


def test_an_arc_without_weight_has_no_influence() -> None:
    graph = UnitGraph.made("ab", [("b", "a", 0.0)])
    assert least_stale(graph) == nearest_neighbour(graph) == (0, 1)
    assert canonical(graph, (1, 0)) == (1, 0)


def test_a_system_without_units_or_connections_has_a_sequence() -> None:
    assert least_stale(UnitGraph.made("", [])) == ()
    assert least_stale(UnitGraph.made("cab", [])) == (0, 1, 2)


# Large systems --------------------------------------------------------------------------------------------------------


def large(name: str, seed: int | None = None) -> UnitGraph:
    """One of the shared systems; its rows shuffled, if a seed is given."""
    rows = list(
        csv.DictReader((DATA / f"seq_graph_{name}.csv").read_text(encoding="utf-8").splitlines())
    )
    names = list(dict.fromkeys(f"u{int(row[end]):04}" for row in rows for end in ("from", "to")))
    if seed is not None:
        chance = random.Random(seed)
        chance.shuffle(rows)
        chance.shuffle(names)
    arcs = [(f"u{int(r['from']):04}", f"u{int(r['to']):04}", float(r["weight"])) for r in rows]
    return UnitGraph.made(names, arcs)


@pytest.mark.parametrize(
    ("name", "most"), [("tree", 358.485), ("modules", 135.585), ("grid", 679.638), ("sparse", 27.7)]
)
def test_a_thousand_units_cost_what_is_required(name: str, most: float) -> None:
    """sequence.md 7.8: tree and modules optimal, grid within 0.2 % (here: optimal), sparse at most 27.7."""
    graph = large(name)
    found = least_stale(graph)
    assert sorted(found) == list(range(graph.size))
    assert graph.cost(found) <= most + 1e-9


@pytest.mark.parametrize("name", ["tree", "modules"])
def test_the_sequence_of_a_thousand_units_does_not_depend_on_how_they_are_listed(name: str) -> None:
    """sequence.md 7.9: names decide ties."""
    assert least_stale(large(name, seed=1)) == least_stale(large(name))


@given(st.integers(0, 1000))
def test_sequences_do_not_depend_on_how_units_are_listed(seed: int) -> None:
    """sequence.md 7.9, for each solver, with many ties."""
    graph = random_graph(seed, 9, 2.0, weights=[1.0])
    chance = random.Random(seed)
    names = list(graph.names)
    arcs = [(graph.names[a], graph.names[b], w) for (a, b), w in graph.weights.items()]
    chance.shuffle(names)
    chance.shuffle(arcs)
    mixed = UnitGraph.made(names, arcs)
    assert mixed == graph
    assert list(mixed.weights) == list(graph.weights)
    for solve in (least_stale, nearest_neighbour, brute_force):
        assert mixed.named(solve(mixed)) == graph.named(solve(graph))


# Levels and makespan --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sequence", "levels", "stale"),
    [
        ("1324", ["13", "24"], 3),
        ("4231", ["24", "13"], 3),
        ("4321", ["24", "13"], 4),
        ("4312", ["4", "13", "2"], 3),
        ("3421", ["23", "4", "1"], 4),
        ("4123", ["4", "1", "2", "3"], 2),
        ("3412", ["3", "4", "1", "2"], 3),
    ],
)
def test_levels_are_those_of_the_table(sequence: str, levels: list[str], stale: int) -> None:
    """sequence.md 3: level sets and stale inputs of each orientation."""
    graph = four(Count())
    order = sequence_of(graph, sequence)
    assert [digits(graph, units) for units in levels_of(graph, order)] == levels
    assert graph.cost(order) == stale


def test_a_bound_on_levels_costs_stale_inputs() -> None:
    """sequence.md 3: one level is Jacobi with 6 stale inputs, two cost 3, three and more 2."""
    graph = four(Count())
    found = {most: bounded_levels(graph, most) for most in (1, 2, 3, 4, 9)}
    assert {k: (len(v), cost_of_levels(graph, v)) for k, v in found.items()} == {
        1: (1, 6),
        2: (2, 3),
        3: (3, 2),
        4: (4, 2),
        9: (4, 2),
    }
    with pytest.raises(OptionError, match="levels: 0, expected 1 or more"):
        bounded_levels(graph, 0)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_bounded_levels_are_the_best_of_all(seed: int, most: int) -> None:
    graph = random_graph(seed, 5, 2.0)
    found = bounded_levels(graph, most)
    assert sorted(unit for units in found for unit in units) == list(range(5))
    assert len(found) <= most
    every = []
    for assignment in itertools.product(range(most), repeat=5):
        sets = tuple(tuple(u for u in range(5) if assignment[u] == k) for k in range(most))
        every.append(cost_of_levels(graph, sets))
    assert cost_of_levels(graph, found) == approx(min(every), abs=1e-9)


@pytest.mark.parametrize("most", [2, 4])
def test_a_search_of_levels_finds_the_best(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(1, 8, 3.0)
    assert len(levels_of(graph, least_stale(graph))) > most
    exact = cost_of_levels(graph, bounded_levels(graph, most))
    monkeypatch.setattr(levels, "MOST_EXACT", 0)
    assert cost_of_levels(graph, bounded_levels(graph, most)) == approx(exact)


def test_many_units_keep_the_bound_on_levels() -> None:
    graph = random_graph(1, 24, 2.0)
    costs = []
    for most in (1, 2, 4, 8):
        found = bounded_levels(graph, most)
        assert len(found) <= most
        assert sorted(unit for units in found for unit in units) == list(range(24))
        costs.append(cost_of_levels(graph, found))
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == approx(sum(graph.weights.values()))


def test_units_start_when_inputs_and_a_core_are_there() -> None:
    """List scheduling: no unit waits for a whole level, and the longest chain goes first."""
    graph = UnitGraph.made("abcd", [("a", "c", 1.0), ("b", "d", 1.0)])
    times = (1.0, 3.0, 5.0, 1.0)
    assert start_times(graph, (0, 1, 2, 3), times, 2) == [0.0, 0.0, 1.0, 3.0]
    assert makespan(graph, (0, 1, 2, 3), times, 2) == 6.0
    assert start_times(graph, (0, 1, 2, 3), times, 1) == [0.0, 6.0, 1.0, 9.0]
    # if c and d step first, their inputs are stale and nothing waits but for a core
    assert makespan(graph, (2, 3, 0, 1), times, 4) == 5.0


def test_the_front_has_what_no_other_sequence_beats() -> None:
    """sequence.md 3: the compromise of cost and makespan, by all orientations."""
    graph = four(Count())
    front = pareto_front(graph, {"S1": 1.0, "S2": 1.0, "S3": 1.0, "S4": 1.0}, cores=4)
    assert [(c.cost, c.makespan) for c in front] == [(2.0, 3.0), (3.0, 2.0)]
    (alone,) = pareto_front(graph, dict.fromkeys(graph.names, 1.0), cores=1)
    assert (alone.cost, alone.makespan) == (2.0, 4.0)


def test_the_front_of_many_units_is_searched() -> None:
    graph = random_graph(2, 14, 2.0)
    times = {name: 1.0 + k % 3 for k, name in enumerate(graph.names)}
    front = pareto_front(graph, times, cores=4)
    assert front[0].cost == approx(graph.cost(least_stale(graph)))
    for one, next_one in itertools.pairwise(front):
        assert one.cost < next_one.cost
        assert one.makespan > next_one.makespan
    assert len(front) > 1


@pytest.mark.parametrize(
    ("times", "cores", "message"),
    [
        ({"a": 1.0}, 1, "run_times: 'b' is missing"),
        ({"a": 1.0, "b": -1.0}, 1, "run_times: -1.0 for 'b'"),
        ({"a": 1.0, "b": float("nan")}, 1, "run_times: nan for 'b'"),
        ({"a": 1.0, "b": 1.0}, 0, "cores: 0, expected 1 or more"),
    ],
)
def test_wrong_run_times_are_refused(times: dict[str, float], cores: int, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        pareto_front(UnitGraph.made("ab", []), times, cores)
