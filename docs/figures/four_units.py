"""Draw four_units.svg, four_units_objective.svg and four_units_plan.svg: all sequences of the four units of Holzinger and
Benedikt (2019), as in their figures 6 and 5, and the plan of the best one.

python docs/figures/four_units.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from fmimaster import Simulation, reference_path
from fmimaster.algorithms import AlongLine, GaussSeidel
from fmimaster.commands.plan_figure import plan_figure
from fmimaster.results.plot import save_figure
from fmimaster.studies.demos import four_units

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Run all sequences, draw, and print the best one."""
    runs = four_units.run_all("fmi3")
    save_figure(four_units.trajectories(runs), folder / "four_units.svg")
    save_figure(four_units.objectives(runs), folder / "four_units_objective.svg")
    simulation = Simulation(
        reference_path("systems/four-units-fmi3.ssp"), algorithm=GaussSeidel(mode=AlongLine())
    )
    facts = simulation.plan().facts
    save_figure(plan_figure(facts), folder / "four_units_plan.svg")
    best = four_units.winner(runs)
    print(f"best {' '.join(best.order)}, error {best.error:.5f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
