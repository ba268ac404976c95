"""energy.md 5: kinds of inputs under ECCO at a mean step of 1.0 ms on the quarter car, and goals (a) and (c)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from in_turn import in_turn
from pytest import approx

from fmimaster import read_system, reference_path, simulate
from fmimaster.algorithms import Algorithm, AlongLine, Emitter, GaussSeidel, Jacobi, Plan, Refreshed
from fmimaster.inputs import HOLD, LINEAR, MIDPOINT, NEPCE, Polynomial
from fmimaster.steps import PID
from fmimaster.steps.step_rule import StepContext
from fmimaster.studies.demos.quarter_car import LINEAR_CAR, NONLINEAR_CAR, Measures, measures
from fmimaster.system.description import SystemDescription

# at the start, where the road rises, the smallest step of the source is too large for these tolerances
pytestmark = pytest.mark.filterwarnings("ignore:100 steps or more")

CARS = {"lin": LINEAR_CAR, "nl": NONLINEAR_CAR}
CASES = [("lin", "a"), ("nl", "a"), ("lin", "b"), ("nl", "b")]
EULER, RUNGE_KUTTA = 0, 1
WHEEL_FIRST = ("wheel", "chassis")


@dataclass(frozen=True, slots=True)
class HeldTwice(Algorithm):
    """Inputs of the first two steps are held, as in the source: the point at the start serves no polynomial."""

    then: Algorithm

    @property
    def course(self) -> Polynomial:
        return self.then.course

    def emit(self, plan: Plan, p: Emitter) -> None:
        self.then.emit(plan, p)

    def variants(self, plan: Plan) -> tuple[Algorithm, ...]:
        return self.then, Jacobi()

    def choose(self, context: StepContext) -> int:
        return int(np.isnan(context.indicators.store.history[2][1][0]))


def system(case: str, split: str, tolerance: float, version: str) -> SystemDescription:
    """The quarter car, whose bond has this tolerance."""
    kind = {"lin": "", "nl": "-nonlinear"}[case]
    found = read_system(reference_path(f"systems/quarter-car-{split}{kind}-{version}.ssp"))
    bonds = tuple(replace(b, tolerance=tolerance) for b in found.system.power_bonds)
    return replace(found, system=replace(found.system, power_bonds=bonds))


@cache
def run(
    case: str,
    split: str,
    tolerance: float,
    algorithm: Algorithm,
    *,
    solver: int = EULER,
    version: str = "fmi2",
    sequence: tuple[str, ...] | None = None,
) -> Measures:
    """Table 1 of the source: steps from 0.1 ms to 10 ms."""
    results = simulate(
        system(case, split, tolerance, version),
        algorithm=algorithm,
        step_size=PID.ecco(0.01, 1e-4),
        start_values={"chassis.solver": solver, "wheel.solver": solver},
        sequence=sequence,
    )
    return measures(results, CARS[case].power(split))


@dataclass(frozen=True)
class Row:
    """A row of energy.md 5: cases → tolerance of the bond, power error in W, and residual energy in J where it is given."""

    algorithm: Algorithm
    within: float
    """Relative."""
    cases: Mapping[tuple[str, str], tuple[float, float, float | None]]
    sequence: tuple[str, ...] | None = None


def row(
    algorithm: Algorithm, within: float, *cases: tuple[float, float, float | None], **more: Any
) -> Row:
    return Row(algorithm, within, dict(zip(CASES, cases, strict=True)), **more)


# For linear the tolerances are given in energy_beyond.csv; for the others they are those of a mean step of 1.0 ms, and how
# much they matter for the chattering damper of "nl b" is in energy.md 4: 1 % there moves the error by up to 2 %
ROWS = {
    "linear": row(
        HeldTwice(Jacobi(LINEAR)),
        0.01,
        (3e-8, 0.08142, -0.00365),
        (3e-7, 0.64065, -0.00936),
        (1.8e-8, 0.31209, 0.00131),
        (1.55e-6, 2.75642, 0.06549),
    ),
    "midpoint": row(
        HeldTwice(Jacobi(MIDPOINT)),
        0.01,
        (1.37e-6, 0.169, 0.79),
        (3.72e-6, 0.848, 0.80),
        (4.51e-7, 0.511, 0.76),
        (1.43e-5, 2.71, 2.97),
    ),
    "nepce": row(
        Jacobi(NEPCE),
        0.05,
        (3.28e-6, 0.318, 1.39),
        (8.8e-6, 1.116, 1.45),
        (7.9e-7, 0.943, 1.30),
        (2.25e-5, 4.67, 4.27),
    ),
    "gauss-seidel-linear": row(
        HeldTwice(GaussSeidel(LINEAR)),
        0.025,
        (7.96e-9, 0.109, None),
        (3.31e-8, 0.772, None),
        (5.44e-9, 0.313, None),
        (5.79e-7, 1.97, -0.06),
        sequence=WHEEL_FIRST,
    ),
    "gauss-seidel-hold-linear": row(
        GaussSeidel(HOLD, mode=AlongLine()),
        0.025,
        (8.31e-7, 0.330, None),
        (2.18e-6, 1.410, None),
        (2.72e-7, 0.654, None),
        (1.01e-5, 3.00, None),
        sequence=WHEEL_FIRST,
    ),
}


@pytest.mark.parametrize(("name", "case"), in_turn(list(ROWS), CASES), ids=str)
def test_rows_of_inputs_under_ecco(name: str, case: tuple[str, str]) -> None:
    """energy.md 5."""
    chosen = ROWS[name]
    tolerance, error, energy = chosen.cases[case]
    found = run(*case, tolerance, chosen.algorithm, sequence=chosen.sequence)
    assert found.mean_step == approx(1e-3, rel=0.015)
    assert found.power_error == approx(error, rel=chosen.within)
    if energy is not None:
        assert found.residual_energy == approx(energy, rel=chosen.within, abs=0.005)  # two digits


@pytest.mark.parametrize(
    ("case", "most"), [*zip(CASES, (0.09, 0.70, 0.34, 2.9), strict=True)], ids=str
)
def test_goal_a_portable_inputs(case: tuple[str, str], most: float) -> None:
    """energy.md 5, goal (a): linear inputs need neither new outputs at the end of a step nor saved states."""
    tolerance = ROWS["linear"].cases[case][0]
    found = run(*case, tolerance, Jacobi(LINEAR))
    assert found.mean_step == approx(1e-3, rel=0.01)
    assert found.power_error <= most
    if case[0] == "lin":
        assert abs(found.residual_energy) <= 0.02


REFRESHED = Refreshed(Jacobi(LINEAR), linearized=True)


@pytest.mark.parametrize(
    ("case", "tolerance", "algorithm", "most"),
    [
        (CASES[0], 2.05e-8, REFRESHED, 0.006),
        (CASES[1], 2.77e-7, REFRESHED, 0.02),
        (CASES[2], 1.75e-8, REFRESHED, 0.01),
        # without Event Mode outputs are refreshed by derivatives, and that of a square root has a pole: by the sequence
        (CASES[3], 5.79e-7, GaussSeidel(LINEAR), 0.08),
    ],
    ids=str,
)
def test_goal_c_fmus_with_runge_kutta(
    case: tuple[str, str], tolerance: float, algorithm: Algorithm, most: float
) -> None:
    """energy.md 5, goal (c)."""
    found = run(*case, tolerance, algorithm, solver=RUNGE_KUTTA, sequence=WHEEL_FIRST)
    assert found.mean_step == approx(1e-3, rel=0.01)
    assert found.power_error <= most


# Both versions of FMI ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["a", "b"])
@pytest.mark.parametrize(
    "polynomial", [MIDPOINT, NEPCE, LINEAR], ids=["midpoint", "nepce", "linear"]
)
def test_both_versions_of_fmi_give_the_same(polynomial: Polynomial, split: str) -> None:
    """Lines by input derivatives in FMI 2.0, at each micro step in FMI 3.0."""
    both = [
        simulate(
            system("lin", split, 1e-6, version),
            algorithm=Jacobi(polynomial),
            step_size=1e-3,
            stop_time=0.05,
        )
        for version in ("fmi2", "fmi3")
    ]
    for name in ("suspension.power", "suspension.residual_energy"):
        largest = float(np.abs(both[0][name]).max())
        assert both[0][name] == approx(both[1][name], rel=1e-9, abs=1e-10 * largest)
