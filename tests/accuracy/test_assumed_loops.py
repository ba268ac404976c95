"""Loops that exist only because FMUs do not declare on what their outputs depend: they give the values of no loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from edited_fmu import edited_fmu

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.base.errors import LoopError
from fmimaster.run import Backend

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

pytestmark = [
    pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE]),
    pytest.mark.parametrize("version", ["fmi2", "fmi3"]),
]

UNDECLARED = {"dependencies": None, "dependenciesKind": None}

OUTPUTS = {"S1": ("y11", "y12"), "S2": ("y21",), "S3": ("y31",), "S4": ("y41", "y42")}
WIRING = (
    "S4.y42 S1.u11",
    "S1.y11 S2.u21",
    "S2.y21 S3.u31",
    "S4.y41 S3.u32",
    "S1.y12 S4.u41",
    "S3.y31 S4.u42",
)


def four_units(folder: Path, version: str, undeclared: bool) -> SystemBuilder:
    """The four units of sequence.md 2."""
    builder = SystemBuilder("four units")
    for name, outputs in OUTPUTS.items():
        path = folder / f"{name}.fmu"
        unknowns = dict.fromkeys(outputs, UNDECLARED) if undeclared else {}
        edited_fmu(reference_path(f"{version}/FourUnits{name}.fmu"), path, unknowns=unknowns)
        builder.add(name, path)
    for ends in WIRING:
        builder.connect(*ends.split())
    return builder


def test_four_units_start_with_the_same_bits_whether_they_declare_dependencies_or_not(
    tmp_path: Path, version: str, backend: Backend
) -> None:
    """loops.md 1, real-fmus.md 9: G6 without dependencies is one loop of all variables, which is none."""
    rows = []
    for undeclared in (False, True):
        folder = tmp_path / str(undeclared)
        folder.mkdir()
        system = four_units(folder, version, undeclared)
        simulation = Simulation(system, stop_time=0.001, step_size=0.001, backend=backend)
        loops = simulation.prepare().plan.initial_loops
        assert [loop.assumed for loop in loops] == [True] * undeclared
        results = simulation.run()
        rows.append([results[f"{n}.{y}"][0] for n, ys in OUTPUTS.items() for y in ys])
    assert rows[0] == rows[1] == [0, 0, 1000, 0, 0, 0]


def ring(folder: Path, version: str, a: dict[str, Any], b: dict[str, Any]) -> SystemBuilder:
    builder = SystemBuilder("ring")
    for name, values in (("a", a), ("b", b)):
        path = folder / f"{name}.fmu"
        unknowns = {"y": UNDECLARED}
        edited_fmu(reference_path(f"{version}/LoopFunction.fmu"), path, unknowns=unknowns)
        builder.add(name, path, values)
    builder.connect("a.y", "b.u")
    builder.connect("b.y", "a.u")
    return builder


def test_an_assumed_loop_that_is_one_is_solved(
    tmp_path: Path, version: str, backend: Backend
) -> None:
    """loops.md 4, L2, whose plain iteration diverges."""
    system = ring(tmp_path, version, {"c0": 3.0, "c1": -2.0}, {"c0": 1.0, "c1": 1.5})
    simulation = Simulation(system, stop_time=0.1, step_size=0.1, backend=backend)
    assert [loop.assumed for loop in simulation.prepare().plan.initial_loops] == [True]
    results = simulation.run()
    assert results["a.y"][0] == pytest.approx(0.25, rel=1e-8)
    assert results["b.y"][0] == pytest.approx(1.375, rel=1e-8)


def test_the_message_of_an_assumed_loop_tells_that_it_is_one(
    tmp_path: Path, version: str, backend: Backend
) -> None:
    system = ring(tmp_path, version, {"c0": 1.0}, {})
    with pytest.raises(
        LoopError, match="It may not be a loop: an FMU does not declare on which inputs"
    ):
        Simulation(system, stop_time=0.1, step_size=0.1, backend=backend).run()
