"""A run that continues from a checkpoint gives the rows, events and steps of a run that was not ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fmimaster import Results, Simulation, SystemBuilder, reference_path, resume
from fmimaster.algorithms import Aligned, GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.events import EarlyReturn, LookAhead, Predictive
from fmimaster.inputs import NEPCE, Polynomial
from fmimaster.session.checkpoint_file import CheckpointFile
from fmimaster.steps import PID, EmbeddedOrders, FreeStep, MultiRate, Ramp

QUINTIC = Polynomial(2, 2)
CONTROLLED = PID(0.2, (EmbeddedOrders(0.01),), smallest=0.001, reject_above=1.0)
METHODS: dict[str, dict[str, Any]] = {
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
}
MIDDLE = 1.4


def bits(values: NDArray[Any]) -> object:
    """What must be equal: all bits, also of zeros; texts by their value."""
    return values.tolist() if values.dtype == object else values.tobytes()


def assert_same(found: Results, expected: Results) -> None:
    """All data of a run that do not depend on the wall time."""
    assert found.names == expected.names
    for name in ("time", *expected.names):
        assert bits(found[name]) == bits(expected[name]), name
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


def until_the_middle(simulation: Simulation) -> None:
    with simulation.start() as run:
        run.advance_to(MIDDLE)


@pytest.mark.parametrize("method", METHODS)
def test_it_gives_the_bits_of_one_run(method: str, tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    path = reference_path("systems/two-mass-b1-mixed.ssp")
    simulation = Simulation(path, stop_time=2.5, checkpoint=file, **METHODS[method])
    expected = whole(simulation)
    until_the_middle(simulation)
    found = resume(file)
    assert np.searchsorted(found.time, MIDDLE) > 5
    assert_same(found, expected)


TIMES = np.linspace(0, 3, 31)
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "interpreter": ("systems/two-mass-b1-fmi3.ssp", {"backend": "reference", "step_size": "0.1"}),
    "own processes": ("systems/two-mass-b1-mixed.ssp", {"isolate": True, "step_size": "0.1"}),
    "texts and binaries": ("fmi3/Feedthrough.fmu", {"output_variables": ["*"], "step_size": "0.1"}),
    "constraint": ("systems/rigid-link-fmi3.ssp", {"step_size": "0.1"}),
    "loops": ("systems/seat-chain-fmi3.ssp", {"step_size": "0.05"}),
    "power bonds": ("systems/quarter-car-a-fmi3.ssp", {"step_size": "ecco:smallest=1e-3"}),
    "predicted events": ("systems/thermostat-fmi3.ssp", {"event_clock": LookAhead()}),
    "scheduled execution": ("fmi3/Partitions.fmu", {"step_size": "0.5"}),
    "input": (
        "fmi2/LinearSystem.fmu",
        {"input": {"time": TIMES, "u1": np.sin(TIMES)}, "step_size": "0.1"},
    ),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_it_does_so_for_all_kinds_of_systems(system: str, tmp_path: Path) -> None:
    path, settings = SYSTEMS[system]
    given = {"stop_time": 3, "checkpoint": tmp_path / "run.checkpoint", **settings}
    simulation = Simulation(reference_path(path), **given)
    expected = whole(simulation)
    until_the_middle(simulation)
    assert_same(resume(tmp_path / "run.checkpoint"), expected)


@pytest.mark.parametrize("backend", ["reference", "native"])
def test_clocks_of_all_kinds_continue(backend: str, tmp_path: Path) -> None:
    """The calendar, with intervals that FMUs have told before the checkpoint."""
    builder = SystemBuilder("clocks")
    builder.add("k", reference_path("fmi3/ClockKinds.fmu"))
    times = {"count": 3, "times": [7, 15, 30] + 5 * [0], "resolution": 20}
    builder.add("e", reference_path("fmi3/EventSource.fmu"), times)
    builder.connect("e.event", "k.retune")
    builder.connect("e.event", "k.arm")
    file = tmp_path / "run.checkpoint"
    settings: dict[str, Any] = {"stop_time": 3, "step_size": "0.1", "backend": backend}
    simulation = Simulation(builder.build(), checkpoint=file, **settings)
    expected = whole(simulation)
    until_the_middle(simulation)
    found = resume(file)
    assert_same(found, expected)
    assert found.activations == expected.activations
    assert len({a.clock for a in found.activations}) == 6


@pytest.mark.parametrize("solver", [None, "cvode"])
def test_model_exchange_continues_with_the_memory_of_its_solver(
    solver: str | None, tmp_path: Path
) -> None:
    builder = SystemBuilder("ball")
    builder.add("ball", reference_path("fmi3/BouncingBall.fmu"), interface="ModelExchange")
    file = tmp_path / "run.checkpoint"
    settings: dict[str, Any] = {"stop_time": 3, "step_size": "0.1", "solver": solver}
    expected = Simulation(builder.build(), **settings).run()  # checkpoints change nothing
    until_the_middle(Simulation(builder.build(), checkpoint=file, **settings))
    assert_same(resume(file), expected)


def test_a_run_that_the_callback_of_its_progress_ends_writes_a_last_checkpoint(
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.checkpoint"
    path = reference_path("systems/two-mass-b1-mixed.ssp")
    simulation = Simulation(path, stop_time=1000, step_size="0.001", checkpoint=file)
    first = simulation.run(lambda p: p.steps < 1000)
    reached = CheckpointFile.read(file).time
    assert 0.0 < reached <= first.time[-1] < 1000.0
    with simulation.start(resume_from=file) as run:
        assert run.time == reached
        n = int(np.searchsorted(run.results.time, reached, "right"))
        assert run.results["upper.x"].tobytes() == first["upper.x"][:n].tobytes()
