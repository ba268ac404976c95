"""Power bonds of which both directions are wrong are told; the residual energy does not show it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fmimaster import AccuracyWarning, Simulation, reference_path
from fmimaster.front.bond_directions import reversed_bonds
from fmimaster.front.single_run import hidden
from fmimaster.system.description import Port, SystemDescription
from fmimaster.system.read import read_system

THOROUGH = ("quarter-car-a", "quarter-car-b-nonlinear", "survey-two-mass")
NAMES = [
    *("quarter-car-a-nonlinear", "quarter-car-b", "seat-chain"),
    *(pytest.param(name, marks=pytest.mark.thorough) for name in THOROUGH),
]


def swapped(port: Port) -> Port:
    return replace(port, power="out" if port.power == "in" else "in")


def with_reversed_ports(name: str) -> SystemDescription:
    description = read_system(reference_path(f"systems/{name}.ssp"))
    bonds = tuple(
        replace(bond, ports=(swapped(bond.ports[0]), swapped(bond.ports[1])))
        for bond in description.system.power_bonds
    )
    assert bonds
    return replace(description, system=replace(description.system, power_bonds=bonds))


def told(system: SystemDescription | Path) -> list[str]:
    simulation = Simulation(system, step_size="1/500", stop_time="1/10")
    prepared = simulation.prepare()
    return [*reversed_bonds(prepared.completed(simulation), prepared, hidden)]


@pytest.mark.parametrize("name", NAMES)
def test_both_directions_that_are_wrong_are_told(name: str) -> None:
    version = "fmi2" if name != "quarter-car-b" else "fmi3"
    assert not told(reference_path(f"systems/{name}-{version}.ssp"))
    found = told(with_reversed_ports(f"{name}-{version}"))
    assert len(found) == (2 if name == "seat-chain" else 1)
    assert all("both ports contradict their directions" in text for text in found)


@pytest.mark.measured
def test_a_run_warns_of_them() -> None:
    wrong = Simulation(with_reversed_ports("quarter-car-a-fmi2"), stop_time="1/2")
    with pytest.warns(AccuracyWarning, match="power bond 'suspension': both ports") as warned:
        results = wrong.run()
    assert len(warned) == 1
    assert str(warned[0].message) in results.statistics.warnings
