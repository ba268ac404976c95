"""What grows with the size of a task, each for one size: instances, variables, rows, files; and what a command takes.

All times are CPU times in s. Each is measured in a process of its own, because a process keeps what it has read, and the
memory that it had: see goals.py and growth.py.
"""

from __future__ import annotations

import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import limit
import ours
from systems import DAHLQUIST, TINY, Kind, System, folder_until_exit, ring, tiny_fmu

from fmimaster import (
    PythonComponent,
    Results,
    Simulation,
    SystemBuilder,
    reference_path,
    validate,
)
from fmimaster.fmu.load import Loader
from fmimaster.prepare.preparation import prepare
from fmimaster.run import Backend

COLUMNS = 4
"""Recorded outputs of the ring of two."""


def least(run: Callable[[], float], rounds: int) -> float:
    """The smallest of several: a time that other programs disturb only upwards."""
    return min(run() for _ in range(rounds))


def cpu(work: Callable[[], object]) -> float:
    """CPU time of some work."""
    gc.collect()
    begin = time.process_time()
    work()
    return time.process_time() - begin


def over_the_limit(system: System, rounds: int = 9, *, new_memory: bool = False) -> float:
    """CPU time of the kernel's loop over that of the C limit, in turns; the ratio of their medians."""
    for run in (limit.run, ours.native):
        run(system.of(100))
    taken = [
        (ours.native(system).cpu, limit.run(system, new_memory=new_memory).cpu)
        for _ in range(rounds)
    ]
    kernel, bare = (statistics.median(column) for column in zip(*taken, strict=True))
    return kernel / bare


def planning(instances: int, fmi: int = 2, kind: Kind = DAHLQUIST) -> float:
    """A whole run of one step: describe, read, plan, load, instantiate, initialise, end and free."""
    ours.whole(ring(fmi, 2, steps=1, kind=kind))
    system = ring(fmi, instances, steps=1, kind=kind)
    return least(lambda: ours.whole(system), 2)


def connected(connections: int) -> float:
    """A whole run of one step of two components in Python with so many connections from one to the other."""
    names = [f"v{k}" for k in range(connections)]

    def work() -> None:
        builder = SystemBuilder("pair")
        builder.add("a", PythonComponent(outputs=dict.fromkeys(names, 0.0)))
        builder.add("b", PythonComponent(inputs=dict.fromkeys(names, 0.0)))
        for name in names:
            builder.connect(f"a.{name}", f"b.{name}")
        Simulation(builder.build(), stop_time=1, step_size=1, error_estimate=True).run()

    return least(lambda: cpu(work), 2)


def loop_per_row(rows: int) -> float:
    """A whole run of the ring of two, per row."""
    ours.whole(ring(2, 2, steps=100, kind=TINY))
    return ours.whole(ring(2, 2, steps=rows, kind=TINY)) / rows


def memory(rows: int) -> float:
    """How far a run lifts the peak memory, over the size of its times and values; Linux only."""
    system = ring(2, COLUMNS // 2, steps=1000)
    ours.simulation(system, Backend.NATIVE).run()
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak counts from here
    before = _peak()
    results = ours.simulation(system.of(rows), Backend.NATIVE).run()
    assert results.rows == rows + 1
    return (_peak() - before) / (rows * (1 + COLUMNS) * 8)


def _peak() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = (x for x in lines if x.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def csv_written(rows: int) -> float:
    """Results of four outputs into a CSV file."""
    results, path = _results(rows), folder_until_exit() / "rows.csv"
    return least(lambda: cpu(lambda: results.write(path)), 2)


def csv_read(rows: int) -> float:
    """The same file, read."""
    path = folder_until_exit() / "rows.csv"
    _results(rows).write(path)
    return least(lambda: cpu(lambda: Results.read(path)), 2)


def _results(rows: int) -> Results:
    return ours.simulation(ring(2, COLUMNS // 2, steps=rows, kind=TINY), Backend.NATIVE).run()


def prepared(outputs: int, fmi: int = 2) -> float:
    """A simulation of one FMU with so many outputs, up to its first call."""
    path = tiny_fmu(fmi, more_outputs=outputs)
    builder = SystemBuilder("large")
    builder.add("model", path)
    simulation = Simulation(builder.build(), stop_time=1, step_size=1)

    def work() -> None:
        loader = Loader()
        try:
            prepare(simulation, loader)
        finally:
            loader.close()

    return cpu(work)


def validated(outputs: int, fmi: int = 2) -> float:
    """The check of an FMU with so many outputs."""
    path = tiny_fmu(fmi, more_outputs=outputs)
    return cpu(lambda: validate(path))


def command(*arguments: str) -> float:
    """The fmimaster command in a process of its own, whose modules are compiled already."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder_until_exit())}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def work() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "fmimaster", *arguments],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    work()
    return least(work, 5)


def version() -> float:
    """``fmimaster --version``."""
    return command("--version")


def info() -> float:
    """``fmimaster info`` of a small FMU."""
    return command("info", str(reference_path("fmi2/Dahlquist.fmu")))


def info_of_many(outputs: int, fmi: int = 2) -> float:
    """``fmimaster info`` of an FMU with so many outputs."""
    return command("info", str(tiny_fmu(fmi, more_outputs=outputs)))


def simulate() -> float:
    """``fmimaster simulate`` of 1000 steps of two FMUs, without a file of results."""
    system = reference_path("systems/quarter-car-a-fmi2.ssp")
    return command("simulate", str(system), "--step-size", "0.01", "--stop-time", "10")
