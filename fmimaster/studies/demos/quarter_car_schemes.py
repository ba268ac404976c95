"""Schemes for the quarter car beside those of Sadjina et al. (2017): inputs, algorithms and estimators at the same cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.algorithms.modes import AlongLine
from fmimaster.algorithms.refreshed import Refreshed
from fmimaster.algorithms.waveform import Waveform
from fmimaster.base.data import dataclass
from fmimaster.front.accuracy_pair import Pair, half
from fmimaster.inputs.polynomial import LINEAR, MIDPOINT, NEPCE, QUADRATIC
from fmimaster.steps.doubling_errors import EnergyDoubling, PowerResidual
from fmimaster.steps.estimator import Estimator
from fmimaster.steps.pid import PID
from fmimaster.steps.prediction_errors import PredictorCorrector
from fmimaster.steps.step_rule import FixedStep, StepRule
from fmimaster.studies.demos.quarter_car import (
    BOND,
    CASES,
    COMMON,
    LARGEST,
    SMALLEST,
    CarRun,
    Case,
    exact_power,
    fmi_version,
    measures,
    run_case,
)

STEPS_OF_DIAGRAM = (COMMON, 2 * COMMON, 4 * COMMON)
"""[s] Mean steps, roughly; the first ones are those of the table."""
EULER, RUNGE_KUTTA = 0, 1
"""Solvers, as parameter of the FMUs."""


@dataclass(frozen=True, eq=False)
class Scheme:
    """A scheme for the inputs over a step, with step sizes by ECCO.

    Parameters
    ----------
    name : str
    needs : str
        Required capabilities of the FMUs: D accept inputs that change over a step, F update outputs in Event Mode, R
        restore their state.
    tolerances : for each case, in the order of CASES
        For a mean step of 1 ms, or for the same number of steps of the FMUs. Without them steps are constant.
    algorithm : Algorithm
    degree : int
        Degree of extrapolation, which determines the change of the tolerance with the step size.
    sequence : of names
        Order of the steps of the FMUs, if they do not step in parallel.
    estimator : callable
        Creates the estimator for a tolerance; the estimator of the energy error uses the tolerance of the bond.
    is_pair : bool
        Two runs, the second with each step halved: the power is extrapolated by both.
    """

    name: str
    needs: str
    tolerances: tuple[float, ...] = ()
    algorithm: Algorithm = field(default_factory=Jacobi)
    degree: int = 0
    sequence: tuple[str, ...] | None = None
    estimator: Callable[[float], Estimator] = lambda _: PowerResidual()
    is_pair: bool = False

    @property
    def is_drawn(self) -> bool:
        """Whether it is also compared with the Runge-Kutta method inside the FMUs; schemes with all needs take too
        long."""
        return self.needs != "D, F, R"

    def run(self, case: Case, version: str, step: float = COMMON, solver: int = EULER) -> CarRun:
        """Simulate a case, with as many steps as this mean step in s has."""
        tolerance = 1.0
        rule: StepRule[Any] = FixedStep(step)
        if self.tolerances:
            # the energy error of a step grows with this power of its length
            tolerance = self.tolerances[list(CASES).index(case.name)] * (step / COMMON) ** (
                self.degree + 2
            )
            rule = PID(LARGEST, smallest=SMALLEST, estimators=(self.estimator(tolerance),))

        def run(rule: StepRule[Any]) -> CarRun:
            return run_case(
                case,
                version,
                rule,
                tolerance=tolerance,
                algorithm=self.algorithm,
                sequence=self.sequence,
                solver=solver,
            )

        first = run(rule)
        if not self.is_pair:
            return first
        # the order of Euler's method is lower than that of the coupling
        order = 1 if solver == EULER else self.degree + 1
        return extrapolated(first, run(half(rule, first.results)), case, order)


def _refreshed(base: Algorithm) -> Algorithm:
    """Linearized where FMUs have no Event Mode: FMI 2.0."""
    return Refreshed(base, linearized=True)


_WHEEL_FIRST = ("wheel", "chassis")

SCHEMES = (
    Scheme("held, constant step", ""),
    Scheme("held (ECCO as published)", "", (2.8e-6, 7.5e-6, 9.1e-7, 2.3e-5)),
    Scheme(
        "held, predictor/corrector",
        "",
        (0.67, 2.1, 0.60, 6.5),
        estimator=PredictorCorrector,
    ),
    Scheme("held, refreshed", "F", (2.86e-6, 7.6e-6, 8.2e-7, 2.2e-5), _refreshed(Jacobi())),
    Scheme("NEPCE, damped", "", (3.28e-6, 9e-6, 7.99e-7, 2.3e-5), Jacobi(NEPCE)),
    Scheme("midpoint", "", (1.37e-6, 3.72e-6, 4.5e-7, 1.41e-5), Jacobi(MIDPOINT)),
    Scheme(
        "midpoint, refreshed",
        "F",
        (1.41e-6, 3.8e-6, 4.1e-7, 1.2e-5),
        _refreshed(Jacobi(MIDPOINT)),
    ),
    Scheme("linear", "D", (3e-8, 2.96e-7, 1.8e-8, 1.55e-6), Jacobi(LINEAR), 1),
    Scheme(
        "linear, refreshed",
        "D, F",
        (2.06e-8, 2.85e-7, 1.77e-8, 9.2e-7),
        _refreshed(Jacobi(LINEAR)),
        1,
    ),
    Scheme(
        "quadratic, refreshed",
        "D, F",
        (1.64e-9, 2.2e-8, 1.25e-9, 1.73e-7),
        _refreshed(Jacobi(QUADRATIC)),
        2,
    ),
    Scheme(
        "linear, one corrector",
        "D, R",
        (1.6e-8, 5.33e-8, 1.11e-7, 3.34e-6),
        Waveform(Jacobi(LINEAR)),
        1,
    ),
    Scheme(
        "held, step doubling",
        "R",
        (1.37e-6, 2.94e-6, 1.23e-5, 5.71e-5),
        estimator=lambda _: EnergyDoubling(),
    ),
    Scheme(
        "linear, refreshed, step doubling",
        "D, F, R",
        (2.24e-8, 1.63e-7, 1.01e-7, 1.22e-6),
        _refreshed(Jacobi(LINEAR)),
        1,
        estimator=lambda _: EnergyDoubling(),
    ),
    Scheme(
        "Gauss-Seidel, linear",
        "D",
        (8.11e-9, 3.31e-8, 5.53e-9, 5.85e-7),
        GaussSeidel(LINEAR, mode=AlongLine()),
        1,
        _WHEEL_FIRST,
    ),
    Scheme(
        "linear, two runs",
        "D",
        (1.03e-6, 1.24e-5, 1.48e-6, 1.37e-4),
        Jacobi(LINEAR),
        1,
        is_pair=True,
    ),
    Scheme(
        "Gauss-Seidel, linear, two runs",
        "D",
        (2.67e-7, 1.21e-6, 1.21e-6, 3.21e-5),
        GaussSeidel(LINEAR, mode=AlongLine()),
        1,
        _WHEEL_FIRST,
        is_pair=True,
    ),
)
"""At equal cost: as many steps of each FMU as with a constant step of 1 ms."""


def schemes_table(
    runs: Mapping[tuple[Scheme, str], Sequence[CarRun]], solver: str
) -> list[tuple[str, ...]]:
    """The rows of the table, two of them its header: power error and residual energy by case; of first runs."""
    rows = [
        ("scheme", "needs", *(t for name in CASES for t in (name, ""))),
        (f"({solver} inside)", "", *("W", "J") * len(CASES)),
    ]
    for scheme in dict.fromkeys(scheme for scheme, _ in runs):
        cells = list[str]()
        for name in CASES:
            m = runs[scheme, name][0].measures
            digits = 4 if m.power_error < 10.0 else 3
            cells += [f"{m.power_error:.{digits}f}", f"{round(m.residual_energy, 2) + 0.0:.2f}"]
        rows.append((scheme.name, scheme.needs.replace(", ", ""), *cells))
    return rows


def run_schemes(
    schemes: Sequence[Scheme], version: str, steps: Sequence[float] = (COMMON,), solver: int = EULER
) -> dict[tuple[Scheme, str], list[CarRun]]:
    """Schemes in all cases, each with about these mean steps in s."""
    return {
        (scheme, case.name): [
            scheme.run(case, fmi_version(version, scheme.needs), step, solver) for step in steps
        ]
        for scheme in schemes
        for case in CASES.values()
    }


def extrapolated(coarse: CarRun, fine: CarRun, case: Case, order: int) -> CarRun:
    """Two runs, the second with half the step size, as one run with the power extrapolated to the step size 0."""
    results = Pair(coarse.results, fine.results, [f"{BOND}.power"], order).extrapolated()
    return CarRun(results, measures(results, exact_power(case)), coarse.do_steps + fine.do_steps)
