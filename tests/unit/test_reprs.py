"""What Python shows of a simulation and its parts: a line or a few, whatever the size of the system."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest
from command_line import reference

import fmimaster
from fmimaster import Simulation, SystemBuilder
from fmimaster.algorithms import GaussSeidel


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return Simulation(reference("systems/four-units-fmi3.ssp"), stop_time=1, step_size="1/100")


def test_a_simulation_shows_only_what_is_not_default() -> None:
    assert repr(Simulation("a.fmu")) == "Simulation('a.fmu')"
    given = Simulation("a.fmu", algorithm="GaussSeidel", stop_time=1, allow_nan=True)
    assert (
        repr(given) == "Simulation('a.fmu', algorithm=GaussSeidel(), stop_time=1, allow_nan=True)"
    )
    assert eval(repr(given), {"Simulation": Simulation, "GaussSeidel": GaussSeidel}) == given


def test_long_settings_are_cut() -> None:
    values = {f"component.variable{k}": k for k in range(1000)}
    shown = repr(Simulation("a.fmu", start_values=values))
    assert shown.startswith("Simulation('a.fmu', start_values={'component.variable0': 0, ")
    assert len(shown) < 120


def test_what_is_prepared_is_a_line(simulation: Simulation) -> None:
    prepared = simulation.prepare()
    times = "t = 0 s to 1 s, steps of at most 0.01 s"
    assert repr(prepared) == f"<Prepared 'four-units': 4 instances, {times}>"
    assert repr(prepared.plan) == "<Plan of 4 instances (S1, S2, S3, S4), 6 connections>"
    assert repr(prepared.description).startswith("<SystemDescription 'four-units': 4 components, ")


def test_a_builder_is_a_line() -> None:
    builder = SystemBuilder("drive")
    for name in ("motor", "load"):
        builder.add(name, f"{name}.fmu")
    builder.connect("motor.w", "load.w")
    assert repr(builder) == "<SystemBuilder 'drive': 2 components, 1 connection>"
    assert repr(builder.build()) == "<SystemDescription 'drive': 2 components>"


def test_the_version_is_that_of_the_command() -> None:
    command = [sys.executable, "-m", "fmimaster", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == f"fmimaster {fmimaster.__version__}\n"
    assert "__version__" in dir(fmimaster)
    assert fmimaster.__version__ == importlib.metadata.version("fmimaster")
