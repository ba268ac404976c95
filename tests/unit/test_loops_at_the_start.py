"""Algebraic loops in Initialization Mode: loops.md 7.2, each case of its section 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from loop_cases import CASES, MORE, MOST_SWEEPS, LoopCase, Unit
from pytest import approx
from python_fmu import Bench, PythonFmu

from fmimaster.algorithms.settling import Settling
from fmimaster.control.loop_solver import LoopSolver
from fmimaster.errors import LoopError
from fmimaster.results.results import Results
from fmimaster.run.choice import Backend
from fmimaster.system.states import Call

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

CLOSE = 1e-8
"""loops.md, section 4: "to reach the values to 1e-8 relative"; the reference runs have a tolerance of 1e-10."""

SOLVER = LoopSolver(relative=1e-10)


def names_of(unit: Unit) -> list[str]:
    n = len(unit.start)
    return ["u"] if n == 1 else [f"u{k + 1}" for k in range(n)]


def fmu_of(unit: Unit, *, derivatives: bool = False) -> PythonFmu:
    names = names_of(unit)

    def values(v: Any) -> list[float]:
        return [getattr(v, name) for name in names]

    def partial_of(k: int) -> Callable[[Any], float]:
        return lambda v: unit.partials(*values(v))[k]

    nominal = {} if unit.nominal is None else {"nominal": unit.nominal, "has_nominal": True}
    return PythonFmu(
        inputs=dict(zip(names, unit.start, strict=True)),
        outputs={"y": lambda v: unit.function(*values(v))},
        depends={"y": names},
        attributes={"y": nominal},
        partials={"y": {name: partial_of(k) for k, name in enumerate(names)}}
        if derivatives
        else None,
    )


def units_of(case: LoopCase, *, derivatives: bool = False) -> dict[str, PythonFmu]:
    return {name: fmu_of(unit, derivatives=derivatives) for name, unit in case.units.items()}


def bench_of(case: LoopCase, **options: Any) -> Bench:
    units = units_of(case, **options)
    return Bench(units, case.connections, case.start, settling=Settling(SOLVER))


def sweeps(bench: Bench) -> int:
    """Sweeps over the loop: how often inputs of the unit that was set most often were set."""
    return max(len(i.called(Call.SET_INPUT)) for i in bench.instances.values())


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
    assert sweeps(bench) <= MORE * case.sweeps


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
    assert len(error.results) == 0


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


@pytest.mark.parametrize("name", [*SOLVED, *FAILING])
def test_both_executors_make_the_same_calls_with_the_same_values(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    logs = []
    for backend in (Backend.REFERENCE, Backend.FASTEST):
        monkeypatch.setattr(Bench, "backend", backend)
        bench = bench_of(CASES[name])
        try:
            bench.initialize()
        except LoopError as error:
            logs.append(str(error))
        logs.append(str([i.log for i in bench.instances.values()]))
    assert logs[: len(logs) // 2] == logs[len(logs) // 2 :]
