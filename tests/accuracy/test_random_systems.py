"""Event methods on random systems of two masses: a small part of benchmarks/random_events.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from in_turn import in_turn
from outcomes import METHODS
from random_two_mass import SIZES, random_system

from fmimaster import Simulation
from fmimaster.base.installation import reference_path
from fmimaster.studies.demos.scoring import executions, score
from fmimaster.studies.demos.two_mass import Blocks, TwoMassReference

SYSTEMS = range(10, 30)
"""Both densities of events; FMI 3.0 and mixed."""


@pytest.mark.parametrize(("number", "method"), in_turn(SYSTEMS, ["PZ", "E2"]))
def test_all_events_of_random_systems_are_found(number: int, method: str) -> None:
    algorithm, clock = METHODS[method]
    system = random_system(number)
    size = system.longest
    simulation = Simulation(
        reference_path(f"systems/two-mass-b3-{system.version}.ssp"),
        algorithm=algorithm,
        step_size=size,
        stop_time=system.stop_time,
        event_clock=clock,
        start_values=system.start_values,
        debug_logging=True,
    )
    with executions() as executed:
        results = simulation.run()
    s = score(results, executed, system.exact, together=0.1 * size, matching=size)
    assert (s.missed, s.false, s.one_sided) == (0, 0, 0)


def test_a_random_system_is_the_same_each_time() -> None:
    first = random_system(3)
    random_system.cache_clear()
    assert random_system(3).start_values == first.start_values
    assert random_system(3, seed=10).start_values != first.start_values


@pytest.mark.parametrize("number", SYSTEMS)
def test_a_random_system_turns_less_than_0_7_rad_in_a_step(number: int) -> None:
    system = random_system(number)
    frequencies = np.abs(np.linalg.eigvals(system.blocks.matrix()))
    assert 0.2 <= frequencies.max() * system.longest <= 0.7
    assert system.sizes == SIZES[: number % len(SIZES) + 1]


def test_the_exact_solution_has_an_event_that_lies_between_two_points_of_its_scan() -> None:
    """The upper block is in the ceiling for 0.1 ms, if it does not rebound; the scan has steps of 2 ms."""
    throw = Blocks(dx=-1e9, start=(-5.0, 20.0, -10.0, 1.0))  # no ceiling in reach, no collision
    times = np.linspace(0.0, 0.5, 50_001)
    motion = TwoMassReference(0.5, blocks=throw)(times)[:, :2]
    highest = np.argmax(motion[:, 0])
    acceleration = np.diff(motion[highest - 1 : highest + 2, 1]).mean() / 1e-5
    blocks = replace(throw, dx=-(motion[highest, 0] + acceleration * 5e-5**2 / 2))
    exact = TwoMassReference(float(times[highest + 100]), blocks=blocks)
    (event,) = exact.events
    assert event.name == "ceiling"
    assert event.state[0] == pytest.approx(-blocks.dx, abs=1e-13)
