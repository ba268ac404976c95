"""The figures of the papers on the two masses, drawn from runs: trajectories, error, step size with reasons.

Dejaco and Benedikt (2017), Figs. 4 to 6; Tischer et al., LookAhead, Figs. 5 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from fmimaster.record.causes import Cause, Kind, Steps
from fmimaster.studies.demos.drawing import TEXT, saved
from fmimaster.studies.demos.methods import BENCHMARKS, MethodRun, exact_solution
from fmimaster.studies.demos.scoring import Found, position_error
from fmimaster.studies.demos.two_mass import Blocks

UPPER, LOWER, GREY = "#0072B2", "#D55E00", "0.45"
_SHORT = {
    Kind.LOOK_AHEAD: "look-ahead to an event",
    Kind.PREDICTED: "event predicted",
    Kind.EARLY_RETURN: "early return",
}
_LINES = ("#D55E00", "#E69F00", "#0072B2", "#CC79A7", "#009E73", "#56B4E9", "#000000")
_EXACT: dict[str, Any] = {"linewidth": 0.8, "linestyle": (0, (4, 2))}
_SHORTEST, _LONGEST = 3e-5, 0.3
"""[s] The same range for all methods, so that their steps can be compared."""


def write_figures(runs: Sequence[MethodRun], shown: MethodRun, folder: Path) -> list[Path]:
    """Draw all figures; returns their paths."""
    figures = {
        "two-mass": trajectories([shown]),
        "two-mass-trajectories": trajectories([r for r in runs if r.method.is_drawn]),
        "two-mass-error": errors([r for r in runs if r.method.benchmark == "b3"]),
        "two-mass-steps": step_sizes(
            [r for r in runs if r.method.benchmark == "b3" and r.method.clock is not None]
        ),
    }
    return saved(figures, folder)


def trajectories(runs: Sequence[MethodRun]) -> Figure:
    """Positions of both blocks over the exact solution, with communication points and events; a row for each run."""
    figure, rows = _figure(len(runs), 2.4)
    for axes, run in zip(rows, runs, strict=True):
        r, exact = run.results, exact_solution(run.method.benchmark)
        times = np.linspace(r.time[0], r.time[-1], 2001)
        states = exact(times)
        for name, column, colour in (("upper.x", 0, UPPER), ("lower.x", 2, LOWER)):
            axes.plot(r.time, r[name], color=colour, linewidth=0.9, marker=".", markersize=3.5)
            axes.plot(times, states[:, column], color="black", **_EXACT)
            bottom, top = r[name] - Blocks().dx, r[name] + Blocks().dx
            axes.fill_between(r.time, bottom, top, color=colour, alpha=0.12, linewidth=0.0)
        walls = BENCHMARKS[run.method.benchmark]
        for wall in (walls.ceiling, walls.floor):
            if wall is not None:
                axes.plot(times, [wall.position(t) for t in times], color="black", linewidth=1.2)
        _mark(axes, run.events)
        axes.set_ylabel("position in m", fontsize=TEXT)
        _title(axes, run)
        axes.margins(x=0.0)
    lines = [
        ("upper block (dots: communication points)", Line2D([], [], color=UPPER, marker=".")),
        ("lower block", Line2D([], [], color=LOWER, marker=".")),
        ("exact solution", Line2D([], [], color="black", **_EXACT)),
        ("walls", Line2D([], [], color="black", linewidth=1.2)),
        ("shared event", Line2D([], [], color=GREY, linewidth=0.7)),
        ("private event", Line2D([], [], color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))),
    ]
    return _finished(figure, rows, lines, columns=3)


def errors(runs: Sequence[MethodRun]) -> Figure:
    """Position error over time: as in the paper, and on a logarithmic scale with all methods."""
    figure, (linear, logarithmic) = _figure(2, 2.6)
    key = []
    for k, run in enumerate(runs):
        colour = _LINES[k % len(_LINES)]
        style: Any = "-" if k < len(_LINES) else (0, (3, 1))
        error, times = position_error(run.results, exact_solution(run.method.benchmark))
        label = f"{run.method.name}, H = {run.method.size:g} s"
        key.append((label, Line2D([], [], color=colour, linewidth=1.4, linestyle=style)))
        if run.method.clock is None or not run.method.clock.fires:  # the paper's methods
            linear.plot(times, error, color=colour, linewidth=1.0)
        logarithmic.plot(times, error, color=colour, linewidth=0.9, linestyle=style)
    logarithmic.set_yscale("log")
    logarithmic.set_ylim(1e-11, 30.0)
    for axes in (linear, logarithmic):
        axes.set_ylabel("error of positions in m", fontsize=TEXT)
        axes.margins(x=0.0)
    linear.set_title("With and without LookAhead", fontsize=TEXT + 1, loc="left")
    logarithmic.set_title("All methods", fontsize=TEXT + 1, loc="left")
    return _finished(figure, [linear, logarithmic], key, columns=2)


def step_sizes(runs: Sequence[MethodRun]) -> Figure:
    """Step size over time, coloured by the reason of the end of each step; a row for each event clock."""
    first = {type(r.method.clock): r for r in reversed(runs)}
    runs = [r for r in runs if r is first[type(r.method.clock)]]
    figure, rows = _figure(len(runs), 1.5)
    kinds: dict[str, str] = {}
    for axes, run in zip(rows, runs, strict=True):
        _mark(axes, run.events)
        edges, sizes, reasons = _each_step(run.results.steps)
        axes.stairs(sizes, edges, color="0.8", linewidth=0.8, baseline=None)
        for reason in dict.fromkeys(reasons):
            colour = kinds.setdefault(reason, _LINES[len(kinds) % len(_LINES)])
            chosen = np.array([r == reason for r in reasons])
            middle = (edges[1:] + edges[:-1]) / 2
            axes.plot(middle[chosen], sizes[chosen], ".", color=colour, markersize=4)
        axes.set_yscale("log")
        axes.set_ylim(_SHORTEST, _LONGEST)
        axes.set_ylabel("H in s", fontsize=TEXT)
        _title(axes, run)
        axes.margins(x=0.0)
    key = [
        (reason, Line2D([], [], color=colour, linestyle="", marker="."))
        for reason, colour in kinds.items()
    ]
    key.append(("shared event", Line2D([], [], color=GREY, linewidth=0.7)))
    key.append(("private event", Line2D([], [], color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))))
    return _finished(figure, rows, key, columns=4)


def _each_step(
    steps: Sequence[Steps],
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """Start of the first step and ends of all steps, sizes, and reasons in the words of a legend."""
    edges, reasons = [steps[0].begin], list[str]()
    for s in steps:
        edges += [s.begin + (k + 1) * s.size for k in range(s.count)]
        reasons += [_in_short(s.cause)] * s.count
    times = np.array(edges)
    return times, np.diff(times), reasons


def _in_short(cause: Cause) -> str:
    """A cause without names."""
    if cause.kind in (Kind.GRID, Kind.STEP_SIZE, Kind.STOP_TIME):
        return "grid or step size"
    return _SHORT.get(cause.kind) or str(cause)


def _mark(axes: Axes, events: Sequence[Found]) -> None:
    for event in events:
        shared = event.kind == "collision"
        axes.axvline(
            event.time,
            color=GREY,
            linewidth=0.7 if shared else 0.8,
            linestyle="-" if shared else (0, (1, 2)),
            zorder=0.5,
        )


def _title(axes: Axes, run: MethodRun) -> None:
    m, s = run.method, run.score
    paper = f", Dejaco {m.paper}" if m.is_drawn else ""
    text = f"{m.name}, {m.benchmark.upper()}, H = {m.size:g} s{paper}: RMS error {s.e_rms:.2g} m, {s.steps} steps"
    axes.set_title(text, fontsize=TEXT + 1, loc="left")


def _figure(rows: int, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(8.0, 0.9 + rows * height), layout="constrained")
    all_axes = list(figure.subplots(rows, squeeze=False)[:, 0])
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(linewidth=0.4, color="0.9")
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=TEXT)
    return figure, all_axes


def _finished(
    figure: Figure, rows: Sequence[Axes], key: Sequence[tuple[str, Line2D]], columns: int
) -> Figure:
    rows[-1].set_xlabel("time in s", fontsize=TEXT)
    figure.align_ylabels(rows)
    figure.legend(
        [line for _, line in key],
        [label for label, _ in key],
        loc="outside lower center",
        ncols=min(columns, len(key)),
        fontsize=TEXT,
        frameon=False,
    )
    return figure
