"""Two masses with a spring and a damper between them, coupled strongly: loops.md 6.2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_fmu import linear_fmu
from pytest import approx

from fmimaster import Results, Simulation, SystemBuilder
from fmimaster.algorithms import GaussSeidel, Waveform
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.loops import LoopSolver
from fmimaster.run import Backend
from fmimaster.system.description import SystemDescription

DATA = Path(__file__).parents[1] / "data" / "loops_two_mass_strong_H0.1.csv"

SWEEP = GaussSeidel(Polynomial(2, 0, history=False))
"""In the first sweep the force is held; then it is linear from the start of the step to the iterate."""

CLOSE = LoopSolver(relative=1e-12, absolute=1e-12)
"""|F_new - F| < 1e-12 (1 + |F|)"""


@pytest.fixture(params=["fmi2", "fmi3"])
def masses(request: pytest.FixtureRequest, tmp_path: Path) -> SystemDescription:
    """Unit 1: x1'' = -x1 - x1' + F. Unit 2: x2'' = -x2 - F, F = (x2 - x1) + (x2' - x1'). Exact for linear inputs."""
    version = request.param
    one = linear_fmu(
        tmp_path / "one.fmu",
        version,
        a=[[0, 1], [-1, -1]],
        b=[[0], [1]],
        c=[[1, 0], [0, 1]],
        x0=[1, 0],
        inputs=["F"],
        outputs=["x1", "v1"],
        states=["x", "v"],
    )
    two = linear_fmu(
        tmp_path / "two.fmu",
        version,
        a=[[0, 1], [-2, -1]],
        b=[[0, 0], [1, 1]],
        c=[[1, 0], [0, 1], [1, 1]],
        d=[[0, 0], [0, 0], [-1, -1]],
        inputs=["x1", "v1"],
        outputs=["x2", "v2", "F"],
        states=["x", "v"],
    )
    system = SystemBuilder("masses")
    system.add("one", one)
    system.add("two", two)
    system.connect("two.F", "one.F")
    system.connect("one.x1", "two.x1")
    system.connect("one.v1", "two.v1")
    return system.build()


def exact(times: Any) -> Any:
    """x1 of the exact solution."""
    a = np.array([[0, 1, 0, 0], [-2, -2, 1, 1], [0, 0, 0, 1], [1, 1, -2, -1]])
    values, vectors = np.linalg.eig(a)
    start = np.linalg.solve(vectors, [1, 0, 0, 0])
    return ((np.exp(np.multiply.outer(times, values)) * start) @ vectors.T).real[:, 0]


def run(system: SystemDescription, size: float, algorithm: Waveform, **options: Any) -> Results:
    return Simulation(system, algorithm=algorithm, stop_time=10, step_size=size, **options).run()


def error(results: Results) -> float:
    return float(np.abs(results["one.x1"] - exact(results.time)).max())


def printed(value: float) -> str:
    """With the digits of the table."""
    return f"{value:.2e}"


def sweeps(results: Results) -> float:
    """Sweeps per step."""
    (calls,) = {i.calls for i in results.statistics.instances}
    return calls / results.statistics.steps


@pytest.mark.parametrize(
    ("size", "one", "two", "converged", "count"),
    [
        (0.2, 4.69e-2, 1.85e-3, 2.51e-3, 11.06),
        (0.1, 2.28e-2, 4.78e-4, 6.27e-4, 8.86),
        (0.05, 1.13e-2, 1.21e-4, 1.57e-4, 7.19),
    ],
)
def test_errors_and_iterations_are_those_of_the_table(
    masses: SystemDescription, size: float, one: float, two: float, converged: float, count: float
) -> None:
    """loops.md 6.2: 1 sweep, 2 sweeps, converged; all digits of the table."""
    for sweep_count, expected in ((1, one), (2, two)):
        results = run(masses, size, Waveform(SWEEP, sweep_count, sweep_count))
        assert printed(error(results)) == printed(expected)
        bounded = Waveform(SWEEP, 1, 1, tolerance=1e-12, corrections=sweep_count - 1)
        assert (run(masses, size, bounded)["one.x1"] == results["one.x1"]).all()  # semi-implicit
    results = run(masses, size, Waveform(SWEEP, 1, 1, tolerance=1e-12))
    assert printed(error(results)) == printed(converged)
    # that outputs do not change any more is seen by one sweep more or less than that the force does not
    assert sweeps(results) == approx(count, abs=0.05)


def test_plain_iteration_contracts_as_in_the_table(masses: SystemDescription) -> None:
    """loops.md 6.2: contraction 0.047 at H = 0.1."""
    forces = [
        run(masses, 0.1, Waveform(SWEEP, k, k), output_variables=["two.F"])["two.F"][1]
        for k in (2, 3, 4)
    ]
    assert (forces[2] - forces[1]) / (forces[1] - forces[0]) == approx(-0.047, abs=1e-3)


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST])
def test_with_a_solver_three_sweeps_give_the_reference(
    masses: SystemDescription, backend: Backend
) -> None:
    """loops.md 6.2: at most 3 sweeps to 1e-12; loops.md 7.3: the CSV file to 1e-8."""
    results = run(masses, 0.1, Waveform(SWEEP, solver=CLOSE), backend=backend)
    assert sweeps(results) <= 3
    reference = np.genfromtxt(DATA, delimiter=",", names=True)
    for column, name in {
        "x1": "one.x1",
        "v1": "one.v1",
        "x2": "two.x2",
        "v2": "two.v2",
        "F": "two.F",
    }.items():
        assert results[name] == approx(reference[column], abs=1e-8)
    assert results["one.x1"][10] == approx(0.559664586, abs=1e-9)
    assert results["two.v2"][10] == approx(0.0828277291, abs=1e-9)


def test_a_bounded_solver_accepts_its_last_sweep(masses: SystemDescription) -> None:
    two = run(masses, 0.1, Waveform(SWEEP, solver=LoopSolver(bounded=2)))
    assert sweeps(two) == 2
    assert error(two) == approx(
        4.78e-4, rel=3e-3
    )  # the solver's first iterate is what the first sweep gave
