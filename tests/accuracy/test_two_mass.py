"""The two-mass system (Dejaco and Benedikt 2017; Tischer et al.) against its exact solution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fmimaster import Results, reference_path, simulate

REFERENCE = Results.read(Path(__file__).parents[1] / "data" / "events_two_mass.csv")
"""Exact flow between exactly located events, every 0.02 s, 12 digits."""

VERSIONS = ("fmi2", "fmi3", "mixed")

# it is the error without an event clock that the figures are about
pytestmark = pytest.mark.filterwarnings(
    "ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning"
)


def two_mass(version: str, step_size: str) -> Results:
    system = reference_path(f"systems/two-mass-b3-{version}.ssp")
    return simulate(system, step_size=step_size, algorithm="Jacobi", event_clock="none")


def position_error(results: Results, every: int) -> NDArray[np.float64]:
    """|x1 - x1_ref| + |x2 - x2_ref| at the points that the reference has."""
    assert results.time[::every] == pytest.approx(REFERENCE.time, abs=1e-12)
    upper = np.abs(results["upper.x"][::every] - REFERENCE["x1"])
    lower = np.abs(results["lower.x"][::every] - REFERENCE["x2"])
    total: NDArray[np.float64] = upper + lower
    return total


# e_rms of plain Jacobi with first-order hold and events in the subsystems; figures of the method without FMUs, which
# evaluates the acceleration with synchronous inputs: FMUs may not be read after setting in Step Mode, hence the 2 %.
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("step_size", "every", "e_rms"), [("0.01", 2, 0.0766), ("0.02", 1, 0.212)])
def test_jacobi_reaches_the_error_of_the_method(
    version: str, step_size: str, every: int, e_rms: float
) -> None:
    error = position_error(two_mass(version, step_size), every)
    assert np.sqrt(np.mean(error**2)) == pytest.approx(e_rms, rel=0.02)


@pytest.mark.filterwarnings("ignore:the (shared )?event:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("clock", ["none", "look-ahead"])
def test_masses_that_execute_a_shared_event_themselves_get_inputs_of_the_same_time(
    clock: str,
) -> None:
    """Unless an algorithm is given: by Gauss-Seidel the velocities after a collision do not fit to each other."""
    system = reference_path("systems/two-mass-b3-fmi3.ssp")
    chosen, plain, other = (
        simulate(system, step_size="0.01", event_clock=clock, algorithm=algorithm)
        for algorithm in (None, "Jacobi", "gauss-seidel:mode=lin")
    )
    assert all(np.array_equal(chosen[name], plain[name]) for name in plain.names)
    far, near = (
        np.abs(np.interp(REFERENCE.time, r.time, r["upper.x"]) - REFERENCE["x1"]).max()
        for r in (other, plain)
    )
    assert near < 0.3 < 3.0 < far
    assert any(note.startswith("coupling: Jacobi") for note in chosen.statistics.notes)


@pytest.mark.parametrize("version", ["fmi3", "mixed"])
def test_fmi_versions_agree(version: str) -> None:
    expected, found = two_mass("fmi2", "0.01"), two_mass(version, "0.01")
    counters = {n for n in expected.names if n.endswith(".out")}  # clocks in FMI 3.0
    assert {*found.names} - counters == {*expected.names} - counters
    for name in {*expected.names} - counters:
        assert found[name] == pytest.approx(expected[name], rel=0, abs=1e-12)


def test_accelerations_at_the_start_come_from_mutual_inputs() -> None:
    row = two_mass("mixed", "0.02")
    assert row["upper.a"][0] == pytest.approx(-47.01, abs=1e-12)
    assert row["lower.a"][0] == pytest.approx(17.2066666667, abs=1e-10)


# One mass alone, 0.5 s without events; 12 digits, and the solver's own error is 1e-9 (RK4, 1 ms)
@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize(
    ("model", "inputs", "x", "v"),
    [
        ("TwoMassUpper", {"u_x": -8.8, "u_v": 3.0}, -4.260656983197, -14.480546443698),
        ("TwoMassLower", {"u_x": -0.7, "u_v": 3.5}, -5.504384030830, 9.236228597577),
    ],
)
def test_one_mass_alone_with_constant_inputs(
    version: str, model: str, inputs: dict[str, float], x: float, v: float
) -> None:
    r = simulate(
        reference_path(f"{version}/{model}.fmu"),
        stop_time=0.5,
        step_size=0.5,
        start_values={**inputs, "inputOrder": 0},
    )
    assert r["x"][-1] == pytest.approx(x, abs=1e-9)
    assert r["v"][-1] == pytest.approx(v, abs=1e-9)


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_the_upper_mass_alone_with_a_ramp(version: str) -> None:
    r = simulate(
        reference_path(f"{version}/TwoMassUpper.fmu"),
        stop_time=0.5,
        step_size=0.5,
        start_values={"u_x": -8.8, "u_v": 3.0, "u_a": 0.0, "inputOrder": 1},
    )
    assert r["x"][-1] == pytest.approx(-3.988238206498, abs=1e-9)
    assert r["v"][-1] == pytest.approx(-12.988838348325, abs=1e-9)
