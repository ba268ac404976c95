"""Large systems: what it takes to plan, load and run one step of them grows no faster than they do."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from growing_work import run_here, steep

from fmimaster import SystemBuilder, reference_path
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Richardson
from fmimaster.cards import at_start
from fmimaster.cards.measured import with_dependencies
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.system.description import Component, Endpoint, PowerBond, SystemDescription
from fmimaster.system.model import Model
from fmimaster.system.read import read_system

Make = Callable[[int], SystemDescription]

COPIES = 3
"""Of a pair of components; the system has so many, twice and four times so many of them."""


def ring(n: int) -> SystemDescription:
    """One ring of FMUs without direct dependencies."""
    builder, path = SystemBuilder("ring"), reference_path("fmi3/Dahlquist.fmu")
    for i in range(2 * n):
        builder.add(f"d{i}", path, {"k": 1.0 + i})
    for i in range(2 * n):
        builder.connect(f"d{i}.x", f"d{(i + 1) % (2 * n)}.u")
    return builder.build(stop_time=0.1, step_size=0.1)


def loops(n: int) -> SystemDescription:
    """Pairs in algebraic loops: y = 0.5 (u + 1)."""
    builder, path = SystemBuilder("loops"), reference_path("fmi3/LoopFunction.fmu")
    for i in range(2 * n):
        builder.add(f"f{i}", path, {"c0": 0.5, "c1": 0.5})
    for i in range(2 * n):
        builder.connect(f"f{i}.y", f"f{i ^ 1}.u")
    return builder.build(stop_time=0.1, step_size=0.1)


def one_loop(n: int) -> SystemDescription:
    """All in one algebraic loop: so many that not all ways to cut it are tried."""
    builder, path = SystemBuilder("one loop"), reference_path("fmi3/LoopFunction.fmu")
    for i in range(6 * n):
        builder.add(f"f{i}", path, {"c0": 0.5, "c1": 0.5})
    for i in range(6 * n):
        builder.connect(f"f{i}.y", f"f{(i + 1) % (6 * n)}.u")
    return builder.build(stop_time=0.1, step_size=0.1)


def _named(component: Component, prefix: str) -> Component:
    constraint = component.constraint
    if constraint is not None:
        first, second = (replace(e, element=prefix + e.element) for e in constraint.ends)
        constraint = replace(constraint, ends=(first, second))
    return replace(component, name=prefix + component.name, constraint=constraint)


def _bond_named(bond: PowerBond, prefix: str) -> PowerBond:
    first, second = (replace(p, component=prefix + p.component) for p in bond.ports)
    return replace(bond, name=prefix + bond.name, ports=(first, second))


def copies_of(name: str) -> Make:
    """Copies of a reference system beside each other."""
    one = read_system(reference_path(f"systems/{name}.ssp"))

    def of(end: Endpoint, k: int) -> Endpoint:
        return Endpoint(f"c{k}_{end.element}", end.connector)

    def copies(n: int) -> SystemDescription:
        s = one.system
        components = [_named(c, f"c{k}_") for k in range(n) for c in s.components]
        connections = [
            replace(c, start=of(c.start, k), end=of(c.end, k))
            for k in range(n)
            for c in s.connections
        ]
        bonds = [_bond_named(b, f"c{k}_") for k in range(n) for b in s.power_bonds]
        system = replace(
            s,
            components=tuple(components),
            connections=tuple(connections),
            power_bonds=tuple(bonds),
        )
        return replace(one, system=system, experiment=replace(one.experiment, stop_time=0.1))

    return copies


CASES: dict[str, tuple[Make, Algorithm]] = {
    "ring": (ring, GaussSeidel()),
    "polynomials": (ring, Richardson(Jacobi(Polynomial(2, 1)))),
    "loops": (loops, Jacobi()),
    "one loop": (one_loop, GaussSeidel()),
    "constraints": (copies_of("rigid-link-fmi3"), Jacobi()),
    "power bonds": (copies_of("quarter-car-a-fmi2"), Jacobi()),
}


@pytest.mark.in_this_process(
    "counts lines of Python, of which there are more while it waits for processes"
)
@pytest.mark.parametrize("case", CASES)
def test_what_a_system_takes_grows_linearly(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twice as many components each function does at most twice as much more."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # folders of other tests are looked at
    make, algorithm = CASES[case]
    assert not steep(lambda n: one_step(make(n), algorithm), COPIES)


@pytest.mark.in_this_process("looks at a function of the package")
def test_what_was_measured_at_instances_that_are_alike_is_used_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The measured dependencies of ten instances of one FMU make one model, and no other graph."""
    used = list[object]()

    def counted(*given: Any) -> Model:
        used.append(given)
        return with_dependencies(*given)

    monkeypatch.setattr(at_start, "with_dependencies", counted)
    monkeypatch.setattr(at_start, "dependency_arcs", None)
    Simulation(ring(5), stop_time=0.1, step_size=0.1).run()
    assert len(used) == 1


def one_step(system: SystemDescription, algorithm: Algorithm) -> None:
    """Plan a system, load it and run it, in this thread; the best sequence is not searched for."""
    settings = Simulation(
        system,
        algorithm=algorithm,
        sequence=[name for name, _ in system.components()],
        stop_time=0.1,
        step_size=0.1,
    )
    run_here(settings)
