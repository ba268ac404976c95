"""What a run of a sweep costs beyond its loop, in processes and on Dask: CPU time of all processes, in turns.

    python benchmarks/sweeps.py [RUNS]

A run has 4000 steps (the quarter car over 4 s). The loop is the CPU time of a repeated run that is given the values, less
what a run of 10 steps takes; it is measured in the same minutes, because the speed of machines changes.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from fmimaster import Simulation, reference_path, sweep
from fmimaster.studies.sweeps import Dask, LatinHypercube, Processes, ThisProcess

CAR = reference_path("systems/quarter-car-a-fmi2.ssp")
NAMES = {"wheel.kc": (12e3, 18e3), "wheel.dc": (800.0, 1200.0)}
TURNS = 3
HERTZ = os.sysconf("SC_CLK_TCK")


def cpu(without: set[int]) -> float:
    """CPU time in s of this process and of all below it, also of those that have ended, without some and what is below."""
    below: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            below.setdefault(int(fields[1]), []).append(int(folder.name))
            times[int(folder.name)] = sum(map(int, fields[11:15])) / HERTZ
    total, left = 0.0, [os.getpid()]
    while left:
        one = left.pop()
        total += times.get(one, 0.0)
        left += [process for process in below.get(one, []) if process not in without]
    return total


def taken(without: set[int], act: Callable[[], object]) -> float:
    """CPU time in s."""
    before = cpu(without)
    act()
    return cpu(without) - before


def loop(runs: int) -> float:
    """CPU time in ms of the steps of a run."""
    found = []
    for span in (4.0, 0.01):
        with Simulation(CAR, stop_time=span, step_size="1/1000").repeated([*NAMES]) as one:
            for _ in range(3):
                one({"wheel.dc": 900.0})
            begun = time.process_time()
            for k in range(runs):
                one({"wheel.dc": 900.0 + k})
            found.append((time.process_time() - begun) / runs)
    return 1e3 * (found[0] - found[1])


def main() -> None:
    """Print a line for each turn, and the medians."""
    logging.getLogger("fmimaster").setLevel(logging.ERROR)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    simulation = Simulation(CAR, stop_time=4, step_size="1/1000")
    design = LatinHypercube(NAMES, n=runs)
    few = LatinHypercube(NAMES, n=8)
    folder = Path(tempfile.mkdtemp())
    start = "import sys; from dask.__main__ import main; sys.exit(main())"
    file = folder / "scheduler.json"
    words = [
        ["scheduler", "--scheduler-file", file, "--port", "0", "--no-dashboard"],
        *[["worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard"]] * 2,
    ]
    cluster = [
        subprocess.Popen([sys.executable, "-c", start, *given], stderr=subprocess.DEVNULL)
        for given in words
    ]
    try:
        from distributed import Client

        while not file.exists() or not file.read_text(encoding="utf-8").strip():
            time.sleep(0.1)
        with Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(2)
            ways = {
                "this process": ThisProcess(),
                "2 processes": Processes(2),
                "2 workers of Dask": Dask(client),
            }
            beyond: dict[str, list[float]] = {name: [] for name in ways}
            for turn in range(TURNS):
                steps = loop(min(runs, 100))
                for name, executor in ways.items():

                    def swept(chosen: LatinHypercube, executor: object = executor) -> None:
                        shutil.rmtree(folder / "s", ignore_errors=True)
                        sweep(
                            simulation,
                            chosen,
                            folder / "s",
                            scalars="max(wheel.force)",
                            executor=executor,  # type: ignore[arg-type]
                        )

                    if turn == 0:
                        swept(few)  # what is imported at the first time
                    # a cluster that waits takes CPU time too
                    others = set() if isinstance(executor, Dask) else {one.pid for one in cluster}
                    start_up = taken(others, lambda: swept(few))
                    total = taken(others, lambda: swept(design))
                    each = 1e3 * (total - start_up) / (runs - 8)
                    beyond[name].append(each - steps)
                    print(
                        f"{turn}  {name:18} {each:6.2f} ms of each run, of which the loop {steps:5.2f}",
                        flush=True,
                    )
            for name, values in beyond.items():
                print(
                    f"{name:18} beyond the loop: {median(values):5.2f} ms of each run (least {min(values):.2f})"
                )
    finally:
        for one in cluster:
            one.terminate()
        for one in cluster:
            one.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
