"""Draw accuracy.svg: the power error of the linear quarter car by what the FMUs can do, against the calls of DoStep.

python docs/figures/accuracy.py [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fmimaster import Results, Simulation, reference_path
from fmimaster.algorithms import Jacobi, Refreshed
from fmimaster.front import Pair
from fmimaster.front.accuracy_pair import half
from fmimaster.inputs import LINEAR, MIDPOINT
from fmimaster.results.plot import save_figure
from fmimaster.steps import PID, EmbeddedOrders
from fmimaster.steps.step_rule import StepRule
from fmimaster.studies.demos.quarter_car import LINEAR_CAR

HERE = Path(__file__).parent
POWER = "suspension.power"
TOLERANCES = np.geomspace(1e-7, 1e-4, 4)
STEPS = ("1/4000", "1/2000", "1/1000", "1/500")
"""[s] Without a controller."""
ECCO = PID.ecco("1/50", "1/20000")

Point = tuple[int, float]
"""Calls of DoStep of each FMU, and the mean error of the power in W."""


def error(results: Results, split: str) -> float:
    """Mean error of the power between the halves of the car in W, weighted with the steps."""
    apart = np.abs(results[POWER] - LINEAR_CAR.power(split)(results.time))[1:]
    return float(apart @ np.diff(results.time)) / LINEAR_CAR.stop


def point(simulation: Simulation, split: str) -> Point:
    """One run."""
    results = simulation.run()
    return results.statistics.instances[0].calls, error(results, split)


def extrapolated(simulation: Simulation, split: str) -> Point:
    """Two runs, the second with half the steps."""
    coarse, rule = simulation.run(), simulation.step_size
    assert isinstance(rule, StepRule)
    fine = replace(simulation, step_size=half(rule, coarse)).run()
    calls = coarse.statistics.steps + fine.statistics.steps
    return calls, error(Pair(coarse, fine, [POWER]).extrapolated(), split)


def curves(split: str) -> Iterator[tuple[str, list[Point]]]:
    """What a method needs, and its points."""
    fmi2, fmi3 = (
        Simulation(
            reference_path(f"systems/quarter-car-{split}-{v}.ssp"), stop_time=LINEAR_CAR.stop
        )
        for v in ("fmi2", "fmi3")
    )

    def by_bonds(simulation: Simulation, **settings: Any) -> list[Simulation]:
        return [
            replace(simulation, step_size=ECCO, bond_tolerance=float(t), **settings)
            for t in TOLERANCES
        ]

    yield "nothing: hold, fixed step", [point(replace(fmi2, step_size=h), split) for h in STEPS]
    by_inputs = [
        replace(ECCO, estimators=(EmbeddedOrders(tolerance=8e3 * float(t)),)) for t in TOLERANCES
    ]
    yield (
        "varying steps: midpoint, EmbeddedOrders",
        [
            point(replace(fmi2, step_size=rule, algorithm=Jacobi(MIDPOINT)), split)
            for rule in by_inputs
        ],
    )
    yield "power bond: hold, ECCO", [point(s, split) for s in by_bonds(fmi2)]
    midpoint = by_bonds(fmi2, algorithm=Jacobi(MIDPOINT))
    yield "power bond: midpoint, ECCO", [point(s, split) for s in midpoint]
    linear = by_bonds(fmi2, algorithm=Jacobi(LINEAR))
    yield "and polynomials: linear, ECCO", [point(s, split) for s in linear]
    refreshed = by_bonds(fmi3, algorithm=Refreshed(Jacobi(MIDPOINT)))
    yield "and Event Mode: midpoint, Refreshed, ECCO", [point(s, split) for s in refreshed]
    yield "two runs, extrapolated: linear, ECCO", [extrapolated(s, split) for s in linear]


def main(folder: Path) -> None:
    """Compute, print and draw."""
    figure = Figure(figsize=(7.2, 3.9), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, split in zip(panels, "ab", strict=True):
        for k, (name, points) in enumerate(curves(split)):
            calls, errors = zip(*points, strict=True)
            axes.loglog(calls, errors, "o-", color=f"C{k}", lw=1.2, markersize=3, label=name)
            print(split, name, *(f"{n}: {e:.3g}" for n, e in points))
        axes.set_title(f"split {split.upper()}", fontsize=8, loc="left")
        axes.tick_params(labelsize=8, width=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("calls of DoStep of each FMU", fontsize=8)
    panels[0].set_ylabel("mean power error in W", fontsize=8)
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        fontsize=7,
        frameon=False,
    )
    save_figure(figure, folder / "accuracy.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
