"""The four units of Holzinger and Benedikt: the sequence in which they are stepped determines the error.

Three rotating masses and a controller; S3 - S4 - S1 are coupled by spring-dampers, S2 drives S3 by the speed of S1. All
sequences are simulated and compared with the monolithic solution, for which all units are solved as one.

Source: Holzinger and Benedikt (2019), Optimal Trigger Sequence for Non-iterative Co-simulation, SIMULTECH 2019, section 4.
Their corrected equations: docs/trigger-sequence.md. The figures are 5 and 6 there: cost of all sequences, and trajectories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.modes import AlongLine
from fmimaster.base.data import dataclass
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.studies.demos.stage import TEXT, Stage, legend, plain, write_files

UNITS = ("S1", "S2", "S3", "S4")
OUTPUTS = ("S1.y11", "S1.y12", "S2.y21", "S3.y31", "S4.y41", "S4.y42")
CONNECTIONS = {
    ("S4.y42", "S1.u11"): 0.67,
    ("S1.y11", "S2.u21"): 1.0,
    ("S2.y21", "S3.u31"): 0.25,
    ("S4.y41", "S3.u32"): 0.25,
    ("S1.y12", "S4.u41"): 0.35,
    ("S3.y31", "S4.u42"): 0.72,
}
"""Output and input of each connection → its weight by the paper's fuzzy logic (its eq. 14)."""
FEED_THROUGH = frozenset({"S1.u11", "S2.u21", "S4.u42"})
"""Inputs on which an output depends directly (eq. 13)."""
PUBLISHED = ("S3", "S4", "S1", "S2")
"""The optimum of the paper."""
STEP_SIZE = 1e-3
"""[s]"""
STOP_TIME = 0.15
"""[s]"""
MICRO_STEP = 1e-4
"""[s] Step of the explicit Euler method inside the units, and in the monolithic solution."""

Order = tuple[str, ...]
"""Names of the units in the order of stepping."""

_DIGITS = (
    "4321 4312 4231 4213 4123 4132 3421 3412 3241 3214 3124 3142 "
    "2341 2314 2431 2413 2143 2134 1324 1342 1234 1243 1423 1432"
)
ORDERS: tuple[Order, ...] = tuple(
    tuple(f"S{digit}" for digit in digits) for digits in _DIGITS.split()
)
"""All sequences, in the order of the paper's figure 5."""


@dataclass(frozen=True, slots=True)
class Objective:
    """The cost of a sequence: the total weight of its stale inputs, by three weightings."""

    count: float
    """Each input weighs 1 (eq. 4)."""
    feed_through: float
    """Inputs on which an output depends directly weigh 1, others 0 (eq. 13)."""
    advanced: float
    """Weights of the fuzzy logic (eq. 14)."""


@dataclass(frozen=True, slots=True)
class SequenceRun:
    """A sequence, its cost, and the errors of its simulation."""

    order: Order
    objective: Objective
    error: float
    """Mean over all outputs of the RMS error, each relative to the RMS of the monolithic solution."""
    error_s1: float
    """The same of the two outputs of S1, which the paper shows."""
    results: Results


def objective(order: Order) -> Objective:
    """The cost of a sequence (eq. 8)."""
    stale = [
        (target, weight)
        for (source, target), weight in CONNECTIONS.items()
        if order.index(source[:2]) > order.index(target[:2])
    ]
    return Objective(
        count=float(len(stale)),
        feed_through=float(sum(target in FEED_THROUGH for target, _ in stale)),
        advanced=sum(weight for _, weight in stale),
    )


def run_all(version: str) -> list[SequenceRun]:
    """Simulate all sequences with fresh inputs interpolated over the step, with FMUs of ``"fmi2"`` or ``"fmi3"``."""
    simulation = Simulation(
        reference_path(f"systems/four-units-{version}.ssp"),
        algorithm=GaussSeidel(mode=AlongLine()),
        step_size=STEP_SIZE,
        stop_time=STOP_TIME,
        error_estimate=False,
    )
    runs = []
    for order in ORDERS:
        results = replace(simulation, sequence=order).run()
        errors = relative_errors(results)
        runs.append(
            SequenceRun(
                order,
                objective(order),
                error=sum(errors.values()) / len(errors),
                error_s1=(errors["S1.y11"] + errors["S1.y12"]) / 2,
                results=results,
            )
        )
    return runs


def relative_errors(results: Results) -> dict[str, float]:
    """Output → RMS of its error at the communication points, relative to the RMS of the monolithic solution."""
    exact = monolithic()[:: round(STEP_SIZE / MICRO_STEP)]
    return {
        name: float(np.linalg.norm(results[name] - exact[:, k]) / np.linalg.norm(exact[:, k]))
        for k, name in enumerate(OUTPUTS)
    }


HEADER = ("sequence", "count", "feed-through", "advanced", "error", "rank", "error of S1", "rank")


def table(runs: Sequence[SequenceRun]) -> list[tuple[str, ...]]:
    """The rows of the table, with the header."""
    ranks, ranks_s1 = _ranks([r.error for r in runs]), _ranks([r.error_s1 for r in runs])
    return [
        HEADER,
        *(
            (
                " ".join(run.order),
                f"{run.objective.count:g}",
                f"{run.objective.feed_through:g}",
                f"{run.objective.advanced:.2f}",
                f"{run.error:.5f}",
                str(rank),
                f"{run.error_s1:.5f}",
                str(rank_s1),
            )
            for run, rank, rank_s1 in zip(runs, ranks, ranks_s1, strict=True)
        ),
    ]


def winner(runs: Sequence[SequenceRun]) -> SequenceRun:
    """The sequence with the smallest error."""
    return min(runs, key=lambda run: run.error)


def _ranks(errors: Sequence[float]) -> list[int]:
    """1 for the smallest; sequences with the same results have the same rank."""
    return [1 + sum(other < error for other in errors) for error in errors]


# The monolithic solution ----------------------------------------------------------------------------------------------

_C, _D, _J1, _J3, _J4 = 1000.0, 44.27, 0.1, 0.9, 0.5
_KP, _KI, _R = 100.0, 0.1, 10.0
"""Stiffness, damping and inertia of the masses; gains and reference of the controller (section 4.1)."""


@cache
def monolithic() -> NDArray[np.float64]:
    """All outputs of the whole system, solved by explicit Euler steps of ``MICRO_STEP``; shape (points, outputs).

    States are s1 (twist, momentum), s2, s3, s4 (twist, momentum); x' = A x + B u + e, y = C x + D u + f, u = L y.
    """
    a, b = np.zeros((6, 6)), np.zeros((6, 6))
    c, d, link = np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((6, 6))
    e, f = np.zeros(6), np.zeros(6)
    # inputs: u11, u21, u31, u32, u41, u42; outputs: y11, y12, y21, y31, y41, y42
    a[0:2, 0:2] = [[0.0, -1 / _J1], [_C, -_D / _J1]]
    b[0:2, 0] = 1.0, _D
    c[0, 1] = 1 / _J1
    c[1, 0:2] = _C, -_D / _J1
    d[1, 0] = _D
    b[2, 1], e[2] = -_KI, _KI * _R
    c[2, 2], d[2, 1], f[2] = 1.0, -_KP, _KP * _R
    b[3, 2:4] = 1.0, -1.0
    c[3, 3] = 1 / _J3
    a[4:6, 4:6] = [[0.0, -1 / _J4], [_C, -_D / _J4]]
    b[4:6, 4:6] = [[0.0, 1.0], [-1.0, _D]]
    c[4, 4:6] = _C, -_D / _J4
    d[4, 5] = _D
    c[5, 5] = 1 / _J4
    inputs = [target for _, target in sorted(CONNECTIONS, key=lambda ends: ends[1])]
    for source, target in CONNECTIONS:
        link[inputs.index(target), OUTPUTS.index(source)] = 1.0
    solved = np.linalg.inv(np.eye(6) - d @ link)  # there is no algebraic loop: the inverse exists
    x = np.zeros(6)
    rows = []
    for _ in range(round(STOP_TIME / MICRO_STEP) + 1):
        y = solved @ (c @ x + f)
        rows.append(y)
        x = x + MICRO_STEP * (a @ x + b @ (link @ y) + e)
    return np.array(rows)


# The figures ----------------------------------------------------------------------------------------------------------

_GREY, _MARK = "0.72", "0.9"
_STRATEGIES: dict[str, dict[str, Any]] = {
    "default strategy: stale inputs": {"color": "#0072B2", "marker": "o"},
    "default strategy: direct feed-through": {"color": "#D55E00", "marker": "s"},
    "advanced strategy": {"color": "black", "marker": "D"},
}
_OPTIMAL: dict[str, Any] = {"color": "black", "linewidth": 1.3}
_MONOLITHIC: dict[str, Any] = {"color": "#D55E00", "linewidth": 1.1, "linestyle": (0, (4, 2))}
_PERMUTED: dict[str, Any] = {"color": _GREY, "linewidth": 0.6}
_RANGES = {"S1.y11": (0.0, 12.5), "S1.y12": (-20.0, 60.0)}
"""Limits of the paper; the first one is slightly larger, to show whole curves."""


def objectives(runs: Sequence[SequenceRun]) -> Figure:
    """Cost of each sequence by three weightings, as in figure 5; the best one is marked."""
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes = figure.subplots()
    best = winner(runs)
    at = np.arange(len(runs))
    axes.axvspan(runs.index(best) - 0.5, runs.index(best) + 0.5, color=_MARK, zorder=0)
    values = (
        [run.objective.count for run in runs],
        [run.objective.feed_through for run in runs],
        [run.objective.advanced for run in runs],
    )
    for (label, style), cost in zip(_STRATEGIES.items(), values, strict=True):
        axes.plot(at, cost, label=label, linewidth=1.0, markersize=3.5, **style)
    axes.set_xticks(at, ["".join(run.order) for run in runs], rotation=90, fontsize=TEXT - 1)
    axes.set_xlim(-0.7, len(runs) - 0.3)
    axes.set_ylim(-0.1, 4.3)
    axes.set_xlabel("trigger sequence (grey: smallest error in the simulation)", fontsize=TEXT)
    axes.set_ylabel("objective function", fontsize=TEXT)
    plain(axes)
    figure.legend(loc="outside upper center", ncols=3, fontsize=TEXT, frameon=False)
    return figure


def trajectories(runs: Sequence[SequenceRun]) -> Figure:
    """Outputs of S1 with all sequences, the best one and the monolithic solution, as in figure 6."""
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    best, exact = winner(runs), monolithic()
    times = MICRO_STEP * np.arange(len(exact))
    for axes, (name, limits) in zip(figure.subplots(1, 2), _RANGES.items(), strict=True):
        for run in runs:
            axes.plot(run.results.time, run.results[name], **_PERMUTED)
        axes.plot(best.results.time, best.results[name], **_OPTIMAL)
        axes.plot(times, exact[:, OUTPUTS.index(name)], **_MONOLITHIC)
        axes.set_xlim(0.0, float(times[-1]))
        axes.set_ylim(*limits)
        axes.set_xlabel("time in s", fontsize=TEXT)
        axes.set_ylabel(name, fontsize=TEXT)
        plain(axes)
    key = [
        (f"optimal sequence {' '.join(best.order)}", Line2D([], [], **_OPTIMAL)),
        ("monolithic simulation", Line2D([], [], **_MONOLITHIC)),
        ("other sequences", Line2D([], [], **_PERMUTED)),
    ]
    legend(figure, key, loc="outside upper center")
    return figure


def show(stage: Stage) -> None:
    """Run all sequences."""
    runs = run_all(stage.version)
    stage.print(table(runs))
    best = winner(runs)
    published = ", as published" if best.order == PUBLISHED else ""
    figures = {"four-units-objective": objectives(runs), "four-units": trajectories(runs)}
    stage.tell(
        [
            f"The sequence {' '.join(best.order)} has the smallest error, {best.error:.5f}{published}.",
            f"Set it by --algorithm GaussSeidel --mode lin --sequence {','.join(best.order)}",
            *write_files(stage, "four-units", best.results, " of its results", figures),
        ]
    )
