"""What is in the archives: valid descriptions, sources, systems; and how they are built."""

import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import fmpy
import fmpy.ssp
import pytest
from fmpy.validation import validate_fmu
from lxml import etree

BUILD = Path(__file__).parents[2] / "fmus" / "build.py"
SYSTEMS = [f"two-mass-{b}-{v}" for b in ("b1", "b2", "b3") for v in ("fmi2", "fmi3", "mixed")]
SSD = "{http://ssp-standard.org/SSP1/SystemStructureDescription}"


def test_fmpy_finds_nothing_wrong(reference, model, version):
    assert validate_fmu(str(reference / version / f"{model}.fmu")) == []


def test_it_has_a_binary_for_this_platform_and_its_sources(reference, model, version):
    archive = reference / version / f"{model}.fmu"
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
    assert f"sources/{version}.c" in names
    assert fmpy.platform in fmpy.supported_platforms(archive)
    [configuration] = fmpy.read_model_description(archive).buildConfigurations
    [file_set] = configuration.sourceFileSets
    assert {f"sources/{name}" for name in file_set.sourceFiles} <= set(names)


def test_both_versions_describe_the_same_variables(reference, model):
    fmi2, fmi3 = (
        fmpy.read_model_description(reference / version / f"{model}.fmu")
        for version in ("fmi2", "fmi3")
    )
    types = {"Real": "Float64", "Integer": "Int32"}

    def facts(description):
        return {
            v.name: (
                v.valueReference,
                types.get(v.type, v.type),
                v.causality,
                v.variability,
                v.initial,
                v.start,
                v.unit,
                v.derivative and v.derivative.name,
            )
            for v in description.modelVariables
            if v.type != "Clock"
        }

    def clocks(description):
        return {(v.name, v.valueReference) for v in description.modelVariables if v.type == "Clock"}

    facts2, facts3 = facts(fmi2), facts(fmi3)
    only_fmi2 = {name: facts2.pop(name) for name in facts2.keys() - facts3.keys()}
    assert facts2.items() <= facts3.items()
    left_out = facts3.keys() - facts2.keys()
    masses = {"TwoMassUpper", "TwoMassLower"}
    assert bool(left_out) == (model in {"Feedthrough", *masses})
    counters = {(n, f[0]) for n, f in only_fmi2.items() if f[1] == "Int32"}
    assert counters == clocks(fmi3)
    elements = {n for n, f in only_fmi2.items() if f[1] == "Float64"}
    assert elements == ({f"u_poly[{i}]" for i in range(6)} if model in masses else set())
    assert fmi2.guid == fmi3.guid


def test_both_versions_declare_the_same_direct_dependencies(reference, model):
    """But for triggers and payloads, which act on the outputs of FMI 2.0 at once."""

    def inputs_of_outputs(version):
        description = fmpy.read_model_description(reference / version / f"{model}.fmu")
        return {
            unknown.variable.name: {
                v.name.split("[")[0]
                for v in unknown.dependencies
                if v.causality == "input" and v.variability == "continuous"
            }
            for unknown in description.outputs
        }

    assert inputs_of_outputs("fmi2").items() <= inputs_of_outputs("fmi3").items()


def test_in_fmi2_what_depends_on_the_velocity_depends_on_the_triggers(reference):
    description = fmpy.read_model_description(reference / "fmi2" / "TwoMassUpper.fmu")
    triggers = {"ceiling.in", "collision.in", "collision.w"}
    for unknown in [*description.outputs, *description.derivatives]:
        known = {v.name for v in unknown.dependencies}
        assert (triggers <= known) == ("v" in known), unknown.variable.name
        assert bool(triggers & known) == ("v" in known), unknown.variable.name


def test_velocity_and_acceleration_are_derivatives(reference, version):
    description = fmpy.read_model_description(reference / version / "TwoMassUpper.fmu")
    derivative_of = {
        v.name: v.derivative.name for v in description.modelVariables if v.derivative is not None
    }
    assert derivative_of == {
        "u_v": "u_x",
        "u_a": "u_v",
        "v": "x",
        "a": "v",
        "ceiling.dz[1]": "ceiling.z[1]",
        "ceiling.dz[2]": "ceiling.z[2]",
        "collision.dz[1]": "collision.z[1]",
        "collision.dz[2]": "collision.z[2]",
    }
    assert [unknown.variable.name for unknown in description.derivatives] == ["v", "a"]


@pytest.mark.skipif(not BUILD.exists(), reason="the sources are not there")
def test_the_same_sources_make_the_same_bytes(tmp_path):
    for folder in ("first", "second"):
        subprocess.run([sys.executable, BUILD, tmp_path / folder], check=True)
    built = sorted(p.relative_to(tmp_path / "first") for p in (tmp_path / "first").rglob("*.*"))
    assert len(built) == 2 * 6 + len(SYSTEMS)
    for path in built:
        first, second = ((tmp_path / folder / path).read_bytes() for folder in ("first", "second"))
        assert first == second, path


@pytest.mark.skipif(not BUILD.exists(), reason="the sources are not there")
def test_without_a_compiler_the_build_says_so(tmp_path):
    result = subprocess.run(
        [sys.executable, BUILD, tmp_path, "--cc", "no-such-compiler"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 3
    assert "No C compiler: none of no-such-compiler was found." in result.stderr


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_is_valid_by_the_schema_of_ssp(reference, name):
    schema = Path(fmpy.ssp.__file__).parent / "schema" / "SystemStructureDescription.xsd"
    if not schema.exists():
        pytest.skip("this fmpy has no SSP schema")
    with zipfile.ZipFile(reference / "systems" / f"{name}.ssp") as archive:
        document = etree.fromstring(archive.read("SystemStructure.ssd"))
    etree.XMLSchema(file=str(schema)).assertValid(document)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_connects_its_two_masses_both_ways(reference, name):
    _, _, benchmark, versions = name.split("-")
    with zipfile.ZipFile(reference / "systems" / f"{name}.ssp") as archive:
        root = ET.fromstring(archive.read("SystemStructure.ssd"))
        for component in root.iter(f"{SSD}Component"):
            source = component.attrib["source"]
            mass = component.attrib["name"]
            version = {"upper": "fmi2", "lower": "fmi3"}[mass] if versions == "mixed" else versions
            fmu = reference / version / f"TwoMass{mass.capitalize()}.fmu"
            assert archive.read(source) == fmu.read_bytes()
    connections = {
        tuple(connection.attrib[key] for key in ("startElement", "startConnector", "endConnector"))
        for connection in root.iter(f"{SSD}Connection")
    }
    assert connections == {(m, y, f"u_{y}") for m in ("upper", "lower") for y in ("x", "v", "a")}
    experiment = root.find(f"{SSD}DefaultExperiment").attrib
    assert experiment == {
        "startTime": "0",
        "stopTime": {"b1": "7", "b2": "7", "b3": "20"}[benchmark],
    }
    assert root.attrib["name"] == name
