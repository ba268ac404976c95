"""A co-simulation algorithm of one's own, and its order measured on a pair with an exact solution.

Strang (1968), On the construction and comparison of difference schemes: half a step of the one part, a whole step of the
other, half a step of the first. The scheme is symmetric in time, hence of order two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmimaster import SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Algorithm, Emitter, Plan
from fmimaster.inputs import HOLD, Polynomial


@dataclass(frozen=True, slots=True)
class Strang(Algorithm):
    """Half a step along the trigger sequence, and half a step back; the last instance does one whole step."""

    inputs: Polynomial = HOLD

    @property
    def order(self) -> int:
        """A symmetric scheme has even order."""
        return 2

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        *others, last = plan.trigger_sequence
        with p.over(0.0, 0.5):
            for i in others:
                self._advance(i, p)
        self._advance(last, p)
        with p.over(0.5, 1.0):
            for i in reversed(others):
                self._advance(i, p)

    def _advance(self, i: int, p: Emitter) -> None:
        p.inputs(i, self.inputs)
        p.step(i)
        p.get(i)


def error(algorithm: Algorithm, steps: int) -> float:
    """Error at t = 1 s of the pair a' = -a + 2 b, b' = -3 b - a from (1, 1): its eigenvalues are -2 ± i."""
    system = SystemBuilder("pair")
    system.add("a", reference_path("fmi3/Dahlquist.fmu"), {"k": 1.0, "x": 1.0})
    system.add("b", reference_path("fmi3/Dahlquist.fmu"), {"k": 3.0, "x": 1.0})
    system.connect("b.x", "a.u", factor=2.0)
    system.connect("a.x", "b.u", factor=-1.0)
    results = simulate(system.build(), stop_time=1, step_size=f"1/{steps}", algorithm=algorithm)
    a = np.exp(-2.0) * (np.cos(1.0) + 3.0 * np.sin(1.0))
    b = np.exp(-2.0) * (np.cos(1.0) - 2.0 * np.sin(1.0))
    return float(np.hypot(results["a.x"][-1] - a, results["b.x"][-1] - b))


if __name__ == "__main__":
    before = None
    for steps in (10, 20, 40, 80, 160):
        now = error(Strang(), steps)
        order = f"  order {np.log2(before / now):.3f}" if before else ""
        print(f"H = 1/{steps:<4d} error {now:.3e}{order}")
        before = now
