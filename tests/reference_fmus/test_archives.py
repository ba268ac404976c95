"""What is in the archives: valid descriptions, sources, systems; and how they are built."""

from __future__ import annotations

import importlib.metadata
import math
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fmpy
import fmpy.ssp
import pytest
from archives import archive_bytes
from build import ONLY_FMI3
from fmpy.validation import validate_fmu
from lxml import etree
from pytest import approx
from reference_instance import MODELS
from reference_systems import all_systems

BUILD = Path(__file__).parents[2] / "fmus" / "build.py"
SYSTEMS = [f"two-mass-{b}-{v}" for b in ("b1", "b2", "b3") for v in ("fmi2", "fmi3", "mixed")]
THERMOSTATS = ["thermostat-fmi2", "thermostat-fmi3"]
FOUR_UNITS = ["four-units-fmi2", "four-units-fmi3"]
RIGID_LINKS = ["rigid-link-fmi2", "rigid-link-fmi3"]
CARS = [
    f"{s}-{v}"
    for s in (
        *(f"quarter-car-{split}{kind}" for split in "ab" for kind in ("", "-nonlinear")),
        *("seat-chain", "survey-two-mass"),
    )
    for v in ("fmi2", "fmi3")
]
BODIES = [f"{s}-{v}" for s in ("cradle", "rope") for v in ("fmi2", "fmi3", "mixed")]
ALL_SYSTEMS = [*SYSTEMS, *THERMOSTATS, *FOUR_UNITS, *RIGID_LINKS, *BODIES, *CARS]
ARRAYS_OF = {
    "TwoMassUpper": ["u_poly"],
    "TwoMassLower": ["u_poly"],
    "CradleBall": ["left.poly", "left.fpoly", "right.poly", "right.fpoly"],
    "HybridLinear": ["u_x_poly"],
    "RopeMass": ["first.poly", "second.poly"],
}
EVENTS = "{https://fmimaster.org/fmi-ls-events}"
SSD = "{http://ssp-standard.org/SSP1/SystemStructureDescription}"


def test_fmpy_finds_nothing_wrong(reference: Path, model: str, version: str) -> None:
    assert validate_fmu(str(reference / version / f"{model}.fmu")) == []


@pytest.mark.parametrize("only_fmi3", sorted(ONLY_FMI3))
def test_fmpy_finds_nothing_wrong_with_fmus_of_fmi3_only(reference: Path, only_fmi3: str) -> None:
    problems = validate_fmu(str(reference / "fmi3" / f"{only_fmi3}.fmu"))
    is_clock_type = 'declaredType="EverySecond"'  # fmpy knows no ClockType
    assert [problem for problem in problems if is_clock_type not in problem] == []


def test_it_has_a_binary_for_this_platform_and_its_sources(
    reference: Path, model: str, version: str
) -> None:
    archive = reference / version / f"{model}.fmu"
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
    assert f"sources/{version}.c" in names
    assert fmpy.platform in fmpy.supported_platforms(archive)
    [configuration] = fmpy.read_model_description(archive).buildConfigurations
    [file_set] = configuration.sourceFileSets
    assert {f"sources/{name}" for name in file_set.sourceFiles} <= set(names)


def test_both_versions_describe_the_same_variables(reference: Path, model: str) -> None:
    fmi2, fmi3 = (
        fmpy.read_model_description(reference / version / f"{model}.fmu")
        for version in ("fmi2", "fmi3")
    )
    types = {"Real": "Float64", "Integer": "Int32"}

    def facts(description: Any) -> dict[str, tuple[Any, ...]]:
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

    def clocks(description: Any) -> set[tuple[str, int]]:
        return {(v.name, v.valueReference) for v in description.modelVariables if v.type == "Clock"}

    facts2, facts3 = facts(fmi2), facts(fmi3)
    only_fmi2 = {name: facts2.pop(name) for name in facts2.keys() - facts3.keys()}
    assert facts2.items() <= facts3.items()
    left_out = facts3.keys() - facts2.keys()
    assert bool(left_out) == (model in {"Feedthrough", *ARRAYS_OF})
    counters = {(n, f[0]) for n, f in only_fmi2.items() if f[1] == "Int32"}
    assert counters == clocks(fmi3)
    elements = {n for n, f in only_fmi2.items() if f[1] == "Float64"}
    assert elements == {f"{array}[{i}]" for array in ARRAYS_OF.get(model, ()) for i in range(6)}
    assert fmi2.guid == fmi3.guid


def test_both_versions_declare_the_same_direct_dependencies(reference: Path, model: str) -> None:
    """But for triggers and payloads, which act on the outputs of FMI 2.0 at once, and for announcements: what lets a
    clock tick in FMI 3.0 changes no counter before the next step."""

    def inputs_of_outputs(version: str) -> dict[str, set[str]]:
        description = fmpy.read_model_description(reference / version / f"{model}.fmu")
        return {
            unknown.variable.name: {
                v.name.split("[")[0]
                for v in unknown.dependencies
                if v.causality == "input" and v.variability == "continuous"
            }
            for unknown in description.outputs
            if unknown.variable.variability == "continuous"
        }

    assert inputs_of_outputs("fmi2").items() <= inputs_of_outputs("fmi3").items()


def description_of(reference: Path, version: str, model: str) -> ET.Element:
    with zipfile.ZipFile(reference / version / f"{model}.fmu") as archive:
        return ET.fromstring(archive.read("modelDescription.xml"))


def test_it_names_its_version_and_what_made_it(reference: Path, model: str, version: str) -> None:
    root = description_of(reference, version, model)
    assert root.attrib["generationTool"] == f"fmimaster {root.attrib['version']}"
    assert root.attrib["version"] == importlib.metadata.version("fmimaster")


def test_it_carries_no_annotation(reference: Path, model: str, version: str) -> None:
    assert list(description_of(reference, version, model).iter("Annotation")) == []


def test_no_event_indicator_is_an_initial_unknown(reference: Path, model: str) -> None:
    """FMI 3.0, 2.4.8: it must not be one, and an output that is calculated must be."""
    structure = description_of(reference, "fmi3", model).find("ModelStructure")
    assert structure is not None
    unknowns = {u.attrib["valueReference"] for u in structure.iterfind("InitialUnknown")}
    indicators = {u.attrib["valueReference"] for u in structure.iterfind("EventIndicator")}
    assert unknowns.isdisjoint(indicators)


def test_an_output_clock_depends_on_what_its_event_depends_on(reference: Path, model: str) -> None:
    """FMI 3.0, 2.4.8: on all that contributes to its activation. The step decides it: what is set in Event Mode is late."""
    text = manifest(reference, "fmi3", model)
    description = fmpy.read_model_description(reference / "fmi3" / f"{model}.fmu")
    known = {
        o.variable.name: {
            v.name
            for v in o.dependencies
            if not (v.causality == "input" and v.variability == "discrete")
        }
        for o in description.outputs
    }
    for event in () if text is None else ET.fromstring(text).iterfind("Event"):
        for indicator in event.iterfind("Indicator"):
            assert known[indicator.attrib["name"]] <= known[event.attrib["announce"]]


def test_in_fmi2_states_are_knowns_of_directional_derivatives_only(
    reference: Path, model: str
) -> None:
    """FMI 2.0, 2.2.8: derivatives are ignored without them and without Model Exchange."""
    root = description_of(reference, "fmi2", model)
    description = fmpy.read_model_description(reference / "fmi2" / f"{model}.fmu")
    fmi3 = fmpy.read_model_description(reference / "fmi3" / f"{model}.fmu")
    assert bool(description.derivatives) == (
        bool(description.coSimulation.providesDirectionalDerivative or description.modelExchange)
        and bool(fmi3.derivatives)
    )
    if not description.derivatives:
        states = {v.derivative for v in description.modelVariables if v.derivative}
        knowns = {v for output in description.outputs for v in output.dependencies}
        continuous = {v for v in states if v.causality == "output" and v.initial == "exact"}
        assert continuous.isdisjoint(knowns)
    assert root.find("ModelStructure/Outputs") is not None


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_several_can_be_linked_into_one_program(
    reference: Path, tmp_path: Path, version: str
) -> None:
    """All names that a linker sees have the model identifier in front."""
    compiler = shutil.which("cc")
    nm = shutil.which("nm")
    if compiler is None or nm is None:
        pytest.skip("there is no C compiler")
    headers = tmp_path / "headers"
    shutil.copytree(Path(fmpy.__file__).parent / "c-code", headers)
    header = headers / "fmi2Functions.h"  # fmpy's makes shared libraries only: as in the standard
    paste = "#define P(a, b) a ## b\n#define Q(a, b) P(a, b)\n"
    header.write_text(
        header.read_text(encoding="utf-8").replace(
            "#define fmi2FullName(name) name",
            paste + "#define fmi2FullName(name) Q(FMI2_FUNCTION_PREFIX, name)",
        ),
        encoding="utf-8",
    )
    for model in ("CradleBall", "Dahlquist"):
        with zipfile.ZipFile(reference / version / f"{model}.fmu") as archive:
            archive.extractall(tmp_path / model)
        sources = sorted((tmp_path / model / "sources").glob("*.c"))
        for source in sources:
            made = source.with_suffix(".o")
            subprocess.run(
                [compiler, "-c", "-std=c11", f"-I{headers}", source, "-o", made], check=True
            )
            listed = subprocess.run(
                [nm, "-g", "--defined-only", made], check=True, capture_output=True, text=True
            )
            names = [line.split()[-1].lstrip("_") for line in listed.stdout.splitlines()]
            assert names
            assert [name for name in names if not name.startswith(f"{model}_")] == []


def test_in_fmi2_what_depends_on_the_velocity_depends_on_the_triggers(reference: Path) -> None:
    description = fmpy.read_model_description(reference / "fmi2" / "TwoMassUpper.fmu")
    triggers = {"ceiling.in", "collision.in", "collision.w"}
    for unknown in [*description.outputs, *description.derivatives]:
        known = {v.name for v in unknown.dependencies}
        assert (triggers <= known) == ("v" in known), unknown.variable.name
        assert bool(triggers & known) == ("v" in known), unknown.variable.name


def test_velocity_and_acceleration_are_derivatives(reference: Path, version: str) -> None:
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


@pytest.mark.thorough
@pytest.mark.skipif(not BUILD.exists(), reason="the sources are not there")
def test_the_same_sources_make_the_same_bytes(tmp_path: Path) -> None:
    """One plain model, one with arrays and events, and the one whose description is made."""
    models = ("Dahlquist", "LinearSystem", "TwoMassUpper")
    for folder in ("first", "second"):
        subprocess.run([sys.executable, BUILD, tmp_path / folder, "--only", *models], check=True)
    built = sorted(p.relative_to(tmp_path / "first") for p in (tmp_path / "first").rglob("*.*"))
    assert len(built) == 2 * len(models)
    for path in built:
        first, second = ((tmp_path / folder / path).read_bytes() for folder in ("first", "second"))
        assert first == second, path


BINARIES = {
    "fmi2": {
        *("linux64/Dahlquist.so", "aarch64-linux/Dahlquist.so"),
        *("win64/Dahlquist.dll", "darwin64/Dahlquist.dylib"),
    },
    "fmi3": {
        *("x86_64-linux/Dahlquist.so", "aarch64-linux/Dahlquist.so"),
        "x86_64-windows/Dahlquist.dll",
        *("x86_64-darwin/Dahlquist.dylib", "aarch64-darwin/Dahlquist.dylib"),
    },
}


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("ziglang") is None, reason="zig is not installed")
def test_zig_makes_the_binaries_of_every_system_the_same_each_time(tmp_path: Path) -> None:
    """No library has the time, or a path of this machine, or a name besides those of FMI, or needs what is not there."""
    wrong_in_fmu = pytest.importorskip("wheels").wrong_in_fmu
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        command = [sys.executable, str(BUILD), str(folder), "--only", "Dahlquist", "--werror"]
        subprocess.run([*command, "--targets", "all"], check=True)
    for version, names in BINARIES.items():
        path = Path(version) / "Dahlquist.fmu"
        with zipfile.ZipFile(first / path) as archive:
            libraries = {n for n in archive.namelist() if n.startswith("binaries/")}
        assert libraries == {f"binaries/{name}" for name in names}
        assert list(wrong_in_fmu((first / path).read_bytes())) == []
        assert (first / path).read_bytes() == (second / path).read_bytes()
    results = fmpy.simulate_fmu(str(first / "fmi3" / "Dahlquist.fmu"), stop_time=1)
    assert results["x"][-1] == approx(math.exp(-1), rel=0.01)


def test_the_same_fmus_make_the_same_systems(reference: Path) -> None:
    """Those that were built with the package, by another process."""
    archives = {
        (path.parent.name, path.stem): path.read_bytes() for path in reference.glob("fmi?/*.fmu")
    }
    assert len(archives) == 2 * len(MODELS) + len(ONLY_FMI3)
    systems = dict(all_systems(archives))
    assert sorted(systems) == sorted(path.stem for path in reference.glob("systems/*"))
    assert sorted(systems) == sorted(ALL_SYSTEMS)
    for name, files in systems.items():
        assert archive_bytes(files) == (reference / "systems" / f"{name}.ssp").read_bytes(), name


@pytest.mark.skipif(not BUILD.exists(), reason="the sources are not there")
def test_without_a_compiler_the_build_says_so(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, BUILD, tmp_path, "--cc", "no-such-compiler"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 3
    assert "No C compiler: none of no-such-compiler was found." in result.stderr


@pytest.mark.skipif(
    not BUILD.exists() or not shutil.which("false"), reason="no sources, or no command that fails"
)
def test_a_compiler_that_fails_is_like_one_that_is_missing(tmp_path: Path) -> None:
    """The status is the same, its command is in the message, and nothing is left half."""
    result = subprocess.run(
        [sys.executable, BUILD, tmp_path / "built", "--cc", "false"], capture_output=True, text=True
    )
    assert result.returncode == 3
    assert result.stderr.startswith("The C compiler cannot make clocks.o: false -std=c11")
    assert not (tmp_path / "built").exists()


@pytest.mark.parametrize("name", ALL_SYSTEMS)
def test_a_system_is_valid_by_the_schema_of_ssp(reference: Path, name: str) -> None:
    schema = Path(fmpy.ssp.__file__).parent / "schema" / "SystemStructureDescription.xsd"
    if not schema.exists():
        pytest.skip("this fmpy has no SSP schema")
    with zipfile.ZipFile(reference / "systems" / f"{name}.ssp") as archive:
        document = etree.fromstring(archive.read("SystemStructure.ssd"))
    document.set("version", "1.0")  # fmpy has this schema; what is in 1.0 is in 2.0
    etree.XMLSchema(file=str(schema)).assertValid(document)


@pytest.mark.parametrize("name", ALL_SYSTEMS)
def test_a_system_with_fmi3_is_of_ssp2(reference: Path, name: str) -> None:
    """SSP 1.0 knows FMI 1.0 and 2.0 only."""
    with zipfile.ZipFile(reference / "systems" / f"{name}.ssp") as archive:
        version = ET.fromstring(archive.read("SystemStructure.ssd")).attrib["version"]
    assert version == ("1.0" if name.endswith("fmi2") else "2.0")


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_connects_its_two_masses_both_ways(reference: Path, name: str) -> None:
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
    experiment = root.find(f"{SSD}DefaultExperiment")
    assert experiment is not None
    assert experiment.attrib == {
        "startTime": "0",
        "stopTime": {"b1": "7", "b2": "7", "b3": "20"}[benchmark],
    }
    assert root.attrib["name"] == name


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_says_that_the_collision_is_shared(reference: Path, name: str) -> None:
    with zipfile.ZipFile(reference / "systems" / f"{name}.ssp") as archive:
        root = ET.fromstring(archive.read("SystemStructure.ssd"))
    [annotation] = root.findall(f"{SSD}System/{SSD}Annotations/*")
    assert annotation.attrib == {"type": "org.fmimaster.fmi-ls-events"}
    [shared] = annotation[0]
    assert shared.tag == f"{EVENTS}SharedEvent"
    assert shared.attrib == {"name": "collision"}
    assert [m.attrib for m in shared] == [
        {"component": c, "event": "collision"} for c in ("upper", "lower")
    ]


@pytest.mark.parametrize("name", ["two-mass-b2-fmi2", "two-mass-b2-fmi3", "two-mass-b2-mixed"])
def test_the_walls_of_b2_move(reference: Path, name: str) -> None:
    ssv = "{http://ssp-standard.org/SSP1/SystemStructureParameterValues}"
    with zipfile.ZipFile(reference / "systems" / f"{name}.ssp") as archive:
        root = ET.fromstring(archive.read("SystemStructure.ssd"))
    values = {p.attrib["name"]: float(p[0].attrib["value"]) for p in root.iter(f"{ssv}Parameter")}

    def wall(letter: str, t: float) -> float:
        offset, amplitude, frequency, phase = (values[letter + end] for end in "0awp")
        return offset + amplitude * math.sin(frequency * t + phase)

    for t in (0.0, 0.1, 1.0, 6.9):
        assert wall("c", t) == approx(-0.554 * (1 - math.cos(4.255 * t)), abs=1e-14)
        assert wall("f", t) == approx(-13.823 + 1.024 * math.sin(3.462 * t + 2.9), abs=1e-14)


# The manifest of the events


def manifest(
    reference: Path, version: str, model: str, standard: str = "fmi-ls-events"
) -> bytes | None:
    path = f"extra/org.fmimaster.{standard}/fmi-ls-manifest.xml"
    with zipfile.ZipFile(reference / version / f"{model}.fmu") as archive:
        return archive.read(path) if path in archive.namelist() else None


def test_models_with_events_have_the_same_manifest_in_both_versions(
    reference: Path, model: str
) -> None:
    text = manifest(reference, "fmi2", model)
    assert text == manifest(reference, "fmi3", model)
    with_events = {"BouncingBall", "CradleBall", "HybridLinear", "RopeMass", "ThermostatRoom"}
    with_events |= {"TwoMassLower", "TwoMassUpper"}
    assert (text is not None) == (model in with_events)


def test_the_manifest_names_what_is_there(reference: Path, version: str, model: str) -> None:
    """Rules 1, 3, 4 and 8 of the layered standard."""
    text = manifest(reference, version, model)
    if text is None:
        pytest.skip("a model without events")
    root = etree.fromstring(text)
    ls = "{http://fmi-standard.org/fmi-ls-manifest}fmi-ls-"
    assert root.get(f"{ls}name") == "org.fmimaster.fmi-ls-events"
    assert root.get(f"{ls}version") == "0.3.0"
    description = fmpy.read_model_description(reference / version / f"{model}.fmu")
    variables = {v.name: v for v in description.modelVariables}
    derivative_of = {v.name: v.derivative and v.derivative.name for v in variables.values()}
    clock = {"fmi2": "Integer", "fmi3": "Clock"}[version]
    triggers = [e.get("trigger") for e in root.iter("Event") if e.get("trigger")]
    assert len(triggers) == len(set(triggers))
    for event in root.iter("Event"):
        assert event.get("scope") in ("private", "coupled", "shared")
        for key, causality in (("announce", "output"), ("trigger", "input")):
            if event.get(key):
                v = variables[event.get(key)]
                assert (v.type, v.causality) == (clock, causality)
        assert event.find("Indicator") is not None
        for indicator in event.iter("Indicator"):
            name = indicator.get("name")
            assert variables[name].causality == "output"
            assert derivative_of[indicator.get("derivative")] == name
        for payload in event.iter("Payload"):
            assert variables[payload.get("output")].causality == "output"
            assert variables[payload.get("input")].causality == "input"
    for policy in root.iter("Policy"):
        assert variables[policy.get("parameter")].variability == "tunable"
    of_polynomials = manifest(reference, version, model, "fmi-ls-input-polynomials")
    for polynomial in etree.fromstring(of_polynomials or b"<none/>").iter("InputPolynomial"):
        names = [polynomial.get("coefficients")]
        if version == "fmi2":
            names = [f"{names[0]}[{k}]" for k in range(6)]
        for name in filter(None, (polynomial.get("input"), polynomial.get("derivative"), *names)):
            assert variables[name].causality == "input"
    for look_ahead in root.iter("LookAhead"):
        assert variables[look_ahead.get("next")].causality == "output"


def test_the_description_of_fmi2_points_to_the_manifest(reference: Path, model: str) -> None:
    with zipfile.ZipFile(reference / "fmi2" / f"{model}.fmu") as archive:
        root = ET.fromstring(archive.read("modelDescription.xml"))
        names = archive.namelist()
    for tool in root.iterfind("VendorAnnotations/Tool"):
        assert tool[0].attrib["path"] == f"extra/{tool.attrib['name']}/fmi-ls-manifest.xml"
    told = {tool[0].attrib["path"] for tool in root.iterfind("VendorAnnotations/Tool")}
    assert told == {name for name in names if name.startswith("extra/")}
