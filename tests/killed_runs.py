"""Runs for tests that kill their process: ``python killed_runs.py NAME FOLDER`` begins or continues one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fmimaster import PythonComponent, Simulation, SystemBuilder, reference_path, resume
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.events import EarlyReturn
from fmimaster.inputs import Polynomial
from fmimaster.steps import PID, EmbeddedOrders, FreeStep

NAMES = "controlled", "repeated calls", "events", "Python"
LINEAR = "fmi3/LinearSystem.fmu"
NOT_SERIALIZING = "linear.fmu"
"""The same FMU, which declares that it cannot serialize its state."""
_TWO_MASSES = "systems/two-mass-b1-mixed.ssp"


class Spring(PythonComponent):
    """A force in Python, with a memory that is no variable."""

    def __init__(self) -> None:
        super().__init__(inputs={"x": 0.0}, outputs={"f": 0.0})

    def start(self, t: float) -> None:
        """Nothing is remembered yet."""
        self.seen: list[float] = []

    def step(self, t: float, h: float) -> None:
        """The force follows the mean of the last positions."""
        self.seen = [*self.seen[-4:], self.x]
        self.f = -sum(self.seen) / len(self.seen)


def simulation(name: str, folder: Path) -> Simulation:
    """A simulation with some thousand steps; its checkpoints are written at each opportunity."""
    settings: dict[str, Any] = {
        "stop_time": 50,
        "checkpoint": folder / "run.checkpoint",
        "checkpoint_interval": "wall=0.01",
    }
    if name == "events":
        settings |= {"step_size": FreeStep(0.2), "event_clock": EarlyReturn(), "stop_time": 100}
        algorithm = Jacobi(Polynomial(2, 2))
        return Simulation(reference_path(_TWO_MASSES), algorithm=algorithm, **settings)
    if name == "controlled":
        rule = PID(0.1, (EmbeddedOrders(0.1),), smallest=0.001)
        settings |= {"step_size": rule, "algorithm": GaussSeidel(), "output_interval": 0.05}
        return Simulation(reference_path(_TWO_MASSES), **settings)
    builder = SystemBuilder(name)
    has_calls = name == "repeated calls"
    builder.add("one", folder / NOT_SERIALIZING if has_calls else reference_path(LINEAR))
    builder.add("other", folder / NOT_SERIALIZING if has_calls else Spring())
    there, back = ("u1", "y1") if has_calls else ("x", "f")
    builder.connect("one.y1", f"other.{there}")
    builder.connect(f"other.{back}", "one.u1")
    return Simulation(builder.build(), step_size="0.01", **settings)


def output_file(name: str) -> str:
    """Its results; a CSV file does not keep types, and the two masses have counters."""
    return "rows.h5" if name in ("events", "controlled") else "rows.csv"


if __name__ == "__main__":
    chosen, where = sys.argv[1], Path(sys.argv[2])
    run = simulation(chosen, where)
    if (where / "run.checkpoint").exists():
        resume(where / "run.checkpoint", run if chosen == "Python" else None)
    else:
        run.run(output_file=where / output_file(chosen))
