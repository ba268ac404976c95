"""Figures of the hybrid demo: the traffic light, the thermostat and superdense time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fmimaster.results.results import Results
from fmimaster.studies.demos.drawing import TEXT, plain, saved
from fmimaster.studies.demos.hybrid import COLOURS, LIGHT, MODES, transitions
from fmimaster.studies.demos.superdense import SuperdenseCase
from fmimaster.studies.demos.superdense_axis import SuperdenseAxis
from fmimaster.studies.demos.thermostat import VariantRun, exact_switches

_LAMPS = ("0.45", "#D55E00", "#E69F00", "#009E73")
"""Colours of the light, by their numbers."""
_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_EVENT: dict[str, Any] = {"color": "0.4", "linewidth": 0.8, "linestyle": (0, (1, 2)), "zorder": 0.5}
_TIE = 110.0
"""[s] When both units are to tick, if the officer is idle for so long."""


def write_figures(
    traffic: Sequence[tuple[str, Results]],
    thermostat: Sequence[VariantRun],
    suite: Sequence[tuple[SuperdenseCase, Results]],
    name: str,
    folder: Path,
) -> list[Path]:
    """Draw all figures; returns their paths. That of superdense time has the name of the demo."""
    figures = {
        name: superdense_figure(suite),
        f"{name}-traffic": traffic_figure(traffic),
        f"{name}-thermostat": thermostat_figure(thermostat),
    }
    return saved(figures, folder)


# Traffic light --------------------------------------------------------------------------------------------------------


def traffic_figure(runs: Sequence[tuple[str, Results]]) -> Figure:
    """Colour and mode over time in the first run; and the instant at which both tick, in the others."""
    figure = Figure(figsize=(8.0, 4.8), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=(1.5, 0.7, 1.5))
    light, police = (figure.add_subplot(grid[k, :]) for k in (0, 1))
    title, first = runs[0]
    for axes, column, names in ((light, "light.colour", COLOURS), (police, "police.mode", MODES)):
        _categories(axes, names)
        for transition in transitions(first):
            axes.axvline(transition.time, **_EVENT)
        axes.step(first.time, first[column], where="post", color="0.35", linewidth=1.0)
        axes.margins(x=0.0)
    _lamps(light, first.time, first["light.colour"])
    for transition in transitions(first):
        light.annotate(
            transition.external.removeprefix("light<-") or transition.output,
            (transition.time, 1.02),
            xycoords=light.get_xaxis_transform(),
            ha="center",
            fontsize=TEXT - 1.5,
            color=_LINES[0] if transition.imminent == LIGHT else _LINES[1],
        )
    light.set_title(title, fontsize=TEXT + 1, loc="left", pad=14)
    light.tick_params(labelbottom=False)
    light.sharex(police)
    police.set_xlabel("time in s", fontsize=TEXT)
    light.set_ylabel("light", fontsize=TEXT)
    police.set_ylabel("officer", fontsize=TEXT)
    for place, (tie, results) in enumerate(runs[1:]):
        axes = figure.add_subplot(grid[2, place])
        _tie(axes, tie, results)
    figure.legend(
        [
            Line2D([], [], color=_LINES[0], linestyle="", marker="s", markersize=5),
            Line2D([], [], color=_LINES[1], linestyle="", marker="s", markersize=5),
            Line2D([], [], **_EVENT),
        ],
        ["output of the light", "input of the light, from the officer", "event"],
        loc="outside lower center",
        ncols=3,
        fontsize=TEXT,
        frameon=False,
    )
    return figure


def _tie(axes: Axes, title: str, results: Results) -> None:
    """Rows of the instant of the tie: state of the light, and what happens between the rows."""
    rows = results.time == _TIE
    at = SuperdenseAxis.of(results, rows, width=1.0)
    values = results["light.colour"][rows].astype(float)
    _categories(axes, COLOURS)
    axes.step(
        [*at.begin, at.end[-1]], [*values, values[-1]], where="post", color="0.35", linewidth=1.0
    )
    for begin, end, value in zip(at.begin, at.end, values, strict=True):
        axes.plot(
            [begin, end],
            [value, value],
            color=_LAMPS[int(value)],
            linewidth=5.0,
            solid_capstyle="butt",
        )
    for transition in transitions(results):
        if transition.time == _TIE:
            what = (
                transition.external.replace("light<-", "officer: ") or f"light: {transition.output}"
            )
            axes.annotate(
                what,
                (float(at.begin[transition.iteration + 1]), 0.42),
                xycoords=axes.get_xaxis_transform(),
                ha="center",
                fontsize=TEXT - 0.5,
                color=_LINES[0] if transition.imminent == LIGHT else _LINES[1],
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            )
    axes.set_xticks(at.middle, [f"({_TIE:g} s, {n})" for n in at.index], fontsize=TEXT)
    axes.set_title(title, fontsize=TEXT + 1, loc="left")
    axes.set_xlim(at.begin[0], at.end[-1])


def _lamps(axes: Axes, time: Any, colours: Any) -> None:
    """The horizontal pieces of the step line, in the colours of the light."""
    begins = np.flatnonzero(np.diff(colours, prepend=-1))
    ends = np.append(begins[1:], len(time) - 1)
    for number, colour in enumerate(_LAMPS):
        shown = colours[begins] == number
        level = np.full(int(shown.sum()), number)
        axes.hlines(level, time[begins[shown]], time[ends[shown]], color=colour, linewidth=4.0)


def _categories(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=TEXT)
    axes.set_ylim(-0.4, len(names) - 0.6)
    plain(axes)
    axes.grid(visible=False, axis="x")


# Thermostat -----------------------------------------------------------------------------------------------------------


def thermostat_figure(runs: Sequence[VariantRun]) -> Figure:
    """Temperature and heating at the start and at the end, and the number of switches over time."""
    figure = Figure(figsize=(8.0, 5.4), layout="constrained")
    upper, lower, count = figure.subplots(3, 1, height_ratios=(2.2, 0.9, 1.6))
    shown = [run for run in runs if run.variant.name in _SHOWN]
    begin, end = 0.0, 16.0
    for run, colour in zip(shown, _LINES, strict=False):
        r = run.results
        upper.plot(r.time, r["room.x"], color=colour, linewidth=1.1)
        switches = np.array(run.switches)
        inside = switches[(switches >= begin) & (switches <= end)]
        upper.plot(
            inside, np.interp(inside, r.time, r["room.x"]), "o", color=colour, markersize=3.5
        )
        lower.step(r.time, r["controller.q"], where="post", color=colour, linewidth=1.1)
        count.step(
            [0.0, *switches, r.time[-1]],
            [*range(len(switches) + 1), len(switches)],
            where="post",
            color=colour,
            linewidth=1.1,
            label=f"{run.variant.name}: {len(switches)} switches",
        )
    for axes in (upper, lower):
        axes.set_xlim(begin, end)
    for limit in (19.0, 21.0):
        upper.axhline(limit, **_EVENT)
    exact = exact_switches()
    count.plot(
        exact,
        np.arange(1, len(exact) + 1),
        "+",
        color="0.2",
        markersize=5,
        label=f"exact: {len(exact)} switches",
    )
    upper.set_ylabel("room.x in degC", fontsize=TEXT)
    upper.tick_params(labelbottom=False)
    lower.set_ylabel("heating", fontsize=TEXT)
    lower.set_yticks([0, 1], ["off", "on"])
    lower.set_ylim(-0.2, 1.2)
    lower.set_xlabel("time in s: the first 16 s", fontsize=TEXT)
    count.set_ylabel("number of switches", fontsize=TEXT)
    count.set_xlabel("time in s", fontsize=TEXT)
    count.set_xlim(0.0, float(runs[0].results.time[-1]))
    count.set_ylim(0.0, len(exact) + 2)
    figure.legend(loc="outside upper center", ncols=3, fontsize=TEXT, frameon=False)
    for axes in (upper, lower, count):
        plain(axes)
    figure.align_ylabels([upper, lower, count])
    return figure


_SHOWN = ("Event Mode and early return", "on the grid, Gauss-Seidel")


# Superdense time ------------------------------------------------------------------------------------------------------


def superdense_figure(suite: Sequence[tuple[SuperdenseCase, Results]]) -> Figure:
    """A panel for each test: signals over superdense time, in which instants with several rows are wide."""
    columns = 3
    rows = -(-len(suite) // columns)
    figure = Figure(figsize=(9.6, 0.5 + 1.75 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (case, results) in zip(panels, suite, strict=False):
        at = SuperdenseAxis.of(results, np.ones(results.rows, bool), width=0.07)
        at.prepare(axes)
        for colour, (signal, column) in zip(_LINES, case.held.items(), strict=False):
            at.held(axes, results[column].astype(float), color=colour, linewidth=1.3, label=signal)
        for colour, (signal, column) in zip(_LINES, case.events.items(), strict=False):
            at.events(axes, results[column], colour, marker="o", markersize=4.0, label=signal)
        axes.set_title(
            f"{case.name.partition('_')[0]}  {case.title}", fontsize=TEXT, loc="left", pad=11
        )
        axes.margins(y=0.15)
        if case.names:
            axes.set_yticks(range(1, len(case.names) + 1), case.names)
        else:
            axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axes.tick_params(labelsize=TEXT - 1)
        axes.spines[["top", "right"]].set_visible(False)
        bottom, top = axes.get_ylim()
        axes.set_ylim(bottom, max(top, 1.0))  # a single 0 would get a range of its own
        axes.legend(fontsize=TEXT - 1, frameon=False, loc="upper left", handlelength=1.2)
    for axes in panels[len(suite) :]:
        axes.set_visible(False)
    figure.supxlabel(
        "time in s; a grey instant is wide: one place for each of its rows 0, 1, 2, ... (row 0: left limit)",
        fontsize=TEXT,
    )
    return figure
