"""A system is described in Python in a few lines."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from fmimaster.base.errors import DescriptionError
from fmimaster.system import builder as module
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.declarations import Experiment
from fmimaster.system.description import Connection, Endpoint
from fmimaster.system.model import Source, Transformation


@pytest.fixture
def builder() -> SystemBuilder:
    builder = SystemBuilder("drive")
    builder.add("motor", "motor.fmu", {"inertia": 0.02})
    builder.add("load.left", Path("models") / "load.fmu")
    return builder


def test_the_example_in_the_documentation_runs() -> None:
    assert doctest.testmod(module) == doctest.TestResults(failed=0, attempted=20)


def test_components_stand_in_the_order_in_which_they_were_added(builder: SystemBuilder) -> None:
    description = builder.build()
    assert description.system.name == "drive"
    assert [(name, c.source) for name, c in description.components()] == [
        ("motor", Source(Path("motor.fmu"))),
        ("load.left", Source(Path("models/load.fmu"))),
    ]


def test_names_of_variables_and_components_may_have_dots(builder: SystemBuilder) -> None:
    builder.connect("motor.shaft.w", "load.left.w")
    assert builder.build().system.connections == (
        Connection(Endpoint("motor", "shaft.w"), Endpoint("load.left", "w")),
    )


def test_a_connection_keeps_its_transformation(builder: SystemBuilder) -> None:
    builder.connect("motor.w", "load.left.w", factor=2.0, offset=1.0, suppress_unit_conversion=True)
    connection = builder.build().system.connections[0]
    assert connection.transformation == Transformation(2.0, 1.0)
    assert connection.suppress_unit_conversion


def test_a_later_start_value_replaces_an_earlier_one(builder: SystemBuilder) -> None:
    builder.set("motor.friction", 0.1)
    builder.set("motor.inertia", 0.03)
    motor = builder.build().system.components[0]
    assert [(p.name, p.value) for p in motor.parameters] == [("friction", 0.1), ("inertia", 0.03)]


def test_the_experiment_is_what_is_said(builder: SystemBuilder) -> None:
    assert builder.build().experiment == Experiment()
    experiment = builder.build(
        start_time=1.0, stop_time=2.0, step_size=0.1, tolerance=1e-6
    ).experiment
    assert experiment == Experiment(1.0, 2.0, step_size=0.1, tolerance=1e-6)


def test_a_description_does_not_change_with_its_builder(builder: SystemBuilder) -> None:
    before = builder.build()
    builder.add("brake", "brake.fmu")
    builder.set("motor.inertia", 1.0)
    assert before != builder.build()
    (parameter,) = before.system.components[0].parameters
    assert (parameter.name, parameter.value) == ("inertia", 0.02)


def test_a_component_needs_a_name_of_its_own(builder: SystemBuilder) -> None:
    with pytest.raises(DescriptionError, match="There is a component 'motor' already"):
        builder.add("motor", "other.fmu")
    with pytest.raises(DescriptionError, match="empty name"):
        builder.add("", "other.fmu")


@pytest.mark.parametrize("name", ["motor.w", "load"])
def test_a_component_must_not_look_like_a_variable(builder: SystemBuilder, name: str) -> None:
    with pytest.raises(
        DescriptionError, match="cannot be distinguished from a component and its variable"
    ):
        builder.add(name, "other.fmu")


def test_an_unknown_component_is_refused_with_a_suggestion(builder: SystemBuilder) -> None:
    with pytest.raises(
        DescriptionError,
        match=r"Connection 'moter\.w -> load\.left\.w': there is no component 'moter'\. "
        r"Did you mean 'motor'\?",
    ):
        builder.connect("moter.w", "load.left.w")
    with pytest.raises(DescriptionError, match=r"Did you mean 'load\.left'\?"):
        builder.set("load.lfet.w", 1)


@pytest.mark.parametrize("name", ["motor", "motor.", "w", ""])
def test_a_variable_is_named_with_its_component(builder: SystemBuilder, name: str) -> None:
    with pytest.raises(DescriptionError, match=r"is not of the form 'component\.variable'"):
        builder.set(name, 1)


def test_a_system_needs_a_component() -> None:
    with pytest.raises(DescriptionError, match="System 'empty' has no components"):
        SystemBuilder("empty").build()
