"""What an FMU behind a host costs per step over the loop-back, beyond one in a process of its own on the same machine.

    python benchmarks/remote.py [--steps 20000] [--rounds 7]

A Dahlquist instance of FMI 2.0, Jacobi, all outputs recorded at each step, by the kernel: one message in each direction for
a step. Long runs without short ones, so without the start. Both kinds of runs alternate. The goal: at most 15 us.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import fmimaster
from fmimaster.apart.connection import SECRET

GOAL = 15.0
STEP = 1.0 / 1024
"""In s; a power of 2."""
SHORT = 1000
"""Steps of the run whose time is subtracted."""
FMU = fmimaster.reference_path("fmi2/Dahlquist.fmu")


def runs(isolate: Any) -> Callable[[int], float]:
    """Runs: steps → wall time in s."""

    def run(steps: int) -> float:
        begun = perf_counter()
        fmimaster.Simulation(
            FMU, isolate=isolate, step_size=STEP, stop_time=steps * STEP, backend="native"
        ).run()
        return perf_counter() - begun

    return run


def per_step(run: Callable[[int], float], steps: int) -> float:
    """Wall time in us of one step."""
    return (run(SHORT + steps) - run(SHORT)) / steps * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    options: Any = parser.parse_args()
    logging.getLogger("fmimaster").setLevel(logging.ERROR)
    os.environ[SECRET] = secrets.token_hex()
    command = [sys.executable, "-m", "fmimaster", "host", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        address = host.stdout.readline().split()[2].rstrip(".")
        here, there = runs(True), runs({"*": address})
        pairs = [
            (per_step(here, options.steps), per_step(there, options.steps))
            for _ in range(options.rounds)
        ]
        host.terminate()
    apart, remote = (median(pair[k] for pair in pairs) for k in range(2))
    print(f"in a process of its own {apart:.2f} us, behind a host {remote:.2f} us per step")
    beyond = [b - a for a, b in pairs]
    print(
        f"beyond shared memory: median {median(beyond):.1f} us, least {min(beyond):.1f} us (goal: at most {GOAL:g} us)"
    )


if __name__ == "__main__":
    main()
