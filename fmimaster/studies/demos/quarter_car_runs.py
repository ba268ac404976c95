"""Runs of the quarter car: the rows of the tables of Sadjina et al. (2017), and other schemes at the same cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.steps.pid import PID
from fmimaster.steps.prediction_errors import PredictorCorrector
from fmimaster.steps.step_rule import FixedStep, StepRule
from fmimaster.studies.demos.quarter_car import (
    BOND,
    LINEAR_CAR,
    NONLINEAR_CAR,
    Measures,
    QuarterCar,
    Vector,
    measures,
)
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import Port, SystemDescription

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
