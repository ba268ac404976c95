"""Draw inputs.svg: how an input goes on over steps, by six kinds, if its source delivers a sine.

python docs/figures/inputs.py [FOLDER]
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fmimaster.inputs import HOLD, INTERPOLATED, LINEAR, MIDPOINT, NEPCE, QUADRATIC, Polynomial
from fmimaster.inputs.polynomial import evaluate, hermite
from fmimaster.results.plot import save_figure

HERE = Path(__file__).parent
STEP, STOP = 0.5, 5.0
"""[s]"""
GREY, BLUE = "0.6", "#0072B2"
KINDS = {
    "hold": HOLD,
    "midpoint": MIDPOINT,
    "nepce": NEPCE,
    "linear": LINEAR,
    "quadratic": QUADRATIC,
    "interpolated": INTERPOLATED,
}


def course(
    kind: Polynomial, times: NDArray[np.float64], k: int, lacked: float
) -> NDArray[np.float64]:
    """Coefficients of the input over step k, by the formulas of docs/inputs.md; shape (degree + 1, 1)."""
    points = [times[j] for j in range(k, max(k - kind.points, -1), -1)]
    at = [times[k + 1], times[k]] if kind.late and k else points
    found = hermite(at, [[np.array([np.sin(t)])] for t in points], times[k])
    if kind.held is not None:
        found = evaluate(found, kind.held * STEP)[np.newaxis]
    return found + kind.compensation * lacked if kind.compensation else found


def main(folder: Path) -> None:
    """Draw each kind in a panel of its own."""
    times = np.arange(0.0, STOP + STEP / 2, STEP)
    figure = Figure(figsize=(7.2, 3.9), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey=True).flat
    fine = np.linspace(0.0, STOP, 200)
    for axes, (name, kind) in zip(panels, KINDS.items(), strict=True):
        axes.plot(fine, np.sin(fine), color=GREY, lw=0.9)
        axes.plot(times, np.sin(times), "o", color=GREY, markersize=2.5)
        lacked = 0.0
        for k, (begin, end) in enumerate(pairwise(times)):
            coefficients = course(kind, times, k, lacked)
            inside = np.linspace(begin, end, 20)
            values = [evaluate(coefficients, t - begin)[0] for t in inside]
            lacked = (np.sin(begin) + np.sin(end)) / 2 - values[0]
            axes.plot(inside, values, color=BLUE, lw=1.3)
        axes.set_title(name, fontsize=8, loc="left")
        axes.tick_params(labelsize=8, width=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(
        "t in s; the output is grey, with its values at communication points", fontsize=8
    )
    save_figure(figure, folder / "inputs.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
