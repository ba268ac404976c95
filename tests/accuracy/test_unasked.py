"""What a run chooses by itself: the suite ``conformance/unasked.py`` and its exact solutions."""

from __future__ import annotations

import itertools
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import unasked
import unasked_demos
import unasked_tables
from pytest import approx
from scipy.integrate import solve_ivp
from unasked_case import Case
from unasked_linear import random_net
from unasked_nets import Net, Signal, unit
from unasked_systems import smooth_cases


def integrated(net: Net, stop: float) -> dict[str, float]:
    """The outputs at the stop time, by a solver that computes the inputs of the units from their outputs by iteration."""
    units = net.units
    sizes = np.cumsum([0] + [len(u.x0) for u in units.values()])
    parts = dict(zip(units, itertools.pairwise(sizes), strict=True))

    def outputs(x: np.ndarray) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, one in units.items():
            y = one.c @ x[slice(*parts[name])] + one.f
            found |= {f"{name}.{n}": float(v) for n, v in zip(one.outputs, y, strict=True)}
        return found

    def rates(_: float, x: np.ndarray) -> np.ndarray:
        y, moved = outputs(x), np.zeros_like(x)
        for name, one in units.items():
            u = np.zeros(len(one.inputs))
            for source, target, factor in net.connections:
                if target.split(".")[0] == name:
                    u[one.inputs.index(target.split(".")[1])] += factor * y[source]
            moved[slice(*parts[name])] = one.a @ x[slice(*parts[name])] + one.b @ u + one.e
        return moved

    start = np.concatenate([u.x0 for u in units.values()])
    solved = solve_ivp(rates, (0.0, stop), start, "DOP853", rtol=1e-11, atol=1e-12)
    return outputs(solved.y[:, -1])


def test_there_are_at_least_60_systems_without_events_with_names_of_their_own() -> None:
    names = [case.name for case in smooth_cases()]
    assert len(names) == len(set(names)) >= 60


def test_the_exact_solution_of_a_net_is_that_of_another_solver() -> None:
    net, _ = random_net(0)
    found = net.closed().solution(np.array([0.0, 0.7, 2.0]))
    expected = integrated(net, 2.0)
    assert {name: values[-1] for name, values in found.items()} == approx(expected, abs=1e-8)


def test_the_exact_solution_behind_a_file_has_its_jumps() -> None:
    """x' = -x + u for u = 2 from 1 s on, and a line down to 0 from 2 s to 3 s."""
    net = Net(
        {"a": unit([[-1]], [[1]], [[1]])}, [], Signal("a.u1", (0, 1, 1, 2, 3), (0, 0, 2, 2, 0))
    )
    found = net.closed().solution(np.array([0.5, 1.0, 2.0, 3.0]))["a.y1"]
    x2 = 2 * (1 - np.exp(-1))
    x3 = x2 * np.exp(-1) + 2 * (1 - np.exp(-1)) - 2 * np.exp(-1)
    assert found == approx([0.0, 0.0, x2, x3], abs=1e-12)


RECORDED = Path(unasked_tables.__file__).parent / "unasked.csv"
PAGE = Path(unasked_tables.__file__).parents[1] / "docs" / "unasked.md"
FAST = {
    "two masses mixed": "none",
    "three masses, held": "4",
    "Duffing fmi2": "1",
    "stiff resistor fmi3": "4",
    "quarter car B fmi2": "1",
    "undeclared loop -2": "1",
    "hidden loop 0.5": "1",
    "sampled control fmi2": "1",
    "clocked control": "none",
    "file with jumps": "1",
    "ring ME and CS mixed": "4",
    "random net 5": "none",
}
"""System → its step."""


@cache
def recorded() -> dict[tuple[str, str], unasked_tables.Run]:
    """The runs of the table by chosen methods: system and step → run."""
    return {(r.system, r.size): r for r in unasked_tables.read(RECORDED) if not r.plain}


def test_the_page_has_the_tables_of_the_recorded_runs(tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    shutil.copy(PAGE, copy)
    unasked_tables.put_into(copy, unasked_tables.read(RECORDED))
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


@pytest.mark.measured
@pytest.mark.parametrize(
    ("case", "size"),
    [
        pytest.param(
            case, size, id=f"{case.name}, {size}", marks=() if is_fast else pytest.mark.thorough
        )
        for case in smooth_cases()
        for size in ("none", "1", "4")
        if (is_fast := FAST.get(case.name) == size) or size == "1"
    ],
)
def test_a_run_has_the_outcome_of_the_table(case: Case, size: str) -> None:
    expected = recorded()[case.name, size]
    run = unasked.run(case, size, {}, 30.0)
    assert (run.outcome, run.warned, run.chosen) == (
        expected.outcome,
        expected.warned,
        expected.chosen,
    )
    assert run.error == approx(expected.error, rel=0.05, abs=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["two-mass", "thermostat", "four-units", "quarter-car-b"])
def test_the_choice_for_a_demo_system_is_nearly_the_best_single_one(name: str) -> None:
    """Beside the single choices that are best in the table of docs/unasked.md."""
    system, size, stop = next(rest for known, *rest in unasked_demos.systems() if known == name)
    fine, chosen = (unasked_demos.run(system, h, {}, stop) for h in (size / 20, size))
    others = [
        unasked_demos.run(system, size, one, stop)
        for one in (
            {"algorithm": "GaussSeidel:inputs=adaptive", "event_clock": "predictive"},
            {"algorithm": "GaussSeidel", "event_clock": "none", "step_size": "locate"},
            {"algorithm": "GaussSeidel:inputs=quadratic,mode=held", "event_clock": "none"},
            {"algorithm": "GaussSeidel:inputs=quadratic", "event_clock": "none"},
        )
    ]
    assert fine is not None
    assert chosen is not None
    names = unasked_demos.judged(system, stop)
    least = min(unasked_demos.error(one, fine, names) for one in others if one is not None)
    assert unasked_demos.error(chosen, fine, names) <= 1.5 * max(least, unasked_demos.LEAST)
