"""Model Exchange FMUs against exact solutions, their own Co-Simulation, and fmpy."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import changed
from public_fmus import modelica_fmu

from fmimaster import Results, Simulation, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.base.errors import SimulationError
from fmimaster.events.event_clock import EarlyReturn
from fmimaster.fmu.model_exchange.one_step import Euler
from fmimaster.inputs import FIRST_ORDER
from fmimaster.system.declarations import Interface

VERSIONS = ("fmi2", "fmi3")
TOLERANCE = 1e-6
"""Relative tolerance of a run without a setting."""


def pair(version: str, interface: Interface | str, path: Path | None = None) -> SystemBuilder:
    """a' = -a - b, b' = -b + a from a = 1, b = 0: a + i b = exp((i - 1) t)."""
    system = SystemBuilder()
    for name, start in (("a", 1.0), ("b", 0.0)):
        fmu = path or reference_path(f"{version}/Dahlquist.fmu")
        system.add(name, fmu, {"x": start}, interface=interface)
    system.connect("b.x", "a.u", factor=-1.0)
    system.connect("a.x", "b.u")
    return system


def bounces(version: str, **settings: Any) -> Results:
    path = reference_path(f"{version}/BouncingBall.fmu")
    return simulate(path, interface="ModelExchange", stop_time=3.0, step_size=0.1, **settings)


def exact_bounces() -> list[float]:
    first = sqrt(2.0 / 9.81)
    times = [first]
    for k in range(1, 11):
        times.append(times[-1] + 2.0 * 0.7**k * first)
    return times


def exact_height(time: float) -> float:
    times = exact_bounces()
    k = int(np.searchsorted(times, time))
    if k == 0:
        return 1.0 - 9.81 / 2.0 * time**2
    if k == len(times):
        return 0.0
    since, speed = time - times[k - 1], 0.7**k * sqrt(2.0 * 9.81)
    return speed * since - 9.81 / 2.0 * since**2


@pytest.mark.parametrize("version", VERSIONS)
def test_state_events_are_located_within_1e_9(version: str) -> None:
    """With event clock, each bounce is an event of the run at its exact time; the ball rests after the eleventh."""
    results = bounces(version, event_clock=EarlyReturn(), algorithm=Jacobi())
    assert [float(e.time) for e in results.events] == pytest.approx(exact_bounces(), abs=1e-9)
    assert results["h"][-1] == results["v"][-1] == 0.0


@pytest.mark.parametrize("version", VERSIONS)
def test_events_inside_steps_give_the_exact_solution(version: str) -> None:
    """Bounces are executed inside of steps, unless an FMU has clocks; between them the parabola is exact."""
    results = bounces(version)
    assert len(results.events) == (11 if version == "fmi3" else 0)
    assert results["h"] == pytest.approx([exact_height(t) for t in results.time], abs=1e-10)


@pytest.mark.parametrize("settings", [{}, {"event_clock": EarlyReturn(), "algorithm": Jacobi()}])
def test_bounces_are_counted_as_in_co_simulation(settings: dict[str, Any]) -> None:
    """bounce.out of FMI 2.0 says how often the event has occurred, also if the importer has located it."""
    assert bounces("fmi2", **settings)["bounce.out"][-1] == 11


@pytest.mark.parametrize("version", VERSIONS)
def test_dahlquist_is_as_accurate_as_the_tolerance(version: str) -> None:
    path = reference_path(f"{version}/Dahlquist.fmu")
    results = simulate(path, interface="ModelExchange", stop_time=10.0, step_size=0.5)
    assert np.abs(results["x"] - np.exp(-results.time)).max() < TOLERANCE
    tight = simulate(
        path, interface="ModelExchange", stop_time=10.0, step_size=0.5, tolerance=1e-10
    )
    assert np.abs(tight["x"] - np.exp(-tight.time)).max() < 1e-10


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "algorithm",
    [
        Jacobi(),
        Jacobi(FIRST_ORDER),
        GaussSeidel(),
        Waveform(Jacobi(FIRST_ORDER)),
        Richardson(GaussSeidel()),
    ],
    ids=["held", "lines", "Gauss-Seidel", "waveform", "Richardson"],
)
def test_a_coupled_system_gives_what_co_simulation_gives(
    version: str, algorithm: Algorithm
) -> None:
    """Dahlquist solves held and linear inputs exactly in Co-Simulation: they are the same functions of time."""
    exchanged, stepped = (
        simulate(pair(version, interface), algorithm=algorithm, stop_time=2.0, step_size=0.1)
        for interface in ("ModelExchange", "CoSimulation")
    )
    assert exchanged["b.x"] == pytest.approx(stepped["b.x"], abs=TOLERANCE)


@pytest.mark.parametrize("version", VERSIONS)
def test_states_are_copied_if_an_fmu_cannot_save_its_own(version: str, tmp_path: Path) -> None:
    """Repeated steps have the same results in every bit, and the plan says how they go back."""
    path = changed(
        reference_path(f"{version}/Dahlquist.fmu"),
        tmp_path / "cannot-save.fmu",
        description=lambda text: text.replace("canGetAndSetFMUState=", "a=").replace(
            "canGetAndSetFMUstate=", "a="
        ),
    )
    algorithm = Waveform(Jacobi(FIRST_ORDER))
    saved, copied = (
        simulate(system, algorithm=algorithm, stop_time=1.0, step_size=0.1)
        for system in (
            pair(version, Interface.MODEL_EXCHANGE),
            pair(version, Interface.MODEL_EXCHANGE, path),
        )
    )
    assert np.array_equal(saved["b.x"], copied["b.x"])
    plan = str(Simulation(pair(version, Interface.MODEL_EXCHANGE, path)).plan())
    assert "'a', 'b' cannot save the FMU state" in " ".join(plan.split())


def test_copied_states_cannot_undo_an_event_inside_a_step(tmp_path: Path) -> None:
    path = changed(
        reference_path("fmi2/BouncingBall.fmu"),
        tmp_path / "cannot-save.fmu",
        description=lambda text: text.replace("canGetAndSetFMUstate=", "a="),
    )
    system = SystemBuilder()
    system.add("ball", path, interface="ModelExchange")
    system.add("a", reference_path("fmi3/Dahlquist.fmu"))
    system.connect("ball.h", "a.u")
    with pytest.raises(SimulationError, match=r"'ball' cannot go back to t = 0\.4 s"):
        simulate(system, algorithm=Waveform(Jacobi(FIRST_ORDER)), stop_time=1.0, step_size=0.1)


# FMUs of modelica, if they are there

MODELS = {
    "BouncingBall": (3.0, 0.01),
    "Dahlquist": (10.0, 0.1),
    "Stair": (10.0, 0.2),
    "VanDerPol": (20.0, 0.1),
    "StateSpace": (10.0, 0.1),
}
"""Stop time and step size in s."""


@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("solver", ["dormand-prince", "cvode"])
def test_modelicas_ball_bounces_within_1e_9(version: str, solver: str) -> None:
    results = simulate(
        modelica_fmu("BouncingBall", version),
        interface="ModelExchange",
        solver=f"{solver}:relative=1e-12",
        event_clock=EarlyReturn(),
        algorithm=Jacobi(),
        stop_time=2.0,
        step_size=0.1,
    )
    found = [float(event.time) for event in results.events]
    assert len(found) == 4
    assert found == pytest.approx(exact_bounces()[: len(found)], abs=1e-9)


@pytest.mark.filterwarnings("ignore:the output 'y' grows")  # StateSpace is unstable
@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("solver", ["dormand-prince", "cvode:relative=1e-8"])
def test_modelicas_fmus_equal_fmpy_within_ten_times_the_tolerance(
    model: str, version: str, solver: str
) -> None:
    """Rows beside an event and the last row are left out: at the very time of an event fmpy has the left limit or the
    right one, and it executes none at the stop time."""
    fmpy = pytest.importorskip("fmpy")
    path = modelica_fmu(model, version)
    stop, step = MODELS[model]
    ours = simulate(path, interface="ModelExchange", stop_time=stop, step_size=step, solver=solver)
    theirs = fmpy.simulate_fmu(
        str(path),
        fmi_type="ModelExchange",
        stop_time=stop,
        output_interval=step,
        relative_tolerance=1e-2 * TOLERANCE,
        record_events=False,
    )
    for name in theirs.dtype.names[1:]:
        columns = (np.reshape(table[name], (len(table[name]), -1)).T for table in (ours, theirs))
        for mine, other in zip(*columns, strict=True):
            scale = max(1.0, float(np.abs(other).max()))
            before, there, after = (
                np.interp(ours.time + shift, theirs["time"], other.astype(float))
                for shift in (-step, 0.0, step)
            )
            smooth = np.abs(after - before) < 0.2 * scale
            smooth[-1] = False
            assert smooth.sum() > 0.6 * len(smooth)
            assert np.abs(mine.astype(float) - there)[smooth].max() < 10.0 * TOLERANCE * scale, name


@pytest.mark.filterwarnings("ignore:the output 'y' grows")  # StateSpace is unstable
@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize(
    ("model", "step", "stop"),
    [
        ("BouncingBall", 0.001, 0.44),
        ("Dahlquist", 0.1, 10.0),
        ("Stair", 0.2, 9.8),
        ("VanDerPol", 0.01, 20.0),
        ("StateSpace", 0.001, 10.0),
    ],
)
def test_modelicas_fmus_equal_their_own_co_simulation(
    model: str, version: str, step: float, stop: float
) -> None:
    """In Co-Simulation they use Euler steps of this size. BouncingBall up to its first bounce: it locates none."""
    path = modelica_fmu(model, version)
    ours, own = (
        simulate(path, interface=interface, solver=solver, stop_time=stop, step_size=step)
        for interface, solver in (("ModelExchange", Euler(step)), ("CoSimulation", None))
    )
    for name in own:
        assert ours[name] == pytest.approx(own[name], rel=1e-11, abs=1e-12)
