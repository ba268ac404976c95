"""energy.md 8.2: the two masses of Gomes et al. (2017), figures 9 and 10, with exact solvers and held inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from linear_fmu import linear_fmu
from numpy.typing import NDArray
from pytest import approx

from fmimaster import Results, SystemBuilder, reference_path, simulate
from fmimaster.studies.demos.quarter_car import linear_solution

DATA = Path(__file__).parents[1] / "data" / "energy_two_mass_jacobi_H0.1.csv"
VERSIONS = ("fmi2", "fmi3")


def exact(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """x1, v1, x2, v2 of both masses as one system."""
    matrix = np.array([[0, 1, 0, 0], [-2, -2, 1, 1], [0, 0, 0, 1], [1, 1, -2, -1]], dtype=float)
    return linear_solution(matrix, np.zeros(4), np.array([1.0, 0.0, 0.0, 0.0]))(times)


def run(version: str, step_size: float) -> Results:
    return simulate(
        reference_path(f"systems/survey-two-mass-{version}.ssp"),
        step_size=step_size,
        algorithm="Jacobi",
        output_variables=["mass1.x", "mass1.velocity", "mass2.F", "mass2.position"],
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_jacobi_with_held_inputs_gives_the_run_of_the_data(version: str) -> None:
    """energy.md 9.5, section 8.2: H = 0.1 s, ten digits."""
    rows = np.genfromtxt(DATA, delimiter=",", names=True)
    results = run(version, 0.1)
    for name, column in {
        "mass1.x": "x1",
        "mass1.velocity": "v1",
        "mass2.position": "x2",
        "mass2.F": "F",
    }.items():
        assert results[name] == approx(rows[column], abs=1e-9), name
    # seven digits are given
    assert [
        results["mass1.x"][10],
        results["mass2.position"][10],
        results["mass1.x"][50],
    ] == approx([0.5148093, 0.1519050, -0.0577744], abs=5.1e-8)


@pytest.mark.parametrize(
    ("step_size", "x1", "x2"),
    [(0.1, 0.05024, 0.02403), (0.05, 0.02468, 0.01163), (0.025, 0.01224, 0.00573)],
)
def test_the_largest_errors_fall_with_order_one(step_size: float, x1: float, x2: float) -> None:
    """energy.md 9.5, section 8.2: over 0 to 10 s, five decimals."""
    results = run("fmi3", step_size)
    states = exact(results.time)
    found = [
        np.abs(results[name] - states[k]).max()
        for name, k in (("mass1.x", 0), ("mass2.position", 2))
    ]
    assert found == approx([x1, x2], abs=5.1e-6)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damped_second_mass_gives_figure_10(version: str, tmp_path: Path) -> None:
    """energy.md 9.5, section 8.2: d2 = 2, H = 1 ms, eight digits."""
    mass1 = linear_fmu(
        tmp_path / "mass1.fmu",
        version,
        a=[[0, 1], [-1, -1]],
        b=[[0], [1]],
        c=np.eye(2),
        x0=[1, 0],
        inputs=["F"],
        outputs=["x", "v"],
    )
    mass2 = linear_fmu(
        tmp_path / "mass2.fmu",
        version,
        a=[[0, 1], [-2, -3]],
        b=[[0, 0], [1, 1]],
        c=[[1, 1]],
        d=[[-1, -1]],
        inputs=["x", "v"],
        outputs=["F"],
    )
    builder = SystemBuilder("damped")
    builder.add("mass1", mass1)
    builder.add("mass2", mass2)
    builder.connect("mass1.x", "mass2.x")
    builder.connect("mass1.v", "mass2.v")
    builder.connect("mass2.F", "mass1.F")
    results = simulate(
        builder.build(),
        step_size=1e-3,
        stop_time=5,
        algorithm="Jacobi",
        output_variables=["mass1.x"],
    )
    x1 = results["mass1.x"]
    assert [x1[1000], x1[5000]] == approx([0.54133403, -0.02565250], abs=5.1e-9)
