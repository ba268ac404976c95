"""What events and ticks cost where there are many of them, or of their clocks. All times are CPU times; see growth.py."""

from __future__ import annotations

import logging
from typing import Any

import ten_hours
from sizes import cpu, least

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import Jacobi
from fmimaster.events import Predictive
from fmimaster.inputs import Polynomial

MANY = 30_000
"""Instants, of which the first tenth does not count: programs are made and checked then."""


def bounces(events: int) -> float:
    """[s] A whole run of a ball that bounces so many times on a floor."""
    system = ten_hours.system(1.0, 3)

    def run(times: int) -> float:
        simulation = Simulation(
            system,
            algorithm=Jacobi(Polynomial(2, 2)),
            event_clock=Predictive(),
            step_size=0.1,
            stop_time=ten_hours.PERIOD * (times + 0.5),
        )
        return cpu(simulation.run)

    logging.getLogger("fmimaster").setLevel(logging.CRITICAL)  # advice about the step
    run(10)
    return run(events)


def tick(clocks: int) -> float:
    """[us] An instant at which so many periodic clocks tick together, each of an FMU of its own."""
    return _per_instant([{} for _ in range(clocks)], max(MANY // clocks, MANY // 10))


def tick_in_turn(clocks: int) -> float:
    """[us] An instant at which one of so many periodic clocks ticks: their intervals are equal, their phases differ."""
    return _per_instant(
        [
            {"interval.counter": clocks, "interval.resolution": 10, "shift.counter": k}
            for k in range(clocks)
        ],
        MANY,
    )


def _per_instant(starts: list[dict[str, Any]], ticks: int) -> float:
    builder = SystemBuilder("many")
    for k, start in enumerate(starts):
        builder.add(f"s{k}", reference_path("fmi3/Sampler.fmu"), start)

    def run(ticks: int) -> float:
        system = builder.build(start_time=0, stop_time=ticks * 0.1, step_size=0.1)
        simulation = Simulation(system)
        return cpu(simulation.run)

    few = ticks // 10
    run(few)
    return 1e6 * (least(lambda: run(ticks), 5) - least(lambda: run(few), 5)) / (ticks - few)
