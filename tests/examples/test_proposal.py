"""The schemas of docs/proposal accept its examples and what is written, and the reader agrees with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import fmpy
import pytest
from command_line import reference
from event_fmus import EXTRA, VARIABLES, event_fmu
from fmpy.validation import validate_fmu
from lxml import etree
from proposal_schemas import MANIFEST, POLYNOMIALS, PROPOSAL, SYSTEM, catalogue, schema

from fmimaster.fmu.event_manifest import EventManifest
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.manifest_writer import add_manifest, write_manifest, write_polynomials
from fmimaster.system.declarations import (
    EventDeclaration,
    EventPolicy,
    Indicator,
    InputPolynomial,
    Scope,
)
from fmimaster.system.description import SharedEvent
from fmimaster.system.model import Model, Source
from fmimaster.system.read import read_system
from fmimaster.system.ssp_events import EVENTS_NAMESPACE, write_shared_events

SSP_SCHEMA = Path(fmpy.__file__).parent / "ssp" / "schema" / "SystemStructureDescription.xsd"
TWO_MASS = "\n".join(
    (
        VARIABLES.rstrip(),
        "ceiling.dz[1]  Float64 output    continuous derivative=ceiling.z[1]",
        "ceiling.dz[2]  Float64 output    continuous derivative=ceiling.z[2]",
    )
)
MANIFESTS = {
    "two-mass-upper": TWO_MASS,
    "two-mass-lower": TWO_MASS.replace("ceiling", "floor"),
    "bouncing-ball": "h Float64 output continuous\nv Float64 output continuous derivative=h\n",
    "look-ahead-only": "timeToNextEvent Float64 output continuous\n",
    "cradle-ball": """
        gap Float64 output continuous
        v Float64 output continuous
        v_left Float64 input discrete start=0
        v_right Float64 input discrete start=0
        hit.in Clock input discrete start=0
    """,
    "annotated": "freeboard Float64 output continuous\n",
    "ball-on-table": """
        gap Float64 output continuous
        gap.v Float64 output continuous derivative=gap
        gap.a Float64 output continuous derivative=gap.v
        bounce.in Clock input discrete start=0
        eventPolicy Int32 parameter tunable start=0
    """,
    "friction": """
        slip Float64 output continuous
        slip.a Float64 output continuous derivative=slip
        reserve Float64 output continuous
        sliding Boolean output discrete
        sticking Boolean output discrete
        stick.in Clock input discrete start=0
        slide.in Clock input discrete start=0
        eventPolicy Int32 parameter tunable start=0
    """,
}
BLOCK = """
    v Float64 output continuous
    inverse_m Float64 parameter fixed start=1
    e Float64 parameter fixed start=0
    contactLaw Int32 parameter fixed start=0
    eventPolicy Int32 parameter tunable start=0
"""
MANIFESTS["stacked-block"] = BLOCK + "".join(
    f"""
    {side}.gap Float64 output continuous
    {side}.w Float64 output continuous derivative={side}.gap
    {side}.a Float64 output continuous derivative={side}.w
    {side}.v Float64 input discrete start=0
    {side}.p Float64 input discrete start=0
    {side}.f Float64 input continuous start=0
    {side}.in Clock input discrete start=0
    """
    for side in ("below", "above")
)
"""Example → the variables of an FMU that it fits to."""
SYSTEMS = ("two-mass-system", "nested-system", "three-balls-system")


@pytest.fixture(scope="module")
def of_manifests() -> etree.XMLSchema:
    return schema(MANIFEST)


@pytest.fixture(scope="module")
def of_systems() -> etree.XMLSchema:
    return schema(SYSTEM)


def example(name: str) -> Path:
    return PROPOSAL / "examples" / f"{name}.xml"


def test_every_example_is_known_here() -> None:
    files = {path.stem for path in (PROPOSAL / "examples").iterdir()}
    assert files == {*MANIFESTS, *SYSTEMS, "shared-events", "input-polynomials"}


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
    said = EventManifest(model.events, model.event_policy, model.look_ahead)
    assert said != EventManifest()
    written = write_manifest(said)
    of_manifests.assertValid(etree.fromstring(written))

    again = model_with(written, variables, tmp_path, version)
    assert again == model


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_input_polynomials_are_valid_and_are_read_and_written_again(
    version: str, tmp_path: Path
) -> None:
    of_polynomials = schema(POLYNOMIALS)
    folder = "extra/org.fmimaster.fmi-ls-input-polynomials"

    def model_with(text: bytes) -> Model:
        of_polynomials.assertValid(etree.fromstring(text))
        members = {f"{folder}/fmi-ls-manifest.xml": text}
        fmu = FmuFile(Source(event_fmu(tmp_path / "a.fmu", None, version=version, members=members)))
        fmu.close()
        return fmu.model

    model = model_with(example("input-polynomials").read_bytes())
    assert [p.input for p in model.input_polynomials] == ["u_x"]
    assert model_with(write_polynomials(model.input_polynomials)) == model


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_is_valid_ssp_and_so_are_its_shared_events(
    name: str, of_systems: etree.XMLSchema, tmp_path: Path
) -> None:
    root = etree.parse(example(name))
    etree.XMLSchema(etree.parse(SSP_SCHEMA)).assertValid(root)
    for element in root.iter(f"{{{EVENTS_NAMESPACE}}}SharedEvents"):
        of_systems.assertValid(element)
    found = list(root.iter(f"{{{EVENTS_NAMESPACE}}}SharedEvent"))
    (tmp_path / "s.ssd").write_bytes(example(name).read_bytes())
    description = read_system(tmp_path / "s.ssd")
    assert len(list(description.shared_events())) == len(found) > 0
    assert description.notes == ()


def test_shared_events_may_be_a_file_of_their_own(of_systems: etree.XMLSchema) -> None:
    of_systems.assertValid(etree.parse(example("shared-events")))


@pytest.mark.skipif(shutil.which("xmllint") is None, reason="xmllint is not installed")
def test_xmllint_accepts_the_examples_and_refuses_a_broken_one(tmp_path: Path) -> None:
    environment = os.environ | {"XML_CATALOG_FILES": str(catalogue(tmp_path))}
    broken = tmp_path / "broken.xml"
    text = example("bouncing-ball").read_text(encoding="utf-8")
    broken.write_text(text.replace("private", "own"), encoding="utf-8")

    def status(path: Path, file: Path) -> int:
        command = ["xmllint", "--nonet", "--noout", "--schema", str(path), str(file)]
        return subprocess.run(command, env=environment, capture_output=True).returncode

    for name in MANIFESTS:
        assert status(MANIFEST, example(name)) == 0, name
    assert status(SYSTEM, example("shared-events")) == 0
    assert status(MANIFEST, broken) != 0


def test_examples_name_their_schema() -> None:
    """So that an editor validates them."""
    attribute = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"
    for name in MANIFESTS:
        location = etree.parse(example(name)).getroot().get(attribute)
        assert (example(name).parent / str(location)).resolve() == MANIFEST


REFERENCE = sorted((PROPOSAL.parents[1] / "fmus").glob("*/fmi-ls-manifest.xml"))


@pytest.mark.parametrize("path", REFERENCE, ids=[p.parent.name for p in REFERENCE])
def test_the_manifest_of_a_reference_fmu_is_valid(
    path: Path, of_manifests: etree.XMLSchema
) -> None:
    of_manifests.assertValid(etree.parse(path))


def test_whatever_is_written_is_valid(
    of_manifests: etree.XMLSchema, of_systems: etree.XMLSchema
) -> None:
    event = EventDeclaration("e", Scope.COUPLED, (Indicator("x"),), active="on")
    said = EventManifest((event,), EventPolicy("p", 0, 1))
    for text in (write_manifest(EventManifest()), write_manifest(said)):
        of_manifests.assertValid(etree.fromstring(text))
    for polynomials in ([], [InputPolynomial("u", ("c",))]):
        schema(POLYNOMIALS).assertValid(etree.fromstring(write_polynomials(polynomials)))
    shared = SharedEvent('a "b"', (("x.y", "<e>"), ("z", "f")), (("z", "r", "x.y"),))
    annotation = write_shared_events([shared]).replace("ssc:", "")
    of_systems.assertValid(etree.fromstring(annotation)[0])


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
