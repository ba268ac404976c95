"""What is read from the XML itself, because fmpy declares it and does not read it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from fmpy.model_description import CoSimulation, ModelVariable, read_model_description

from fmimaster.errors import FileError
from fmimaster.fmu.model_description import read_model
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.model import DependencyKind, Model

UNREAD = {
    "canBeDeactivated": "true",
    "canHandleMultipleSetPerTimeInstant": "false",
    "intermediateUpdate": "true",
    "intervalCounter": "3",
    "intervalDecimal": "0.3",
    "previous": "2",
    "priority": "7",
    "reinit": "true",
    "resolution": "10",
    "shiftCounter": "1",
    "shiftDecimal": "0.1",
    "supportsFraction": "true",
}
"""Attributes of variables that fmpy declares and does not read. When fmpy reads one, it can leave this list, and our own
reading of it can go; as soon as all are read, so can fmu/xml_attributes.py."""

VARIABLES = """
<Float64 name="time" valueReference="0" causality="independent"/>
<Float64 name="u" valueReference="1" causality="input" start="0" intermediateUpdate="true">
  <Alias name="u again"/></Float64>
<Float64 name="before" valueReference="2" variability="discrete" clocks="4"/>
<Float64 name="x" valueReference="3" causality="output" variability="discrete" clocks="4 5" previous="2"/>
<Clock name="decimal" valueReference="4" causality="input" intervalVariability="fixed" intervalDecimal="0.1"
  shiftDecimal="2.5e-1" priority="2"/>
<Clock name="counted" valueReference="5" causality="input" intervalVariability="changing" resolution="3"
  intervalCounter="1" shiftCounter="2" intervalDecimal="0.33" supportsFraction="true" canBeDeactivated="true">
  <Alias name="counted again"/></Clock>
<Clock name="triggered" valueReference="6" causality="output" intervalVariability="triggered"/>
"""
STRUCTURE = '<Output valueReference="3" dependencies="1 2" dependenciesKind="fixed constant"/>'


def write(folder: Path, variables: str, structure: str = "", attributes: str = "") -> Path:
    (folder / "modelDescription.xml").write_text(
        f"""<fmiModelDescription fmiVersion="3.0" modelName="m" instantiationToken="x">
<CoSimulation modelIdentifier="m" {attributes}/>
<ModelVariables>{variables}</ModelVariables><ModelStructure>{structure}</ModelStructure></fmiModelDescription>"""
    )
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return read_model(write(tmp_path, VARIABLES, STRUCTURE), "m.fmu")


def clock(model: Model, name: str) -> ClockAttributes | None:
    variable = model.variable(name)
    assert variable is not None
    return variable.clock


@pytest.mark.parametrize("attribute", UNREAD)
def test_fmpy_leaves_this_attribute_at_its_default(tmp_path: Path, attribute: str) -> None:
    text = f'{attribute}="{UNREAD[attribute]}"'
    clock = (
        f'<Clock name="c" valueReference="1" causality="input" intervalVariability="fixed" {text}/>'
    )
    number = f'<Float64 name="x" valueReference="2" {text}/>'
    found = read_model_description(write(tmp_path, clock + number), validate=False).modelVariables
    default = getattr(ModelVariable(), attribute)
    assert [getattr(v, attribute) for v in found] == [default, default]


def test_fmpy_does_not_read_directional_derivatives_of_fmi_3(tmp_path: Path) -> None:
    write(tmp_path, "", attributes='providesDirectionalDerivatives="true"')
    found = read_model_description(tmp_path, validate=False).coSimulation
    assert found.providesDirectionalDerivative == CoSimulation().providesDirectionalDerivative
    assert read_model(tmp_path, "m.fmu").capabilities.provides_directional_derivatives


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("intervalVariability", ["fixed", "changing", "triggered"]),
        ("clocks", [None] * 3),
        ("causality", ["input", "input", "output"]),
    ],
)
def test_fmpy_reads_these_attributes_of_clocks(
    tmp_path: Path, name: str, expected: list[Any]
) -> None:
    found = read_model_description(write(tmp_path, VARIABLES), validate=False).modelVariables
    clocks = [v for v in found if v.type == "Clock" and v.alias is None]
    assert [getattr(v, name) for v in clocks] == expected


def test_intervals_of_clocks_are_exact(model: Model) -> None:
    assert clock(model, "decimal") == ClockAttributes(
        IntervalVariability.FIXED, Fraction(1, 10), Fraction(1, 4), priority=2
    )


def test_a_counter_with_its_resolution_goes_before_a_decimal_number(model: Model) -> None:
    counted = clock(model, "counted")
    assert counted == ClockAttributes(
        IntervalVariability.CHANGING,
        Fraction(1, 3),
        Fraction(2, 3),
        resolution=3,
        supports_fraction=True,
        can_be_deactivated=True,
    )
    assert clock(model, "counted again") == counted


def test_a_triggered_clock_has_no_interval(model: Model) -> None:
    triggered = clock(model, "triggered")
    assert triggered == ClockAttributes()
    assert triggered is not None
    assert not triggered.is_time_based
    assert clock(model, "u") is None


def test_clocked_variables_know_their_clocks_and_previous_values(model: Model) -> None:
    x = model.variable("x")
    assert x is not None
    assert (x.clocks, x.previous) == (("decimal", "counted"), "before")


def test_inputs_of_intermediate_update_mode_are_known_but_not_their_aliases(model: Model) -> None:
    assert [v.name for v in model.variables if v.intermediate_update] == ["u"]


def test_kinds_of_dependencies_on_inputs_are_known(model: Model) -> None:
    assert model.dependency_kinds == {"x": {"u": DependencyKind.FIXED}}


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (
            'intervalDecimal="1/3"',
            "attribute 'intervalDecimal' of Clock 'c' is '1/3', expected a number",
        ),
        ('priority="high"', "attribute 'priority' of Clock 'c' is 'high', expected a whole number"),
        ('resolution="0.1"', "expected a whole number"),
    ],
)
def test_a_clock_with_a_number_that_is_none_is_refused(
    tmp_path: Path, attribute: str, words: str
) -> None:
    text = f'<Clock name="c" valueReference="1" intervalVariability="fixed" {attribute}/>'
    with pytest.raises(FileError, match=words):
        read_model(write(tmp_path, text), "m.fmu")


def test_an_unknown_variability_of_an_interval_is_refused(tmp_path: Path) -> None:
    text = '<Clock name="c" valueReference="1" intervalVariability="often"/>'
    with pytest.raises(
        FileError, match=r"'often' of a clock is not known\. Expected one of constant"
    ):
        read_model(write(tmp_path, text), "m.fmu")


@pytest.mark.parametrize(
    ("version", "types", "variables"),
    [
        (
            "2.0",
            '<SimpleType name="T"><Real unit="K" relativeQuantity="true"/></SimpleType>',
            '<ScalarVariable name="own" valueReference="0"><Real relativeQuantity="true"/></ScalarVariable>'
            '<ScalarVariable name="by type" valueReference="1"><Real declaredType="T"/></ScalarVariable>'
            '<ScalarVariable name="not" valueReference="2"><Real declaredType="T" relativeQuantity="false"/>'
            '</ScalarVariable><ScalarVariable name="none" valueReference="3"><Real/></ScalarVariable>',
        ),
        (
            "3.0",
            '<Float64Type name="T" unit="K" relativeQuantity="true"/>',
            '<Float64 name="own" valueReference="0" relativeQuantity="true"/>'
            '<Float64 name="by type" valueReference="1" declaredType="T"/>'
            '<Float64 name="not" valueReference="2" declaredType="T" relativeQuantity="false"/>'
            '<Float64 name="none" valueReference="3"/>',
        ),
    ],
)
def test_differences_are_known_from_the_variable_or_its_type(
    tmp_path: Path, version: str, types: str, variables: str
) -> None:
    path = write(tmp_path, variables) / "modelDescription.xml"
    text = path.read_text().replace('"3.0"', f'"{version}"')
    text = text.replace("instantiationToken", "guid") if version == "2.0" else text
    definitions = f"<TypeDefinitions>{types}</TypeDefinitions><ModelVariables>"
    path.write_text(text.replace("<ModelVariables>", definitions))
    found = read_model(tmp_path, "m.fmu").variables
    assert [v.name for v in found if v.relative_quantity] == ["own", "by type"]
