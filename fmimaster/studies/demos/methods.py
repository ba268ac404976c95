"""Methods that simulate the collisions of the two masses, side by side: the benchmark of events, its tables and figures.

The figures are those of Dejaco and Benedikt (2017), Figs. 4 to 6, and Tischer et al., LookAhead, Figs. 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import pi
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.algorithms.sequential import AutomaticSequence, Sequential
from fmimaster.algorithms.waveform import Waveform
from fmimaster.algorithms.wrapper import Aligned
from fmimaster.base.data import dataclass
from fmimaster.base.installation import reference_path
from fmimaster.events.event_clock import Check, EarlyReturn, EventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.record.causes import Cause, Kind, Steps
from fmimaster.results.results import Results
from fmimaster.studies.demos.scoring import (
    Found,
    Score,
    events_of,
    executions,
    position_error,
    score,
)
from fmimaster.studies.demos.stage import TEXT, Stage, legend, write_files
from fmimaster.studies.demos.two_mass import Blocks, TwoMassReference, Wall

QUINTIC = Polynomial(2, 2)
"""Through values and two derivatives at the last two communication points."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A version of the two masses."""

    stop_time: float
    """[s]"""
    ceiling: Wall = Wall()
    floor: Wall | None = None


BENCHMARKS = {
    "b1": Benchmark(7.0),
    # the paper does not give the motions of the walls; these reproduce its switching instants
    "b2": Benchmark(7.0, Wall(-0.554, 0.554, 4.255, pi / 2), Wall(-13.823, 1.024, 3.462, 2.9)),
    "b3": Benchmark(20.0),
}


@dataclass(frozen=True, slots=True)
class Method:
    """A line of the table."""

    words: str
    short: str
    """The name in papers and in docs/events.md."""
    benchmark: str
    size: float
    """Step size in s."""
    algorithm: Algorithm
    clock: EventClock | None
    paper: str = ""
    """The value in a paper: the error in m and, in brackets, the number of steps; or its figure."""
    prototype: str = ""
    """The result of our own earlier prototype without FMUs."""

    @property
    def name(self) -> str:
        """Its description and its short name."""
        return f"{self.words} ({self.short})"

    @property
    def is_drawn(self) -> bool:
        """Whether the paper has a figure of it."""
        return "Fig." in self.paper


_GRID = ("steps on a grid", "plain Jacobi")
_CHECKED = ("sequential, events checked", "I-V")
_DEJACO = (Sequential("upper"), Check())
_EARLY = ("early return, two sweeps", "E2")
_E2 = (Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2), EarlyReturn())

METHODS: tuple[Method, ...] = (
    Method(*_GRID, "b3", 0.01, Jacobi(), None, "0.07 (2000)"),
    Method(*_GRID, "b3", 0.08, Jacobi(), None, "3.65 (250)"),
    Method("look-ahead to events", "LookAhead", "b3", 0.08, Jacobi(), LookAhead(), "0.12 (282)"),
    Method(*_CHECKED, "b1", 0.1, *_DEJACO, "Fig. 4"),
    Method(*_CHECKED, "b1", 0.3, *_DEJACO, "Fig. 5"),
    Method(
        "automatic sequence, checked", "I-V", "b2", 0.05, AutomaticSequence(), Check(), "Fig. 6"
    ),
    Method(*_CHECKED, "b3", 0.1, *_DEJACO, prototype="0.34 (212)"),
    Method(
        "sequential, quintic inputs",
        "C5",
        "b3",
        0.1,
        Sequential("upper", QUINTIC, synchronised=True),
        Check(),
        prototype="3.9e-4 (212)",
    ),
    Method(
        "predicted zero crossings",
        "PZ",
        "b3",
        0.1,
        Jacobi(QUINTIC),
        Predictive(),
        prototype="6.8e-5 (256)",
    ),
    Method(*_EARLY, "b3", 0.2, *_E2, prototype="5.1e-5 (106)"),
    Method(*_EARLY, "b3", 0.08, *_E2, prototype="7.7e-8 (256)"),
)
"""All methods, one per line."""
SHOWN = METHODS[-3]
"""The one whose table is written."""


@dataclass(frozen=True, slots=True)
class MethodRun:
    """A method, its results and its score."""

    method: Method
    results: Results
    score: Score
    events: tuple[Found, ...]
    """Events logged by the FMUs."""


@cache
def exact_solution(benchmark: str) -> TwoMassReference:
    """The exact solution of a benchmark."""
    b = BENCHMARKS[benchmark]
    return TwoMassReference(b.stop_time, b.ceiling, b.floor)


def run_method(method: Method, version: str = "mixed") -> MethodRun:
    """Run a method on the FMUs of a version: ``"fmi2"``, ``"fmi3"`` or ``"mixed"``."""
    simulation = Simulation(
        reference_path(f"systems/two-mass-{method.benchmark}-{version}.ssp"),
        algorithm=method.algorithm,
        step_size=method.size,
        stop_time=BENCHMARKS[method.benchmark].stop_time,
        event_clock=method.clock,
        debug_logging=True,
        error_estimate=False,
    )
    with executions() as executed:
        results = simulation.run()
    scored = score(results, executed, exact_solution(method.benchmark))
    return MethodRun(method, results, scored, tuple(events_of(executed)))


def _errors_table(runs: Iterable[MethodRun]) -> list[tuple[str, ...]]:
    """Errors of the methods, beside values of papers; the first two rows are the header."""
    return [
        ("method", "system", "H", "RMS", "max", "steps", "paper:", "earlier:"),
        ("", "", "in s", "in m", "in m", "", "RMS (steps)", "RMS (steps)"),
        *(
            (
                r.method.name,
                r.method.benchmark.upper(),
                f"{r.method.size:g}",
                f"{r.score.e_rms:.2g}",
                f"{r.score.e_max:.2g}",
                str(r.score.steps),
                r.method.paper,
                r.method.prototype,
            )
            for r in runs
        ),
    ]


def _costs_table(runs: Iterable[MethodRun]) -> list[tuple[str, ...]]:
    """Costs and wrong events of the methods; the first two rows are the header."""
    return [
        ("method", "system", "H", "steps", "steps", "states", "missed", "false", "one-sided"),
        ("", "", "in s", "", "of FMUs", "restored", "events", "events", "events"),
        *(
            (
                r.method.name,
                r.method.benchmark.upper(),
                f"{r.method.size:g}",
                str(r.score.steps),
                str(r.score.do_steps),
                str(r.score.restores),
                str(r.score.missed),
                str(r.score.false),
                str(r.score.one_sided),
            )
            for r in runs
        ),
    ]


# The figures ----------------------------------------------------------------------------------------------------------

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
    legend(figure, key, columns)
    return figure


def show(stage: Stage) -> None:
    """Run all methods."""
    runs = [run_method(method, stage.version) for method in METHODS]
    stage.print(_errors_table(runs))
    stage.print(_costs_table(runs))
    best = next(run for run in runs if run.method is SHOWN)
    long = [r for r in runs if r.method.benchmark == "b3"]
    figures = {
        "two-mass": trajectories([best]),
        "two-mass-trajectories": trajectories([r for r in runs if r.method.is_drawn]),
        "two-mass-error": errors(long),
        "two-mass-steps": step_sizes([r for r in long if r.method.clock is not None]),
    }
    stage.tell(
        [
            *(
                f"warning of '{run.method.name}', H = {run.method.size:g} s: {warning}"
                for run in runs
                for warning in run.results.statistics.warnings
            ),
            *write_files(stage, "two-mass", best.results, f" of '{best.method.name}'", figures),
            f"Next: fmimaster steps {stage.folder / 'two-mass.csv'}",
        ]
    )
