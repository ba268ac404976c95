"""The schemas of docs/proposal accept its examples and what is written, and the reader agrees with them."""

from __future__ import annotations

import re
from pathlib import Path

import fmpy
import pytest
from command_line import reference
from event_fmus import EVENTS, EXTRA, VARIABLES, event_fmu, manifest
from fmpy.validation import validate_fmu
from lxml import etree

from fmimaster.fmu.add_manifest import add_manifest
from fmimaster.fmu.extensions.events import EventManifest
from fmimaster.fmu.extensions.events_writer import write_manifest
from fmimaster.fmu.library import FmuFile
from fmimaster.system.description import SharedEvent, Source
from fmimaster.system.model import (
    EventDeclaration,
    EventPolicy,
    Indicator,
    InputPolynomial,
    Model,
    Scope,
)
from fmimaster.system.ssp import read_system
from fmimaster.system.ssp_events import write_shared_events

PROPOSAL = Path(__file__).parents[2] / "docs" / "proposal"
SSP_SCHEMA = Path(fmpy.__file__).parent / "ssp" / "schema" / "SystemStructureDescription.xsd"
MANIFESTS = {
    "two-mass-upper": VARIABLES,
    "two-mass-lower": VARIABLES.replace("ceiling", "floor"),
    "bouncing-ball": "h Float64 output continuous\nv Float64 output continuous derivative=h\n",
    "look-ahead-only": "timeToNextEvent Float64 output continuous\n",
    "cradle-ball": """
        gap Float64 output continuous
        v Float64 output continuous
        v_left Float64 input discrete start=0
        v_right Float64 input discrete start=0
        hit.in Clock input discrete start=0
    """,
}
"""Example → the variables of an FMU that it fits to."""
SYSTEMS = ("two-mass-system", "nested-system")


def schema(name: str) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(PROPOSAL / "schema" / name))


@pytest.fixture(scope="module")
def of_manifests() -> etree.XMLSchema:
    return schema("fmi-ls-events-manifest.xsd")


@pytest.fixture(scope="module")
def of_systems() -> etree.XMLSchema:
    return schema("fmi-ls-events-system.xsd")


def example(name: str) -> Path:
    return PROPOSAL / "examples" / f"{name}.xml"


def test_every_example_is_known_here() -> None:
    files = {path.stem for path in (PROPOSAL / "examples").iterdir()}
    assert files == {*MANIFESTS, *SYSTEMS}


@pytest.mark.parametrize("name", MANIFESTS)
def test_an_example_is_valid(name: str, of_manifests: etree.XMLSchema) -> None:
    of_manifests.assertValid(etree.parse(example(name)))


def model_with(text: bytes, variables: str, folder: Path, version: str = "3.0") -> Model:
    path = event_fmu(folder / "a.fmu", version=version, variables=variables, members={EXTRA: text})
    fmu = FmuFile(Source(path))
    fmu.close()
    return fmu.model


@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize(("name", "variables"), MANIFESTS.items())
def test_an_example_is_read_and_written_again(
    name: str, variables: str, version: str, of_manifests: etree.XMLSchema, tmp_path: Path
) -> None:
    model = model_with(example(name).read_bytes(), variables, tmp_path, version)
    said = EventManifest(
        model.events, model.event_policy, model.look_ahead, model.input_polynomials
    )
    assert said != EventManifest()
    written = write_manifest(said)
    of_manifests.assertValid(etree.fromstring(written))

    def canonical(text: bytes) -> str:
        parser = etree.XMLParser(remove_comments=True, remove_blank_text=True)
        return etree.tostring(etree.fromstring(text, parser), method="c14n").decode()

    assert canonical(written) == canonical(example(name).read_bytes())


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_is_valid_ssp_and_so_are_its_shared_events(
    name: str, of_systems: etree.XMLSchema, tmp_path: Path
) -> None:
    root = etree.parse(example(name))
    etree.XMLSchema(etree.parse(SSP_SCHEMA)).assertValid(root)
    found = list(root.iter("SharedEvent"))
    for element in found:
        of_systems.assertValid(element)
    (tmp_path / "s.ssd").write_bytes(example(name).read_bytes())
    description = read_system(tmp_path / "s.ssd")
    assert len(list(description.shared_events())) == len(found) > 0
    assert description.notes == ()


REFERENCE = sorted((PROPOSAL.parents[1] / "fmus").glob("*/fmi-ls-manifest.xml"))


@pytest.mark.parametrize("path", REFERENCE, ids=[p.parent.name for p in REFERENCE])
def test_the_manifest_of_a_reference_fmu_is_valid(
    path: Path, of_manifests: etree.XMLSchema
) -> None:
    of_manifests.assertValid(etree.parse(path))


def test_whatever_is_written_is_valid(
    of_manifests: etree.XMLSchema, of_systems: etree.XMLSchema
) -> None:
    said = EventManifest(
        policy=EventPolicy("p", 0, 1), input_polynomials=(InputPolynomial("u", ("c",)),)
    )
    for text in (write_manifest(EventManifest()), write_manifest(said)):
        of_manifests.assertValid(etree.fromstring(text))
    shared = SharedEvent('a "b"', (("x.y", "<e>"), ("z", "f")))
    annotations = write_shared_events([shared]).replace("ssc:", "")
    of_systems.assertValid(etree.fromstring(annotations)[0])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('scope="private"', 'scope="common"'),
        ('<Indicator name="ceiling.z[1]"/>\n    <Indicator name="ceiling.z[2]"/>', ""),
        ('name="ceiling" ', ""),
        ('name="ceiling" ', 'name="ceiling" colour="red" '),
        ('announce="ceiling.out"', 'trigger="collision.in"'),
        ('<Event name="ceiling"', '<Event name="collision"'),
        ('execute="0"', 'execute="zero"'),
        ('announce="1"', ""),
        ("<LookAhead ", "<Lookahead "),
        ('coefficients="u_poly"', ""),
        (' output="v"', ""),
    ],
)
def test_schema_and_reader_refuse_the_same(
    right: str, wrong: str, of_manifests: etree.XMLSchema, tmp_path: Path
) -> None:
    assert right in EVENTS
    text = manifest(EVENTS.replace(right, wrong, 1))
    assert not of_manifests.validate(etree.fromstring(text))
    model = model_with(text, VARIABLES, tmp_path)
    [standard] = model.layered_standards
    assert standard.problems
    assert (model.events, model.event_policy, model.look_ahead) == ((), None, None)
    assert model.input_polynomials == ()


def test_schema_and_reader_accept_the_same(of_manifests: etree.XMLSchema, tmp_path: Path) -> None:
    """What the test above changes is right before."""
    text = manifest(EVENTS)
    of_manifests.assertValid(etree.fromstring(text))
    model = model_with(text, VARIABLES, tmp_path)
    [standard] = model.layered_standards
    assert standard.problems == ()
    assert model.events != ()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("org.fmimaster.fmi-ls-events", "org.fmimaster.fmi-ls-event"),
        ("0.1.0", "1.0.0"),
        ("0.1.0", "0.1"),
        ("Event indicator sets", "Sets of event indicators"),
    ],
)
def test_name_version_and_description_are_settled(
    right: str, wrong: str, of_manifests: etree.XMLSchema
) -> None:
    text = manifest().decode().replace(right, wrong, 1).encode()
    assert not of_manifests.validate(etree.fromstring(text))


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_an_fmu_with_a_manifest_is_the_same_to_other_importers(
    version: str, tmp_path: Path
) -> None:
    plain = reference(f"{version}/Dahlquist.fmu")
    event = EventDeclaration("zero", Scope.PRIVATE, (Indicator("x", "dx"),))
    text = write_manifest(EventManifest((event,)))
    extended = add_manifest(plain, text, tmp_path / "extended.fmu")
    assert validate_fmu(str(extended)) == validate_fmu(str(plain)) == []
    rows = [fmpy.simulate_fmu(str(path), stop_time=1) for path in (plain, extended)]
    assert len(rows[0]) > 1
    assert rows[0].tobytes() == rows[1].tobytes()


def test_the_pages_name_every_element_of_the_schemas() -> None:
    page = (PROPOSAL / "manifest.md").read_text(encoding="utf-8")
    for file in ("fmi-ls-events-manifest.xsd", "fmi-ls-events-system.xsd"):
        text = (PROPOSAL / "schema" / file).read_text(encoding="utf-8")
        for name in re.findall(r'<xs:(?:element|attribute) name="(\w+)"', text):
            assert f"`{name}`" in page, name
