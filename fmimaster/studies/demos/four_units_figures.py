"""The figures 5 and 6 of Holzinger and Benedikt (2019), drawn from runs: cost of all sequences, and their trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fmimaster.studies.demos.drawing import TEXT, plain, saved
from fmimaster.studies.demos.four_units import MICRO_STEP, OUTPUTS, SequenceRun, monolithic, winner

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


def write_figures(runs: Sequence[SequenceRun], name: str, folder: Path) -> list[Path]:
    """Draw both figures; returns their paths. That of the trajectories has the name of the demo."""
    figures = {f"{name}-objective": objectives(runs), name: trajectories(runs)}
    return saved(figures, folder)


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
    figure.legend(
        [Line2D([], [], **style) for style in (_OPTIMAL, _MONOLITHIC, _PERMUTED)],
        [f"optimal sequence {' '.join(best.order)}", "monolithic simulation", "other sequences"],
        loc="outside upper center",
        ncols=3,
        fontsize=TEXT,
        frameon=False,
    )
    return figure
