"""Draw stability.svg: the spectral radius of a step of the linear quarter car against the step size.

python docs/figures/stability.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from fmimaster import Simulation, reference_path
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi
from fmimaster.commands.stability import RadiusCurve, stability_figure
from fmimaster.inputs import LINEAR
from fmimaster.results.plot import save_figure
from fmimaster.studies.stability.advisor import Advisor

HERE = Path(__file__).parent
ALGORITHMS: dict[str, Algorithm] = {
    "Jacobi, hold": Jacobi(),
    "Jacobi, linear": Jacobi(LINEAR),
    "Gauss-Seidel, hold": GaussSeidel(),
}


def main(folder: Path) -> None:
    """Compute the radius of each algorithm at many step sizes, draw, and print the limits."""
    curves = []
    for name, algorithm in ALGORITHMS.items():
        system = reference_path("systems/quarter-car-b-fmi2.ssp")
        simulation = Simulation(system, stop_time=4, step_size="1/100", algorithm=algorithm)
        with Advisor(simulation) as advisor:
            limit = advisor.limit()
            curves.append(RadiusCurve(name, advisor.curve(limit), limit))
        print(f"{name}: {1e3 * (limit.step or 0.0):.3f} ms")
    save_figure(stability_figure(curves), folder / "stability.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
