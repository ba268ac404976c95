"""Who gives which start value, and what a variable accepts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster.base.errors import DescriptionError
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import Component, Parameter, System, SystemDescription
from fmimaster.system.model import (
    Causality,
    DataType,
    Initial,
    Source,
    Transformation,
    Unit,
    Variability,
)
from fmimaster.system.resolve import resolve

METRE, MILLIMETRE = Unit("m", (0, 1, 0, 0, 0, 0, 0, 0)), Unit("mm", (0, 1, 0, 0, 0, 0, 0, 0), 1e-3)

PUMP = PythonFmu(
    parameters={"length": 1.0, "n": 1, "size": 2, "k": 5.0},
    inputs={"u": 0.0},
    states={"x": 0.0, "matrix": 0.0},
    outputs={"y": lambda v: 0.0},
    attributes={
        "length": {"unit": METRE},
        "n": {"type": DataType.INT32},
        "size": {"type": DataType.UINT64, "causality": Causality.STRUCTURAL_PARAMETER},
        "k": {"variability": Variability.CONSTANT},
        "matrix": {"dimensions": ("size", 2), "shape": (2, 2), "initial": Initial.APPROX},
    },
).model


def component(name: str, *parameters: Parameter) -> Component:
    return Component(name, Source(Path("pump.fmu")), parameters=parameters)


def values(system: System, given: Mapping[str, Any] | None = None) -> dict[str, list[Any]]:
    """All start values after resolution, by full name."""
    description = SystemDescription(system)
    models = {name: PUMP for name, _ in description.components()}
    found = resolve(description, models, overrides=given)
    return {
        f"{c.name}.{n}": v.tolist() for c in found.components for n, v in c.start_values.items()
    }


def one(*parameters: Parameter, given: Mapping[str, Any] | None = None) -> dict[str, list[Any]]:
    return values(System("s", components=(component("pump", *parameters),)), given)


# Who wins -------------------------------------------------------------------------------------------------------------


def test_without_any_given_value_nothing_is_set() -> None:
    assert one() == {}


def test_the_users_value_wins_over_the_descriptions() -> None:
    assert one(Parameter("x", 1), given={"pump.x": 2}) == {"pump.x": [2.0]}


def test_the_outer_systems_value_wins_over_the_inner_ones() -> None:
    inner = System(
        "in",
        components=(component("pump", Parameter("x", 1)),),
        parameters=(Parameter("pump.x", 2),),
    )
    assert values(System("out", systems=(inner,))) == {"in.pump.x": [2.0]}
    outer = System("out", systems=(inner,), parameters=(Parameter("in.pump.x", 3),))
    assert values(outer) == {"in.pump.x": [3.0]}


def test_with_a_single_component_the_name_of_the_variable_will_do() -> None:
    assert one(given={"x": 4}) == {"pump.x": [4.0]}


def test_of_two_components_that_fit_the_longer_name_counts() -> None:
    system = System("s", components=(component("car"), component("car.pump")))
    assert values(system, {"car.pump.x": 1}) == {"car.pump.x": [1.0]}


# What a variable accepts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["length", "u", "x", "matrix"])
def test_parameters_inputs_and_initial_values_take_a_start_value(name: str) -> None:
    assert f"pump.{name}" in one(given={name: 1})


@pytest.mark.parametrize(
    ("name", "why"), [("k", "variability=constant"), ("y", "initial=calculated")]
)
def test_constants_and_calculated_values_take_none(name: str, why: str) -> None:
    with pytest.raises(DescriptionError, match=rf"'pump\.{name}' takes no start value .*{why}"):
        one(given={f"pump.{name}": 1})


def test_an_unknown_variable_gets_a_suggestion() -> None:
    with pytest.raises(DescriptionError, match=r"no variable 'lenght'\. Did you mean 'length'\?"):
        one(given={"pump.lenght": 1})


def test_an_unknown_component_is_named() -> None:
    with pytest.raises(DescriptionError, match=r"'plump\.x' is neither .* Did you mean 'pump'\?"):
        values(System("s", components=(component("pump"), component("tank"))), {"plump.x": 1})


def test_the_message_says_who_gave_the_value() -> None:
    with pytest.raises(DescriptionError, match=r"^File 'a\.ssv': 'fast' is not a value"):
        one(Parameter("x", "fast", where="File 'a.ssv'"))


def test_a_structural_parameter_changes_the_shape_of_arrays() -> None:
    assert one(given={"size": 3, "matrix": [1, 2, 3, 4, 5, 6]})["pump.matrix"] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(DescriptionError, match=r"got 4 values, expected 6 \(shape \(3, 2\)\)"):
        one(given={"size": 3, "matrix": [1, 2, 3, 4]})


# Units and transformations --------------------------------------------------------------------------------------------


def test_a_value_is_converted_from_its_unit_to_that_of_the_variable() -> None:
    assert one(Parameter("length", 250.0, unit=MILLIMETRE)) == {"pump.length": [0.25]}


def test_a_transformation_comes_after_the_conversion_of_units() -> None:
    parameter = Parameter("length", 250.0, unit=MILLIMETRE, transformation=Transformation(2.0, 1.0))
    assert one(parameter) == {"pump.length": [1.5]}


def test_a_value_without_a_unit_is_in_that_of_the_variable() -> None:
    assert one(Parameter("length", 250.0)) == {"pump.length": [250.0]}


def test_an_integer_cannot_be_transformed() -> None:
    with pytest.raises(
        DescriptionError, match=r"needs a floating point variable, 'pump\.n' is Int32"
    ):
        one(Parameter("n", 1, transformation=Transformation(2.0, 0.0)))


def test_a_misspelt_start_value_of_a_builder_is_an_error_with_a_suggestion() -> None:
    builder = SystemBuilder("drive")
    builder.add("motor", "pump.fmu", {"lenght": 2.0})
    with pytest.raises(DescriptionError) as error:
        resolve(builder.build(), {"motor": PUMP})
    assert str(error.value) == (
        "Start value of 'motor.lenght': component 'motor' has no variable 'lenght'. Did you mean 'length'?"
    )


# Ranges ---------------------------------------------------------------------------------------------------------------


def test_start_values_outside_of_the_range_of_the_fmu_are_a_warning() -> None:
    attributes = {"p": {"min": 0.0, "max": 1.0}, "q": {"min": 0.0}, "r": {"max": 1.0}}
    model = PythonFmu(
        parameters={"p": 0.5, "q": 1.0, "r": 0.0},
        outputs={"y": lambda v: 0.0},
        attributes=attributes,
    ).model
    written = Parameter("p", 2.0, where="v.ssv, line 7")
    system = System("s", components=(component("a", written),))
    given = {"a.q": 3, "a.r": 1.5}
    found = resolve(SystemDescription(system), {"a": model}, overrides=given)
    what = "start values are outside of the range that the FMU declares, where its behaviour is not defined"
    assert found.warnings == (
        f"v.ssv, line 7 and 1 more place: {what}: 'a.p' (2, expected 0 to 1), 'a.r' (1.5, expected at most 1).",
    )
