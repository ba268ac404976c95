"""Draw two_mass.svg: the two-mass system B1 at a step of 10 ms, over its exact solution.

python docs/figures/two_mass.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from fmimaster import Results, reference_path, simulate
from fmimaster.results.plot import save_figure

HERE = Path(__file__).parent
EXACT = HERE.parents[1] / "tests" / "data" / "events_two_mass.csv"


def main(folder: Path) -> None:
    """Run, draw, and print the figures of docs/reference-fmus.md."""
    system = reference_path("systems/two-mass-b1-mixed.ssp")
    results = simulate(system, step_size="0.01", algorithm="Jacobi", event_clock="none")
    exact = Results.read(EXACT)
    rows = exact.time <= results.time[-1] + 1e-9
    reference = Results(
        time=exact.time[rows], columns={"upper.x": exact["x1"][rows], "lower.x": exact["x2"][rows]}
    )
    error = np.abs(results["upper.x"][::2] - reference["upper.x"])
    error += np.abs(results["lower.x"][::2] - reference["lower.x"])
    print(
        f"steps {results.rows - 1}, e_rms {np.sqrt(np.mean(error**2)):.4f} m, e_max {error.max():.3f} m"
    )
    figure = results.plot(["upper.x", "lower.x"], reference=reference)
    save_figure(figure, folder / "two_mass.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
