"""Systems are read from SSP archives, folders, SSDs and FMUs."""

from __future__ import annotations

import sys
import zipfile
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

from fmimaster.base.errors import DescriptionError, FileError
from fmimaster.system.clocks import ClockInterval
from fmimaster.system.declarations import Experiment
from fmimaster.system.description import Component, Connection, Connector, Endpoint
from fmimaster.system.model import Causality, DataType, Source, Transformation, Unit
from fmimaster.system.read import read_system

UNITS = """<ssd:Units>
  <ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit>
  <ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit>
  <ssc:Unit name="degC"><ssc:BaseUnit K="1" offset="273.15"/></ssc:Unit>
  <ssc:Unit name="odd"/>
</ssd:Units>"""
METRE = Unit("m", (0, 1, 0, 0, 0, 0, 0, 0))
MILLIMETRE = Unit("mm", (0, 1, 0, 0, 0, 0, 0, 0), 0.001)


def zipped(path: Path, content: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path


def given(element: Component) -> dict[str, object]:
    return {p.name: p.value for p in element.parameters}


# What can be read ---------------------------------------------------------------------------------


def test_an_archive_gives_members_as_sources(tmp_path: Path) -> None:
    text = ssd(elements(component("a", source="resources/my%20pump.fmu")))
    path = zipped(tmp_path / "x.ssp", {"SystemStructure.ssd": text, "resources/my pump.fmu": b""})
    description = read_system(str(path))
    assert description.system.name == "root"
    assert description.system.components == (Component("a", Source(path, "resources/my pump.fmu")),)
    assert description.source == path
    assert description.notes == ()


def test_a_folder_and_an_ssd_give_files_as_sources(tmp_path: Path) -> None:
    (tmp_path / "SystemStructure.ssd").write_text(
        ssd(elements(component("a", source="r/a.fmu"))), encoding="utf-8"
    )
    for path in (tmp_path, tmp_path / "SystemStructure.ssd"):
        description = read_system(path)
        assert description.system.components[0].source == Source(tmp_path / "r/a.fmu")
        assert description.source == path


def test_an_fmu_is_a_system_of_one_component(tmp_path: Path) -> None:
    path = tmp_path / "my.pump.fmu"
    path.write_bytes(b"not looked at here")
    (tmp_path / "tank.v2").mkdir()
    (tmp_path / "tank.v2" / "modelDescription.xml").write_text(
        "<fmiModelDescription/>", encoding="utf-8"
    )
    for source, name in ((path, "my.pump"), (tmp_path / "tank.v2", "tank.v2")):
        description = read_system(source)
        assert list(description.components()) == [(name, Component(name, Source(source)))]
        assert description.notes == ()


def test_anything_else_is_refused_with_what_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"")
    with pytest.raises(
        FileError, match=r"is not a system\. Expected an SSP archive \(\.ssp\), an SSD"
    ):
        read_system(tmp_path / "x.zip")
    with pytest.raises(FileError, match=r"does not exist\. Did you mean 'x\.zip'"):
        read_system(tmp_path / "x.zi")


def test_the_only_ssd_of_another_name_is_taken_with_a_note(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.ssp", {"sub/Other.ssd": ssd(elements(component("a")))})
    description = read_system(path)
    assert description.system.components[0].source == Source(path, "sub/a.fmu")
    assert description.notes == (
        f"'{path}' has no SystemStructure.ssd; 'sub/Other.ssd' is read instead.",
    )


def test_several_ssds_of_other_names_are_told(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.ssp", {"A.ssd": ssd(), "B.ssd": ssd(), "c.ssv": ""})
    with pytest.raises(
        FileError, match=r"has no SystemStructure\.ssd, but A\.ssd, B\.ssd\. Give the path"
    ):
        read_system(path)


def test_other_ssds_beside_the_one_that_is_read_are_noted(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "SystemStructure.ssd": ssd(),
        "Fast.ssd": ssd(),
        "z.SSD": ssd(),
        "sub/inner.ssd": ssd(),
    }
    path = zipped(tmp_path / "x.ssp", files)
    assert read_system(path).notes == (
        f"'{path}' has other descriptions, which are not read: Fast.ssd, z.SSD. To use one, unpack the archive and give "
        "its path.",
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("SystemStructure.ssd", "Fast.ssd"):
        (folder / name).write_text(ssd(), encoding="utf-8")
    (note,) = read_system(folder).notes
    assert note.endswith("not read: Fast.ssd. To use one, give its path.")


def test_no_ssd_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"has no SystemStructure\.ssd and no other \.ssd file"):
        read_system(tmp_path)


def test_xml_of_another_kind_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        FileError, match=r"the root is 'html', expected 'SystemStructureDescription'"
    ):
        read(tmp_path, "<html/>")
    with pytest.raises(FileError, match=r"s\.ssd, line 1: it has no element System"):
        read(tmp_path, '<SystemStructureDescription version="1.0"/>')


def test_a_later_version_is_read_with_a_note(tmp_path: Path) -> None:
    assert read(tmp_path, ssd(version="2.0")).notes == ()
    notes = read(tmp_path, ssd(version="3.0")).notes
    assert len(notes) == 1
    assert "SSP version '3.0' is read as far as it is like 1.0 or 2.0" in notes[0]


# Structure ----------------------------------------------------------------------------------------


def test_connectors_have_kind_type_and_unit(tmp_path: Path) -> None:
    types = {
        "x": ("input", '<ssc:Real unit="mm"/>'),
        "y": ("output", '<ssc:Real unit="furlong"/>'),
        "o": ("output", '<ssc:Real unit="odd"/>'),
        "i": ("parameter", "<ssc:Integer/>"),
        "b": ("calculatedParameter", "<ssc:Boolean/>"),
        "s": ("inout", "<ssc:String/>"),
        "e": ("input", '<ssc:Enumeration name="gear"/>'),
        "c": ("input", '<ssc:Binary mime-type="a/b"/>'),
        "f": ("structuralParameter", "<ssc:UInt64/>"),
        "n": ("local", '<ssd:ConnectorGeometry x="0" y="0"/>'),
    }
    connectors = "".join(
        f'<ssd:Connector name="{name}" kind="{kind}">{inside}</ssd:Connector>'
        for name, (kind, inside) in types.items()
    )
    text = ssd(elements(component("a", f"<ssd:Connectors>{connectors}</ssd:Connectors>")), UNITS)
    assert read(tmp_path, text).system.components[0].connectors == (
        Connector("x", Causality.INPUT, DataType.FLOAT64, MILLIMETRE),
        Connector("y", Causality.OUTPUT, DataType.FLOAT64, Unit("furlong")),
        Connector("o", Causality.OUTPUT, DataType.FLOAT64, Unit("odd")),
        Connector("i", Causality.PARAMETER, DataType.INT32),
        Connector("b", Causality.CALCULATED_PARAMETER, DataType.BOOLEAN),
        Connector("s", Causality.LOCAL, DataType.STRING),
        Connector("e", Causality.INPUT),
        Connector("c", Causality.INPUT, DataType.BINARY),
        Connector("f", Causality.STRUCTURAL_PARAMETER, DataType.UINT64),
        Connector("n", Causality.OUTPUT),
    )


def test_systems_nest_with_connectors_and_connections(tmp_path: Path) -> None:
    text = ssd(
        """<ssd:Elements>
          <ssd:System name="vehicle">
            <ssd:Connectors><ssd:Connector name="v" kind="output"/></ssd:Connectors>
            <ssd:Elements>
              <ssd:Component name="engine.left" source="a.fmu"/>
            </ssd:Elements>
            <ssd:Connections>
              <ssd:Connection startElement="engine.left" startConnector="der(x)" endConnector="v"/>
            </ssd:Connections>
          </ssd:System>
          <ssd:Component name="road" source="b.fmu" implementation="CoSimulation"/>
        </ssd:Elements>
        <ssd:Connections>
          <ssd:Connection startElement="road" startConnector="u[1]"
              endElement="vehicle" endConnector="v" suppressUnitConversion="true">
            <ssc:LinearTransformation factor="2" offset="-1"/>
          </ssd:Connection>
        </ssd:Connections>"""
    )
    description = read(tmp_path, text)
    assert [name for name, _ in description.components()] == ["road", "vehicle.engine.left"]
    (vehicle,) = description.system.systems
    assert vehicle.connectors == (Connector("v", Causality.OUTPUT),)
    assert vehicle.connections == (
        Connection(Endpoint("engine.left", "der(x)"), Endpoint("", "v")),
    )
    assert description.system.connections == (
        Connection(
            Endpoint("road", "u[1]"), Endpoint("vehicle", "v"), Transformation(2.0, -1.0), True
        ),
    )
    assert description.notes == ()


def connected(start: str = "a", end: str = "b", inside: str = "", more: str = "") -> str:
    return (
        "<ssd:Connections>\n"
        f'<ssd:Connection startElement="{start}" startConnector="y" '
        f'endElement="{end}" endConnector="u" {more}>'
        f"{inside}</ssd:Connection></ssd:Connections>"
    )


def test_a_connection_to_an_unknown_element_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    text = ssd(elements(component("pump"), component("tank")) + connected("pump", "tnak"))
    with pytest.raises(
        DescriptionError,
        match=r"s\.ssd, line 5: connection 'pump\.y -> tnak\.u': there is no element 'tnak' in "
        r"this system\. Did you mean 'tank'\?",
    ):
        read(tmp_path, text)


@pytest.mark.parametrize("kind", ["Boolean", "Integer", "Enumeration"])
def test_mappings_of_discrete_values_are_refused(tmp_path: Path, kind: str) -> None:
    inside = f"<ssc:{kind}MappingTransformation/>"
    text = ssd(elements(component("a"), component("b")) + connected(inside=inside))
    with pytest.raises(
        DescriptionError, match=f"line 5: {kind}MappingTransformation is not supported"
    ):
        read(tmp_path, text)


@pytest.mark.parametrize("indices", ['startIndices="1"', 'endIndices="1 2"', 'endIndices=""'])
def test_a_connection_of_array_elements_is_refused(tmp_path: Path, indices: str) -> None:
    text = ssd(elements(component("a"), component("b")) + connected(more=indices))
    with pytest.raises(DescriptionError, match="connects elements of an array"):
        read(tmp_path, text)


def test_a_signal_dictionary_is_refused_only_if_it_is_connected(tmp_path: Path) -> None:
    reference = '<ssd:SignalDictionaryReference name="bus" dictionary="d"/>'
    description = read(tmp_path, ssd(elements(component("a"), reference)))
    assert len(description.system.components) == 1
    assert "line 4: references to signal dictionaries are ignored" in description.notes[0]
    with pytest.raises(DescriptionError, match=r"'a\.y -> bus\.u' leads to a signal dictionary"):
        read(tmp_path, ssd(elements(component("a"), reference) + connected("a", "bus")))


def test_names_that_occur_twice_are_refused(tmp_path: Path) -> None:
    nested = '<ssd:System name="a"/>'
    with pytest.raises(
        DescriptionError, match="line 3: there are several elements with the name 'a'"
    ):
        read(tmp_path, ssd(elements(component("a"), nested)))
    connector = '<ssd:Connector name="x" kind="input"/>'
    text = ssd(elements(component("a", f"<ssd:Connectors>{connector * 2}</ssd:Connectors>")))
    with pytest.raises(DescriptionError, match="several connectors with the name 'x'"):
        read(tmp_path, text)


def test_full_names_that_occur_twice_are_refused(tmp_path: Path) -> None:
    nested = f'<ssd:System name="a">{elements(component("b"))}</ssd:System>'
    with pytest.raises(DescriptionError, match=r"several components with the full name 'a\.b'"):
        read(tmp_path, ssd(elements(component("a.b"), nested)))


def test_a_system_and_a_component_of_one_full_name_are_refused(tmp_path: Path) -> None:
    nested = '<ssd:System name="a"><ssd:Elements><ssd:System name="b"/></ssd:Elements></ssd:System>'
    with pytest.raises(DescriptionError, match=r"several components with the full name 'a\.b'"):
        read(tmp_path, ssd(elements(component("a.b"), nested)))


def test_connectors_of_ssp_2_have_dimensions_and_belong_to_clocks(tmp_path: Path) -> None:
    inside = (
        '<ssd:Connectors><ssd:Connector name="x" kind="input"><ssc:Float64/><ssc:Dimension size="2"/>'
        '<ssc:Dimension sizeConnector="n"/><ssd:Clock name="tick"/></ssd:Connector>'
        '<ssd:Connector name="y" kind="input"><ssd:Clock name="tick"/></ssd:Connector>'
        '<ssd:Connector name="tick" kind="input"><ssc:Clock intervalVariability="triggered"/></ssd:Connector>'
        '<ssd:Connector name="tock" kind="input"><ssc:Clock intervalDecimal="0.1"/></ssd:Connector>'
        "</ssd:Connectors>"
    )
    description = read(tmp_path, ssd(elements(component("a", inside)), version="2.0"))
    assert description.system.components[0].connectors == (
        Connector("x", Causality.INPUT, DataType.FLOAT64, dimensions=(2, None), clocks=("tick",)),
        Connector("y", Causality.INPUT, clocks=("tick",)),
        Connector("tick", Causality.INPUT, DataType.CLOCK),
        Connector("tock", Causality.INPUT, DataType.CLOCK, interval=ClockInterval("1/10")),
    )
    assert description.notes == ()
    assert description.warnings == ()


def test_an_unknown_kind_of_connector_is_refused(tmp_path: Path) -> None:
    connectors = '<ssd:Connectors><ssd:Connector name="x" kind="in"/></ssd:Connectors>'
    with pytest.raises(
        FileError, match=r"kind 'in' of a connector is not known\. Expected one of input"
    ):
        read(tmp_path, ssd(elements(component("a", connectors))))


# Sources ------------------------------------------------------------------------------------------


def test_a_component_without_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"attribute 'source' of Component 'a' is missing"):
        read(tmp_path, ssd(elements('<ssd:Component name="a"/>')))
    with pytest.raises(FileError, match=r"attribute 'source' of Component 'a' is empty"):
        read(tmp_path, ssd(elements(component("a", source=""))))


@pytest.mark.parametrize("implementation", ["Scheduled", "CoSim"])
def test_an_unknown_implementation_is_refused(tmp_path: Path, implementation: str) -> None:
    text = component("a", more=f'implementation="{implementation}"')
    with pytest.raises(
        DescriptionError,
        match=f"line 4: component 'a' has the implementation '{implementation}', which is not supp",
    ):
        read(tmp_path, ssd(elements(text)))


@pytest.mark.parametrize("implementation", ["any", "CoSimulation", "ModelExchange"])
def test_co_simulation_model_exchange_and_any_are_taken(
    tmp_path: Path, implementation: str
) -> None:
    text = component("a", more=f'implementation="{implementation}"')
    assert read(tmp_path, ssd(elements(text))).notes == ()


@pytest.mark.parametrize("source", ["http://x.org/a.fmu", "HTTPS://x.org/a.fmu", "proxyfmu://h?a"])
def test_a_source_on_another_machine_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(
        FileError, match=r"is reached by '\w+', expected a file\. Place the file next"
    ):
        read(tmp_path, ssd(elements(component("a", source=source))))


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("other.ssp", ""),
        ("other.ssd", ""),
        ("#other", ""),
        ("other", 'type="application/x-ssp-package"'),
    ],
)
def test_a_component_that_is_another_system_is_refused(
    tmp_path: Path, source: str, more: str
) -> None:
    with pytest.raises(
        DescriptionError, match=r"component 'a' is not an FMU but .* Expected an FMU"
    ):
        read(tmp_path, ssd(elements(component("a", source=source, more=more))))


def test_a_component_that_is_a_table_is_refused_with_the_option_for_tables(tmp_path: Path) -> None:
    """As OMSimulator writes them."""
    table = component("road", source="road.csv", more='type="text/csv"')
    with pytest.raises(DescriptionError, match=r"not an FMU but 'road.csv' .* \(--input-file\)\."):
        read(tmp_path, ssd(elements(table)))


def test_sources_outside_of_an_archive_are_taken_from_disk_with_a_note(tmp_path: Path) -> None:
    outside = (tmp_path / "out side.fmu").as_uri()
    text = ssd(
        elements(
            component("a", source="../../a.fmu"),
            component("b", source=outside),
            component("c", source="sub/../c.fmu"),
        )
    )
    path = zipped(tmp_path / "x.ssp", {"sub/SystemStructure.ssd": text})
    description = read_system(path)
    assert [c.source for c in description.system.components] == [
        Source(tmp_path / "a.fmu"),
        Source(tmp_path / "out side.fmu"),
        Source(path, "sub/c.fmu"),
    ]
    notes = [note for note in description.notes if "outside of the system" in note]
    assert len(notes) == 1
    assert "line 4 and 1 more place: sources are read from outside of the system: " in notes[0]


def test_sources_of_an_ssd_may_lie_above_it(tmp_path: Path) -> None:
    text = ssd(
        elements(component("a", source="../a.fmu"), component("b", source=f"{tmp_path}/b.fmu"))
    )
    description = read(tmp_path, text)
    assert [c.source for c in description.system.components] == [
        Source(tmp_path / "../a.fmu"),
        Source(tmp_path / "b.fmu"),
    ]
    assert len(description.notes) == 1


@pytest.mark.skipif(sys.platform != "win32", reason="drives and shared folders of Windows")
@pytest.mark.parametrize(
    "source",
    [
        r"C:\A b\ü.fmu",
        "C:/A b/ü.fmu",
        "C:/A%20b/%C3%BC.fmu",
        "file:///C:/A%20b/%C3%BC.fmu",
        "file:/C:/A%20b/%C3%BC.fmu",
        "file://localhost/C:/A%20b/ü.fmu",
        r"file:///C:\A b\ü.fmu",
    ],
)
def test_sources_on_a_drive(tmp_path: Path, source: str) -> None:
    text = ssd(elements(component("a", source=source)))
    of_archive = read_system(zipped(tmp_path / "x.ssp", {"SystemStructure.ssd": text}))
    for description in (read(tmp_path, text), of_archive):
        assert description.system.components[0].source == Source(Path(r"C:\A b\ü.fmu"))
        assert len(description.notes) == 1


@pytest.mark.skipif(sys.platform != "win32", reason="drives and shared folders of Windows")
@pytest.mark.parametrize(
    "source",
    [r"\\plant\models\a b.fmu", "file://plant/models/a%20b.fmu", "//plant/models/a%20b.fmu"],
)
def test_sources_in_a_shared_folder(tmp_path: Path, source: str) -> None:
    description = read(tmp_path, ssd(elements(component("a", source=source))))
    assert description.system.components[0].source == Source(Path(r"\\plant\models\a b.fmu"))


def test_a_relative_address_with_a_scheme_names_a_member(tmp_path: Path) -> None:
    text = ssd(elements(component("a", source="file:resources/a%20b.fmu")))
    path = zipped(tmp_path / "x.ssp", {"SystemStructure.ssd": text, "resources/a b.fmu": b""})
    assert read_system(path).system.components[0].source == Source(path, "resources/a b.fmu")


def test_backslashes_in_sources_are_read_as_slashes(tmp_path: Path) -> None:
    description = read(tmp_path, ssd(elements(component("a", source=r"resources\a.fmu"))))
    assert description.system.components[0].source == Source(tmp_path / "resources/a.fmu")


# Parameters ---------------------------------------------------------------------------------------


def test_inline_values_have_types_units_and_a_place(tmp_path: Path) -> None:
    content = values(
        parameter("r", "1e-3", more='unit="mm"'),
        parameter("i", "-4", "Integer"),
        parameter("b", "true", "Boolean"),
        parameter("s", " a b ", "String"),
        parameter("empty", "", "String"),
        parameter("e", "first gear", "Enumeration"),
        parameter("h", "00ff", "Binary"),
        parameter("array", "1 2 3", "Float64"),
    )
    text = ssd(elements(component("a", bindings(binding(content)))), UNITS)
    (a,) = read(tmp_path, text).system.components
    assert given(a) == {
        "r": 1e-3,
        "i": -4,
        "b": True,
        "s": " a b ",
        "empty": "",
        "e": "first gear",
        "h": b"\x00\xff",
        "array": (1.0, 2.0, 3.0),
    }
    assert a.parameters[0].unit == MILLIMETRE
    assert a.parameters[0].where == f"{tmp_path / 's.ssd'}, line 4"


def test_values_from_a_file_bring_their_own_units(tmp_path: Path) -> None:
    own = '<ssv:Units><ssc:Unit name="mm"><ssc:BaseUnit m="1"/></ssc:Unit></ssv:Units>'
    content = values(
        parameter("x", "1", more='unit="mm"'), parameter("y", "1", more='unit="m"'), units=own
    )
    (tmp_path / "my values.ssv").write_text(content, encoding="utf-8")
    source = bindings('<ssd:ParameterBinding source="my%20values.ssv"/>')
    (a,) = read(tmp_path, ssd(elements(component("a", source)), UNITS)).system.components
    assert [p.unit for p in a.parameters] == [Unit("mm", METRE.exponents), Unit("m")]
    assert a.parameters[0].where == f"{tmp_path / 'my values.ssv'}, line 1"


def test_values_are_read_from_inside_the_archive_and_the_component(tmp_path: Path) -> None:
    fmu = zipped(tmp_path / "a.fmu", {"extra/in.ssv": values(parameter("x", "2"))}).read_bytes()
    inside = bindings(
        '<ssd:ParameterBinding source="p/out.ssv"/>',
        '<ssd:ParameterBinding source="extra/in.ssv" sourceBase="component"/>',
    )
    content: dict[str, str | bytes] = {
        "SystemStructure.ssd": ssd(elements(component("a", inside))),
        "p/out.ssv": values(parameter("x", "1"), parameter("y", "1")),
        "a.fmu": fmu,
    }
    (a,) = read_system(zipped(tmp_path / "x.ssp", content)).system.components
    assert given(a) == {"x": 2.0, "y": 1.0}


def test_a_system_has_no_component_to_read_values_from(tmp_path: Path) -> None:
    text = ssd(bindings('<ssd:ParameterBinding source="x.ssv" sourceBase="component"/>'))
    with pytest.raises(
        DescriptionError, match="sourceBase 'component' means a file inside a component"
    ):
        read(tmp_path, text)


def test_later_bindings_win_over_earlier_ones(tmp_path: Path) -> None:
    both = bindings(
        binding(values(parameter("x", "1"), parameter("y", "1"))),
        binding(values(parameter("x", "2"))),
    )
    (a,) = read(tmp_path, ssd(elements(component("a", both)))).system.components
    assert given(a) == {"x": 2.0, "y": 1.0}


def test_values_of_a_system_stay_with_the_system(tmp_path: Path) -> None:
    inner = bindings(binding(values(parameter("b.x", "1")))) + elements(component("b"))
    nested = f'<ssd:System name="n">{inner}</ssd:System>'
    text = ssd(bindings(binding(values(parameter("n.b.x", "2")))) + elements(nested))
    system = read(tmp_path, text).system
    assert [(p.name, p.value) for p in system.parameters] == [("n.b.x", 2.0)]
    assert [(p.name, p.value) for p in system.systems[0].parameters] == [("b.x", 1.0)]


def test_a_prefix_comes_before_each_name(tmp_path: Path) -> None:
    text = ssd(bindings(binding(values(parameter("x", "1")), more='prefix="n.b."')))
    assert read(tmp_path, text).system.parameters[0].name == "n.b.x"


def test_a_mapping_renames_and_transforms_and_drops_the_rest(tmp_path: Path) -> None:
    mapping = inline_mapping(
        '<ssm:MappingEntry source="p.x" target="a.length">'
        '<ssc:LinearTransformation factor="2"/></ssm:MappingEntry>',
        '<ssm:MappingEntry source="p.x" target="a.raw" suppressUnitConversion="true"/>',
        '<ssm:MappingEntry source="p.z" target="a.z"/>',
    )
    content = values(parameter("x", "3", more='unit="mm"'), parameter("y", "1"))
    description = read(
        tmp_path, ssd(bindings(binding(content, 'prefix="p."', mapping)), after=UNITS)
    )
    length, raw = description.system.parameters
    assert (length.name, length.value, length.unit) == ("a.length", 3.0, MILLIMETRE)
    assert length.transformation == Transformation(2.0)
    assert (raw.name, raw.value, raw.unit) == ("a.raw", 3.0, None)
    assert raw.transformation.is_identity
    assert [note.partition(": ")[2] for note in description.notes] == [
        "mapped parameters are not in the parameter set: p.z.",
        "parameters without a mapping are not applied: p.y.",
    ]


def test_a_mapping_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "map.ssm").write_text(
        f'<ssm:ParameterMapping version="1.0" {NAMESPACES}>'
        '<ssm:MappingEntry source="x" target="y"/></ssm:ParameterMapping>',
        encoding="utf-8",
    )
    mapping = '<ssd:ParameterMapping source="map.ssm"/>'
    text = ssd(
        elements(component("a", bindings(binding(values(parameter("x", "1")), "", mapping))))
    )
    assert given(read(tmp_path, text).system.components[0]) == {"y": 1.0}


def test_a_mapping_entry_without_a_source_is_skipped_with_one_note_for_all(tmp_path: Path) -> None:
    entries = [f'<ssm:MappingEntry source="" target="y{k}"/>\n' for k in range(9)]
    mapping = inline_mapping(*entries, '<ssm:MappingEntry source="x" target="z"/>')
    text = ssd(bindings(binding(values(parameter("x", "1")), mapping=mapping)))
    description = read(tmp_path, text)
    assert [p.name for p in description.system.parameters] == ["z"]
    (note,) = description.notes
    assert note.endswith("line 4 and 8 more places: mapping entries without a source are skipped.")


def test_notes_about_many_parameters_are_one_line_with_a_count(tmp_path: Path) -> None:
    content = values(*(parameter(f"p{k}", "1") for k in range(100)))
    description = read(tmp_path, ssd(bindings(binding(content, mapping=inline_mapping()))))
    (note,) = description.notes
    assert note.endswith("are not applied: p0, p1, p2, p3, p4, p5, p6, p7 and 92 more.")


def test_of_two_parameters_for_one_name_the_last_is_taken_with_a_note(tmp_path: Path) -> None:
    mapping = inline_mapping(
        '<ssm:MappingEntry source="x" target="z"/>', '<ssm:MappingEntry source="y" target="z"/>'
    )
    content = values(parameter("x", "1"), parameter("y", "2"))
    description = read(tmp_path, ssd(bindings(binding(content, mapping=mapping))))
    assert [(p.name, p.value) for p in description.system.parameters] == [("z", 2.0)]
    assert (
        "several parameters are mapped to one name; the last one is used: z" in description.notes[0]
    )


@pytest.mark.parametrize("kind", ["String", "Enumeration", "Binary"])
def test_values_of_arrays_in_ssp_2_are_elements(tmp_path: Path, kind: str) -> None:
    inside = f'<ssv:{kind}><ssv:Value value="0a"/><ssv:Value value="0b"/></ssv:{kind}>'
    text = ssd(bindings(binding(values(f'<ssv:Parameter name="x">{inside}</ssv:Parameter>'))))
    (found,) = read(tmp_path, as_version_2(text)).system.parameters
    assert found.value == ((b"\n", b"\x0b") if kind == "Binary" else ("0a", "0b"))
    both = text.replace(f"<ssv:{kind}>", f'<ssv:{kind} value="0a">')
    with pytest.raises(FileError, match=f"{kind} has a value and elements Value"):
        read(tmp_path, both)


def test_what_a_binding_holds_beside_its_source_is_noted(tmp_path: Path) -> None:
    (tmp_path / "v.ssv").write_text(values(parameter("a.x", "1")), encoding="utf-8")
    source = 'source="v.ssv"'
    description = read(tmp_path, ssd(bindings(binding(values(parameter("a.y", "2")), source))))
    assert [p.name for p in description.system.parameters] == ["a.x"]
    assert "inside of a binding with a source are ignored" in description.notes[0]
    two = values(parameter("a.x", "1")) + values(parameter("a.y", "2"))
    description = read(tmp_path, ssd(bindings(binding(two))))
    assert [p.name for p in description.system.parameters] == ["a.x"]
    assert "of several parameter sets in one binding, the first is read" in description.notes[0]


def test_an_unknown_base_of_a_source_is_refused(tmp_path: Path) -> None:
    text = ssd(bindings('<ssd:ParameterBinding source="v.ssv" sourceBase="SSP"/>'))
    with pytest.raises(
        FileError, match=r"sourceBase 'SSP' is not known\. Expected SSD or component"
    ):
        read(tmp_path, text)


def test_an_empty_mapping_applies_nothing(tmp_path: Path) -> None:
    text = ssd(bindings(binding(values(parameter("x", "1")), mapping=inline_mapping())))
    assert read(tmp_path, text).system.parameters == ()


def test_a_value_given_twice_in_one_set_is_noted(tmp_path: Path) -> None:
    description = read(
        tmp_path, ssd(bindings(binding(values(parameter("a.x", "1"), parameter("a.x", "2")))))
    )
    assert description.system.parameters[0].value == 2.0
    assert "parameters are given twice; the later values are used: a.x" in description.notes[0]


def test_a_binding_without_values_is_noted(tmp_path: Path) -> None:
    description = read(tmp_path, ssd(bindings("<ssd:ParameterBinding/>")))
    assert "bindings without source or ParameterSet are ignored" in description.notes[0]


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (
            parameter("x", "1,5"),
            r"line 4: attribute 'value' of Real is '1,5', expected a number",
        ),
        (parameter("x", "1.5", "Integer"), "expected a whole number"),
        (parameter("x", ""), "attribute 'value' of Real is '', expected a number"),
        (
            '<ssv:Parameter name="x"><ssv:Real/></ssv:Parameter>',
            "attribute 'value' of Real is missing",
        ),
        ('<ssv:Parameter name="x"/>', "parameter 'x' has no value. Expected one of Real, "),
        ("<ssv:Parameter/>", "attribute 'name' of Parameter is missing"),
    ],
)
def test_a_malformed_value_is_told_with_its_line(tmp_path: Path, inside: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read(tmp_path, ssd(bindings(binding(values(inside)))))


def test_a_missing_parameter_file_is_told_with_the_place_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "values.ssv").write_text("", encoding="utf-8")
    text = ssd(bindings('<ssd:ParameterBinding source="valeus.ssv"/>'))
    with pytest.raises(
        FileError,
        match=r"s\.ssd, line 4: .*valeus\.ssv' does not exist\. Did you mean 'values\.ssv'",
    ):
        read(tmp_path, text)


def test_parameters_of_an_unknown_format_are_refused(tmp_path: Path) -> None:
    text = ssd(bindings('<ssd:ParameterBinding source="x.csv" type="text/csv"/>'))
    with pytest.raises(
        DescriptionError, match="ParameterBinding has type 'text/csv', which is not known"
    ):
        read(tmp_path, text)


# Experiment and annotations -----------------------------------------------------------------------

OURS = (
    '<ssc:Annotation type="org.fmimaster">'
    '<f:Simulation xmlns:f="https://fmimaster.org/ssp" stepSize="0.5"/></ssc:Annotation>'
)
OSP = (
    '<ssc:Annotation type="com.opensimulationplatform"><osp:Algorithm xmlns:osp="urn:osp">'
    '<osp:FixedStepAlgorithm baseStepSize="1e-4"/></osp:Algorithm></ssc:Annotation>'
)
OMS = (
    '<ssc:Annotation type="org.openmodelica"><oms:Annotations xmlns:oms="urn:oms">'
    '<oms:SimulationInformation><oms:FixedStepMaster description="oms-ma" stepSize="0.002"/>'
    "</oms:SimulationInformation></oms:Annotations></ssc:Annotation>"
)
FOREIGN = '<ssc:Annotation type="com.example"><anything/></ssc:Annotation>'


def experiment(*inside: str) -> str:
    return (
        '<ssd:DefaultExperiment startTime="1" stopTime="2.5">'
        f"{annotated(*inside)}</ssd:DefaultExperiment>"
    )


def test_the_experiment_may_be_left_out(tmp_path: Path) -> None:
    assert read(tmp_path, ssd()).experiment == Experiment()
    assert read(tmp_path, ssd(after="<ssd:DefaultExperiment/>")).experiment == Experiment()


def test_the_tolerance_of_a_system_is_in_our_annotation(tmp_path: Path) -> None:
    alone = OURS.replace('stepSize="0.5"', 'tolerance="1e-6"')
    assert read(tmp_path, ssd(after=experiment(alone))).experiment == Experiment(
        1.0, 2.5, tolerance=1e-6
    )
    both = OURS.replace("stepSize", 'tolerance="1e-6" stepSize')
    description = read(tmp_path, ssd(annotated(both)))
    assert description.experiment == Experiment(step_size=0.5, tolerance=1e-6)
    assert not any("ignored" in note for note in description.notes)
    with pytest.raises(FileError, match="'tolerance' of Simulation is -1, expected a number"):
        read(tmp_path, ssd(annotated(alone.replace("1e-6", "-1"))))


def test_our_annotation_gives_the_step_size_wherever_it_stands(tmp_path: Path) -> None:
    description = read(tmp_path, ssd(after=experiment(OURS)))
    assert description.experiment == Experiment(1.0, 2.5, step_size=0.5)
    assert description.notes == ()
    assert read(tmp_path, ssd(annotated(OURS))).experiment.step_size == 0.5
    assert read(tmp_path, ssd(after=annotated(OURS))).experiment.step_size == 0.5


@pytest.mark.parametrize(
    ("annotation", "step_size", "note"),
    [
        (
            OSP,
            1e-4,
            "step size 0.0001 s is read from FixedStepAlgorithm of 'com.opensimulationplatform'",
        ),
        (OMS, 0.002, "step size 0.002 s is read from FixedStepMaster of 'org.openmodelica'"),
    ],
)
def test_the_step_size_of_another_tool_is_taken_with_a_note(
    tmp_path: Path, annotation: str, step_size: float, note: str
) -> None:
    for text in (ssd(after=experiment(annotation)), ssd(annotated(annotation))):
        description = read(tmp_path, text)
        assert description.experiment.step_size == step_size
        assert len(description.notes) == 1
        assert note in description.notes[0]


def test_ours_wins_over_that_of_other_tools(tmp_path: Path) -> None:
    description = read(tmp_path, ssd(annotated(OMS), experiment(OSP, OURS)))
    assert description.experiment.step_size == 0.5
    assert len(description.notes) == 2


def test_the_step_size_of_a_nested_system_is_not_that_of_the_whole(tmp_path: Path) -> None:
    nested = f'<ssd:System name="n">{annotated(OMS)}</ssd:System>'
    description = read(tmp_path, ssd(elements(nested)))
    assert description.experiment.step_size is None
    assert "annotations of type 'org.openmodelica' are ignored" in description.notes[0]


def test_foreign_annotations_get_one_note_for_each_type(tmp_path: Path) -> None:
    parts = [component(name, annotated(FOREIGN)) for name in "abc"]
    notes = read(tmp_path, ssd(elements(*parts))).notes
    assert len(notes) == 1
    assert "line 4 and 2 more places: annotations of type 'com.example' are ignored" in notes[0]


@pytest.mark.parametrize("step_size", ["0", "-1", "nan", "inf"])
def test_a_step_size_that_is_none_is_refused(tmp_path: Path, step_size: str) -> None:
    with pytest.raises(FileError, match=r"attribute 'stepSize' of Simulation is .* above 0"):
        read(tmp_path, ssd(annotated(OURS.replace("0.5", step_size))))


def test_a_malformed_time_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(
        FileError, match=r"line 6: attribute 'stopTime' of .* is '10s', expected a number"
    ):
        read(tmp_path, ssd(after='<ssd:DefaultExperiment stopTime="10s"/>'))


# In the wild --------------------------------------------------------------------------------------


def test_undeclared_prefixes_are_repaired_with_a_note(tmp_path: Path) -> None:
    annotation = OSP.replace(' xmlns:osp="urn:osp"', "")
    description = read(tmp_path, ssd(after=experiment(annotation)))
    assert description.experiment.step_size == 1e-4
    assert "line 6: prefix 'osp' is not declared" in description.notes[0]


def test_undeclared_prefixes_are_repaired_in_parameter_sets(tmp_path: Path) -> None:
    content = values(parameter("a.x", "1")).replace(NAMESPACES, "")
    description = read(
        tmp_path, ssd(bindings(binding(content))).replace('xmlns:ssv="', 'xmlns:s="')
    )
    assert description.system.parameters[0].value == 1.0
    assert "prefix 'ssv' is not declared" in description.notes[0]


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"s\.ssd: the document has a document type"):
        read(tmp_path, ssd().replace("?>", "?><!DOCTYPE x>"))


@pytest.mark.parametrize("definition", ['m="1.0"', 'm="1" factor="0"', 'm="1" factor="large"'])
def test_a_unit_that_cannot_be_used_is_a_note_as_in_an_fmu(definition: str, tmp_path: Path) -> None:
    unit = f'<ssc:Unit name="q"><ssc:BaseUnit {definition}/></ssc:Unit>'
    connector = '<ssd:Connector name="x" kind="output"><ssc:Real unit="q"/></ssd:Connector>'
    inside = component("a", f"<ssd:Connectors>{connector}</ssd:Connectors>")
    found = read(tmp_path, ssd(elements(inside), after=f"<ssd:Units>{unit}</ssd:Units>"))
    assert found.system.components[0].connectors[0].unit == Unit("q")
    assert "a unit has an invalid definition and is not converted: 'q'" in found.notes[0]
