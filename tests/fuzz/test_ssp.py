"""Hostile system descriptions, parameter sets and mappings: read, resolved, and given their times."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import survives
from hypothesis import given
from mutations import edited_bytes, edited_xml
from python_fmu import PythonFmu
from ssd_text import (
    NAMESPACES,
    annotated,
    as_version_2,
    binding,
    bindings,
    component,
    elements,
    inline_mapping,
    parameter,
    ssd,
    values,
)

from fmimaster.plan.make import make_plan
from fmimaster.steps.schedule import make_schedule
from fmimaster.system.constraints import constraint_model
from fmimaster.system.model import Causality, DataType, Unit
from fmimaster.system.osp import FILE
from fmimaster.system.read import read_system
from fmimaster.system.resolve import resolve

MODEL = PythonFmu(
    parameters={"p": 1.0, "n": 2, "size": 2, "text": ""},
    inputs={"u": 0.0, "v": 0, "w": 0.0, "f": 0.0},
    states={"x": 0.0},
    outputs={"y": lambda v: v.x, "z": lambda v: 0, "g": lambda v: v.x},
    attributes={
        "p": {"unit": Unit("K", (0, 0, 0, 0, 1, 0, 0, 0))},
        "n": {"type": DataType.INT32, "enumeration": {"one": 1, "two": 2}},
        "size": {"type": DataType.UINT64, "causality": Causality.STRUCTURAL_PARAMETER},
        "text": {"type": DataType.STRING},
        "u": {"unit": Unit("m", (0, 1, 0, 0, 0, 0, 0, 0))},
        "v": {"type": DataType.INT64},
        "w": {"dimensions": ("size",), "shape": (2,)},
        "y": {"unit": Unit("mm", (0, 1, 0, 0, 0, 0, 0, 0), 1e-3)},
        "z": {"type": DataType.INT32},
    },
).model

UNITS = """<ssd:Units><ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit>
<ssc:Unit name="K"><ssc:BaseUnit K="1" factor="2" offset="273.15"/></ssc:Unit></ssd:Units>"""

PARAMETERS = values(
    parameter("p", "1.5", more='unit="K"'),
    parameter("n", "two", "Enumeration"),
    parameter("size", "3", "UInt64"),
    parameter("text", "a b", "String"),
    parameter("w", "1 2 3", "Float64"),
    '<ssv:Parameter name="b"><ssv:Binary><ssv:Value value="00ff"/></ssv:Binary></ssv:Parameter>',
    units=UNITS.replace("ssd:", "ssv:"),
)
ENTRIES = """<ssm:MappingEntry source="p" target="p" suppressUnitConversion="true">
<ssc:LinearTransformation factor="2" offset="1"/></ssm:MappingEntry>
<ssm:MappingEntry source="" target="n"/>"""
MAPPING = f'<ssm:ParameterMapping version="1.0" {NAMESPACES}>{ENTRIES}</ssm:ParameterMapping>'

NESTED = f"""<ssd:System name="s"><ssd:Connectors>
<ssd:Connector name="in" kind="input"><ssc:Real unit="m"/></ssd:Connector>
<ssd:Connector name="gain" kind="parameter"><ssc:Real/></ssd:Connector>
<ssd:Connector name="out" kind="output"><ssc:Integer/><ssc:Dimension size="2"/></ssd:Connector></ssd:Connectors>
{elements(component("b.c", bindings(binding(PARAMETERS, 'prefix=""'))))}
<ssd:Connections>
<ssd:Connection startConnector="in" endElement="b.c" endConnector="u">
<ssc:LinearTransformation factor="3"/></ssd:Connection>
<ssd:Connection startConnector="gain" endElement="b.c" endConnector="p"/>
<ssd:Connection startElement="b.c" startConnector="z" endConnector="out"/>
</ssd:Connections></ssd:System>"""

SYSTEM = f"""<ssd:Connectors><ssd:Connector name="open" kind="inout"><ssc:Real unit="m"/></ssd:Connector></ssd:Connectors>
{bindings(binding(values(parameter("s.gain", "2", more='unit="K"')), mapping=inline_mapping(ENTRIES)))}
{elements(component("a", more='implementation="CoSimulation"'), NESTED)}
<ssd:Connections>
<ssd:Connection startElement="a" startConnector="y" endElement="s" endConnector="in" suppressUnitConversion="false"/>
<ssd:Connection startElement="a" startConnector="v" endElement="s" endConnector="out"/>
<ssd:Connection startConnector="open" endElement="a" endConnector="u"/>
</ssd:Connections>"""

AFTER = f"""{UNITS}<ssd:DefaultExperiment startTime="0" stopTime="1">
{annotated('<ssc:Annotation type="org.fmimaster"><Simulation stepSize="0.5"/></ssc:Annotation>')}</ssd:DefaultExperiment>"""

OLDER, NEWER = ssd(SYSTEM, AFTER).encode(), as_version_2(ssd(SYSTEM, AFTER)).encode()
CONSTRAINED = ssd(
    elements(component("a"), component("b"))
    + annotated(
        """<ssc:Annotation type="org.fmimaster.constraints">
<Constraints xmlns="https://fmimaster.org/constraints" version="1.0"><Constraint name="c" level="position" tolerance="1e-3">
<End element="a" force="u" position="y"/><End element="b" force="u" position="y" factor="2.5"/>
</Constraint></Constraints></ssc:Annotation>"""
    ),
    AFTER,
).encode()
BONDED = ssd(
    elements(component("a"), component("b"))
    + """<ssd:Connections>
<ssd:Connection startElement="a" startConnector="g" endElement="b" endConnector="f"/>
<ssd:Connection startElement="b" startConnector="g" endElement="a" endConnector="f"/></ssd:Connections>"""
    + annotated(
        """<ssc:Annotation type="org.fmimaster.power-bonds">
<PowerBonds xmlns="https://fmimaster.org/power-bonds" version="1.0"><PowerBond name="c" scale="7.5" tolerance="1e-3">
<Port component="a" input="f" output="g" power="in"/><Port component="b" input="f" output="g" power="out"/>
</PowerBond></PowerBonds></ssc:Annotation>"""
    ),
    AFTER,
).encode()
FILES = bindings(
    '<ssd:ParameterBinding source="v.ssv"><ssd:ParameterMapping source="m.ssm"/></ssd:ParameterBinding>',
    '<ssd:ParameterBinding source="v.ssv"/>',
)
REFERRING = ssd(elements(component("a", FILES)), AFTER).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ssp")


def planned(folder: Path, document: bytes, name: str = "s.ssd") -> None:
    """All that is done with a description before an FMU is loaded."""
    path = folder / name
    path.write_bytes(document)
    description = read_system(path)
    models = {
        name: MODEL if c.constraint is None else constraint_model(c.constraint)
        for name, c in description.components()
    }
    system = resolve(description, models)
    make_plan(system)
    make_schedule(models, description.experiment)
    assert all(isinstance(line, str) and line for line in (*description.warnings, *system.notes))


def test_the_documents_are_right_as_they_are(folder: Path) -> None:
    (folder / "v.ssv").write_text(PARAMETERS, encoding="utf-8")
    (folder / "m.ssm").write_text(MAPPING, encoding="utf-8")
    for document in (OLDER, NEWER, REFERRING, CONSTRAINED, BONDED):
        planned(folder, document)


@given(document=edited_xml([OLDER, NEWER, CONSTRAINED, BONDED]))
def test_descriptions(folder: Path, document: bytes) -> None:
    survives(planned, folder, document)


@given(document=edited_bytes([OLDER, NEWER, CONSTRAINED, BONDED]))
def test_bytes_of_descriptions(folder: Path, document: bytes) -> None:
    survives(planned, folder, document)


@given(document=edited_xml([PARAMETERS.encode()]))
def test_parameter_sets(folder: Path, document: bytes) -> None:
    (folder / "v.ssv").write_bytes(document)
    (folder / "m.ssm").write_text(MAPPING, encoding="utf-8")
    survives(planned, folder, REFERRING)


@given(document=edited_xml([MAPPING.encode()]))
def test_mappings(folder: Path, document: bytes) -> None:
    (folder / "v.ssv").write_text(PARAMETERS, encoding="utf-8")
    (folder / "m.ssm").write_bytes(document)
    survives(planned, folder, REFERRING)


@given(document=edited_bytes([PARAMETERS.encode(), MAPPING.encode()]))
def test_bytes_of_parameter_sets_and_mappings(folder: Path, document: bytes) -> None:
    (folder / "v.ssv").write_bytes(document)
    (folder / "m.ssm").write_bytes(document)
    survives(planned, folder, REFERRING)


OSP = b"""<OspSystemStructure version="0.1"><StartTime>0.0</StartTime><EndTime>1</EndTime><BaseStepSize>1e-1</BaseStepSize>
<Simulators><Simulator name="a" source="a.fmu"><InitialValues><InitialValue variable="p"><Real value="2.5"/></InitialValue>
</InitialValues></Simulator><Simulator name="b" source="a.fmu" stepSize="1e-2"/></Simulators>
<Functions><LinearTransformation name="t" factor="2" offset="0.5"/></Functions>
<Connections><VariableConnection powerBond="c"><Variable simulator="a" name="f"/><Variable simulator="b" name="g"/>
</VariableConnection><VariableConnection powerBond="c"><Variable simulator="b" name="f"/><Variable simulator="a" name="g"/>
</VariableConnection><SignalConnection><Variable simulator="a" name="y"/><Signal function="t" name="in"/></SignalConnection>
<SignalConnection><Signal function="t" name="out"/><Variable simulator="b" name="u"/></SignalConnection></Connections>
</OspSystemStructure>"""


def planned_osp(folder: Path, document: bytes) -> None:
    planned(folder, document, FILE)


def test_the_system_of_osp_is_right_as_it_is(folder: Path) -> None:
    planned_osp(folder, OSP)


@given(document=edited_xml([OSP]))
def test_systems_of_osp(folder: Path, document: bytes) -> None:
    survives(planned_osp, folder, document)
