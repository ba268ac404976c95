"""Draw unasked.svg: the number that a run gives for its error, against its true error.

python docs/figures/unasked.py [FOLDER]

The runs are those of conformance/unasked.csv, by the methods that runs choose.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

HERE = Path(__file__).parent
CONFORMANCE = HERE.parents[1] / "conformance"
sys.path.append(str(CONFORMANCE))

from unasked_tables import CLOSE, FACTOR, Run, percent, read  # noqa: E402

from fmimaster.results.plot import save_figure  # noqa: E402

LEAST, MOST = 1e-6, 3.0
"""Smaller and larger errors are drawn at these ends."""
TICKS = (1e-6, 1e-4, 1e-2, 1.0)
MARKS = {False: ("o", "#0072B2", "without events"), True: ("^", "#D55E00", "with events")}


def draw(axes: Axes, runs: list[Run]) -> None:
    """One panel."""
    ends = np.array([LEAST, MOST])
    axes.fill_between(ends, ends / FACTOR, ends * FACTOR, color="0.9", lw=0, zorder=0)
    axes.plot(ends, ends, color="0.6", lw=0.8, zorder=1)
    axes.axvline(CLOSE, color="0.6", lw=0.8, ls=(0, (4, 2)), zorder=1)
    axes.axhline(CLOSE, color="0.6", lw=0.8, ls=(0, (4, 2)), zorder=1)
    for is_hybrid, (mark, colour, label) in MARKS.items():
        some = [
            (r.error, r.estimate, r.warned)
            for r in runs
            if r.hybrid == is_hybrid and r.estimate is not None
        ]
        for warned in (False, True):
            points = [
                (np.clip(error, LEAST, MOST), np.clip(estimate, LEAST, MOST))
                for error, estimate, is_warned in some
                if is_warned == warned
            ]
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    mark,
                    color=colour,
                    markersize=3.4,
                    mew=0.8,
                    clip_on=False,
                    zorder=3,
                    mfc=colour if warned else "none",
                    label=f"{label}, {'with' if warned else 'without'} a warning",
                )
    axes.set(xscale="log", yscale="log", xlim=(LEAST, MOST), ylim=(LEAST, MOST))
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(TICKS, [percent(value) for value in TICKS])
        axis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=8, width=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("true error", fontsize=8)


def main(folder: Path) -> None:
    """Read and draw."""
    runs = [r for r in read(CONFORMANCE / "unasked.csv") if not r.plain and r.outcome != "ended"]
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, title, of_panel in (
        (panels[0], "only the stop time is given", [r for r in runs if r.size == "none"]),
        (panels[1], "steps too long, right, and short", [r for r in runs if r.size != "none"]),
    ):
        draw(axes, of_panel)
        axes.set_title(title, fontsize=8, loc="left")
    panels[0].set_ylabel("the number of the run", fontsize=8)
    labels = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        list(labels.values()),
        list(labels),
        loc="outside lower center",
        ncols=2,
        fontsize=8,
        frameon=False,
    )
    save_figure(figure, folder / "unasked.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
