"""Fixed steps of a Model Exchange FMU beside a loop over the same FMI calls that is written by hand in C.

    python benchmarks/exchange.py [FMU.fmu] [--steps 400000] [--rounds 11]

Explicit Euler, 10 steps and 1 step from each communication point to the next, all outputs recorded there; FMI 3.0. CPU
time of a long run without that of a short one, so without loading. Both are measured alternately in one process; the ratio
is that of the medians, the goal at most 1.2 and 1.5. With 1 step, the work of the kernel at each communication point
counts, too.
"""

from __future__ import annotations

import argparse
import ctypes
import logging
import subprocess
import tempfile
from pathlib import Path
from shutil import rmtree
from statistics import median
from time import process_time
from typing import Any

import fmpy
import numpy as np
from fmpy.fmi3 import FMU3Model

import fmimaster
from fmimaster.fmu.model_exchange.one_step import Euler

GOALS = {10: 1.2, 1: 1.5}
STEP = 1.0 / 1024
"""In s; a power of 2, so that both have the same times."""
SHORT = 1000
"""Steps of the run whose time is subtracted."""


class _Functions(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p)
        for name in ("derivatives", "set_time", "set_states", "indicators", "completed", "get")
    ]


_NAMES = (
    "GetContinuousStateDerivatives",
    "SetTime",
    "SetContinuousStates",
    "GetEventIndicators",
    "CompletedIntegratorStep",
    "GetFloat64",
)


def compiled() -> Any:
    """exchange.c as a library, compiled with -O2."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "exchange.so"
        source = Path(__file__).with_name("exchange.c")
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared"]
        subprocess.run(["cc", *flags, "-o", target, source], check=True)
        return ctypes.CDLL(str(target))


class HandWritten:
    """The loop in C over one FMU."""

    def __init__(self, path: Path) -> None:
        self.library = compiled()
        self.folder = fmpy.extract(str(path))
        self.description = fmpy.read_model_description(self.folder)
        self.outputs = [v for v in self.description.modelVariables if v.causality == "output"]

    def close(self) -> None:
        """Remove the unpacked FMU."""
        rmtree(self.folder, ignore_errors=True)

    def run(self, steps: int, inner: int) -> tuple[float, np.ndarray[Any, Any]]:
        """CPU time in s of so many communication steps, each of `inner` steps, and the rows."""
        fmu = FMU3Model(
            guid=self.description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=self.description.modelExchange.modelIdentifier,
            instanceName="hand",
        )
        fmu.instantiate()
        fmu.enterInitializationMode(startTime=0.0)
        fmu.exitInitializationMode()
        fmu.updateDiscreteStates()
        fmu.enterContinuousTimeMode()
        n, m = fmu.getNumberOfContinuousStates(), fmu.getNumberOfEventIndicators()
        states, slopes, indicators = np.zeros(n), np.zeros(n), np.zeros(max(m, 1))
        doubles = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (states, slopes)]
        fmu.getContinuousStates(doubles[0], n)
        times, rows = np.zeros(steps + 1), np.zeros((steps + 1, len(self.outputs)))
        rows[0] = fmu.getFloat64([v.valueReference for v in self.outputs])
        addresses = [
            ctypes.cast(getattr(fmu.dll, f"fmi3{name}"), ctypes.c_void_p) for name in _NAMES
        ]
        functions = _Functions(*addresses)
        references = (ctypes.c_uint32 * len(self.outputs))(
            *[v.valueReference for v in self.outputs]
        )
        sizes = [ctypes.c_size_t(k) for k in (n, m, len(self.outputs))]
        arrays = [ctypes.c_void_p(a.ctypes.data) for a in (states, slopes, indicators)]
        begin = process_time()
        status = self.library.exchange_run(
            *(ctypes.byref(functions), ctypes.c_void_p(fmu.component), *sizes, references, *arrays),
            *(ctypes.c_double(STEP), ctypes.c_int64(steps), ctypes.c_int(inner)),
            *(ctypes.c_void_p(a.ctypes.data) for a in (times, rows)),
        )
        seconds = process_time() - begin
        assert status == 0
        fmu.terminate()
        fmu.freeInstance()
        return seconds, rows


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    usual = fmimaster.reference_path("fmi3/Dahlquist.fmu")
    parser.add_argument("fmu", nargs="?", type=Path, default=usual)
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=11)
    given = parser.parse_args()
    logging.getLogger("fmimaster").setLevel(logging.ERROR)
    hand = HandWritten(given.fmu)

    def ours(steps: int, inner: int) -> Any:
        return fmimaster.simulate(
            given.fmu,
            interface="ModelExchange",
            solver=Euler(STEP / inner),
            stop_time=steps * STEP,
            step_size=STEP,
        )

    def seconds(steps: int, inner: int) -> float:
        times = []
        for n in (steps, SHORT):
            begin = process_time()
            ours(n, inner)
            times.append(process_time() - begin)
        return times[0] - times[1]

    try:
        for inner in GOALS:
            n = given.steps // inner
            mine, rows = ours(n, inner), hand.run(n, inner)[1]
            columns = np.column_stack([mine[v.name] for v in hand.outputs])
            pairs = [(seconds(n, inner), hand.run(n, inner)[0]) for _ in range(given.rounds)]
            both = [median(side) / given.steps * 1e9 for side in zip(*pairs, strict=True)]
            ratio = both[0] / both[1]
            print(
                f"{given.fmu.name}, {inner} steps from row to row: {both[0]:.0f} ns per step, by hand {both[1]:.0f} ns: "
                f"ratio {ratio:.2f}, goal {GOALS[inner]} {'reached' if ratio <= GOALS[inner] else 'missed'}; "
                f"largest difference of the rows {np.abs(columns - rows).max():.2g}"
            )
    finally:
        hand.close()


if __name__ == "__main__":
    main()
