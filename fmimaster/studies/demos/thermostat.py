"""The thermostat: its switches by exact events, and on a grid, where they are late and fewer.

x' = -alpha (x - 30 q), alpha = 0.1/s. The controller switches the heating q off at 21 degC and on at 19 degC.

Source: Gomes et al. (2017), Co-simulation: state of the art, eq. (50) and figure 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np

from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.steps.locate import Locate

STEP_SIZE = 0.1
"""[s]"""
STOP_TIME = 60.0
"""[s]"""
ALPHA = 0.1
"""[1/s]"""


@dataclass(frozen=True)
class Switching:
    """How the switches are found."""

    name: str
    version: str
    """Of FMI."""
    settings: Mapping[str, Any] = field(default_factory=dict)


VARIANTS = (
    Switching("Event Mode and early return", "fmi3"),
    Switching(
        "located by going back",
        "fmi2",
        {"algorithm": GaussSeidel(), "step_size": Locate(STEP_SIZE)},
    ),
    Switching("on the grid, Gauss-Seidel", "fmi2", {"algorithm": GaussSeidel()}),
    Switching("on the grid, Jacobi", "fmi2", {"algorithm": Jacobi()}),
)


@dataclass(frozen=True)
class VariantRun:
    """A variant and its switches."""

    variant: Switching
    results: Results
    switches: tuple[float, ...]
    """Times in s."""


def run_variants() -> list[VariantRun]:
    """Simulate all variants."""
    runs = []
    for variant in VARIANTS:
        system = reference_path(f"systems/thermostat-{variant.version}.ssp")
        times = {"step_size": STEP_SIZE, "stop_time": STOP_TIME}
        results = Simulation(system, **{**times, **variant.settings}).run()
        after = np.flatnonzero(np.diff(results["controller.q"])) + 1
        runs.append(VariantRun(variant, results, tuple(map(float, results.time[after]))))
    return runs


def exact_switches() -> list[float]:
    """Times in s, off and on in turn."""
    times = [log(10 / 9) / ALPHA]
    while times[-1] <= STOP_TIME:
        times.append(times[-1] + log(11 / 9 if len(times) % 2 == 0 else 21 / 19) / ALPHA)
    return times[:-1]


HEADER = ("thermostat", "FMI", "switches", "error of their times", "temperature in degC")


def table(runs: Sequence[VariantRun]) -> list[tuple[str, ...]]:
    """The variants side by side, with the header. Times are compared if no switch is missing."""
    exact = exact_switches()
    rows: list[tuple[str, ...]] = [HEADER]
    for run in runs:
        error = f"phase: {len(exact) - len(run.switches)} of {len(exact)} are missing"
        if len(run.switches) == len(exact):
            error = f"{np.max(np.abs(np.subtract(run.switches, exact))):.1e} s"
        x = run.results["room.x"]
        rows.append(
            (
                run.variant.name,
                run.variant.version[-1] + ".0",
                str(len(run.switches)),
                error,
                f"{x.min():.3f} to {x.max():.3f}",
            )
        )
    return rows
