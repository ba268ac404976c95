"""Hostile model descriptions end in a Model or in an error of ours, and what becomes a Model can be planned."""

from __future__ import annotations

import tempfile
import zipfile
from functools import cache
from pathlib import Path

from fuzzing import survives
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import edited_bytes, edited_xml

from fmimaster.base.installation import reference_names, reference_path
from fmimaster.commands.cli import main
from fmimaster.fmu.description.model_description import read_model
from fmimaster.front.simulation import Simulation
from fmimaster.front.validation import validate
from fmimaster.prepare.prepared import Prepared
from fmimaster.system.model import MOST_ELEMENTS, Model

FMI2 = b"""<fmiModelDescription fmiVersion="2.0" modelName="m" guid="g" numberOfEventIndicators="1">
  <CoSimulation modelIdentifier="m" canHandleVariableCommunicationStepSize="true" maxOutputDerivativeOrder="1"
    canInterpolateInputs="true" canGetAndSetFMUstate="true"/>
  <UnitDefinitions>
    <Unit name="K"><BaseUnit K="1"/></Unit>
    <Unit name="degC"><BaseUnit K="1" offset="273.15"/><DisplayUnit name="K"/></Unit>
  </UnitDefinitions>
  <TypeDefinitions>
    <SimpleType name="T"><Real unit="degC" min="-273.15" max="1e3" nominal="300" relativeQuantity="false"/></SimpleType>
    <SimpleType name="E"><Enumeration><Item name="a" value="1"/><Item name="b" value="2"/></Enumeration></SimpleType>
  </TypeDefinitions>
  <LogCategories><Category name="logAll"/></LogCategories>
  <DefaultExperiment startTime="0" stopTime="1" tolerance="1e-6" stepSize="0.1"/>
  <ModelVariables>
    <ScalarVariable name="time" valueReference="0" causality="independent" variability="continuous"><Real/></ScalarVariable>
    <ScalarVariable name="u" valueReference="1" causality="input"><Real start="0" declaredType="T"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="2" causality="output"><Real derivative="4" unit="K"/></ScalarVariable>
    <ScalarVariable name="x" valueReference="3" initial="exact"><Real start="1" nominal="0.1"/></ScalarVariable>
    <ScalarVariable name="p" valueReference="4" causality="parameter" variability="tunable">
      <Real start="1"/></ScalarVariable>
    <ScalarVariable name="e" valueReference="5" causality="output" variability="discrete">
      <Enumeration declaredType="E"/></ScalarVariable>
    <ScalarVariable name="n" valueReference="6" causality="input" variability="discrete">
      <Integer start="3"/></ScalarVariable>
    <ScalarVariable name="b" valueReference="7" causality="output" variability="discrete"><Boolean/></ScalarVariable>
    <ScalarVariable name="s" valueReference="8" causality="parameter" variability="fixed">
      <String start="t"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="3" dependencies="2 4" dependenciesKind="constant dependent"/><Unknown index="6"/>
      <Unknown index="8" dependencies=""/></Outputs>
    <Derivatives><Unknown index="3"/></Derivatives>
    <InitialUnknowns><Unknown index="3" dependencies="4"/></InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>"""

FMI3 = b"""<fmiModelDescription fmiVersion="3.0" modelName="m" instantiationToken="g">
  <CoSimulation modelIdentifier="m" canHandleVariableCommunicationStepSize="true" hasEventMode="true"
    fixedInternalStepSize="0.1" maxOutputDerivativeOrder="1" providesIntermediateUpdate="true"
    mightReturnEarlyFromDoStep="true"/>
  <UnitDefinitions><Unit name="mm"><BaseUnit m="1" factor="0.001"/></Unit></UnitDefinitions>
  <TypeDefinitions>
    <Float64Type name="T" unit="mm" nominal="10"/>
    <EnumerationType name="E"><Item name="a" value="1"/><Item name="b" value="2"/></EnumerationType>
  </TypeDefinitions>
  <DefaultExperiment startTime="0" stopTime="1" tolerance="1e-6" stepSize="0.1"/>
  <ModelVariables>
    <Float64 name="time" valueReference="0" causality="independent"/>
    <UInt64 name="n" valueReference="1" causality="structuralParameter" variability="tunable" start="2"/>
    <UInt64 name="c" valueReference="2" variability="constant" start="3"/>
    <Float64 name="u" valueReference="3" causality="input" declaredType="T" intermediateUpdate="true" start="0 0 0 0 0 0">
      <Dimension valueReference="1"/><Dimension valueReference="2"/></Float64>
    <Float64 name="y" valueReference="4" causality="output" derivative="3"><Dimension valueReference="1"/>
      <Dimension start="3"/><Alias name="y again"/></Float64>
    <Float32 name="z" valueReference="5" causality="output" initial="exact" start="1" min="0" max="2"/>
    <Enumeration name="e" valueReference="6" causality="input" declaredType="E" start="1"/>
    <String name="s" valueReference="7" causality="parameter"><Dimension start="2"/>
      <Start value="a"/><Start value="b"/></String>
    <Binary name="d" valueReference="8" causality="output" mimeType="x" maxSize="8"><Start value="00ff"/></Binary>
    <Clock name="tick" valueReference="9" causality="input" intervalVariability="triggered"/>
    <Clock name="every" valueReference="10" causality="input" intervalVariability="fixed" resolution="10"
      intervalCounter="3" shiftDecimal="0.1" priority="1" supportsFraction="true"/>
    <Clock name="tock" valueReference="11" causality="output" intervalVariability="triggered"/>
    <Float64 name="before" valueReference="12" variability="discrete" clocks="9"/>
    <Float64 name="after" valueReference="13" causality="output" variability="discrete" clocks="9 10" previous="12"/>
    <Int8 name="i" valueReference="14" causality="output" variability="discrete"/>
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="4" dependencies="3 6" dependenciesKind="fixed dependent"/><Output valueReference="5"/>
    <Output valueReference="8"/><Output valueReference="11"/><Output valueReference="14"/>
    <Output valueReference="13" dependencies=""/><ContinuousStateDerivative valueReference="4" dependencies="3"/>
    <InitialUnknown valueReference="4" dependencies="1"/><EventIndicator valueReference="5"/>
  </ModelStructure>
</fmiModelDescription>"""


@cache
def documents() -> tuple[bytes, ...]:
    """The two above, and those of the reference FMUs if they have been built."""
    found = [FMI2, FMI3]
    for name in reference_names():
        if name.endswith(".fmu"):
            with zipfile.ZipFile(reference_path(name)) as archive:
                found.append(archive.read("modelDescription.xml"))
    return tuple(found)


def edited() -> st.SearchStrategy[bytes]:
    """The two above more often: they have one of each kind."""
    xml = st.one_of(edited_xml([FMI2]), edited_xml([FMI3]), edited_xml(documents()))
    return st.one_of(xml, xml, edited_bytes([FMI2, FMI3]))


def read(document: bytes) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "modelDescription.xml").write_bytes(document)
        return read_model(Path(folder), "m.fmu")


def prepare(document: bytes) -> Prepared:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "modelDescription.xml").write_bytes(document)
        return Simulation(folder).prepare()


def test_the_documents_are_right_as_they_are() -> None:
    assert [read(d).notes for d in documents()] == [()] * len(documents())


@settings(max_examples=150)
@given(document=edited())
def test_any_model_description_becomes_a_model_or_is_refused(document: bytes) -> None:
    model = survives(read, document)
    if isinstance(model, Model):
        assert len({v.name for v in model.variables}) == len(model.variables)
        assert all(v.name for v in model.variables)
        assert sum(v.size for v in model.variables) <= MOST_ELEMENTS
        assert all(0 <= v.value_reference < 2**32 for v in model.variables)


@settings(max_examples=80)
@given(document=edited())
def test_any_model_can_be_planned(document: bytes) -> None:
    survives(prepare, document)


def describe(document: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "modelDescription.xml").write_bytes(document)
        validate(folder)
        for options in (["info", folder], ["info", folder, "--json"], ["plan", folder]):
            assert main(options) in (0, 2)


@settings(max_examples=25)
@given(document=edited())
def test_any_model_description_can_be_shown_and_validated(document: bytes) -> None:
    survives(describe, document)
