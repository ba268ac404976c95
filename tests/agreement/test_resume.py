"""A run that continues from a checkpoint gives the rows, events and steps of a run that was not ended."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from same_runs import assert_same

from fmimaster import (
    OptionError,
    PythonComponent,
    Results,
    Simulation,
    SimulationError,
    SystemBuilder,
    reference_path,
    resume,
)
from fmimaster.algorithms import Aligned, GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.events import EarlyReturn, LookAhead, Predictive
from fmimaster.inputs import NEPCE, Polynomial
from fmimaster.session.checkpoint_file import CheckpointFile
from fmimaster.steps import PID, EmbeddedOrders, FreeStep, MultiRate, Ramp
from fmimaster.system import Lifetime, Port

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


def whole(simulation: Simulation) -> Results:
    """A run that pauses where the other one ends."""
    with simulation.start() as run:
        run.advance_to(MIDDLE)
        run.advance_to(run.stop_time)
    return run.results


def until_the_middle(simulation: Simulation) -> None:
    with simulation.start() as run:
        run.advance_to(MIDDLE)


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
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


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
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


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
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


def changing() -> tuple[SystemBuilder, dict[str, Any]]:
    """Changes at 1/3 s (s begins, with a clock), at an event at 0.7 s (h ends), at 1 s (g begins) and at 3/2 s
    (connections); a power bond, an input that jumps at 1 s, a loop, and an FMU without Event Mode."""
    system = SystemBuilder("changing")
    loop_function = reference_path("fmi3/LoopFunction.fmu")
    system.add("e", reference_path("fmi3/EventSource.fmu"), {"count": 0})
    system.add("k", loop_function)
    sampler = {"interval.counter": 1, "interval.resolution": 7}
    system.add("s", reference_path("fmi3/Sampler.fmu"), sampler, lifetime=Lifetime("1/3"))
    system.add("C", reference_path("fmi2/Dahlquist.fmu"))
    system.add("h", loop_function, {"c1": 2}, lifetime=Lifetime(until_event="event of k"))
    system.add("g", loop_function, {"c0": 1, "c1": 0.5}, lifetime=Lifetime(1))
    system.connect("g.y", "g.u", lifetime=Lifetime(until_time="3/2"))
    system.connect("C.x", "s.u")
    system.connect("e.ramp", "C.u", lifetime=Lifetime("3/2"))
    system.add("chassis", reference_path("fmi3/QuarterCarChassisA.fmu"))
    system.add("wheel", reference_path("fmi3/QuarterCarWheelA.fmu"))
    for life in (Lifetime(until_time=1), Lifetime("3/2")):
        system.connect("chassis.velocity", "wheel.velocity", lifetime=life)
        system.connect("wheel.force", "chassis.force", factor=-1.0, lifetime=life)
    suspension = (
        Port("chassis", input="force", output="velocity", power="in"),
        Port("wheel", input="velocity", output="force", power="in"),
    )
    system.power_bond("suspension", *suspension)
    table = {
        "time": [0, 0.7, 0.7, 1, 1, 2],
        "k.u": [0, 0, 1, 1, 1, 1],
        "h.u": [0, 1, 1, 1, 1, 1],
        "C.u": [0, 1, 1, 1, 5, 6],
    }
    return system, {"stop_time": 2, "loops": "all", "input": table, "output_variables": ["*"]}


@pytest.mark.parametrize(
    "settings",
    [
        {"step_size": "0.1", "algorithm": "gauss-seidel", "isolate": ["C", "chassis"]},
        *(
            pytest.param(more, marks=pytest.mark.thorough)
            for more in (
                {"step_size": "0.1", "backend": "reference"},
                {"step_size": "0.06", "inputs": {"chassis.force": "linear", "C.u": "linear"}},
                {"step_size": PID(0.2, (EmbeddedOrders(0.1),), smallest=1e-4)},
            )
        ),
    ],
    ids=["gauss-seidel", "interpreter", "polynomials", "controlled"],
)
def test_a_run_continues_before_at_and_after_each_change(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints of a run are copied, and continued: those at changes, and every third one."""
    system, given = changing()
    given |= settings
    expected = Simulation(system.build(), **given).run()
    write, times = CheckpointFile.write, list[float]()

    def copied(self: CheckpointFile, path: Path) -> None:
        write(self, path)
        times.append(self.time)
        shutil.copytree(path.parent, tmp_path / f"{len(times)}")

    file = tmp_path / "run" / "run.checkpoint"
    file.parent.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFile, "write", copied)
        run = Simulation(system.build(), checkpoint=file, checkpoint_interval=1e-6, **given).run()
    assert_same(run, expected)
    changes = {e.time for e in expected.events if e.name == "change of the structure"}
    assert len(changes) == 4
    assert {0.0, *changes} <= set(times)
    for k, time in enumerate(times, 1):
        if k % 3 and time not in changes:
            continue
        found = resume(tmp_path / str(k) / "run.checkpoint")
        assert_same(found, expected)
        assert found.activations == expected.activations, time
        assert found.power_bonds == expected.power_bonds
        assert found.statistics.warnings == expected.statistics.warnings
        assert found.statistics.notes == expected.statistics.notes


def test_a_structure_that_returns_continues(tmp_path: Path) -> None:
    """h exists from 1 s to 2 s; the run is ended by a function, in the second time without h, and while h exists."""
    system = SystemBuilder("returns")
    loop_function = reference_path("fmi3/LoopFunction.fmu")
    system.add("g", loop_function, {"c0": 1, "c1": 0.5})
    system.connect("g.y", "g.u")
    system.add("h", loop_function, lifetime=Lifetime(1, 2))
    system.add("k", loop_function)
    file = tmp_path / "run.checkpoint"

    def simulation(limit: float, **settings: Any) -> Simulation:
        def ending(time: float) -> float:
            if time > limit:
                raise ValueError("the end")
            return time

        given = {"stop_time": 3, "step_size": "0.1", "loops": "all", **settings}
        return Simulation(system.build(), input={"k.u": ending}, **given)

    expected = simulation(3).run()
    assert expected.statistics.loops[0].solutions > 0
    for end in (2.45, 1.45):
        with pytest.raises(SimulationError, match="the end"):
            simulation(end, checkpoint=file, checkpoint_interval=1e-6).run()
        found = resume(file, simulation(3, checkpoint=file))
        assert_same(found, expected)


def test_another_lifetime_is_another_run(tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"

    def simulation(begin: str) -> Simulation:
        system = SystemBuilder("lifetimes")
        system.add("g", reference_path("fmi3/LoopFunction.fmu"))
        life = Lifetime(begin)
        system.add("h", reference_path("fmi3/LoopFunction.fmu"), lifetime=life)
        return Simulation(system.build(), stop_time=2, step_size="0.1", checkpoint=file)

    simulation("1").run()
    resume(file, simulation("1"))
    with pytest.raises(OptionError, match="system, or other settings"):
        resume(file, simulation("1.1"))


class Summing(PythonComponent):
    """Its output is the sum of all inputs so far."""

    def __init__(self, *, plain: bool) -> None:
        super().__init__(inputs={"u": 1.0}, outputs={"y": 0.0})
        self.plain = plain

    def start(self, t: float) -> None:
        """What is not plain cannot be written."""
        self.seen = [t]
        if not self.plain:
            self.other = object()

    def step(self, t: float, h: float) -> None:
        """Remember the input."""
        self.seen.append(self.u)
        self.y = sum(self.seen)


@pytest.mark.parametrize("plain", [True, False])
def test_a_component_in_python_that_begins_later(
    plain: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If its attributes cannot be written, no checkpoint is written once it is there: its calls are not repeated."""
    system = SystemBuilder("python")
    system.add("d", reference_path("fmi3/Dahlquist.fmu"))
    system.add("p", Summing(plain=plain), lifetime=Lifetime(1))
    system.connect("d.x", "p.u")
    file = tmp_path / "run.checkpoint"
    settings: dict[str, Any] = {"stop_time": 2, "step_size": "0.125", "checkpoint_interval": 1e-6}
    simulation = Simulation(system.build(), checkpoint=file, **settings)
    expected = simulation.run()
    assert ("No more checkpoints are written: The state of 'p'" in caplog.text) is not plain
    assert (CheckpointFile.read(file).time > 1.0) is plain
    assert_same(resume(file, simulation), expected)
