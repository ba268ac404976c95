"""Draw stack.svg: three balls fall on a floor and on each other, and come to lie still.

python docs/figures/stack.py [FOLDER]

Balls of FMI 2.0 and 3.0 in turn, of 1, 2 and 0.5 kg and 1 m in diameter, each 0.2 m above the one below it; half of the
speed is left after a hit. The run determines impulses and forces at the contacts (element Contact).
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fmimaster import Results, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Jacobi
from fmimaster.events import Predictive
from fmimaster.inputs import Polynomial
from fmimaster.results import Kind
from fmimaster.results.plot import save_figure

HERE = Path(__file__).parent
GRAVITY, FLOOR = 9.81, 1e300
MASSES, APART = (1.0, 2.0, 0.5), 0.2
NAMES = ("floor and ball 1", "balls 1 and 2", "balls 2 and 3")
COLOURS = ("#0072B2", "#D55E00", "#009E73")
END, SHOWN = 2.0, 0.6
"""[s] End of the run, and of the figure: from then on nothing changes."""


def run() -> Results:
    """The stack, with the floor as a ball of infinite mass."""
    system, masses = SystemBuilder("stack"), (FLOOR, *MASSES)
    count = len(masses)
    for k, mass in enumerate(masses):
        height = -0.5 + k + APART * k
        values = {"x": height, "r": 0.5, "m": mass, "g": -GRAVITY if k else 0.0, "e": 0.5}
        for side, other in (("left", k - 1), ("right", k + 1)):
            if 0 <= other < count:
                values |= {f"{side}.m": masses[other], f"{side}.r": 0.5}
        system.add(f"b{k}", reference_path(f"fmi{2 + k % 2}/CradleBall.fmu"), values)
    for k in range(count - 1):
        for name in "xva":
            system.connect(f"b{k}.{name}", f"b{k + 1}.left.{name}")
            system.connect(f"b{k + 1}.{name}", f"b{k}.right.{name}")
        system.share_event(f"hit{k}", f"b{k}.right", f"b{k + 1}.left")
    return simulate(
        system.build(),
        algorithm=Jacobi(Polynomial(2, 2)),
        event_clock=Predictive(),
        step_size=0.01,
        stop_time=END,
    )


def gaps(axes: Axes, results: Results) -> None:
    """The gap of each contact."""
    for k, colour in enumerate(COLOURS):
        gap = results[f"b{k + 1}.x"] - results[f"b{k}.x"] - 1.0
        axes.plot(results.time, gap, color=colour, label=NAMES[k], linewidth=1.2)
    axes.set_ylabel("gap in m")
    axes.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def forces(axes: Axes, results: Results) -> None:
    """The force at each contact: what accelerates the balls above it, and their weight."""
    carried = np.zeros(len(results.time))
    for k in reversed(range(len(MASSES))):
        carried += MASSES[k] * (results[f"b{k + 1}.a"] + GRAVITY)
        axes.step(results.time, carried, where="post", color=COLOURS[k], linewidth=1.2)
        weight = GRAVITY * sum(MASSES[k:])
        axes.text(SHOWN, weight, f" {weight:.1f} N", color=COLOURS[k], va="center", clip_on=False)
        carried = carried.copy()
    axes.set_ylabel("contact force in N")


def events(axes: Axes, results: Results) -> None:
    """The number of hits at each instant, and from when contacts stay closed."""
    rests = [e for e in results.events if e.cause.kind is Kind.RESTS]
    hits = Counter(e.time for e in results.events if e.cause.kind is not Kind.RESTS)
    axes.vlines(list(hits), 0.0, list(hits.values()), color="0.35", linewidth=0.9)
    axes.plot(list(hits), list(hits.values()), "o", color="0.35", markersize=3, label="hits")
    for e in rests:
        colour = COLOURS[int(e.name.removeprefix("hit"))]
        axes.plot(e.time, 0.0, "^", color=colour, markersize=7, clip_on=False, zorder=3)
    axes.plot([], [], "^", color="0.35", markersize=7, label="a contact stays closed")
    axes.set_ylabel("events per instant")
    axes.set_ylim(0.0, max(hits.values()) + 0.6)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, loc="upper left")


def main(folder: Path) -> None:
    """Run, draw, and print when the balls lie still."""
    results = run()
    last = results.events[-1]
    after = results.time > last.time
    drift = max(np.ptp(results[f"b{k + 1}.x"][after]) for k in range(len(MASSES)))
    print(
        f"{len(results.events)} events, the last at {last.time:.4f} s; then a drift of {drift:.1e} m"
    )
    figure = Figure(figsize=(6.6, 5.6), layout="constrained")
    every = figure.subplots(3, sharex=True)
    for axes, draw in zip(every, (gaps, forces, events), strict=True):
        draw(axes, results)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(linewidth=0.4, color="0.88")
    every[-1].set_xlabel("time in s")
    every[-1].set_xlim(0.0, SHOWN)
    save_figure(figure, folder / "stack.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
