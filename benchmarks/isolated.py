"""What an FMU in a process of its own costs: wall time per macro step and instance beyond the step itself.

    python benchmarks/isolated.py [--steps 100000] [--rounds 7] [--instances 1 2 8 32]

Dahlquist instances of FMI 2.0 without connections, Jacobi, all outputs recorded at each step, by the kernel. Wall time of a
long run without that of a short one, so without loading. Runs in this process and isolated ones alternate; medians of their
differences. Beside them the same calls (DoStep, get) in a loop of fmpy: over the remoting of fmpy, with its server and its
client for Linux over TCP, without the same loop over the FMU itself. The goals on two free cores: at most 3 us for one
instance, and at most a fifth of fmpy's remoting.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import fmpy
from fmpy.fmi2 import FMU2Slave

import fmimaster
from fmimaster.system.builder import SystemBuilder

GOAL, GOAL_RATIO = 3.0, 5.0
STEP = 1.0 / 1024
"""In s; a power of 2."""
SHORT = 1000
"""Steps of the run whose time is subtracted."""
REMOTE = 20
"""A run through the remoting has so many times fewer steps."""
FMU = fmimaster.reference_path("fmi2/Dahlquist.fmu")


def per_step(run: Callable[[int], float], steps: int) -> float:
    """Wall time in us of one step."""
    return (run(SHORT + steps) - run(SHORT)) / steps * 1e6


def ours(instances: int, isolate: bool) -> Callable[[int], float]:
    """Runs of so many instances: steps → wall time in s."""
    builder = SystemBuilder()
    for k in range(instances):
        builder.add(f"d{k}", FMU)
    system = builder.build()

    def run(steps: int) -> float:
        begun = perf_counter()
        fmimaster.Simulation(
            system, isolate=isolate, step_size=STEP, stop_time=steps * STEP, backend="native"
        ).run()
        return perf_counter() - begun

    return run


def fmpys(folder: Path, identifier: str) -> Callable[[int], float]:
    """Runs of fmpy's calls over a library of an unpacked FMU: steps → wall time in s, without loading."""
    description = fmpy.read_model_description(str(folder))
    outputs = [v.valueReference for v in description.modelVariables if v.causality == "output"]

    def run(steps: int) -> float:
        fmu = FMU2Slave(
            guid=description.guid, unzipDirectory=str(folder), modelIdentifier=identifier
        )
        fmu.instantiate()
        fmu.setupExperiment(startTime=0.0)
        fmu.enterInitializationMode()
        fmu.exitInitializationMode()
        begun = perf_counter()
        for k in range(steps):
            fmu.doStep(k * STEP, STEP)
            fmu.getReal(outputs)
        seconds = perf_counter() - begun
        fmu.terminate()
        fmu.freeInstance()
        return seconds

    return run


def remote(folder: Path) -> Callable[[int], float]:
    """Runs over the same FMU behind fmpy's client and server for Linux.

    fmpy itself uses them for other platforms only. Its client starts no server if its library is named ``client_tcp``.
    """
    programs = Path(fmpy.__file__).parent / "remoting" / "linux64"
    binaries = folder / "binaries" / "linux64"
    library = next(binaries.glob("*.so"))
    server = shutil.copy(programs / "server_tcp", folder)
    os.chmod(server, 0o755)
    shutil.copy(programs / "client_tcp.so", binaries)
    run = fmpys(folder, "client_tcp")

    def served(steps: int) -> float:
        with subprocess.Popen(
            [server, library], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                sleep(0.3)  # until it listens
                return run(steps)
            finally:
                process.kill()

    return served


def print_remoting(cost: float, steps: int, rounds: int) -> None:
    """Print what fmpy's remoting costs, beside our cost in us."""
    folder = Path(fmpy.extract(str(FMU)))
    try:
        there = remote(folder)
        here = fmpys(folder, fmpy.read_model_description(str(folder)).coSimulation.modelIdentifier)
        other = median((there(steps) - here(steps)) / steps * 1e6 for _ in range(rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"fmpy's remoting: {other:.1f} us beyond the step, {other / cost:.1f} times as much "
        f"(goal: at least {GOAL_RATIO:g})"
    )


def print_ours(counts: list[int], steps: int, rounds: int) -> float:
    """Print the cost of isolation; returns that of the first number of instances, in us."""
    first = 0.0
    for n in counts:
        here, apart = ours(n, False), ours(n, True)
        costs: list[tuple[float, float]] = [
            (per_step(here, steps // n), per_step(apart, steps // n)) for _ in range(rounds)
        ]
        cost = median((b - a) / n for a, b in costs)
        first = first or cost
        own, isolated = (median(pair[k] for pair in costs) / n for k in range(2))
        print(
            f"{n:3d} instances: in this process {own:.2f} us, isolated {isolated:.2f} us per step and instance: "
            f"{cost:.2f} us beyond the step"
        )
    return first


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--instances", type=int, nargs="+", default=[1, 2, 8, 32])
    options: Any = parser.parse_args()
    logging.getLogger("fmimaster").setLevel(logging.ERROR)
    cost = print_ours(options.instances, options.steps, options.rounds)
    print(f"goal for the first line: at most {GOAL} us")
    print_remoting(cost, options.steps // REMOTE, options.rounds)


if __name__ == "__main__":
    main()
