"""The structural cases of loops.md, section 1, with FMUs: loops where there are some, and the right values at the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from edited_fmu import edited_fmu
from linear_fmu import linear_fmu
from pytest import approx

from fmimaster import Simulation, SystemBuilder
from fmimaster.run import Backend

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")


@dataclass(frozen=True)
class Unit:
    """Affine functions: a row of factors of the inputs and a constant for each output."""

    inputs: Sequence[str]
    outputs: Mapping[str, tuple[Sequence[float], float]]
    declares: bool = True


@dataclass(frozen=True)
class Case:
    """Units and connections; what comes out."""

    units: Mapping[str, Unit]
    connections: Sequence[str]
    values: Mapping[str, float]
    loops: Sequence[bool] = ()
    """Of the expected loops, whether they are assumed."""
    start: Mapping[str, float] = field(default_factory=dict)


def artificial(declares: bool) -> dict[str, Unit]:
    """A.y1 = 2 u1, A.y2 = u2 + 1, B.y = 3 u."""
    a = Unit(["u1", "u2"], {"y1": ([2, 0], 0), "y2": ([0, 1], 1)}, declares)
    return {"A": a, "B": Unit(["u"], {"y": ([3], 0)}, declares)}


def function(factor: float, constant: float) -> Unit:
    return Unit(["u"], {"y": ([factor], constant)})


ARTIFICIAL = ("A.y1 B.u", "B.y A.u2")
RING = ("A.y B.u", "B.y A.u")
VALUES = {"A.y1": 2.0, "B.y": 6.0, "A.y2": 7.0}

CASES = {
    "G1": Case(artificial(True), ARTIFICIAL, VALUES, start={"A.u1": 1.0}),
    "G2": Case(
        {"A": function(0.5, 1), "B": function(0.4, 2)}, RING, {"A.y": 2.5, "B.y": 3}, [False]
    ),
    "G3": Case(artificial(False), ARTIFICIAL, VALUES, [True], {"A.u1": 1.0}),
    "G4": Case({"A": function(0, 4), "B": function(3, 0)}, RING, {"A.y": 4, "B.y": 12}),
    "G5": Case(
        {
            "A": Unit(["u", "w"], {"y": ([0.5, 0], 1), "z": ([0, -2], 3)}),
            "B": function(0.4, 2),
            "C": function(1.5, 1),
            "D": Unit(["u"], {"y": ([0], 5)}),
        },
        (*RING, "A.z C.u", "C.y A.w"),
        {"A.y": 2.5, "B.y": 3, "A.z": 0.25, "C.y": 1.375, "D.y": 5},
        [False, False],
    ),
}


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("name", CASES)
def test_a_structural_case(name: str, version: str, tmp_path: Path, backend: Backend) -> None:
    """loops.md 7.1, G1 to G5; G6 is the system of the four units."""
    case = CASES[name]
    builder = SystemBuilder(name)
    for unit_name, unit in case.units.items():
        path = written(unit, tmp_path / f"{unit_name}.fmu", version)
        builder.add(unit_name, path)
    for connection in case.connections:
        builder.connect(*connection.split())
    for variable, value in case.start.items():
        builder.set(variable, value)
    simulation = Simulation(builder.build(), stop_time=0.1, step_size=0.1, backend=backend)
    plan = simulation.prepare().plan
    assert [loop.assumed for loop in plan.initial_loops] == list(case.loops)
    results = simulation.run()
    for variable, expected in case.values.items():
        tolerance = 1e-8 if False in case.loops else 0.0
        assert results[variable][0] == approx(expected, rel=tolerance, abs=0)


def written(unit: Unit, path: Path, version: str) -> Path:
    """The unit as an FMU."""
    linear_fmu(
        path,
        version,
        d=[list(map(float, row)) for row, _ in unit.outputs.values()],
        f=[float(constant) for _, constant in unit.outputs.values()],
        inputs=list(unit.inputs),
        outputs=list(unit.outputs),
    )
    if unit.declares:
        return path
    silent: Mapping[str, str | None] = {"dependencies": None, "dependenciesKind": None}
    unknowns = dict.fromkeys(unit.outputs, silent)
    return edited_fmu(path, path.with_stem(f"{path.stem}-silent"), unknowns=unknowns)
