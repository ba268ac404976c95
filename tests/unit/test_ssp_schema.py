"""System descriptions are checked against the schemas of SSP: findings are warnings with lines, and the system runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
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
    read,
    ssd,
    values,
)

from fmimaster import reference_path, simulate
from fmimaster.front.validation import Severity, validate
from fmimaster.system.read import read_system
from fmimaster.system.ssp_schema import schema_findings
from fmimaster.system.xml import parse_xml


def warnings(folder: Path, text: str) -> list[str]:
    """Without the name of the file before the line."""
    return [w.partition("s.ssd, ")[2] for w in read(folder, text).warnings]


def findings(text: str) -> list[str]:
    """What the schemas find in a text, without a system."""
    return [message for _, message in schema_findings(parse_xml(text.encode(), "s.ssd"))]


def test_an_unknown_element_is_a_warning_with_its_line(tmp_path: Path) -> None:
    text = ssd(elements(component("a", "<ssd:Ports/>")))
    assert warnings(tmp_path, text) == [
        "line 4: Element 'Ports': This element is not expected. Expected is one of ( Connectors, ElementGeometry, "
        "ParameterBindings, Annotations ) (schema of SSP)."
    ]


def test_an_unknown_attribute_is_a_warning(tmp_path: Path) -> None:
    text = ssd(elements("\n" + component("a", more='interface="any"')))
    assert warnings(tmp_path, text) == [
        "line 5: Element 'Component', attribute 'interface': The attribute 'interface' is not allowed "
        "(schema of SSP)."
    ]


def test_parameter_sets_and_mappings_inside_of_a_description_are_checked(tmp_path: Path) -> None:
    mapping = inline_mapping('<ssm:Route source="x" target="y"/>')
    content = values(parameter("x", "1", more='quantity="m"'))
    found = warnings(tmp_path, ssd(bindings(binding(content, mapping=mapping))))
    assert ["quantity" in found[0], "Route" in found[1], len(found)] == [True, True, 2]


def test_files_of_parameters_and_mappings_are_checked(tmp_path: Path) -> None:
    (tmp_path / "v.ssv").write_text(
        values(parameter("x", "1", more='quantity="m"')), encoding="utf-8"
    )
    (tmp_path / "m.ssm").write_text(
        f'<ssm:ParameterMapping version="1.0" {NAMESPACES}>\n<ssm:Route/></ssm:ParameterMapping>',
        encoding="utf-8",
    )
    inside = '<ssd:ParameterMapping source="m.ssm"/>'
    text = ssd(bindings(f'<ssd:ParameterBinding source="v.ssv">{inside}</ssd:ParameterBinding>'))
    found = read(tmp_path, text).warnings
    assert [w.partition(": ")[0] for w in found] == [
        f"{tmp_path / 'v.ssv'}, line 1",
        f"{tmp_path / 'm.ssm'}, line 2",
    ]


def test_one_mistake_at_many_places_is_one_warning(tmp_path: Path) -> None:
    text = ssd(elements(*(component(f"a{k}", more='x="1"') + "\n" for k in range(50))))
    (found,) = warnings(tmp_path, text)
    assert found.startswith("line 4 and 49 more places: Element 'Component', attribute 'x'")


def test_of_many_kinds_of_mistakes_the_first_are_listed(tmp_path: Path) -> None:
    text = ssd(elements(*(component(f"a{k}", more=f'x{k}="1"') for k in range(50))))
    found = read(tmp_path, text).warnings
    assert len(found) == 21
    assert found[-1] == "There are 30 more findings."


def test_what_version_2_adds_is_no_finding(tmp_path: Path) -> None:
    inside = """<ssd:Connectors>
      <ssd:Connector name="x" kind="structuralParameter"><ssc:Float32/><ssc:Dimension size="3"/>
        <ssd:ConnectorGeometry x="0" y="0" systemInnerX="1" systemInnerY="1"/></ssd:Connector>
      <ssd:Connector name="c" kind="unspecified"><ssc:Clock intervalVariability="triggered"/></ssd:Connector>
    </ssd:Connectors>"""
    parameters = [
        parameter("u", "1 2 3", "UInt64"),
        parameter("b", "true false", "Boolean"),
        '<ssv:Parameter name="s"><ssv:String><ssv:Value value="a"/></ssv:String><ssc:Dimension size="1"/>'
        "</ssv:Parameter>",
    ]
    text = '<ssc:Annotation type="a.b">text</ssc:Annotation>'
    signature = '<ssc:Signature role="authenticity" type="a/b"/>'
    after = (
        f'<ssc:MetaData kind="general" type="a/b"><ssc:Content/>{signature}</ssc:MetaData>{signature}'
        + annotated(text)
    )
    whole = ssd(bindings(binding(values(*parameters))) + elements(component("a", inside)), after)
    newer = as_version_2(whole)
    assert warnings(tmp_path, newer) == []
    wrong = newer.replace("systemInnerY", "z")
    assert "line 6: Element 'ConnectorGeometry', attribute 'z'" in warnings(tmp_path, wrong)[0]


@pytest.mark.parametrize(
    "inside",
    [
        component("a", source="a.fmu", more='implementation="ScheduledExecution"'),
        '<ssd:Component name="a"/>',
        component("a", '<ssc:MetaData kind="quality" type="a/b" source="q.xml"/>'),
    ],
)
def test_components_of_version_2_are_no_finding(inside: str) -> None:
    assert findings(as_version_2(ssd(elements(inside)))) == []


@pytest.mark.parametrize("kind", ["Float64", "Float32", "Int8", "UInt64", "Clock"])
def test_a_finding_in_version_2_names_the_element_that_the_file_has(kind: str) -> None:
    connector = f'<ssd:Connector name="x" kind="input"><ssc:{kind} odd="1"/></ssd:Connector>'
    text = ssd(elements(component("a", f"<ssd:Connectors>{connector}</ssd:Connectors>")))
    assert findings(as_version_2(text)) == [
        f"Element '{kind}', attribute 'odd': The attribute 'odd' is not allowed"
    ]


def test_a_finding_lists_the_words_that_are_expected() -> None:
    connector = '<ssd:Connector name="x" kind="inward"/>'
    (found,) = findings(
        ssd(elements(component("a", f"<ssd:Connectors>{connector}</ssd:Connectors>")))
    )
    assert "'inward' is not an element of the set {'input', 'output', 'parameter'" in found


def test_values_of_version_2_have_the_range_of_their_type() -> None:
    found = findings(as_version_2(ssd(bindings(binding(values(parameter("u", "1 300", "UInt8")))))))
    assert found[0] == (
        "Element 'UInt8', attribute 'value': '300' is not a valid value of the atomic type 'xs:unsignedByte'"
    )


def test_prefixes_that_are_not_declared_are_taken_as_usual(tmp_path: Path) -> None:
    (tmp_path / "v.ssv").write_text(
        '<ssv:ParameterSet version="1.0" name="v">\n<ssv:Figures/>\n</ssv:ParameterSet>',
        encoding="utf-8",
    )
    text = ssd(bindings('<ssd:ParameterBinding source="v.ssv"/>'))
    (found,) = read(tmp_path, text).warnings
    assert "v.ssv, line 2: Element 'Figures': This element is not expected" in found


def test_foreign_annotations_are_no_finding(tmp_path: Path) -> None:
    for inside in ("<x/>", '<o:x xmlns:o="urn:o"><o:y/></o:x>', "<osp:x/>"):
        text = f'<ssc:Annotation type="a.b">{inside}</ssc:Annotation>'
        assert warnings(tmp_path, ssd(after=annotated(text))) == []


@pytest.mark.parametrize("name", ["thermostat-fmi2", "two-mass-b3-mixed"])
def test_our_own_systems_follow_the_schema(name: str) -> None:
    assert read_system(reference_path(f"systems/{name}.ssp")).warnings == ()


def test_a_system_with_findings_runs_and_tells_them(tmp_path: Path) -> None:
    fmu = reference_path("fmi3/Dahlquist.fmu")
    text = ssd(elements(component("a", source=str(fmu), more='label="b"')))
    (tmp_path / "s.ssd").write_text(text, encoding="utf-8")
    results = simulate(tmp_path / "s.ssd", stop_time=1, step_size=0.5)
    (warning,) = results.statistics.warnings
    assert "s.ssd, line 4: Element 'Component', attribute 'label'" in warning
    found = [f for f in validate(tmp_path / "s.ssd") if f.severity is Severity.WARNING]
    assert [f.what for f in found if "label" in f.what] == [warning]


def test_a_run_without_a_description_reads_no_schema() -> None:
    code = (
        "import fmimaster, fmimaster.system.ssp_schema as s\n"
        f"fmimaster.simulate({str(reference_path('fmi3/Dahlquist.fmu'))!r}, stop_time=1, step_size=0.5)\n"
        "print(s._schema.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "0\n"


def test_a_long_value_makes_no_long_warning(tmp_path: Path) -> None:
    geometry = f'<ssd:ElementGeometry x1="{"1 " * 50_000}" x2="0" y1="0" y2="0"/>'
    (found,) = warnings(tmp_path, ssd(elements(component("a", geometry))))
    assert "Element 'ElementGeometry', attribute 'x1'" in found
    assert len(found) < 1000
