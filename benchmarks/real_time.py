"""Lateness of the steps of a run in real time, beside a loop in C that only waits.

    python benchmarks/real_time.py [--rounds 20] [--steps 500]

Steps of 1 ms of the quarter car. A step that was ready in time ends late because the system wakes up the process late: both
have this in common, so they are measured alternately in one process. Each figure is the median of the rounds; where other
programs take the cores, the 99th percentile is theirs. The goal is that median and 99th percentile of the run are at most
20 us above those of the loop. With `chrt -f 50` before it, the command shows what a real-time priority gives.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from fmimaster.kernel._kernel import ffi, lib

from fmimaster import Simulation, reference_path
from fmimaster.program.real_time import LAST
from fmimaster.run.native import lending

SYSTEM = "systems/quarter-car-a-fmi2.ssp"
PERIOD = 1_000_000
"""In ns."""
GOAL = 20.0
"""In us."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=500, help="of each in a round")
    chosen = parser.parse_args()
    loop, run = np.zeros((2, chosen.rounds, chosen.steps), np.int64)
    measure(loop, run)
    report(loop, run)


def compiled() -> Any:
    """real_time.c as a library, compiled with -O2."""
    source = Path(__file__).with_suffix(".c")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "real_time.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", target, source], check=True)
        return ctypes.CDLL(str(target))


def measure(loop: Any, run: Any) -> None:
    """Write the lateness of each step in ns, by rounds."""
    c, (rounds, steps) = compiled(), run.shape
    place = ctypes.c_void_p.in_dll
    place(c, "waits").value = int(ffi.cast("intptr_t", ffi.addressof(lib, "fm_keep_real_time")))
    keep = ffi.cast("int(*)(void *, fm_kernel *)", ctypes.cast(c.keep, ctypes.c_void_p).value)
    twin = {"real time": lending._Function(keep, "fm_real_time_data")}
    lending.TWINS = {**lending.TWINS, **twin}
    stop_time = rounds * steps * PERIOD * 1e-9
    car = Simulation(
        reference_path(SYSTEM), stop_time=stop_time, step_size=PERIOD * 1e-9, real_time_factor=1.0
    )
    with car.start() as paced:
        pace = paced._session.programs.pace
        place(c, "last").value = pace.numbers[LAST:].ctypes.data
        for of_loop, of_run in zip(loop, run, strict=True):
            c.bare(steps, ctypes.c_int64(PERIOD), ctypes.c_void_p(of_loop.ctypes.data))
            place(c, "kept").value = of_run.ctypes.data
            paced.restart_clock()
            paced.advance(f"{steps * PERIOD}/1000000000")
    print(paced.results.statistics.real_time.line())


def report(loop: Any, run: Any) -> None:
    """Print lateness in us."""
    print(f"{'lateness in us':<18}{'median':>9}{'90 %':>9}{'99 %':>9}{'largest':>9}")
    found = {
        name: np.median(np.percentile(values, [50, 90, 99, 100], axis=1), axis=1) / 1e3
        for name, values in {"loop in C": loop, "run": run}.items()
    }
    found["difference"] = found["run"] - found["loop in C"]
    for name, values in found.items():
        print(f"{name:<18}" + "".join(f"{value:9.1f}" for value in values))
    median, _, most, _ = found["difference"]
    verdict = "met" if max(median, most) <= GOAL else "missed"
    print(f"goal of median and 99 %: at most {GOAL:g} us above the loop: {verdict}")


if __name__ == "__main__":
    main()
