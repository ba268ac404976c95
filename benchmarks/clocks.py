"""What an activation of a periodic clock costs, beside runs without ticks; memory at many of them."""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.instants.calendar import Calendar
from fmimaster.run import Backend
from fmimaster.system import LevelCrossing, SampleAndHold

INTERVAL = 0.1
"""[s] Of all clocks, and of the steps."""


def controller_and_plant() -> SystemBuilder:
    """A sampled controller and a continuous plant, which are connected both ways."""
    builder = SystemBuilder("controlled")
    builder.add("plant", reference_path("fmi3/Dahlquist.fmu"))
    builder.add("controller", reference_path("fmi3/Sampler.fmu"), {"gain": -0.5})
    builder.connect("plant.x", "controller.u")
    builder.connect("controller.held", "plant.u")
    return builder


def clock_alone() -> SystemBuilder:
    """One FMU that only samples."""
    builder = SystemBuilder("sampler")
    builder.add("sampler", reference_path("fmi3/Sampler.fmu"))
    return builder


def partitions() -> SystemBuilder:
    """One FMU with Scheduled Execution: a partition each second, others less often."""
    builder = SystemBuilder("partitions")
    builder.add("partitions", reference_path("fmi3/Partitions.fmu"))
    return builder


def three_clocks() -> SystemBuilder:
    """One FMU with Scheduled Execution: partitions every 1/4 s, every second, and every 4 s."""
    builder = SystemBuilder("clocks")
    builder.add("partitions", reference_path("fmi3/Partitions.fmu"), {"request": "1/4"})
    return builder


def partitions_and_plant() -> SystemBuilder:
    """Two partitions each second, and another FMU, which are connected both ways."""
    builder = SystemBuilder("tasks")
    builder.add("partitions", reference_path("fmi3/Partitions.fmu"), {"request": 1})
    builder.add("plant", reference_path("fmi3/Feedthrough.fmu"))
    builder.connect("partitions.laterTicks", "plant.Int32_input")
    builder.connect("plant.Int32_output", "partitions.amount")
    return builder


def held_plant() -> SystemBuilder:
    """A continuous plant with a sample and hold, which are connected both ways."""
    builder = SystemBuilder("held")
    builder.add("plant", reference_path("fmi3/Dahlquist.fmu"))
    builder.add("hold", SampleAndHold(period=str(INTERVAL)))
    builder.connect("plant.x", "hold.u")
    builder.connect("hold.y", "plant.u")
    return builder


def watched_plant() -> SystemBuilder:
    """A continuous plant with a level that it does not reach: steps without events."""
    builder = SystemBuilder("watched")
    builder.add("plant", reference_path("fmi3/Dahlquist.fmu"))
    builder.add("level", LevelCrossing(-1.0))
    builder.connect("plant.x", "level.u")
    return builder


def two_plants() -> SystemBuilder:
    """Two continuous FMUs: without clocks."""
    builder = SystemBuilder("plants")
    for name in ("a", "b"):
        builder.add(name, reference_path("fmi3/Dahlquist.fmu"))
    builder.connect("a.x", "b.u")
    builder.connect("b.x", "a.u")
    return builder


SYSTEMS: dict[str, tuple[Callable[[], SystemBuilder], float]] = {
    "controller and plant": (controller_and_plant, INTERVAL),
    "a clock alone": (clock_alone, INTERVAL),
    "Scheduled Execution": (partitions, 1.0),
    "partitions, three clocks": (three_clocks, 0.25),
    "partitions and plant": (partitions_and_plant, 1.0),
    "SampleAndHold": (held_plant, INTERVAL),
    "LevelCrossing": (watched_plant, INTERVAL),
    "no clocks": (two_plants, INTERVAL),
}
"""System, and the step in s: so long is the interval of its fastest clock."""


def seconds(make: Callable[[], SystemBuilder], step: float, n: int, backend: Backend) -> float:
    """Wall time in s of n steps, each with an activation; rows are written as text, and dropped."""
    system = make().build(start_time=0, stop_time=n * step, step_size=step)
    simulation = Simulation(system, backend=backend)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        started = time.perf_counter()
        simulation.run(output_file=nowhere)
        return time.perf_counter() - started


def of_calendar(n: int) -> float:
    """Wall time in s of n ticks of 1/10 s in the calendar alone (C5 of hybrid.md)."""
    calendar = Calendar(10)
    calendar.repeat(0, 0, 1)
    started = time.perf_counter()
    for _ in range(n):
        calendar.take((0,))
    return time.perf_counter() - started


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", nargs="?", type=int, default=100_000, help="activations")
    parser.add_argument("--backend", default="native", choices=[b.value for b in Backend])
    given = parser.parse_args()
    print(f"{'calendar alone':26} {of_calendar(1_000_000):8.2f} us per activation")
    for name, (make, step) in SYSTEMS.items():
        few = seconds(make, step, given.n // 10, Backend(given.backend))
        begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        many = seconds(make, step, given.n, Backend(given.backend))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun
        each = 1e6 * (many - few) / (given.n - given.n // 10)
        print(f"{name:26} {each:8.2f} us per activation   {grown / 1024:8.1f} MB more")


if __name__ == "__main__":
    main()
