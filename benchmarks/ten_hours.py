"""Ten hours of bouncing, in metres and in micrometres: the same events, and memory that does not grow.

A ball bounces on a floor each 0.36 s, 100 000 times. Both are ``CradleBall`` FMUs; the floor is a ball without end of mass.
Rows and events are written to files. For each unit a process of its own prints its memory and the largest error of the
times of its events; then the two files are compared.

    python benchmarks/ten_hours.py [--hours 10] [--fmi 3]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from fmimaster import Results, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import Jacobi
from fmimaster.events import Predictive
from fmimaster.inputs import Polynomial

G, PERIOD = 9.81, 0.36
"""[m/s2], and the time in s from bounce to bounce."""
UNITS = {"m": 1.0, "um": 1e6}
"""What 1 m is in the unit of lengths."""


def system(unit: float, version: int) -> SystemBuilder:
    """A floor and a ball that leaves it upwards."""
    builder = SystemBuilder("bouncing")
    fmu = reference_path(f"fmi{version}/CradleBall.fmu")
    speed = G * PERIOD / 2
    for name, values in {
        "floor": {"x": -1.0 * unit, "v": 0.0, "m": 1e300, "right.m": 1.0, "right.r": 0.5 * unit},
        "ball": {"x": 0.0, "v": speed * unit, "m": 1.0, "left.m": 1e300, "left.r": 0.5 * unit},
    }.items():
        builder.add(name, fmu)
        for parameter, value in (values | {"r": 0.5 * unit}).items():
            builder.set(f"{name}.{parameter}", value)
    builder.set("ball.g", -G * unit)
    for name in "xva":
        builder.connect(f"floor.{name}", f"ball.left.{name}")
        builder.connect(f"ball.{name}", f"floor.right.{name}")
    builder.share_event("bounce", "floor.right", "ball.left")
    return builder


def megabytes() -> float:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(unit: float, stop_time: float, version: int, path: Path) -> Results:
    """Simulate with the event clock Predictive, to a file."""
    return Simulation(
        system(unit, version),
        algorithm=Jacobi(Polynomial(2, 2)),
        event_clock=Predictive(),
        step_size=0.1,
        stop_time=stop_time + PERIOD / 2,
        output_interval=1.0,
    ).run(output_file=path)


def bounce(unit: str, hours: float, version: int, folder: str) -> Path:
    """Simulate, and print what it came to."""
    path = Path(folder) / f"bouncing-{unit}.csv"
    run(UNITS[unit], 360 * hours, version, path)
    early = megabytes()
    results = run(UNITS[unit], 3600 * hours, version, path)
    late = megabytes()  # before all events are read at once
    times = times_of_events(path)
    expected = PERIOD * np.arange(1, len(times) + 1)
    print(
        f"{unit:2}: {len(times)} events, {results.statistics.steps} steps, times right to "
        f"{np.abs(times - expected).max():.1e} s, {len(results.statistics.warnings)} warnings; "
        f"memory {early:.0f} MB after a tenth of the time, {late:.0f} MB at the end",
        flush=True,
    )
    return path


def times_of_events(path: Path) -> np.ndarray:
    """[s] From the file beside the rows."""
    facts = json.loads(path.with_name(path.name + ".json").read_text(encoding="utf-8"))
    return np.array([event["time"] for event in facts["events"]])


def main() -> None:
    """Both units at once."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hours", type=float, default=10.0)
    parser.add_argument("--fmi", type=int, choices=(2, 3), default=3)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool,
    ):
        runs = [pool.submit(bounce, unit, options.hours, options.fmi, folder) for unit in UNITS]
        si, micro = (times_of_events(run.result()) for run in runs)
    same = len(si) == len(micro)
    print(
        f"the same number of events: {same}"
        + (f"; their times differ by at most {np.abs(si - micro).max():.1e} s" if same else "")
    )


if __name__ == "__main__":
    main()
