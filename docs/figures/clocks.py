"""Draw clocks.svg: a ramp, its samples, and the clock that takes them.

python docs/figures/clocks.py [FOLDER]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.results.plot import plot_results, save_figure


def sampler() -> Figure:
    """The system of docs/clocks.md."""
    system = SystemBuilder()
    system.add("source", reference_path("fmi3/EventSource.fmu"), {"count": 0})
    fraction = {"interval.counter": 1, "interval.resolution": 4}
    system.add("sampler", reference_path("fmi3/Sampler.fmu"), fraction)
    system.connect("source.ramp", "sampler.u")
    names = ["source.ramp", "sampler.y", "sampler.held", "sampler.tick"]
    run = Simulation(system.build(), output_variables=names, stop_time=2, step_size="1/20").run()
    return plot_results(replace(run, events=()))


def main(folder: Path) -> None:
    """Draw it."""
    save_figure(sampler(), folder / "clocks.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
