"""The demo of events: the traffic light and the police officer, which are discrete-event units, and the thermostat.

A trace has what happens at which superdense time (t, n). Event iteration n at a time stands in row n + 1 of this time;
row 0 is the left limit. The thermostat switches at exact events, and on a grid, where its switches are late and fewer:
x' = -alpha (x - 30 q), alpha = 0.1/s. The controller switches the heating q off at 21 degC and on at 19 degC.

Source: Gomes et al. (2017), Co-simulation: state of the art, section 3; eq. (50) and figure 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import log
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.data import dataclass
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.steps.locate import Locate
from fmimaster.studies.demos import superdense
from fmimaster.studies.demos.stage import TEXT, Stage, legend, plain, write_files
from fmimaster.studies.demos.superdense import SuperdenseAxis, demo_fmu
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import SystemDescription

COLOURS = ("off", "red", "yellow", "green")
"""Of the traffic light, by their numbers."""
MODES = ("idle", "working")
"""Of the police officer."""
MESSAGES = ("toIdle", "toWork")
LIGHT, POLICE = "light", "police"


# Traffic light and police officer -------------------------------------------------------------------------------------


def traffic(idle: int = 100, working: int = 200, first: str = LIGHT) -> SystemDescription:
    """The officer switches the light off at work; both are units of DEVS.

    Parameters
    ----------
    idle, working
        In s: how long the officer is in each mode.
    first
        The unit that ticks first if both are to tick at one superdense time.
    """
    builder = SystemBuilder("traffic")
    builder.add(LIGHT, demo_fmu("TrafficLight"), priority=int(first != LIGHT))
    officer = {"idle": idle, "working": working}
    builder.add(POLICE, demo_fmu("PoliceOfficer"), officer, priority=int(first != POLICE))
    builder.connect("police.toWork", "light.toOff")
    builder.connect("police.toIdle", "light.toAuto")
    return builder.build()


@dataclass(frozen=True, slots=True)
class Transition:
    """What happens in one event iteration: the unit that ticks, its output, and the states after it."""

    time: float
    """In s."""
    iteration: int
    imminent: str
    output: str
    external: str
    """The input of the light, if the officer ticks."""
    light: str
    police: str


def transitions(results: Results) -> list[Transition]:
    """The trace of the traffic light and the officer."""
    found = []
    lights, messages = (np.ma.asarray(results[n]) for n in ("light.next", "police.message"))
    for k, (time, row) in enumerate(zip(results.time, results.index, strict=True)):
        states = COLOURS[int(results["light.colour"][k])], MODES[int(results["police.mode"][k])]
        if lights[k] is not np.ma.masked:
            output = COLOURS[int(lights[k])]
            found.append(Transition(float(time), int(row) - 1, LIGHT, output, "", *states))
        if messages[k] is not np.ma.masked:
            output = MESSAGES[int(messages[k])]
            external = "light<-" + {"toWork": "toOff", "toIdle": "toAuto"}[output]
            found.append(Transition(float(time), int(row) - 1, POLICE, output, external, *states))
    return found


def _run_traffic() -> list[tuple[str, Results]]:
    """What is shown, with titles: the survey's times; and an officer who begins to work when the light turns yellow."""

    def run(stop_time: float, **parameters: Any) -> Results:
        return Simulation(
            traffic(**parameters), stop_time=stop_time, step_size=50, error_estimate=False
        ).run()

    return [
        ("Idle for 100 s, at work for 200 s", run(1000.0)),
        ("Idle for 110 s: the light is first", run(700.0, idle=110)),
        ("Idle for 110 s: the officer is first", run(700.0, idle=110, first=POLICE)),
    ]


def _transitions_table(results: Results) -> list[tuple[str, ...]]:
    """The trace, with the header."""
    rows = [
        (f"{t.time:g}", str(t.iteration), t.imminent, t.output, t.external, t.light, t.police)
        for t in transitions(results)
    ]
    return [("t in s", "n", "imminent", "output", "external", "light", "police"), *rows]


_LAMPS = ("0.45", "#D55E00", "#E69F00", "#009E73")
"""Colours of the light, by their numbers."""
_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_EVENT: dict[str, Any] = {"color": "0.4", "linewidth": 0.8, "linestyle": (0, (1, 2)), "zorder": 0.5}
_TIE = 110.0
"""[s] When both units are to tick, if the officer is idle for so long."""


def _traffic_figure(runs: Sequence[tuple[str, Results]]) -> Figure:
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
    square: dict[str, Any] = {"linestyle": "", "marker": "s", "markersize": 5}
    key = [
        ("output of the light", Line2D([], [], color=_LINES[0], **square)),
        ("input of the light, from the officer", Line2D([], [], color=_LINES[1], **square)),
        ("event", Line2D([], [], **_EVENT)),
    ]
    legend(figure, key)
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


def _run_variants() -> list[VariantRun]:
    """Simulate all variants."""
    runs = []
    for variant in VARIANTS:
        system = reference_path(f"systems/thermostat-{variant.version}.ssp")
        times = {"step_size": STEP_SIZE, "stop_time": STOP_TIME, "error_estimate": False}
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


def _switches_table(runs: Sequence[VariantRun]) -> list[tuple[str, ...]]:
    """The variants side by side, with the header. Times are compared if no switch is missing."""
    exact = exact_switches()
    rows: list[tuple[str, ...]] = [
        ("thermostat", "FMI", "switches", "error of their times", "temperature in degC")
    ]
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


def _thermostat_figure(runs: Sequence[VariantRun]) -> Figure:
    """Temperature and heating at the start and at the end, and the number of switches over time."""
    figure = Figure(figsize=(8.0, 5.4), layout="constrained")
    upper, lower, count = figure.subplots(3, 1, height_ratios=(2.2, 0.9, 1.6))
    shown = [run for run in runs if run.variant in VARIANTS[::2]]
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


# The demo -------------------------------------------------------------------------------------------------------------


def show(stage: Stage) -> None:
    """Run all systems."""
    traffic_runs = _run_traffic()
    for title, results in traffic_runs:
        stage.tell([f"{title}:"])
        stage.print(_transitions_table(results))
    variants = _run_variants()
    stage.print(_switches_table(variants))
    suite = [(case, case.run()) for case in superdense.cases()]
    stage.print(superdense.table(suite))
    figures = {
        "hybrid": superdense.superdense_figure(suite),
        "hybrid-traffic": _traffic_figure(traffic_runs),
        "hybrid-thermostat": _thermostat_figure(variants),
    }
    title, shown = traffic_runs[0]
    stage.tell(write_files(stage, "hybrid", shown, f" of '{title}'", figures))
