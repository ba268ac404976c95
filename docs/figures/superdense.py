"""Draw exact_time.svg and superdense.svg: sums of doubles beside products, and the rows of an instant.

python docs/figures/superdense.py [FOLDER]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.events import EarlyReturn
from fmimaster.results.plot import plot_results, save_figure

HERE = Path(__file__).parent
BLUE, ORANGE = "#0072B2", "#D55E00"


def exact_time() -> Figure:
    """How far sums of the double 0.1 are from k/10, and products."""
    k = np.arange(1, 10_001)
    sums = np.cumsum(np.full(len(k), 0.1)) - k / 10
    figure = Figure(figsize=(6.2, 2.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(k / 10, sums * 1e12, color=ORANGE, label="0.1 + 0.1 + …")
    axes.plot(k / 10, np.zeros(len(k)), color=BLUE, label="k · (1/10)")
    axes.set_xlabel("time in s")
    axes.set_ylabel("deviation in 1e-12 s")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(linewidth=0.4, color="0.88")
    axes.margins(x=0.0)
    axes.legend(frameon=False)
    return figure


def superdense() -> Figure:
    """Two tests of Superdense in one system: modes at t = 3 s, delays of an event at t = 1 s."""
    system = SystemBuilder()
    fmu = reference_path("fmi3/Superdense.fmu")
    system.add("modes", fmu, {"test": 5})
    system.add("delays", fmu, {"test": 2})
    run = Simulation(
        system.build(),
        output_variables=["modes.mode", "delays.d3", *(f"delays.d{k}.tick" for k in range(4))],
        event_clock=EarlyReturn(),
        stop_time=4,
        step_size=1,
    ).run()
    return plot_results(replace(run, events=()))


def main(folder: Path) -> None:
    """Draw both."""
    save_figure(exact_time(), folder / "exact_time.svg")
    save_figure(superdense(), folder / "superdense.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
