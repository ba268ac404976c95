"""What an event costs beside usual steps: a ball that bounces, and the same ball that flies for ever.

For each step size it prints the CPU time of a usual step, of a bounce with its steps, and their ratio, each from the
difference of a long run and a short one: the start of a run is not in it.

    python benchmarks/bounces.py [--bounces 2000] [--fmi 3]
"""

from __future__ import annotations

import argparse
import time

from ten_hours import PERIOD, system

from fmimaster import Simulation, SystemBuilder
from fmimaster.algorithms import Jacobi
from fmimaster.events import Predictive
from fmimaster.inputs import Polynomial

SIZES = (0.1, 0.05, 0.02)
"""[s]"""
SHORT = 0.1
"""Length of the short run, as a part of the long one."""
FAR = -1e9
"""[m] Where the floor is for a ball that never meets it."""


def cpu_time(builder: SystemBuilder, step: float, stop_time: float) -> float:
    """[s] Of a run with the event clock Predictive."""
    begin = time.process_time()
    Simulation(
        builder,
        algorithm=Jacobi(Polynomial(2, 2)),
        event_clock=Predictive(),
        step_size=step,
        stop_time=stop_time,
    ).run()
    return time.process_time() - begin


def per_second(builder: SystemBuilder, step: float, stop_time: float) -> float:
    """CPU time per simulated second."""
    short = SHORT * stop_time
    return (cpu_time(builder, step, stop_time) - cpu_time(builder, step, short)) / (
        stop_time - short
    )


def main() -> None:
    """One line for each step size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bounces", type=int, default=2000)
    parser.add_argument("--fmi", type=int, choices=(2, 3), default=3)
    options = parser.parse_args()
    bouncing, flying = system(1.0, options.fmi), system(1.0, options.fmi)
    flying.set("floor.x", FAR)
    stop_time = (options.bounces + 0.5) * PERIOD
    cpu_time(flying, SIZES[0], SIZES[0])  # the first run loads libraries
    for step in SIZES:
        usual = per_second(flying, step, stop_time) * step
        bounce = per_second(bouncing, step, stop_time) * PERIOD
        print(
            f"steps of {step:g} s: {1e6 * usual:.1f} us per usual step, {1e6 * bounce:.0f} us per bounce, "
            f"ratio {bounce / usual:.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
