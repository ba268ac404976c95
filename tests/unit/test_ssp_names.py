"""Misspelt names in a system description do not change the model: they are refused, or a warning names them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
from lxml import etree
from ssd_text import (
    NAMESPACES,
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

from fmimaster import DescriptionError, FileError, Simulation, reference_path

TEXT = f"""<ssd:SystemStructureDescription version="1.0" name="test" {NAMESPACES}>
 <ssd:System name="test">
  <ssd:Connectors><ssd:Connector name="out" kind="output"><ssc:Real unit="m"/></ssd:Connector></ssd:Connectors>
  <ssd:ParameterBindings><ssd:ParameterBinding prefix="u."><ssd:ParameterValues>
    <ssv:ParameterSet version="1.0" name="p"><ssv:Parameters>
      <ssv:Parameter name="mass"><ssv:Real value="1.5" unit="kg"/></ssv:Parameter>
    </ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues>
    <ssd:ParameterMapping><ssm:ParameterMapping version="1.0">
      <ssm:MappingEntry source="u.mass" target="u.m1"><ssc:LinearTransformation factor="2" offset="0.1"/></ssm:MappingEntry>
    </ssm:ParameterMapping></ssd:ParameterMapping></ssd:ParameterBinding></ssd:ParameterBindings>
  <ssd:Elements>
   <ssd:Component name="u" source="{{upper}}" type="application/x-fmu-sharedlibrary" implementation="CoSimulation">
    <ssd:Connectors><ssd:Connector name="x" kind="output"><ssc:Real unit="m"/></ssd:Connector></ssd:Connectors>
   </ssd:Component>
   <ssd:Component name="l" source="{{lower}}"/>
  </ssd:Elements>
  <ssd:Connections>
   <ssd:Connection startElement="u" startConnector="x" endElement="l" endConnector="u_x"
      suppressUnitConversion="false"><ssc:LinearTransformation factor="2" offset="1"/></ssd:Connection>
   <ssd:Connection startElement="u" startConnector="x" endConnector="out"/>
  </ssd:Connections>
 </ssd:System>
 <ssd:Units><ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit></ssd:Units>
 <ssd:DefaultExperiment startTime="0" stopTime="2"><ssd:Annotations><ssc:Annotation type="org.fmimaster">
   <fm:Simulation xmlns:fm="https://fmimaster.org/ssp" stepSize="0.1" tolerance="1e-4"/>
 </ssc:Annotation></ssd:Annotations></ssd:DefaultExperiment>
</ssd:SystemStructureDescription>"""

NAMING = ("source", "target", "startElement", "startConnector", "endElement", "endConnector")
"""Attributes whose values are names of something else in the system."""


def misspelt(name: str) -> Iterator[str]:
    """A letter too few, one too many, another one."""
    k = len(name) // 2
    yield name[:k] + name[k + 1 :]
    yield name[:k] + name[k] + name[k:]
    yield f"{name[:k]}q{name[k + 1 :]}"


def changed(root: etree._Element) -> Iterator[tuple[str, etree._Element]]:
    """The document with one name of an element or attribute misspelt, and what it was."""
    for number, element in enumerate(root.iter()):
        for name in ("", *element.attrib):
            right = name or etree.QName(element).localname
            if (
                len(right) < 3
            ):  # such as x or kg: no error of spelling can be told from another name
                continue
            for wrong in misspelt(right):
                copy = deepcopy(root)
                found = list(copy.iter())[number]
                if name:
                    found.set(wrong, found.attrib.pop(name))
                else:
                    found.tag = found.tag.replace(f"}}{right}", f"}}{wrong}")
                yield right, copy


@pytest.fixture
def root() -> etree._Element:
    files = {n: reference_path(f"fmi3/TwoMass{n.title()}.fmu") for n in ("upper", "lower")}
    return etree.fromstring(TEXT.format(**files))


def test_the_description_without_mistakes_is_taken(root: etree._Element, tmp_path: Path) -> None:
    description = read(tmp_path, etree.tostring(root).decode())
    assert description.warnings == ()
    assert ["sources are read from outside" in note for note in description.notes] == [True]


def test_each_misspelt_element_and_attribute_is_refused_with_its_line(
    root: etree._Element, tmp_path: Path
) -> None:
    accepted, messages = [], []
    for right, document in changed(root):
        try:
            read(tmp_path, etree.tostring(document).decode())
            accepted.append(right)
        except (DescriptionError, FileError) as error:
            messages.append(str(error))
    assert accepted == []
    assert [m for m in messages if not re.match(r".*s\.ssd(, line \d+)?: ", m)] == []
    assert len(messages) > 200


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SystemStructureDescription", "SystemStructureDescripton"),
        ("SystemStructureParameterValues", "SystemStructureParametrValues"),
        (
            "http://ssp-standard.org/SSP1/SystemStructureCommon",
            "http://spp-standard.org/SSP1/SystemStructureCommon",
        ),
    ],
)
def test_a_misspelt_namespace_is_refused(
    root: etree._Element, tmp_path: Path, old: str, new: str
) -> None:
    text = etree.tostring(root).decode().replace(f'{old}"', f'{new}"')
    with pytest.raises(DescriptionError, match=f"is not one of SSP. Did you mean '.*{old}'"):
        read(tmp_path, text)


def test_the_message_has_the_right_name(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError) as error:
        read(tmp_path, ssd(elements("\n" + component("a", more='implementatoin="any"'))))
    assert str(error.value).partition("s.ssd, ")[2] == (
        "line 5: attribute 'implementatoin' of Component 'a' is not known in SSP. Did you mean 'implementation'? "
        "Correct the spelling; otherwise it would be ignored, and the model would be different."
    )


def test_names_of_tools_and_of_later_versions_are_taken(tmp_path: Path) -> None:
    connector = '<ssd:Connector name="x" kind="input" color="red"><ssc:Float32/></ssd:Connector>'
    inside = f"<ssd:Connectors>{connector}</ssd:Connectors>"
    foreign = '<x:Conectors xmlns:x="https://example.com" nmae="y"/>'
    annotation = f'<ssd:Annotations><ssc:Annotation type="a"><Conectors/>{foreign}</ssc:Annotation></ssd:Annotations>'
    description = read(tmp_path, as_version_2(ssd(elements(component("a", inside + annotation)))))
    assert [c.name for c in description.system.components] == ["a"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ('source="mas" target="u.m1"', "'mas' (did you mean 'mass'?)"),
        ('source="mass" target="u.m11"', "'u.m11' (did you mean 'u.m1'?)"),
        ('source="mass" target="u.u.m1"', "'u.u.m1' (did you mean 'u.m1'?)"),  # as OMSimulator does
        ('source="mass" target="uu.m1"', None),  # too short to be near
    ],
)
def test_a_misspelt_name_of_a_parameter_is_a_warning_with_its_line(
    tmp_path: Path, entry: str, expected: str | None
) -> None:
    fmu = reference_path("fmi3/TwoMassUpper.fmu")
    mapping = inline_mapping(f"<ssm:MappingEntry {entry}/>")
    content = binding(values(parameter("mass", "1.5")), mapping=mapping)
    text = ssd(bindings(content) + elements(component("u", source=str(fmu))))
    path = tmp_path / "s.ssd"
    path.write_text(text, encoding="utf-8")
    found = Simulation(path, stop_time=1).prepare().warnings
    if expected is None:
        assert found == ()
    else:
        (warning,) = found
        assert "ignored. Correct the spelling: " + expected in warning
        assert "line " in warning


def test_a_parameter_that_another_one_has_set_is_not_meant(tmp_path: Path) -> None:
    """A set for several systems, of which this one has a part."""
    fmu = reference_path("fmi2/TwoMassUpper.fmu")
    content = binding(
        values(parameter("u.m1", "1"), parameter("u.m2", "1"), parameter("u.m3", "1"))
    )
    path = tmp_path / "s.ssd"
    path.write_text(
        ssd(bindings(content) + elements(component("u", source=str(fmu)))), encoding="utf-8"
    )
    prepared = Simulation(path, stop_time=1).prepare()
    assert prepared.warnings == ()
    assert "parameters fit nothing in the system and are ignored: 'u.m3'." in prepared.notes


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"org.fmimaster"', '"org.fmimster"', "Did you mean 'org.fmimaster'?"),
        (
            '"org.fmimaster"',
            '"org.fmimaster.power-bond"',
            "Did you mean 'org.fmimaster.power-bonds'?",
        ),
        *(
            ('"org.fmimaster"', f'"org.fmimaster.{wrong}"', f"Did you mean 'org.fmimaster.{kind}'?")
            for wrong, kind in (
                ("clock", "clocks"),
                ("lifetime", "lifetimes"),
                ("semantic-adaption", "semantic-adaptation"),
            )
        ),
        ("fm:Simulation ", "fm:Simulaton ", "Expected Simulation."),
        ("tolerance=", "tolerence=", "Did you mean 'tolerance'? Expected stepSize or tolerance."),
    ],
)
def test_a_misspelt_name_in_an_annotation_of_ours_is_refused(
    root: etree._Element, tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = etree.tostring(root).decode()
    assert old in text
    with pytest.raises(DescriptionError, match=re.escape(message)):
        read(tmp_path, text.replace(old, new))
