"""The kernel steps Model Exchange FMUs as the interpreter in Python does, bit for bit, and fails in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from fmimaster import Results, SimulationError, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.events.event_clock import EarlyReturn, EventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.fmu.model_exchange.integrator import Integrator
from fmimaster.fmu.model_exchange.one_step import DormandPrince, Euler
from fmimaster.inputs import ADAPTIVE, FIRST_ORDER
from fmimaster.run import Backend

VERSIONS = ("fmi2", "fmi3")


def both(system: Any, **settings: Any) -> tuple[Results, Results]:
    """Results of the reference interpreter and of the kernel."""
    first, second = (
        simulate(system, backend=backend, **settings)
        for backend in (Backend.REFERENCE, Backend.NATIVE)
    )
    return first, second


def assert_same(found: tuple[Results, Results]) -> None:
    first, second = found
    assert list(first) == list(second)
    for name in first:
        assert first[name].tobytes() == second[name].tobytes(), name
    assert [(e.time, e.cause) for e in first.events] == [(e.time, e.cause) for e in second.events]


def pair(version: str) -> SystemBuilder:
    system = SystemBuilder()
    for name in "ab":
        fmu = reference_path(f"{version}/Dahlquist.fmu")
        system.add(name, fmu, {"x": float(name == "a")}, interface="ModelExchange")
    system.connect("b.x", "a.u", factor=-1.0)
    system.connect("a.x", "b.u")
    return system


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "algorithm",
    [
        Jacobi(),
        Jacobi(ADAPTIVE),
        GaussSeidel(FIRST_ORDER),
        Waveform(Jacobi(FIRST_ORDER)),
        Richardson(GaussSeidel()),
    ],
    ids=["held", "adaptive", "lines", "waveform", "Richardson"],
)
def test_inputs_and_repeated_steps_are_the_same(version: str, algorithm: Algorithm) -> None:
    assert_same(both(pair(version), algorithm=algorithm, stop_time=1.0, step_size=0.1))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("clock", [None, EarlyReturn(), LookAhead()])
@pytest.mark.parametrize("step_size", [0.1, 2.0**-9])
def test_events_are_the_same(version: str, clock: EventClock | None, step_size: float) -> None:
    """Among the first steps, which are all measured, and among many."""
    path = reference_path(f"{version}/BouncingBall.fmu")
    settings = {"algorithm": Jacobi(), "stop_time": 2.8, "step_size": step_size}
    settings["event_clock"] = clock
    assert_same(both(path, interface="ModelExchange", **settings))


@pytest.mark.parametrize("solver", [DormandPrince(1e-3, 1e-9), Euler(0.03), Euler()])
def test_solvers_are_the_same(solver: Integrator) -> None:
    settings = {"solver": solver, "stop_time": 2.8, "step_size": 0.1}
    path = reference_path("fmi3/BouncingBall.fmu")
    assert_same(both(path, interface="ModelExchange", **settings))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_solver_that_cannot_go_on_says_the_same(version: str) -> None:
    """x' = 1e300 x overflows in the first step of a thousandth of a rounding error."""
    messages = []
    for backend in (Backend.REFERENCE, Backend.NATIVE):
        with np.errstate(all="ignore"), pytest.raises(SimulationError) as raised:
            simulate(
                reference_path(f"{version}/Dahlquist.fmu"),
                interface="ModelExchange",
                start_values={"k": -1e300},
                stop_time=1.0,
                step_size=0.1,
                backend=backend,
            )
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert "'Dahlquist' cannot be integrated beyond t = " in messages[0]
    assert "The step would become too short for its tolerance." in messages[0]
