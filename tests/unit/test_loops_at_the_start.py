"""Algebraic loops in Initialization Mode: loops.md 7.2, each case of its section 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from loop_benches import bench_of, fmu_of, sweeps, units_of
from loop_cases import CASES, MORE, MOST_SWEEPS, Unit
from pytest import approx
from python_fmu import Bench, PythonFmu

from fmimaster.base.errors import AccuracyWarning, LoopError
from fmimaster.results.results import Results
from fmimaster.system.model import DataType, DependencyKind
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

RING = ["a.y -> b.u", "b.y -> a.u"]

CLOSE = 1e-8
"""loops.md, section 4: "to reach the values to 1e-8 relative"; the reference runs have a tolerance of 1e-10."""

SOLVED = [name for name, case in CASES.items() if case.solution]
FAILING = [name for name, case in CASES.items() if case.reason]


@pytest.mark.parametrize("name", SOLVED)
def test_a_loop_is_solved_in_about_as_many_sweeps_as_the_reference_run(name: str) -> None:
    """loops.md 7.2, L1 to L9: values to 1e-8, at most 1.5 times the sweeps."""
    case = CASES[name]
    bench = bench_of(case)
    assert bench.initialize().stopped is None
    for output, value in case.solution.items():
        assert bench.value(output) == approx(value, rel=CLOSE)
    # start values that solve a loop of one unknown are measured: a sweep beside them, and one with them again
    measured = 2 if case.sweeps == 1 else 0
    assert sweeps(bench) <= MORE * case.sweeps + measured


@pytest.mark.parametrize("name", FAILING)
def test_a_loop_without_solution_is_an_error_with_all_its_facts(
    simulate: Simulate, name: str
) -> None:
    """loops.md 7.2 and 3, L6a and L6b: the class, the method, the sweeps, the best attempt, the loop."""
    case = CASES[name]
    with pytest.raises(LoopError) as caught:
        simulate(units_of(case), case.connections, case.start, stop_time=1)
    error, text = caught.value, str(caught.value)
    assert error.reason == case.reason
    assert error.loop == ("a.u", "a.y", "b.u", "b.y")
    assert error.sweeps <= MOST_SWEEPS
    assert len(error.residuals) == 1
    for part in (*error.loop, case.reason, "Anderson", "Newton", f"{error.sweeps} sweeps", "Best"):
        assert part in text
    assert error.results is not None
    assert error.results.rows == 0


def test_the_best_attempt_is_that_of_the_smallest_residual(simulate: Simulate) -> None:
    """loops.md 4, L6a: 0.75 at 0.5."""
    case = CASES["L6a"]
    with pytest.raises(LoopError) as caught:
        simulate(units_of(case), case.connections, case.start, stop_time=1)
    # the residual is flat there: 0.75 + (y - 0.5)^2, so that 1e-4 in y is 1e-8 in it
    assert list(caught.value.values.values()) == [approx(0.5, abs=1e-3)]
    assert list(caught.value.residuals.values()) == [approx(0.75, abs=1e-6)]


@pytest.mark.parametrize("name", SOLVED)
def test_the_order_of_listing_changes_no_bit(name: str) -> None:
    """loops.md 7.4."""
    case, found = CASES[name], list[Mapping[str, float]]()
    for seed in range(3):
        units, connections = list(units_of(case).items()), list(case.connections)
        Random(seed).shuffle(units)
        Random(seed).shuffle(connections)
        bench = Bench(dict(units), connections, case.start)
        assert bench.initialize().stopped is None
        found.append({f"{unit}.y": bench.value(f"{unit}.y") for unit in case.units})
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_a_loop_with_noise_is_given_up_with_an_error_of_its_own(simulate: Simulate) -> None:
    """The search ends before the REPEAT does, whatever the number of unknowns."""
    rng = np.random.default_rng(1)

    def noise(v: Any) -> list[float]:
        return list(np.asarray(v.u) + 1.0 + rng.random(5))

    wide = {"u": {"shape": (5,)}, "y": {"shape": (5,)}}
    units = {
        name: PythonFmu(inputs={"u": 0.0}, outputs={"y": f}, depends={"y": ["u"]}, attributes=wide)
        for name, f in (("a", noise), ("b", lambda v: v.u))
    }
    with pytest.raises(LoopError):
        simulate(units, RING, stop_time=1)


# With directional derivatives ---------------------------------------------------------------------------------------


def derivatives_asked_for(bench: Bench) -> int:
    return sum(len(i.called(FmiCall.GET_DIRECTIONAL_DERIVATIVE)) for i in bench.instances.values())


@pytest.mark.parametrize("name", SOLVED)
def test_with_directional_derivatives_newtons_method_comes_first(name: str) -> None:
    """loops.md 7.2: values to 1e-8, at most 1.5 times the sweeps; the derivatives are those of the FMUs."""
    case = CASES[name]
    bench = bench_of(case, derivatives=True)
    assert bench.initialize().stopped is None
    for output, value in case.solution.items():
        assert bench.value(output) == approx(value, rel=CLOSE)
    assert sweeps(bench) <= MORE * case.sweeps
    assert derivatives_asked_for(bench) > 0


@pytest.mark.parametrize("name", FAILING)
def test_derivatives_do_not_change_why_a_loop_has_no_solution(
    simulate: Simulate, name: str
) -> None:
    case = CASES[name]
    with pytest.raises(LoopError, match="directional derivatives") as caught:
        simulate(units_of(case, derivatives=True), case.connections, case.start, stop_time=1)
    assert caught.value.reason == case.reason
    assert caught.value.sweeps <= MOST_SWEEPS


@pytest.mark.parametrize("derivatives", [False, True])
def test_a_solution_that_is_not_unique_is_kept_with_a_warning(
    simulate: Simulate, derivatives: bool
) -> None:
    """loops.md 4, L6c: every value is a solution: keep 0.3, warn "not unique"."""
    case = CASES["L6c"]
    units = units_of(case, derivatives=derivatives)
    with pytest.warns(AccuracyWarning, match="solution not unique"):
        results = simulate(units, case.connections, case.start, stop_time=1)
    assert results["a.y"][0] == 0.3


def test_a_loop_gain_near_one_is_warned_of_because_the_residual_is_optimistic(
    simulate: Simulate,
) -> None:
    """loops.md 3: "Report it if sigma_min(J - I) < 1e-3"."""
    units = {
        "a": fmu_of(Unit(lambda u: 0.9999 * u + 1, lambda u: (0.9999,)), derivatives=True),
        "b": fmu_of(Unit(lambda u: u, lambda u: (1.0,)), derivatives=True),
    }
    with pytest.warns(AccuracyWarning, match="loop gain near 1"):
        results = simulate(units, ["a.y -> b.u", "b.y -> a.u"], stop_time=1)
    assert results["a.y"][0] == approx(10000, rel=1e-4)


@pytest.mark.parametrize("derivatives", [False, True])
@pytest.mark.parametrize("value", [1.0, 0.05])
def test_a_loop_gain_of_almost_one_is_noticed_even_if_the_start_values_seem_to_solve_it(
    simulate: Simulate, derivatives: bool, value: float
) -> None:
    """Near 0, every value has a residual below its tolerance: 0 was taken where the solution is 0.05."""
    gain = 1.0 - 1e-9

    def given(u: float) -> float:
        return gain * u + 1e-9 * value

    units = {
        "a": fmu_of(Unit(given, lambda u: (gain,)), derivatives=derivatives),
        "b": fmu_of(Unit(lambda u: u, lambda u: (1.0,)), derivatives=derivatives),
    }
    with pytest.warns(AccuracyWarning, match=r"loop gain (near )?1"):
        simulate(units, RING, stop_time=1)


@pytest.mark.parametrize("start", [{}, {"b.u": 0.0}])
def test_a_loop_that_starts_at_its_solution_is_not_doubtful(
    simulate: Simulate, start: dict[str, float], recwarn: pytest.WarningsRecorder
) -> None:
    units = {
        "a": fmu_of(Unit(lambda u: -2.0 * u, lambda u: (-2.0,))),
        "b": fmu_of(Unit(lambda u: u, lambda u: (1.0,))),
    }
    results = simulate(units, RING, start, stop_time=1)
    assert results["a.y"][-1] == 0.0
    assert not [w for w in recwarn if issubclass(w.category, AccuracyWarning)]


def test_a_loop_that_is_declared_linear_asks_for_its_derivatives_once() -> None:
    """loops.md 3: "Loops that were linear by metadata: one Newton step"."""
    units = units_of(CASES["L5"], derivatives=True)
    for unit in units.values():
        names = unit.model.dependencies["y"]
        kinds = {"y": dict.fromkeys(names, DependencyKind.CONSTANT)}
        unit.model = replace(unit.model, dependency_kinds=kinds, initial_dependency_kinds=kinds)
    bench = Bench(units, CASES["L5"].connections)
    assert bench.initialize().stopped is None
    for output, value in CASES["L5"].solution.items():
        assert bench.value(output) == approx(value, rel=CLOSE)
    assert sweeps(bench) == 2
    assert derivatives_asked_for(bench) == sum(len(u.start) for u in CASES["L5"].units.values())


def test_the_derivatives_of_a_sweep_take_the_factors_of_connections() -> None:
    """A kilometre is 1000 m: the loop gain is that of the connections too."""
    units = {
        "a": fmu_of(Unit(lambda u: -2 * u + 3, lambda u: (-2.0,)), derivatives=True),
        "b": fmu_of(Unit(lambda u: 1.5 * u + 1, lambda u: (1.5,)), derivatives=True),
    }
    connections = [
        ("a.y -> b.u", {"factor": 1000.0, "offset": 5.0}),
        ("b.y -> a.u", {"factor": 0.001}),
    ]
    bench = Bench(units, connections)
    assert bench.initialize().stopped is None
    assert sweeps(bench) == 2
    y = bench.value("a.y")
    assert y == approx(-2 * 0.001 * (1.5 * (1000 * y + 5) + 1) + 3, rel=CLOSE)


# More than one loop, arrays, single precision -----------------------------------------------------------------------


def test_elements_of_arrays_are_unknowns() -> None:
    a = PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: [2 - v.u[1], 1 + 3 * v.u[0]]},
        depends={"y": ["u"]},
        attributes={"u": {"shape": (2,)}, "y": {"shape": (2,)}},
    )
    b = PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: v.u},
        depends={"y": ["u"]},
        attributes={"u": {"shape": (2,)}, "y": {"shape": (2,)}},
    )
    bench = Bench({"a": a, "b": b}, RING)
    assert bench.initialize().stopped is None
    assert bench.value("a.y") == approx([0.25, 1.75], rel=CLOSE)  # x = 2 - (1 + 3 x)


def test_an_unknown_of_single_precision_is_solved_to_its_precision() -> None:
    single = {name: {"type": DataType.FLOAT32} for name in ("u", "y")}
    a, b = (
        PythonFmu(inputs={"u": 0.0}, outputs={"y": f}, depends={"y": ["u"]}, attributes=single)
        for f in (lambda v: -2 * v.u + 3, lambda v: 1.5 * v.u + 1)
    )
    bench = Bench({"a": a, "b": b}, RING)
    assert bench.initialize().stopped is None
    assert bench.value("a.y") == approx(0.25, rel=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
def test_of_several_solutions_that_near_the_declared_start_values_is_found(sign: int) -> None:
    """y = tanh(3 y) has three solutions, one of them 0."""
    a = PythonFmu(
        inputs={"u": 0.5 * sign},
        outputs={"y": lambda v: np.tanh(3 * v.u)},
        depends={"y": ["u"]},
    )
    b = PythonFmu(inputs={"u": 0.5 * sign}, outputs={"y": lambda v: v.u}, depends={"y": ["u"]})
    bench = Bench({"a": a, "b": b}, RING)
    assert bench.initialize().stopped is None
    assert bench.value("a.y") == approx(sign * 0.9949015284528, rel=CLOSE)


def test_two_loops_through_one_unit_are_solved_separately() -> None:
    """loops.md 1, G5."""
    a = PythonFmu(
        inputs={"u1": 0.0, "u2": 0.0},
        outputs={"y1": lambda v: 0.5 * v.u1 + 1, "y2": lambda v: -2 * v.u2 + 3},
        depends={"y1": ["u1"], "y2": ["u2"]},
    )
    b = fmu_of(Unit(lambda u: 0.4 * u + 2, lambda u: (0.4,)))
    c = fmu_of(Unit(lambda u: 1.5 * u + 1, lambda u: (1.5,)))
    connections = ["A.y1 -> B.u", "B.y -> A.u1", "A.y2 -> C.u", "C.y -> A.u2"]
    bench = Bench({"A": a, "B": b, "C": c}, connections)
    assert bench.initialize().stopped is None
    found = [bench.value(name) for name in ("A.y1", "B.y", "A.y2", "C.y")]
    assert found == approx([2.5, 3.0, 0.25, 1.375], rel=CLOSE)


def test_a_value_that_is_assumed_stays_while_its_unit_is_read_in_passing() -> None:
    """A.y2 is torn, and C still needs what was assumed for it when A is read for y1: y2 = -3 (y2 + 1 + 0.1 y2) + 4."""
    a = PythonFmu(
        inputs={"u1": 0.0, "u2": 0.0},
        outputs={"y1": lambda v: 2 * v.u1 + 1, "y2": lambda v: -3 * v.u2 + 4},
        depends={"y1": ["u1"], "y2": ["u2"]},
    )
    b = fmu_of(Unit(lambda u: 0.5 * u, lambda u: (0.5,)))
    c = PythonFmu(
        inputs={"u1": 0.0, "u2": 0.0},
        outputs={"y": lambda v: v.u1 + 0.1 * v.u2},
        depends={"y": ["u1", "u2"]},
    )
    connections = ["A.y2 -> B.u", "B.y -> A.u1", "A.y1 -> C.u1", "A.y2 -> C.u2", "C.y -> A.u2"]
    # a start value for an input that A.y2 feeds, so that it is cut
    bench = Bench({"A": a, "B": b, "C": c}, connections, {"C.u2": 1.0})
    (loop,) = bench.plan.initial_loops
    assert [name for _, name in loop.torn] == ["y2"]
    assert any(visit.held for visit in loop.sweep)
    assert bench.initialize().stopped is None
    assert bench.value("A.y2") == approx(1 / 4.3, rel=CLOSE)
    assert sweeps(bench) == 3


# loops.md 4, initialisation -------------------------------------------------------------------------------------------


def initialized_from_its_input() -> PythonFmu:
    """x(0) = 0.5 u + 1, y = x: a state that is initialised from an input."""
    return PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: 0.5 * v.u + 1 if v.t == 0 else v.x},
        states={"x": 0.0},
        initial_depends={"y": ["u"]},
        depends={"y": []},
    )


def test_a_loop_at_initialisation_only_is_solved_there() -> None:
    """loops.md 7.2, I1: x = 1.25, B.y = 0.5; at run time no loop."""
    b = fmu_of(Unit(lambda u: -2 * u + 3, lambda u: (-2.0,)))
    bench = Bench({"A": initialized_from_its_input(), "B": b}, ["B.y -> A.u", "A.y -> B.u"])
    assert bench.initialize().stopped is None
    assert [bench.value("A.y"), bench.value("B.y")] == approx([1.25, 0.5], rel=CLOSE)
    assert len(bench.plan.initial_loops) == 1
    assert bench.plan.step_loops == ()


def test_a_loop_of_gain_one_at_initialisation_is_singular(simulate: Simulate) -> None:
    """loops.md 7.2, I2: x = x - 0.5."""
    b = fmu_of(Unit(lambda u: 2 * u - 3, lambda u: (2.0,)))
    units = {"A": initialized_from_its_input(), "B": b}
    with pytest.raises(LoopError) as caught:
        simulate(units, ["B.y -> A.u", "A.y -> B.u"], stop_time=1)
    assert caught.value.reason == CASES["L6b"].reason
