"""Draw steps_with_reasons.svg: step sizes of the event clocks on the two masses, as ``fmimaster demo two-mass`` does.

python docs/figures/steps_with_reasons.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from fmimaster.results.plot import save_figure
from fmimaster.studies.demos.methods import METHODS, run_method, step_sizes


def main(folder: Path) -> None:
    """Run and draw."""
    chosen = [m for m in METHODS if m.benchmark == "b3" and m.clock is not None]
    figure = step_sizes([run_method(m) for m in chosen])
    save_figure(figure, folder / "steps_with_reasons.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
