"""A run that continues from a checkpoint gives the rows, events and steps of a run that was not ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster import (
    NEPCE,
    PID,
    Aligned,
    AutomaticSequence,
    Check,
    EarlyReturn,
    EmbeddedOrders,
    FreeStep,
    GaussSeidel,
    Jacobi,
    MultiRate,
    Polynomial,
    Predictive,
    Ramp,
    Results,
    Richardson,
    Simulation,
    SubSteps,
    Waveform,
    reference_path,
    resume,
)

QUINTIC = Polynomial(2, 2)
CONTROLLED = PID(0.2, (EmbeddedOrders(0.01),), smallest=0.001, reject_above=1.0)
METHODS: dict[str, dict[str, Any]] = {
    "Gauss-Seidel": {"algorithm": GaussSeidel(Polynomial(2, 1)), "step_size": "0.01"},
    "E2": {
        "algorithm": Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2),
        "step_size": FreeStep(0.2),
        "event_clock": EarlyReturn(),
    },
    "controlled": {"algorithm": GaussSeidel(), "step_size": CONTROLLED},
    "controlled in C": {"step_size": PID(0.2, (EmbeddedOrders(0.01),), smallest=0.001)},
    "PZ": {"algorithm": Jacobi(QUINTIC), "step_size": Ramp(0.1), "event_clock": Predictive()},
    "rates": {"step_size": MultiRate("0.035", {"upper": "1/60"})},
    "step doubling": {"algorithm": Richardson(Jacobi(NEPCE)), "step_size": "0.05"},
    "sub-steps": {"algorithm": SubSteps(GaussSeidel(NEPCE), {"upper": 3}), "step_size": "0.05"},
    "automatic sequence": {
        "algorithm": AutomaticSequence(parallel=True, extrapolation=QUINTIC),
        "step_size": "0.05",
        "event_clock": Check(),
    },
}
MIDDLE = 1.6


def assert_same(found: Results, expected: Results) -> None:
    """All data of a run that do not depend on the wall time."""
    assert found.names == expected.names
    for name in ("time", *expected.names):
        assert found[name].tobytes() == expected[name].tobytes(), name
    assert found.events == expected.events
    assert found.steps == expected.steps
    a, b = found.statistics, expected.statistics
    assert (a.steps, a.attempts, a.rows, a.events) == (b.steps, b.attempts, b.rows, b.events)
    assert [(i.calls, i.restores) for i in a.instances] == [
        (i.calls, i.restores) for i in b.instances
    ]
    assert a.loops == b.loops


def whole(simulation: Simulation) -> Results:
    """A run that pauses where the other one ends."""
    with simulation.start() as run:
        run.advance_to(MIDDLE)
        run.advance_to(run.stop_time)
    return run.results


def until_the_middle(simulation: Simulation, **files: Any) -> None:
    with simulation.start(**files) as run:
        run.advance_to(MIDDLE)


@pytest.mark.parametrize("method", METHODS)
def test_it_gives_the_bits_of_one_run(method: str, tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    path = reference_path("systems/two-mass-b1-mixed.ssp")
    simulation = Simulation(path, stop_time=5, checkpoint=file, **METHODS[method])
    expected = whole(simulation)
    until_the_middle(simulation)
    found = resume(file)
    assert np.searchsorted(found.time, MIDDLE) > 5
    assert_same(found, expected)
