"""energy.md 5: refreshed outputs on the quarter car, with FMUs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest import approx

from fmimaster import Results, reference_path, simulate
from fmimaster.algorithms import Jacobi, Refreshed
from fmimaster.inputs import HOLD, LINEAR, MIDPOINT, Polynomial
from fmimaster.run import Backend
from fmimaster.steps.pid import PID
from fmimaster.studies.demos.quarter_car import LINEAR_CAR, NONLINEAR_CAR, Measures, measures
from fmimaster.system import Port, PowerBond

pytestmark = pytest.mark.filterwarnings("ignore:100 steps or more had the smallest step size")
"""At the start of split B, as in the source."""

DATA = Path(__file__).parents[1] / "data" / "energy_beyond.csv"
ROWS = {
    (row["control"], row["method"], row["case"], row["split"].lower()): row
    for row in np.genfromtxt(DATA, delimiter=",", names=True, dtype=None, encoding="utf-8")
    if row["inner"] == "euler"
}
CASES = [(case, split) for case in ("lin", "nl") for split in ("a", "b")]
CARS = {"lin": LINEAR_CAR, "nl": NONLINEAR_CAR}


def run(algorithm: Any, case: str, split: str, version: str = "fmi3", **settings: Any) -> Results:
    kind = {"lin": "", "nl": "-nonlinear"}[case]
    system = reference_path(f"systems/quarter-car-{split}{kind}-{version}.ssp")
    return simulate(system, algorithm=algorithm, **settings)


def bond(split: str, tolerance: float) -> PowerBond:
    ports = {
        "a": (Port("chassis", "force", "velocity", "in"), Port("wheel", "velocity", "force", "in")),
        "b": (
            Port("chassis", "velocity", "force", "out"),
            Port("wheel", "force", "velocity", "out"),
        ),
    }
    return PowerBond("suspension", ports[split], scale=750.0, tolerance=tolerance)


@cache
def under_ecco(inputs: Polynomial, case: str, split: str, method: str) -> Measures:
    """A run with refreshed outputs and the tolerance of a row."""
    results = run(
        Refreshed(Jacobi(inputs)),
        case,
        split,
        step_size=PID.ecco(0.01, 1e-4),
        power_bonds=[bond(split, float(ROWS["ecco", method, case, split]["tolerance"]))],
    )
    return measures(results, CARS[case].power(split))


@pytest.mark.parametrize(("case", "split"), CASES)
def test_with_a_constant_step_refreshed_outputs_are_those_of_the_data(
    case: str, split: str
) -> None:
    """energy.md 5, row "hold + feed-through refresh"; five decimals are given."""
    row = ROWS["constant", "hold+refresh", case, split]
    found = measures(run(Refreshed(Jacobi()), case, split, step_size=1e-3), CARS[case].power(split))
    assert found.power_error == approx(row["err_W"], abs=6e-6)
    assert found.residual_energy == approx(row["res_J"], abs=6e-6)


@pytest.mark.parametrize(("case", "split"), CASES)
def test_ecco_with_refreshed_outputs_is_that_of_the_data(case: str, split: str) -> None:
    """energy.md 5, row "hold + feed-through refresh": 1 %; nl B chatters, 5 % as in section 4."""
    row, found = (
        ROWS["ecco", "hold+refresh", case, split],
        under_ecco(HOLD, case, split, "hold+refresh"),
    )
    tolerance = 0.05 if (case, split) == ("nl", "b") else 0.01
    assert found.steps == approx(row["steps"], rel=5e-3)
    assert found.power_error == approx(row["err_W"], rel=tolerance)
    assert found.residual_energy == approx(row["res_J"], rel=tolerance)


@pytest.mark.parametrize(
    ("case", "split", "most"),
    [("lin", "a", 0.105), ("nl", "a", 0.83), ("lin", "b", 0.30), ("nl", "b", 1.9)],
)
def test_midpoint_hold_with_refreshed_outputs_reaches_the_best_row_that_needs_no_derivatives(
    case: str, split: str, most: float
) -> None:
    """energy.md 5, row "midpoint hold + refresh": 0.103, 0.82, 0.294, 1.87 W, there with held inputs in the second step."""
    found = under_ecco(MIDPOINT, case, split, "midpoint+refresh")
    assert found.mean_step == approx(1e-3, rel=0.01)
    assert found.power_error <= most


@pytest.mark.parametrize("inputs", [HOLD, LINEAR], ids=["hold", "linear"])
@pytest.mark.parametrize("split", ["a", "b"])
def test_directional_derivatives_of_fmi_2_and_event_mode_of_fmi_3_agree(
    inputs: Polynomial, split: str
) -> None:
    """For the linear damper both are exact."""
    algorithm = Refreshed(Jacobi(inputs), linearized=True)
    two, three = (run(algorithm, "lin", split, v, stop_time=0.2) for v in ("fmi2", "fmi3"))
    for name in three.names:
        assert two[name] == approx(three[name], rel=1e-9, abs=1e-9 * abs(three[name]).max()), name


def test_both_executors_give_the_same_bits() -> None:
    algorithm = Refreshed(Jacobi(MIDPOINT), linearized=True)
    for version in ("fmi2", "fmi3"):
        native, reference = (
            run(algorithm, "nl", "a", version, stop_time=0.1, backend=backend)
            for backend in (Backend.NATIVE, Backend.REFERENCE)
        )
        for name in native.names:
            assert np.array_equal(native[name], reference[name])
