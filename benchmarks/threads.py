"""What threads bring: two coupled FMUs of different cost, stepped by one thread, by two, and by as many as pay."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from costs import Cost, medians
from ours import simulation
from systems import TINY, System, ring, tiny_fmu

from fmimaster.run.executor import Backend

STEPS = 300_000
"""In a run of the cheapest FMUs."""

INNER_STEPS = (100, 5000)
"""Of the tiny FMU in a DoStep: some 2 us and 100 us."""


def all_threads(repetitions: int) -> Iterator[Cost]:
    """All lines."""
    for inner in INNER_STEPS:
        yield two_threads(repetitions, inner)
    for inner in (1, *INNER_STEPS):
        yield automatic(repetitions, inner)


def coupled(inner_steps: int) -> System:
    """Two FMUs with so many inner steps; a run takes some 0.1 to 0.2 s."""
    kind = replace(TINY, file=lambda fmi: tiny_fmu(fmi, inner_steps))
    return ring(
        3, 2, steps=max(STEPS // inner_steps * 10, 400) if inner_steps > 1 else STEPS, kind=kind
    )


def wall(system: System, threads: int) -> float:
    """Wall time of the loop, in s."""
    results = replace(simulation(system, Backend.NATIVE), threads=threads).run()
    assert results.statistics is not None
    return results.statistics.seconds


def do_step(system: System) -> float:
    """Time of one DoStep, in us."""
    results = simulation(system, Backend.NATIVE).run()
    told = results.statistics
    assert told is not None
    return told.instances[0].seconds / told.steps * 1e6


def two_threads(repetitions: int, inner_steps: int) -> Cost:
    """How many times faster two threads are than one."""
    system = coupled(inner_steps)
    what = f"two threads, {inner_steps} inner steps: how many times faster"
    goal = 1.6 if inner_steps == INNER_STEPS[0] else 1.8
    if (os.cpu_count() or 1) < 2:
        return Cost(what, "x faster", goal, None, "there is one core only")
    free = []
    ratios = []
    for _ in range(repetitions):
        free.append(cores_free())
        ratios.append(wall(system, 1) / wall(system, 2))
    remark = (
        f"two coupled, DoStep {do_step(system):.1f} us; wall time; the best turn {max(ratios):.2f} x; "
        f"two busy processes beside each other: {median(free):.2f} x, at best {max(free):.2f} x"
    )
    return Cost(what, "x faster", goal, median(ratios), remark)


def automatic(repetitions: int, inner_steps: int) -> Cost:
    """How many times faster `threads=0` is than one thread: it must not be slower."""
    system = coupled(inner_steps)
    one, chosen = medians(repetitions, lambda: wall(system, 1), lambda: wall(system, 0))
    what = f"threads=0, {inner_steps} inner steps: how many times faster"
    return Cost(
        what,
        "x faster",
        0.97,
        one / chosen,
        f"two coupled, DoStep {do_step(system):.1f} us; wall time",
    )


BUSY = "import time\nb = time.perf_counter()\nfor _ in range(1_000_000): pass\nprint(time.perf_counter() - b)"


def cores_free() -> float:
    """How many times faster two busy processes are than one after the other: 2 on two free cores."""

    def beside(n: int) -> float:
        command = [sys.executable, "-c", BUSY]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(n)]
        return max(float(p.communicate()[0]) for p in processes)

    return 2 * beside(1) / beside(2)
