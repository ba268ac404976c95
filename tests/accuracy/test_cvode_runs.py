"""Model Exchange FMUs by CVODE: exact solutions, and both executors agree in every bit."""

from __future__ import annotations

from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import changed, reference
from exchanging_fmu import exchanging
from public_fmus import modelica_fmu
from strict_fmu import Strict

from fmimaster import OptionError, Results, Simulation, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Aligned, Jacobi, Waveform
from fmimaster.fmu import Cvode, DormandPrince
from fmimaster.loops import Loops
from fmimaster.run import Backend
from fmimaster.system.description import SystemDescription

BACKENDS = (Backend.NATIVE, Backend.REFERENCE)
G, RESTITUTION, HEIGHT = 9.81, 0.7, 1.0
"""[m/s^2], -, [m] Of BouncingBall."""


def exchanged(version: str, *models: str) -> SystemBuilder:
    """A system of Model Exchange FMUs a, b, ... from these reference FMUs."""
    system = SystemBuilder("exchanged")
    for name, model in zip("abcd", models, strict=False):
        path = reference_path(f"fmi{version}/{model}.fmu")
        system.add(name, path, interface="ModelExchange")
    return system


def both(system: SystemDescription, **settings: Any) -> Results:
    """The results of the kernel, which must be those of the reference interpreter."""
    native, reference = (simulate(system, backend=backend, **settings) for backend in BACKENDS)
    assert native.time.tolist() == reference.time.tolist()
    for name, values in native.items():
        assert np.array_equal(values, reference[name]), name
    return native


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_decay_is_within_the_tolerance(version: str) -> None:
    system = exchanged(version, "Dahlquist").build(stop_time=5.0, step_size=0.1)
    results = both(system, solver="cvode:relative=1e-8")
    # the error of each step is below 1e-8, and earlier errors decay
    assert results["a.x"][-1] == pytest.approx(exp(-5.0), abs=1e-6)


@pytest.mark.parametrize("version", ["2", "3"])
def test_bounces_are_at_their_times(version: str) -> None:
    system = exchanged(version, "BouncingBall").build(stop_time=1.7, step_size=0.05)
    results = both(system, solver="cvode:relative=1e-11")
    first = sqrt(2.0 * HEIGHT / G)
    speed = G * first
    second = first + 2.0 * RESTITUTION * speed / G
    third = second + 2.0 * RESTITUTION**2 * speed / G
    # the flight after the last bounce depends on the times of all bounces
    flight = results.time[-1] - third
    height = RESTITUTION**3 * speed * flight - 0.5 * G * flight**2
    assert flight > 0.0
    assert results["a.h"][-1] == pytest.approx(height, abs=1e-7)


def test_inputs_that_jump_are_followed() -> None:
    system = exchanged("3", "Dahlquist", "Dahlquist")
    system.connect("a.x", "b.u")
    description = system.build(stop_time=3.0, step_size=0.5)
    by_cvode = both(description, solver="cvode:relative=1e-9")
    by_other = simulate(description, solver=DormandPrince(relative=1e-10))
    # six steps with a held input, each within some 1e-8
    assert by_cvode["b.x"] == pytest.approx(by_other["b.x"], abs=3e-7)


def test_inputs_along_polynomials_are_followed() -> None:
    system = exchanged("3", "Dahlquist", "Dahlquist")
    system.connect("a.x", "b.u")
    description = system.build(stop_time=3.0, step_size=0.1)
    settings: dict[str, Any] = {"algorithm": "jacobi:inputs=quadratic"}
    by_cvode = both(description, solver="cvode:relative=1e-9", **settings)
    by_other = simulate(description, solver=DormandPrince(relative=1e-10), **settings)
    assert by_cvode["b.x"] == pytest.approx(by_other["b.x"], abs=1e-6)


def test_steps_that_are_repeated_are_equal_in_every_bit() -> None:
    system = exchanged("3", "Dahlquist", "Dahlquist")
    system.connect("a.x", "b.u")
    description = system.build(stop_time=2.0, step_size=0.25)
    once, twice = (
        both(description, solver="cvode", algorithm=Waveform(Aligned(Jacobi()), sweeps=sweeps))
        for sweeps in (2, 3)
    )
    # a depends on nothing: a third sweep can change nothing, once CVODE begins each attempt anew
    assert once["a.x"].tolist() == twice["a.x"].tolist()


def test_each_component_has_its_own_solver() -> None:
    system = exchanged("3", "Dahlquist", "Dahlquist").build(stop_time=1.0, step_size=0.1)
    close = Cvode(relative=1e-10)
    mixed = both(system, solver={"a": close, "b": "cvode:relative=1e-3"})
    only = both(system, solver=close)
    assert mixed["a.x"].tolist() == only["a.x"].tolist()
    assert mixed["b.x"].tolist() != only["b.x"].tolist()


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_van_der_pol_of_modelica_is_stiff(version: str) -> None:
    system = SystemBuilder("stiff")
    system.add("a", modelica_fmu("VanDerPol", version), {"mu": 1000.0}, interface="ModelExchange")
    results = both(system.build(stop_time=2000.0, step_size=20.0), solver="cvode:relative=1e-8")
    # Hairer and Wanner (1996), IV.10, in the scaled time t / mu = 2
    assert results["a.x0"][-1] == pytest.approx(1.7061677321, abs=1e-4)


@pytest.mark.parametrize("solver", ["cvode", "dormand-prince"])
@pytest.mark.parametrize("u", [1.0, 0.0])
def test_step_events_that_change_nothing_do_not_restart_it(
    solver: str, u: float, tmp_path: Path
) -> None:
    """x' = u, and after each step the FMU enters Event Mode, as many FMUs of Maplesoft do."""
    system = SystemBuilder()
    system.add("a", exchanging(tmp_path), {"u": u, "eager": 1})
    results = both(system.build(stop_time=1000.0), step_size=1000.0, solver=solver)
    assert results["a.x"][-1] == pytest.approx(1000.0 * u, rel=1e-9)
    # the steps grow; with restarts, there are more than 1000 events
    assert results["a.entries"][-1] < 30


@pytest.mark.parametrize("settings", [{}, {"event_mode": True}], ids=str)
def test_a_loop_of_scheduled_execution_and_step_events_ends(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    """An output of the partitions depends directly on an input without a clock, and is at rest at 0 for the first 4 s."""

    def with_feed_through(text: str) -> str:
        return text.replace('clocks="11" start="0"', 'start="0"').replace(
            'dependencies="13" dependenciesKind="dependent"',
            'dependencies="13 20" dependenciesKind="dependent dependent"',
        )

    fmu = tmp_path / "partitions.fmu"
    changed(reference("fmi3/Partitions.fmu"), fmu, description=with_feed_through)
    system = SystemBuilder()
    system.add("a", exchanging(tmp_path), {"eager": 1, "period": 0.25})
    system.add("b", fmu)
    system.connect("a.n", "b.amount")
    system.connect("b.laterTicks", "a.u")
    description = system.build(stop_time=5.0, step_size=0.1)
    results = both(description, loops=Loops.ALL, **settings)
    assert results["a.x"][-1] == pytest.approx(1.0, rel=1e-9)
    assert results["a.n"][-1] == 20
    assert results["a.entries"][-1] < 300


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_the_jacobian_is_by_the_fmu_or_by_differences(version: str, tmp_path: Path) -> None:
    system = SystemBuilder()
    system.add("a", Strict(version, exchange=True, derivatives=True).write(tmp_path, "a"))
    for jacobian in ("differences", "directional"):
        solver = f"cvode:relative=1e-8,jacobian={jacobian}"
        results = both(system.build(stop_time=2.0, step_size=0.1), solver=solver)
        assert results["a.y"][-1] == pytest.approx(exp(-2.0), abs=1e-6)


def test_an_fmu_without_directional_derivatives_is_refused_before_the_run(tmp_path: Path) -> None:
    fmu = Strict("fmi3", exchange=True).write(tmp_path, "a")
    with pytest.raises(OptionError, match="'a' provides no directional derivatives of its state"):
        Simulation(fmu, solver="cvode:jacobian=directional", stop_time=1, step_size=0.1).prepare()


def test_a_jacobian_of_another_kind_is_refused() -> None:
    with pytest.raises(
        OptionError, match=r"expected Jacobian\.DIFFERENCES or Jacobian\.DIRECTIONAL or None"
    ):
        Cvode(jacobian="directional")  # type: ignore[arg-type]
