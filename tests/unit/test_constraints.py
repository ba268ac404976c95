"""Constraints: described, read from an SSD, planned, and refused where they cannot be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import changed
from edited_fmu import edited_fmu
from linear_fmu import linear_fmu
from pytest import approx
from python_fmu import Bench
from ssd_text import annotated, component, elements, read, ssd, write_constraints

from fmimaster import (
    DescriptionError,
    FileError,
    OptionError,
    Results,
    Simulation,
    SystemBuilder,
    reference_path,
)
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Waveform
from fmimaster.inputs import Polynomial
from fmimaster.loops import Loops, LoopSolver
from fmimaster.steps import Ramp
from fmimaster.system import ConstraintEnd, Level
from fmimaster.system.constraints import constraint_component, constraint_model
from fmimaster.system.description import (
    Component,
    Connection,
    Connector,
    Constraint,
    Endpoint,
    System,
)
from fmimaster.system.model import Causality
from fmimaster.system.ssp_annotations import CONSTRAINTS

ENDS = (ConstraintEnd("a", "F", "x", "v"), ConstraintEnd("b", "F", "x", "v", factor=2.0))
BOTH = Constraint(ENDS, Level.VELOCITY)


# Description


def test_a_constraint_is_a_component_with_connections() -> None:
    found, connections = constraint_component("link", BOTH)
    assert (found.name, found.constraint) == ("link", BOTH)
    assert [str(c) for c in connections] == [
        *("a.x -> link.x1", "b.x -> link.x2", "a.v -> link.v1", "b.v -> link.v2"),
        *("link.force -> a.F", "link.force -> b.F"),
    ]
    assert [c.transformation.factor for c in connections[-2:]] == [1.0, -2.0]


@pytest.mark.parametrize(
    ("level", "given", "outputs", "residual"),
    [
        (Level.POSITION, {"velocity": ""}, ["force", "gap"], "gap"),
        (Level.VELOCITY, {"position": ""}, ["force", "der(gap)"], "der(gap)"),
        (Level.POSITION, {}, ["force", "gap", "der(gap)"], "gap"),
    ],
)
def test_its_model_has_what_is_known(
    level: Level, given: dict[str, Any], outputs: list[str], residual: str
) -> None:
    ends = tuple(replace(end, **given) for end in ENDS)
    model = constraint_model(Constraint(ends, level))  # type: ignore[arg-type]
    assert list(model.dependencies) == outputs
    assert model.dependencies["force"] == frozenset()
    assert model.residuals == {"force": (residual, "slope")}


@pytest.mark.parametrize(
    ("first", "second", "level", "message"),
    [
        ({}, {"velocity": ""}, None, "one end has a velocity, the other one has none."),
        (
            {"velocity": ""},
            {"velocity": ""},
            Level.VELOCITY,
            "is on the level of velocity, but names none",
        ),
        ({}, {"factor": 0.0}, None, "the force is multiplied by 0."),
        ({}, {"factor": float("inf")}, None, "the force is multiplied by inf."),
        ({}, {"element": "c"}, None, "there is no component 'c'."),
    ],
)
def test_a_constraint_without_sense_is_refused(
    first: dict[str, Any], second: dict[str, Any], level: Level | None, message: str
) -> None:
    builder = SystemBuilder()
    builder.add("a", "a.fmu")
    builder.add("b", "b.fmu")
    with pytest.raises(DescriptionError, match="Constraint 'link'") as caught:
        builder.constrain(
            "link", replace(ENDS[0], **first), replace(ENDS[1], **second), level=level
        )
    assert message in str(caught.value)


def test_a_tolerance_that_is_not_positive_is_refused() -> None:
    with pytest.raises(DescriptionError, match="the tolerance is nan"):
        constraint_component("link", replace(BOTH, tolerance=float("nan")))


def test_a_level_that_is_a_text_is_refused() -> None:
    system = SystemBuilder("s")
    for end in ENDS:
        system.add(end.element, f"{end.element}.fmu")
    level: Any = "position"
    with pytest.raises(OptionError, match=r"level='position', expected Level\.POSITION"):
        system.constrain("link", *ENDS, level=level)


def test_a_name_that_is_taken_is_refused() -> None:
    builder = SystemBuilder()
    builder.add("a", "a.fmu")
    builder.add("b", "b.fmu")
    with pytest.raises(DescriptionError, match="There is a component 'a' already"):
        builder.constrain("a", *ENDS)


# SSD

TWO = elements(component("a"), component("b"))


def annotation(inside: str) -> str:
    return annotated(f'<ssc:Annotation type="{CONSTRAINTS.type}">{inside}</ssc:Annotation>')


@pytest.mark.parametrize(
    "constraint",
    [
        BOTH,
        replace(BOTH, level=Level.POSITION, tolerance=1e-3),
        Constraint(tuple(replace(e, velocity="") for e in ENDS), Level.POSITION),  # type: ignore[arg-type]
    ],
)
def test_a_constraint_that_is_written_is_read_again(tmp_path: Path, constraint: Constraint) -> None:
    described = read(tmp_path, ssd(TWO + annotation(write_constraints({"link": constraint}))))
    component, connections = constraint_component("link", constraint)
    assert described.system.components[-1] == component
    assert described.system.connections == connections
    assert described.notes == ()


def test_level_factor_and_tolerance_have_defaults(tmp_path: Path) -> None:
    """The level of velocities, if they are given."""
    ends = "".join(
        f'<End element="{name}" force="F" position="x" velocity="v"/>' for name in ("a", "b")
    )
    text = (
        f'<Constraints xmlns="https://fmimaster.org/constraints" version="1.0"><Constraint name="link">{ends}'
        "</Constraint></Constraints>"
    )
    constraint = read(tmp_path, ssd(TWO + annotation(text))).system.components[-1].constraint
    assert constraint is not None
    assert (constraint.level, constraint.tolerance) == (Level.VELOCITY, 1e-6)
    assert [end.factor for end in constraint.ends] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('level="velocity"', 'level="speed"'), "expected position or velocity"),
        (('element="a"', 'element="A"'), "there is no element 'A' in this system. Did you mean"),
        (('factor="2.0"', 'factor="two"'), "expected a number"),
        (('factor="2.0"', 'factor="0"'), "the force is multiplied by 0"),
        (('tolerance="1e-06"', 'tolerance="0"'), "expected a number above 0"),
        (('force="F"', ""), "attribute 'force' of End is missing"),
        (("Constraints", "Constraint"), "expected Constraints in the namespace"),
        (('version="1.0"', 'version="2.0"'), "expected a version 1.x"),
    ],
)
def test_a_wrong_annotation_is_refused_with_its_line(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    text = write_constraints({"link": BOTH}).replace(*change)
    with pytest.raises((FileError, DescriptionError), match=r"s\.ssd, line \d+: ") as caught:
        read(tmp_path, ssd(TWO + annotation(text)))
    assert message in str(caught.value)


def test_what_a_later_version_adds_is_left_aside_with_a_note(tmp_path: Path) -> None:
    text = write_constraints({"link": BOTH})
    text = text.replace('version="1.0"', 'version="1.1"').replace(
        "<Constraint ", '<Constraint a="" '
    )
    [note] = read(tmp_path, ssd(TWO + annotation(text))).notes
    assert "it is ignored" in note


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_the_reference_system_is_the_one_that_is_built(version: str) -> None:
    path = reference_path(f"systems/rigid-link-{version}.ssp")
    results = Simulation(path).run()
    assert results["mass1.x"][-1] == approx(0.0126552925, abs=1e-9)  # loops.md 6.1


# Runs

Carts = Callable[..., SystemBuilder]


@pytest.fixture
def carts(tmp_path: Path) -> Carts:
    """carts(units=..., **options of constrain): two carts, pulled by 3 N and joined; 1 kg and 2 kg."""

    def make(
        *, units: tuple[str, str] = ("", ""), lacking: str = "", **options: Any
    ) -> SystemBuilder:
        system = SystemBuilder("carts")
        for name, mass, unit in zip(("front", "rear"), (1.0, 2.0), units, strict=True):
            scale = 1000.0 if unit == "mm" else 1.0
            source = linear_fmu(
                tmp_path / f"{name}.fmu",
                "fmi2",
                a=[[0, 1], [0, 0]],
                b=[[0, 0], [1 / mass, 1 / mass]],
                c=[[scale, 0], [0, 1]],
                inputs=["F", "pull"],
                outputs=["x", "v"],
            )
            if unit:
                source = changed(
                    source, tmp_path / f"{name}-{unit}.fmu", description=with_unit(unit)
                )
            if lacking == name:
                target = tmp_path / f"{name}-lacking.fmu"
                source = edited_fmu(source, target, capabilities={"canGetAndSetFMUState": None})
            system.add(name, source)
        system.set("front.pull", 3.0)
        system.constrain(
            "joint",
            ConstraintEnd("front", "F", "x", "v"),
            ConstraintEnd("rear", "F", "x", "v"),
            **options,
        )
        return system

    return make


def with_unit(unit: str) -> Callable[[str], str]:
    factor = {"m": "1", "mm": "0.001"}[unit]

    def edit(text: str) -> str:
        text = text.replace(
            "<UnitDefinitions>",
            f'<UnitDefinitions><Unit name="{unit}"><BaseUnit m="1" factor="{factor}"/></Unit>',
        )
        before, name, after = text.partition('name="x"')
        return before + name + after.replace("<Real", f'<Real unit="{unit}"', 1)

    return edit


def run(system: SystemBuilder, **settings: Any) -> Results:
    description = system.build(stop_time=1.0, step_size=0.1)
    return Simulation(description, backend=Bench.backend, **settings).run()


@pytest.mark.parametrize("level", Level)
@pytest.mark.usefixtures("each_executor")
def test_two_carts_are_pulled_as_one(carts: Carts, level: Level) -> None:
    """3 kg by 3 N: x = t^2 / 2; the joint pulls at the front with -2 N."""
    results = run(carts(level=level))
    for name in ("front", "rear"):
        assert results[f"{name}.x"] == approx(results.time**2 / 2, abs=1e-13)
    assert results["joint.force"][1:] == approx([-2.0] * 10, abs=1e-11)


def test_the_force_holds_where_other_inputs_are_polynomials(carts: Carts) -> None:
    held, fitted = (
        run(carts(), algorithm=GaussSeidel(inputs))
        for inputs in (Polynomial(1, 0), Polynomial(2, 0))
    )
    assert fitted["rear.x"] == approx(held["rear.x"], abs=1e-13)


@pytest.mark.parametrize("algorithm", [Jacobi, GaussSeidel])
@pytest.mark.usefixtures("each_executor")
def test_components_outside_keep_their_algorithm(
    carts: Carts, tmp_path: Path, algorithm: Callable[[Polynomial], Algorithm]
) -> None:
    """The pull rises by 3 N/s, so that v = t^2 / 2. Interpolated it is exact; the force is constant over a step."""
    system = carts()
    ramp = linear_fmu(tmp_path / "ramp.fmu", "fmi2", a=[[0]], c=[[1]], e=[3.0])
    system.add("engine", ramp)
    system.connect("engine.y1", "front.pull")
    results = run(system, algorithm=algorithm(Polynomial(2, 0)))
    for name in ("front", "rear"):
        assert results[f"{name}.v"] == approx(results.time**2 / 2, abs=1e-12)
    assert results["engine.y1"] == approx(3.0 * results.time, abs=1e-12)
    middle = results.time[1:] - 0.05
    assert results["joint.force"][1:] == approx(-2.0 * middle, abs=1e-10)


def test_the_start_value_of_the_force_can_be_given(carts: Carts) -> None:
    system = carts()
    system.set("joint.force", -2.0)
    assert run(system)["joint.force"].tolist() == approx([-2.0] * 11, abs=1e-11)


def test_the_step_size_may_change(carts: Carts) -> None:
    """The derivative that is kept belongs to another step size then."""
    description = carts(level=Level.POSITION).build(stop_time=1.0)
    results = Simulation(description, step_size=Ramp(0.2, first=0.05)).run()
    assert results["rear.x"] == approx(results.time**2 / 2, abs=1e-12)
    [loop] = results.statistics.loops
    assert loop.most_sweeps <= 5


def test_ends_in_other_units_are_converted(carts: Carts) -> None:
    results = run(carts(units=("m", "mm"), level=Level.POSITION))
    assert results["rear.x"] == approx(500.0 * results.time**2, abs=1e-9)


def test_ends_in_nested_systems_are_converted(carts: Carts) -> None:
    """Their connectors have no units; those of the FMUs inside count."""
    description = carts(units=("m", "mm"), level=Level.POSITION).build(stop_time=1.0, step_size=0.1)
    flat = description.system
    nested = [nest(component) for component in flat.components if component.constraint is None]
    system = replace(flat, components=flat.components[-1:], systems=tuple(nested))
    results = Simulation(replace(description, system=system)).run()
    assert results["rear.cart.x"] == approx(500.0 * results.time**2, abs=1e-9)


def nest(component: Component) -> System:
    """A system with the name and the connectors of a cart, and the cart inside."""
    outer, inner = (
        {name: Endpoint(element, name) for name in ("F", "pull", "x", "v")}
        for element in ("", "cart")
    )
    into, out_of = [("F", "pull"), ("x", "v")]
    return System(
        component.name,
        components=(replace(component, name="cart"),),
        connectors=(
            *(Connector(name, Causality.INPUT) for name in into),
            *(Connector(name, Causality.OUTPUT) for name in out_of),
        ),
        connections=(
            *(Connection(outer[name], inner[name]) for name in into),
            *(Connection(inner[name], outer[name]) for name in out_of),
        ),
    )


def test_a_constraint_is_solved_although_loops_are_not(carts: Carts) -> None:
    results = run(carts(), loops=Loops.NONE)
    assert results["rear.x"][-1] == approx(0.5, abs=1e-13)


def test_sweeps_over_the_whole_system_solve_a_constraint(carts: Carts) -> None:
    results = run(carts(), algorithm=Waveform(GaussSeidel(), solver=LoopSolver()))
    assert results["rear.x"][-1] == approx(0.5, abs=1e-12)


def test_columns_can_be_chosen_without_those_of_the_constraint(carts: Carts) -> None:
    results = run(carts(), output_variables=["rear.x"])
    assert list(results.names) == ["rear.x"]
    assert results["rear.x"][-1] == approx(0.5, abs=1e-13)


def test_an_fmu_that_cannot_go_back_is_refused(carts: Carts) -> None:
    with pytest.raises(DescriptionError, match=r"The constraint 'joint' needs .*'rear' cannot get"):
        run(carts(lacking="rear"))


def test_an_algorithm_that_steps_whole_systems_only_is_refused(carts: Carts) -> None:
    with pytest.raises(OptionError, match="The constraint 'joint' cannot be solved: "):
        run(carts(), algorithm=Waveform(GaussSeidel(), sweeps=2, tolerance=1e-8))


# Several at once


def cart(path: Path, mass: float, **more: Any) -> Path:
    """m v' = F - D u: two forces, and a damper to something with the speed u."""
    return linear_fmu(
        path,
        "fmi3",
        a=[[0, 1], [0, 0]],
        b=[[0, 0, 0], [1 / mass, 1 / mass, -2.0 / mass]],
        c=[[1, 0], [0, 1]],
        inputs=["F", "G", "u"],
        outputs=["x", "v"],
        **more,
    )


@pytest.mark.parametrize("level", Level)
@pytest.mark.usefixtures("each_executor")
def test_constraints_that_share_a_component_are_solved_together(
    tmp_path: Path, level: Level
) -> None:
    """Three carts of 1, 2 and 3 kg in a row, the first pulled by 12 N: a = 2 m/s2, and joints with 10 N and 6 N."""
    system = SystemBuilder("train")
    for k, mass in enumerate((1.0, 2.0, 3.0), start=1):
        system.add(f"c{k}", cart(tmp_path / f"c{k}.fmu", mass))
    system.set("c1.G", 12.0)
    system.constrain(
        "j1", ConstraintEnd("c1", "F", "x", "v"), ConstraintEnd("c2", "F", "x", "v"), level=level
    )
    system.constrain(
        "j2", ConstraintEnd("c2", "G", "x", "v"), ConstraintEnd("c3", "F", "x", "v"), level=level
    )
    results = run(system)
    for k in (1, 2, 3):
        assert results[f"c{k}.x"] == approx(results.time**2, abs=1e-12)
    assert results["j1.force"][1:] == approx([-10.0] * 10, abs=1e-9)
    assert results["j2.force"][1:] == approx([-6.0] * 10, abs=1e-9)
    [loop] = results.statistics.loops
    assert (loop.solutions, loop.most_sweeps) == (10, 4)  # a trial for each force, and the solution


@pytest.mark.usefixtures("each_executor")
def test_a_constraint_and_other_couplings_of_its_ends_are_solved_together(tmp_path: Path) -> None:
    """Each cart damps the other's motion: m1 v' = F - 2 v, m2 v' = -F - 2 v; (m1 + m2) v' = -4 v.

    Inputs are held at the value of the end of a step: v(t + H) = v(t) / (1 + 4 H / 3), by implicit Euler.
    """
    system = SystemBuilder("dampers")
    for name, mass in (("a", 1.0), ("b", 2.0)):
        system.add(name, cart(tmp_path / f"{name}.fmu", mass, x0=[0.0, 1.0]))
    system.connect("a.v", "b.u")
    system.connect("b.v", "a.u")
    system.constrain(
        "j", ConstraintEnd("a", "F", velocity="v"), ConstraintEnd("b", "F", velocity="v")
    )
    results = run(system, algorithm="Jacobi")
    v = (1 + 4 * 0.1 / 3) ** -np.arange(11.0)
    for name in ("a", "b"):
        assert results[f"{name}.v"] == approx(v, rel=1e-8)
    assert results["j.force"][1:] == approx(np.diff(v) / 0.1 + 2 * v[1:], abs=1e-7)
