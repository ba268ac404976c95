"""Coupling by a constraint: the rigid massless link of loops.md 6.1, with FMUs that are exact inside.

Source: Gomes et al. (2017), Co-simulation: state of the art, eqs. (26) to (33).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_fmu import linear_fmu
from numpy.typing import NDArray
from pytest import approx
from python_fmu import Bench

from fmimaster import ConstraintError, LoopError, Results, Simulation, SystemBuilder
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.system import ConstraintEnd, Level

DATA = Path(__file__).parents[1] / "data"
VERSIONS = ["fmi2", "fmi3"]
COLUMNS = {"mass1.x": "x1", "mass1.v": "v1", "mass3.x": "x3", "mass3.v": "v3", "link.force": "F"}


@pytest.fixture
def link(tmp_path: Path) -> Any:
    """link(version, level, step size): results of two masses that are one."""

    def run(
        version: str,
        level: Level,
        step_size: float = 0.1,
        *,
        start: float = 1.0,
        tolerance: float = 1e-6,
        micro_step: float = 0.0,
        listed: tuple[str, ...] = ("mass1", "link", "mass3"),
        **settings: Any,
    ) -> Results:
        names = {"inputs": ["F"], "outputs": ["x", "v"], "states": ["s", "r"], "c": np.eye(2)}
        systems = {
            "mass1": {"a": [[0, 1], [-1, -1]], "b": [[0], [1]], "x0": [1, 0]},
            "mass3": {"a": [[0, 1], [-0.5, 0]], "b": [[0], [0.5]], "x0": [start, 0]},
        }
        system = SystemBuilder("link")
        for name in sorted(listed, key="link".__eq__):
            if name == "link":
                ends = (ConstraintEnd(m, "F", "x", "v") for m in ("mass1", "mass3"))
                system.constrain("link", *ends, level=level, tolerance=tolerance)
            else:
                system_of = {**systems[name], **names, "micro_step": micro_step}
                path = linear_fmu(tmp_path / f"{name}.fmu", version, **system_of)
                system.add(name, path)
        description = system.build(stop_time=10.0, step_size=step_size)
        return Simulation(description, backend=Bench.backend, **settings).run()

    return run


def exact(time: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x(t) and v(t) of 3 v' = -2 x - v from x(0) = 1."""
    decay, w = 1 / 6, np.sqrt(2 / 3 - 1 / 36)
    e, c, s = np.exp(-decay * time), np.cos(w * time), np.sin(w * time)
    return e * (c + decay / w * s), -e * (w + decay**2 / w) * s


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.usefixtures("each_executor")
def test_rigid_link_follows_the_data(link: Any, version: str, level: Level) -> None:
    """loops.md 7.3: 6.1 to 1e-8 of the CSV, which has 10 digits."""
    results = link(version, level)
    data = np.genfromtxt(
        DATA / f"loops_rigid_link_{level.value}_H0.1.csv", delimiter=",", names=True
    )
    for column, name in COLUMNS.items():
        assert results[column] == approx(data[name], abs=1e-8)
    held = {Level.POSITION: "link.gap", Level.VELOCITY: "link.der(gap)"}[level]
    assert np.abs(results[held]).max() < 1e-14


TABLE = [
    # level, step size, errors of x1 and v1, largest distance, last x1
    (Level.VELOCITY, 0.1, 3.775e-4, 1.875e-4, 8.96e-4, 0.0126552925),
    (Level.VELOCITY, 0.05, 9.433e-5, 4.69e-5, 2.24e-4, 0.0127792484),
    (Level.VELOCITY, 0.025, 2.358e-5, 1.17e-5, 5.60e-5, 0.0128102159),
    (Level.POSITION, 0.1, 2.07e-7, 7.38e-4, 1e-15, 0.0128204900),
    (Level.POSITION, 0.05, 1.30e-8, 1.85e-4, 1e-15, 0.0128205336),
    (Level.POSITION, 0.025, 8.1e-10, 4.6e-5, 1e-15, 0.0128205363),
]


@pytest.mark.parametrize(("level", "step_size", "x_error", "v_error", "distance", "last"), TABLE)
def test_rigid_link_has_the_errors_of_the_table(
    link: Any,
    level: Level,
    step_size: float,
    x_error: float,
    v_error: float,
    distance: float,
    last: float,
) -> None:
    """loops.md 6.1: errors within a unit of the last printed digit."""
    results = link("fmi3", level, step_size)
    x, v = exact(results.time)
    assert np.abs(results["mass1.x"] - x).max() == approx(x_error, rel=1e-2)
    assert np.abs(results["mass1.v"] - v).max() == approx(v_error, rel=1e-2)
    found = np.abs(results["link.gap"]).max()
    assert found < distance if level is Level.POSITION else found == approx(distance, rel=1e-3)
    assert results["mass1.x"][-1] == approx(last, abs=1e-9)


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.usefixtures("each_executor")
def test_rigid_link_with_ends_apart_is_refused(link: Any, version: str, level: Level) -> None:
    """loops.md 6.1: x1 = 1, x3 = 1.1; tolerance 1e-6."""
    with pytest.raises(ConstraintError) as caught:
        link(version, level, start=1.1)
    assert caught.value.constraint == "link"
    assert caught.value.differences == {"gap": approx(-0.1, abs=1e-15), "der(gap)": 0.0}
    assert str(caught.value).startswith(
        "The constraint 'link' is not met at the start: the positions of its ends differ by -0.1. They may differ by 1e-06"
    )


@pytest.mark.parametrize("start", [1.0 + 0.9e-6, 1.0 - 0.9e-6])
def test_rigid_link_with_ends_that_nearly_meet_is_accepted(link: Any, start: float) -> None:
    results = link("fmi2", Level.VELOCITY, start=start)
    assert results.time[-1] == 10.0


APART = {"start": 1.1, "tolerance": 0.2}
"""energy.md 9.5, section 8.3, as in the survey's figure 8: x1 = 1 and x3 = 1.1 at the start."""


@pytest.mark.parametrize("version", VERSIONS)
def test_rigid_link_with_ends_apart_rings_at_position_level(link: Any, version: str) -> None:
    """energy.md 9.5, section 8.3: one force brings the ends together; the next ones change their sign with each step."""
    results = link(version, Level.POSITION, **APART)
    expected = [13.922444, -25.795456, 25.712245]
    assert results["link.force"][1:4] == approx(expected, abs=1e-6)
    assert results["mass1.x"][1] == approx(1.062460, abs=1e-6)
    assert results["mass3.x"][1] == approx(1.062460, abs=1e-6)
    assert results["mass1.v"][1] == approx(1.227685, abs=1e-6)
    assert results["mass3.v"][1] == approx(-0.750496, abs=1e-6)
    assert np.all(np.diff(np.sign(results["link.force"][1:])) != 0)


@pytest.mark.filterwarnings("ignore:the output .* grows from:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("version", VERSIONS)
def test_rigid_link_at_position_level_explodes_with_euler_inside(link: Any, version: str) -> None:
    """energy.md 9.5, section 8.3: ten steps of Euler's method in each communication step."""
    force = link(version, Level.POSITION, **APART, micro_step=0.01)["link.force"]
    assert force[1:3] == approx([15.3715, -31.838], rel=1e-4)
    assert abs(force[-1]) > 1e9


@pytest.mark.parametrize("version", VERSIONS)
def test_rigid_link_at_velocity_level_keeps_the_gap(link: Any, version: str) -> None:
    """energy.md 9.5, section 8.3: one force, with Euler's method inside; the gap stays."""
    results = link(version, Level.VELOCITY, **APART, micro_step=0.01)
    assert results["link.force"][1] == approx(0.278645, abs=1e-6)
    gap = results["mass1.x"] - results["mass3.x"]
    assert gap == approx(-0.1, abs=0.01)


@pytest.mark.parametrize("version", VERSIONS)
def test_rigid_link_whose_position_does_not_feel_the_force_is_singular(
    link: Any, version: str
) -> None:
    """energy.md 9.5, section 8.3: with one step of Euler's method inside g' is 0, which is told, not divided by."""
    with pytest.raises(LoopError, match="singular"):
        link(version, Level.POSITION, **APART, micro_step=0.1)


def test_a_constraint_does_not_depend_on_the_order_of_listing(link: Any) -> None:
    """loops.md 7.4."""
    first = link("fmi2", Level.POSITION)
    second = link("fmi2", Level.POSITION, listed=("mass3", "mass1", "link"))
    for column in COLUMNS:
        assert np.array_equal(first[column], second[column])


def test_a_constraint_does_not_depend_on_the_algorithm_of_the_others(link: Any) -> None:
    first, second = (
        link("fmi2", Level.VELOCITY, algorithm=algorithm()) for algorithm in (Jacobi, GaussSeidel)
    )
    for column in COLUMNS:
        assert np.array_equal(first[column], second[column])


def test_a_linear_constraint_takes_three_sweeps_and_later_two(link: Any) -> None:
    """loops.md 6.1: two trial steps, and the third is kept; in later steps the derivative is known."""
    results = link("fmi2", Level.VELOCITY)
    assert [i.calls for i in results.statistics.instances if i.name != "link"] == [201, 201]
    [loop] = results.statistics.loops
    assert "link.force" in loop.variables
    assert (loop.solutions, loop.sweeps) == (100, 201)
