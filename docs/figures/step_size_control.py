"""Draw step_size_control.svg: a quarter car with constant steps and under ECCO, at the same number of steps.

    python docs/figures/step_size_control.py [FOLDER]

The linear quarter car of Sadjina et al. (2017), split A. Their figure 7 has the same quantities.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fmimaster import Results, reference_path, simulate
from fmimaster.steps import PID, StepRule
from fmimaster.studies.demos.quarter_car import LINEAR_CAR, measures

HERE = Path(__file__).parent
SYSTEM = reference_path("systems/quarter-car-a-fmi3.ssp")
RULES: dict[str, tuple[StepRule[Any] | float, str]] = {
    "constant, 1 ms": (1e-3, "0.45"),
    "ECCO": (PID.ecco("0.01", smallest="0.0001"), "#0072B2"),
}
SHOWN = 1.5
"""So many seconds of the run."""


def error(results: Results) -> NDArray[np.float64]:
    """Absolute error of the power of the bond in W, at the end of each step."""
    exact = LINEAR_CAR.power("a")(results.time[1:])
    return np.abs(results["suspension.power"][1:] - exact)


def main(folder: Path) -> None:
    """Run, draw, and print the figures of the table in docs/step-size-control.md."""
    figure = Figure(figsize=(7.4, 3.3), layout="constrained")
    sizes, errors = figure.subplots(1, 2, sharex=True)
    for name, (rule, colour) in RULES.items():
        results = simulate(SYSTEM, step_size=rule, algorithm="Jacobi")
        time = results.time
        shown = time[1:] <= SHOWN
        sizes.semilogy(
            time[1:][shown], np.diff(time)[shown] * 1e3, color=colour, lw=1.1, label=name
        )
        errors.semilogy(time[1:][shown], error(results)[shown], color=colour, lw=0.8, label=name)
        found = measures(results, LINEAR_CAR.power("a"))
        print(
            f"{name}: {found.steps} steps, {found.power_error:.3f} W, {found.residual_energy:.2f} J"
        )
    sizes.set_ylabel("step size in ms")
    errors.set_ylabel("error of the power in W")
    errors.set_ylim(1e-3, 1e2)
    sizes.legend(frameon=False, fontsize=8)
    for axes in (sizes, errors):
        axes.set_xlabel("time in s")
        axes.spines[["top", "right"]].set_visible(False)
    with rc_context({"svg.hashsalt": "fmimaster", "svg.fonttype": "path"}):
        figure.savefig(folder / "step_size_control.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
