"""What a step of an FMU behind a host costs over the loop-back, beyond one in a process of its own on the same machine.

    python benchmarks/remote.py [--steps 6000] [--rounds 7]

A Dahlquist instance of FMI 2.0, Jacobi, all outputs recorded at each step, by the kernel: one message in each direction for
a step. Each step is timed by itself, because the machine may be busy; both kinds of runs alternate.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import subprocess
import sys
from statistics import median
from time import perf_counter
from typing import Any

from fmimaster.kernel._kernel import ffi

import fmimaster
from fmimaster.apart.connection import SECRET
from fmimaster.run.isolated.hosting import HostedInstance

GOAL = 15.0
STEP = 1.0 / 1024
"""In s; a power of 2."""
FMU = fmimaster.reference_path("fmi2/Dahlquist.fmu")


class TimedSteps:
    """Takes the time of each step of isolated FMUs, in us."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._kept: list[Any] = []
        share = HostedInstance._share

        def shared(instance: HostedInstance, n_inputs: int) -> None:
            share(instance, n_inputs)
            step, kind = instance.table.do_step, ffi.typeof(instance.table.do_step)
            self._kept.append(ffi.callback(kind, lambda *given: self._timed(step, given)))
            instance.table.do_step = self._kept[-1]

        HostedInstance._share = shared  # type: ignore[method-assign]

    def _timed(self, step: Any, given: Any) -> int:
        begun = perf_counter()
        status: int = step(*given)
        self.times.append((perf_counter() - begun) * 1e6)
        return status

    def of_run(self, isolate: Any, steps: int) -> float:
        """Median of the steps of a run."""
        self.times.clear()
        fmimaster.Simulation(
            FMU, isolate=isolate, step_size=STEP, stop_time=steps * STEP, backend="native"
        ).run()
        return median(self.times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=7)
    options: Any = parser.parse_args()
    logging.getLogger("fmimaster").setLevel(logging.ERROR)
    os.environ[SECRET] = secrets.token_hex()
    command = [sys.executable, "-m", "fmimaster", "host", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        address = host.stdout.readline().split()[2].rstrip(".")
        timed = TimedSteps()
        pairs = [
            (timed.of_run(True, options.steps), timed.of_run({"*": address}, options.steps))
            for _ in range(options.rounds)
        ]
        host.terminate()
    for here, there in pairs:
        print(f"a process of its own {here:.1f} us, behind a host {there:.1f} us")
    beyond = sorted(there - here for here, there in pairs)
    print(
        f"beyond: {beyond[0]:.1f} to {beyond[-1]:.1f} us, median {median(beyond):.1f} us (goal: at most {GOAL:g} us)"
    )


if __name__ == "__main__":
    main()
