"""The quarter car of Sadjina et al.: its exact solution, the errors of the power between its parts, and its tables.

A suspension connects a chassis to a wheel, and a tyre connects the wheel to the road. All states are 0 at
the start; the road is 0.1 m high from then on.

Source: Sadjina, Kyllingstad, Skjong, Pedersen (2017), Energy conservation and power bonds in co-simulations, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.data import dataclass
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.steps.pid import PID
from fmimaster.steps.prediction_errors import PredictorCorrector
from fmimaster.steps.step_rule import FixedStep, StepRule
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import Port, SystemDescription

Vector = NDArray[np.float64]

BOND = "suspension"
"""Name of the power bond between chassis and wheel in the systems."""

TOLERANCE = 1e-12
"""Relative and absolute, of the integration of the nonlinear car."""


@dataclass(frozen=True)
class QuarterCar:
    """Parameters of the car, in SI units.

    Parameters
    ----------
    mc, mw : float
        Masses of chassis and wheel in kg.
    kc, kw : float
        Stiffness of suspension and tyre in N/m.
    dc, nd : float
        Damper of the suspension: dc sign(d) abs(d) ** (2 / (1 + 2 nd)), with the difference d of the velocities.
    road : float
        Height of the road in m.
    stop : float
        End of the simulation in s.
    """

    mc: float = 400.0
    mw: float = 40.0
    kc: float = 15000.0
    kw: float = 150000.0
    dc: float = 1000.0
    nd: float = 0.5
    road: float = 0.1
    stop: float = 4.0

    @property
    def is_linear(self) -> bool:
        """Whether the damper is."""
        return self.nd == 0.5

    def force(self, states: Vector) -> Vector:
        """Force Fc of the suspension in N; `states` are zc, vc, zw, vw, shape (4, ...)."""
        zc, vc, zw, vw = states
        d = vc - vw
        damper = self.dc * np.sign(d) * np.abs(d) ** (2.0 / (1.0 + 2.0 * self.nd))
        return np.asarray(self.kc * (zc - zw) + damper)

    def rates(self, states: Vector) -> Vector:
        """Time derivatives of the states; shape as theirs."""
        _, vc, zw, vw = states
        force = self.force(states)
        road = self.kw * (zw - self.road)
        return np.array([vc, -force / self.mc, vw, (force - road) / self.mw])

    def solution(self) -> Callable[[Vector], Vector]:
        """The exact states at some times: shape (n,) in s → (4, n), zc and zw in m, vc and vw in m/s."""
        if self.is_linear:
            constant = self.rates(np.zeros(4))
            matrix = np.transpose([self.rates(unit) - constant for unit in np.eye(4)])
            return linear_solution(matrix, constant, np.zeros(4))
        return _integrated(self)

    def power(self, split: str) -> Callable[[Vector], Vector]:
        """Exact power in W from the first half to the second one at some times; `split` is "a" or "b".

        In split A the chassis has the velocity as output and the force as input; in split B it is the other way round.
        """
        solution, velocity = self.solution(), {"a": 1, "b": 3}[split]

        def power(times: Vector) -> Vector:
            states = solution(times)
            return np.asarray(self.force(states) * states[velocity])

        return power


@cache
def _integrated(car: QuarterCar) -> Callable[[Vector], Vector]:
    from scipy.integrate import solve_ivp  # slow to import

    solved = solve_ivp(
        lambda _, x: car.rates(x),
        (0.0, car.stop),
        np.zeros(4),
        method="DOP853",
        dense_output=True,
        rtol=TOLERANCE,
        atol=TOLERANCE,
    )
    return lambda times: np.asarray(solved.sol(times))


LINEAR_CAR = QuarterCar()
NONLINEAR_CAR = QuarterCar(dc=900.0, nd=1.5, stop=2.0)


def linear_solution(matrix: Vector, constant: Vector, start: Vector) -> Callable[[Vector], Vector]:
    """The exact solution of x' = A x + b for A that has an inverse and n eigenvectors: times (m,) → states (n, m)."""
    rest = np.linalg.solve(matrix, -constant)
    eigenvalues, vectors = np.linalg.eig(matrix)
    weights = np.linalg.solve(vectors, (start - rest).astype(complex))

    def solution(times: Vector) -> Vector:
        modes = weights[:, None] * np.exp(eigenvalues[:, None] * times)
        return np.asarray(rest[:, None] + (vectors @ modes).real, np.float64)

    return solution


@dataclass(frozen=True)
class Measures:
    """Measures of a run with a power bond; all means are weighted with the step sizes.

    Attributes
    ----------
    steps : int
    mean_step : float
        In s.
    mean_power : float
        In W, from the first component of the bond to the second one.
    power_error : float
        Mean absolute error of that power in W, at the ends of the steps.
    residual_energy : float
        In J.
    half_residual : float
        Half of the mean absolute residual power in W: the mean local error of both powers.

    Source: Sadjina et al. (2017), section 5.
    """

    steps: int
    mean_step: float
    mean_power: float
    power_error: float
    residual_energy: float
    half_residual: float


def measures(results: Results, exact: Callable[[Vector], Vector], bond: str = BOND) -> Measures:
    """The measures of a run with that power bond; `exact` is its exact power in W at some times in s."""
    time, length = results.time[1:], np.diff(results.time)
    power, residual = results[f"{bond}.power"][1:], results[f"{bond}.residual_power"][1:]
    duration = float(np.sum(length))
    return Measures(
        len(length),
        duration / len(length),
        float(power @ length) / duration,
        float(np.abs(power - exact(time)) @ length) / duration,
        float(residual @ length),
        float(np.abs(residual) @ length) / duration / 2,
    )


SCALE = 750.0
"""[J] Energy in the tyre at the start."""
SMALLEST, LARGEST = 1e-4, 1e-2
"""[s] Step sizes of the controllers in the source, its Table 1."""
COMMON = 1e-3
"""[s] Mean step of all rows that are compared at equal cost."""


@dataclass(frozen=True)
class Case:
    """A quarter car, and on which side of the suspension it is split: "a" or "b"."""

    name: str
    car: QuarterCar
    split: str

    def system(
        self, version: str, tolerance: float, wheel_steps: int = 10, solver: int = 0
    ) -> SystemDescription:
        """The system of FMUs of ``"fmi2"`` or ``"fmi3"``, with a tolerance of its power bond; ``solver`` as in the FMUs."""
        damper = {"dc": self.car.dc, "nd": self.car.nd}
        in_chassis, letter = self.split == "b", self.split.upper()
        builder = SystemBuilder("quarter-car")
        for name, steps, has_damper in (
            ("chassis", 10, in_chassis),
            ("wheel", wheel_steps, not in_chassis),
        ):
            fmu = reference_path(f"{version}/QuarterCar{name.capitalize()}{letter}.fmu")
            values = {"micro_steps": steps, "solver": solver} | (damper if has_damper else {})
            builder.add(name, fmu, values)
        one, other = ("wheel", "chassis") if in_chassis else ("chassis", "wheel")
        builder.connect(f"{one}.velocity", f"{other}.velocity")
        builder.connect(f"{other}.force", f"{one}.force", factor=-1.0)
        power: Literal["in", "out"] = "out" if in_chassis else "in"
        ports = {
            one: Port(one, "force", "velocity", power),
            other: Port(other, "velocity", "force", power),
        }
        builder.power_bond(BOND, ports["chassis"], ports["wheel"], scale=SCALE, tolerance=tolerance)
        return builder.build(stop_time=self.car.stop)


CASES = {
    case.name: case
    for case in (
        Case("lin A", LINEAR_CAR, "a"),
        Case("nl A", NONLINEAR_CAR, "a"),
        Case("lin B", LINEAR_CAR, "b"),
        Case("nl B", NONLINEAR_CAR, "b"),
    )
}


@dataclass(frozen=True)
class CarRun:
    """One simulation, and its measures."""

    results: Results
    measures: Measures
    do_steps: int
    """Steps of each FMU, including repeated steps."""


def run_case(
    case: Case,
    version: str,
    step_size: StepRule[Any],
    *,
    tolerance: float = 1.0,
    algorithm: Algorithm | None = None,
    sequence: Sequence[str] | None = None,
    wheel_steps: int = 10,
    solver: int = 0,
) -> CarRun:
    """Simulate a case, with this tolerance of the power bond."""
    results = Simulation(
        case.system(version, tolerance, wheel_steps, solver),
        algorithm=algorithm or Jacobi(),
        sequence=sequence,
        step_size=step_size,
        error_estimate=False,
    ).run()
    return CarRun(results, measures(results, exact_power(case)), _do_steps(results))


def _do_steps(results: Results) -> int:
    return max(instance.calls for instance in results.statistics.instances)


@cache
def exact_power(case: Case) -> Callable[[Vector], Vector]:
    return case.car.power(case.split)


# The tables of the source ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaperRow:
    """A row of tables of the source: the printed values, and the run for comparison.

    ``printed`` are mean step in ms, mean power in W, power error in W, and residual energy in J.
    """

    tables: str
    case: str
    control: str
    tolerance: float | None
    printed: tuple[str, str, str, str]
    wheel_steps: int = 10

    def run(self, version: str) -> CarRun:
        """Simulate it."""
        tolerance = self.tolerance or 1.0
        rules: Mapping[str, StepRule[Any]] = {
            CONSTANT: FixedStep(COMMON),
            ECCO: PID.ecco(LARGEST, smallest=SMALLEST),
            PREDICTED: PID(LARGEST, smallest=SMALLEST, estimators=(PredictorCorrector(tolerance),)),
        }
        return run_case(
            CASES[self.case],
            version,
            rules[self.control],
            tolerance=tolerance if self.control == ECCO else 1.0,
            wheel_steps=self.wheel_steps,
        )


CONSTANT, ECCO, PREDICTED = "constant", "by energy (ECCO)", "predictor/corrector"

ROWS = (
    PaperRow("3, 9", "lin A", CONSTANT, None, ("1.0", "0.4", "1.3", "6.4")),
    PaperRow("3, 9", "lin A", ECCO, 2.8e-6, ("1.0", "0.0", "0.4", "1.6")),
    PaperRow("3", "lin A", ECCO, 3.1e-5, ("2.9", "0.1", "1.3", "5.0")),
    PaperRow("9", "lin A", PREDICTED, 0.67, ("1.0", "0.3", "0.7", "2.9")),
    PaperRow("5, 10", "nl A", CONSTANT, None, ("1.0", "1", "4", "5")),
    PaperRow("5, 10", "nl A", ECCO, 7.5e-6, ("1.0", "0.0", "1.1", "1.6")),
    PaperRow("5", "nl A", ECCO, 1e-4, ("3.1", "0", "4", "6")),
    PaperRow("10", "nl A", PREDICTED, 2.1, ("1.0", "0.4", "1.9", "3.1")),
    PaperRow("6, 11", "lin B", CONSTANT, None, ("1.0", "-192", "12", "23")),
    PaperRow("6, 11", "lin B", ECCO, 9.1e-7, ("1.0", "-187.9", "1.3", "1.6")),
    PaperRow("11", "lin B", PREDICTED, 0.60, ("1.0", "-187.7", "1.3", "1.7")),
    PaperRow("7, 12", "nl B", CONSTANT, None, ("1.0", "-390", "30", "50")),
    PaperRow("7, 12", "nl B", ECCO, 2.4e-5, ("1.0", "-377", "5", "5")),
    PaperRow("12", "nl B", PREDICTED, 6.5, ("1.0", "-392", "18", "21")),
    PaperRow("8", "lin B", CONSTANT, None, ("1.0", "-220", "40", "30"), wheel_steps=1),
    PaperRow("8", "lin B", ECCO, 1e-6, ("1.0", "-190", "4", "2"), wheel_steps=1),
)
"""Tables 3 and 5 to 12; those of split B are printed in units of 100 W and 100 J."""
SHOWN = ROWS[1]
"""Its results are written to a file."""


def paper_table(runs: Mapping[PaperRow, CarRun]) -> list[tuple[str, ...]]:
    """The rows of the table, two of them its header: each value as printed, then as measured."""
    head = ["table", "case", "step control", "toler-"]
    below = ["", "", "", "ance"]
    for figure, unit in (
        ("step", "in ms"),
        ("power", "in W"),
        ("error", "in W"),
        ("energy", "in J"),
    ):
        head += [figure, unit]
        below += ["paper", "here"]
    rows = [tuple(head), tuple(below)]
    for row, run in runs.items():
        m = run.measures
        found = (
            f"{1e3 * m.mean_step:.2f}",
            f"{round(m.mean_power, 1) + 0.0:.1f}",
            f"{m.power_error:.3g}",
            f"{m.residual_energy:.3g}",
        )
        both = [text for pair in zip(row.printed, found, strict=True) for text in pair]
        tolerance = "" if row.tolerance is None else f"{row.tolerance:g}".replace("e-0", "e-")
        rows.append((row.tables, row.case, row.control, tolerance, *both))
    return rows


STEPS_OF_FIGURE_4 = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2)
"""[s]"""


def run_rows(version: str) -> dict[PaperRow, CarRun]:
    """All rows of the tables."""
    return {row: row.run(fmi_version(version)) for row in ROWS}


def run_over_step(version: str) -> dict[str, list[CarRun]]:
    """Both linear cases with constant steps, as in figure 4."""
    return {
        name: [
            run_case(CASES[name], fmi_version(version), FixedStep(step))
            for step in STEPS_OF_FIGURE_4
        ]
        for name in ("lin A", "lin B")
    }


def fmi_version(version: str, needs: str = "") -> str:
    """The FMI version of the FMUs; of ``"mixed"`` 3.0 if Event Mode is among the needs, or else 2.0."""
    if version == "mixed":
        return "fmi3" if "F" in needs else "fmi2"
    return version
