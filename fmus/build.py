"""Build the reference FMUs and the systems made of them.

    python fmus/build.py OUTPUT [--cc CC]

makes OUTPUT/fmi2/<Model>.fmu, OUTPUT/fmi3/<Model>.fmu and OUTPUT/systems/<system>.ssp. The same
sources make the same bytes. Needs a C compiler, and fmpy for the C headers of FMI and the name of
the platform.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import io
import math
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
import tempfile
import uuid
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bodies
import fmpy
import linear_system
from description import c_header, c_source, fmi2_description, fmi3_description, xml_bytes

HERE = Path(__file__).resolve().parent
INTERFACE = HERE / "interface"
FMI_HEADERS = Path(fmpy.__file__).parent / "c-code"
LICENSE = HERE.parent / "LICENSE"
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://fmimaster.org/fmus")

C_FLAGS = (
    *("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"),
    "-ffp-contract=off",  # a * b + c is rounded twice everywhere: all platforms have the same bits
    *("-Wall", "-Wextra", "-Werror"),
    "-Wno-unused-parameter",  # FMI functions have parameters that most FMUs do not need
    "-DFMI3_OVERRIDE_FUNCTION_PREFIX",  # a shared library has the names of the standard
)

NO_COMPILER = 3
"""Exit status when there is no C compiler."""

MANIFEST_PATH = "extra/org.fmimaster.fmi-ls-events/fmi-ls-manifest.xml"
"""Where in an FMU the manifest of its events is."""

ONLY_FMI3 = {"Superdense"}
"""Models that are nothing without Event Mode."""

LINEAR = "LinearSystem"
"""The model whose description and data linear_system.py makes."""

STOP_TIMES = {"b1": "7", "b2": "7", "b3": "20"}  # [s] benchmarks of the two masses
# b2: c(t) = -0.554 (1 - cos(4.255 t)), f(t) = -13.823 + 1.024 sin(3.462 t + 2.9)
CEILINGS = {"b2": {"c0": "-0.554", "ca": "0.554", "cw": "4.255", "cp": repr(math.pi / 2)}}
FLOORS = {"b2": {"f0": "-13.823", "fa": "1.024", "fw": "3.462", "fp": "2.9"}}
FMI_VERSIONS = {"fmi2": ("fmi2", "fmi2"), "fmi3": ("fmi3", "fmi3"), "mixed": ("fmi2", "fmi3")}

Files = dict[str, bytes]
"""What is in an archive: contents by path."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the reference FMUs and systems.")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="folder to build into")
    parser.add_argument("--cc", default=os.environ.get("CC"), help="C compiler, default: $CC or cc")
    arguments = parser.parse_args()
    compiler = find_compiler(arguments.cc)
    models = sorted(path.parent for path in HERE.glob("*/model.c"))
    jobs = [
        (model, version)
        for model in models
        for version in ("fmi2", "fmi3")
        if version == "fmi3" or model.name not in ONLY_FMI3
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        fmus = pool.map(lambda job: build_fmu(job[0], job[1], compiler), jobs)
    archives: dict[tuple[str, str], bytes] = {}
    for (model, version), files in zip(jobs, fmus, strict=True):
        path = arguments.output / version / f"{model.name}.fmu"
        write_archive(path, files)
        archives[version, model.name] = path.read_bytes()
    for benchmark in STOP_TIMES:
        for versions in FMI_VERSIONS:
            name = f"two-mass-{benchmark}-{versions}"
            files = build_two_mass(name, benchmark, versions, archives)
            write_archive(arguments.output / "systems" / f"{name}.ssp", files)
    for version in ("fmi2", "fmi3"):
        name = f"thermostat-{version}"
        files = build_thermostat(name, version, archives)
        write_archive(arguments.output / "systems" / f"{name}.ssp", files)
        name = f"four-units-{version}"
        files = build_four_units(name, version, archives)
        write_archive(arguments.output / "systems" / f"{name}.ssp", files)
        name = f"rigid-link-{version}"
        files = build_rigid_link(name, version, archives)
        write_archive(arguments.output / "systems" / f"{name}.ssp", files)
    for kind, system in bodies.ALL.items():
        for version in system.versions:
            name = f"{kind}-{version}"
            files = build_bodies(name, system, version, archives)
            write_archive(arguments.output / "systems" / f"{name}.ssp", files)


def find_compiler(command: str | None) -> list[str]:
    """The command and its first arguments, such as ["ccache", "gcc"]."""
    candidates = [command] if command else ["cc", "gcc", "clang"]
    for candidate in candidates:
        words = shlex.split(candidate)
        if words and shutil.which(words[0]):
            return words
    print(
        f"No C compiler: none of {', '.join(candidates)} was found. "
        "Install one, or name it by --cc or the environment variable CC.",
        file=sys.stderr,
    )
    raise SystemExit(NO_COMPILER)


# FMUs


def build_fmu(model: Path, version: str, compiler: list[str]) -> Files:
    """The files of one FMU; `version` is fmi2 or fmi3."""
    is_linear = model.name == LINEAR
    if is_linear:
        description, of_binary = (
            linear_system.description(linear_system.EXAMPLE),
            linear_system.largest(),
        )
    else:
        description = of_binary = ET.parse(model / "modelDescription.xml").getroot()
    for root in (description, of_binary):
        root.set("instantiationToken", token(model))
    description.set("generationTool", f"fmimaster {package_version()}")
    description.set("version", package_version())
    manifest = model / "fmi-ls-manifest.xml"
    has_manifest = manifest.exists()
    sources = source_files(
        model, version, of_binary, ET.parse(manifest).getroot() if has_manifest else None
    )
    c_names = sorted(name for name in sources if name.endswith(".c"))
    if version == "fmi2":
        folder = fmpy.platform
        description = fmi2_description(
            description, c_names, MANIFEST_PATH if has_manifest else None
        )
    else:
        folder = fmpy.platform_tuple
        description = fmi3_description(description)
        sources["buildDescription.xml"] = xml_bytes(build_description(model.name, c_names))
    library = model.name + fmpy.sharedLibraryExtension
    files = {
        "modelDescription.xml": xml_bytes(description),
        f"binaries/{folder}/{library}": compile_library(library, sources, c_names, compiler),
        "documentation/index.html": documentation(model),
        "documentation/licenses/license.txt": LICENSE.read_bytes(),
    }
    if has_manifest:
        files[MANIFEST_PATH] = manifest.read_bytes()
    if is_linear:
        files[linear_system.DATA] = linear_system.data(linear_system.EXAMPLE)
    return files | {f"sources/{name}": content for name, content in sources.items()}


def token(model: Path) -> str:
    """A UUID that changes with the sources: XML, binary and saved FMU states belong together."""
    paths = [HERE / "description.py", *model.glob("*.c"), *model.glob("*.xml")]
    paths += INTERFACE.glob("*.[ch]")
    if model.name == LINEAR:
        paths.append(HERE / "linear_system.py")
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode() + path.read_bytes())
    return f"{{{uuid.uuid5(NAMESPACE, digest.hexdigest())}}}"


def package_version() -> str:
    """Version of the package that the FMUs come with."""
    text = (HERE.parent / "pyproject.toml").read_text(encoding="utf-8")
    [version] = re.findall(r'^version = "(.+)"$', text, re.MULTILINE)
    return str(version)


def external_names() -> list[str]:
    """Functions and objects that the C sources share, as their headers declare them."""
    text = "".join((INTERFACE / name).read_text() for name in ("model.h", "instance.h"))
    functions = re.findall(r"^(?!static )[\w* ]+?\b((?:fm|model)_[a-z_]+)\(", text, re.MULTILINE)
    objects = re.findall(r"^extern [\w ]+ (fm_[a-z_]+)", text, re.MULTILINE)
    return sorted({*functions, *objects})


def source_files(
    model: Path, version: str, description: ET.Element, manifest: ET.Element | None
) -> Files:
    """The C sources of one FMU, by name."""
    other = "fmi3.c" if version == "fmi2" else "fmi2.c"
    paths = [*model.glob("*.c"), *INTERFACE.glob("*.[ch]")]
    sources = {path.name: path.read_bytes() for path in paths if path.name != other}
    is_linear = model.name == LINEAR
    sources["variables.h"] = c_header(
        description, manifest, external_names(), has_resources=is_linear
    ).encode()
    sources["variables.c"] = c_source(description, manifest, version, by_element=is_linear).encode()
    return sources


def compile_library(name: str, sources: Files, c_names: list[str], compiler: list[str]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        for source, content in sources.items():
            Path(folder, source).write_bytes(content)
        command = [*compiler, *C_FLAGS, f"-I{FMI_HEADERS}", *c_names, "-o", name, "-lm"]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"{name} does not compile: {shlex.join(command)}\n{result.stderr}")
        return Path(folder, name).read_bytes()


def build_description(model: str, c_names: list[str]) -> ET.Element:
    """sources/buildDescription.xml of FMI 3.0."""
    root = ET.Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = ET.SubElement(root, "BuildConfiguration", modelIdentifier=model)
    file_set = ET.SubElement(configuration, "SourceFileSet", language="C11")
    for name in c_names:
        ET.SubElement(file_set, "SourceFile", name=name)
    ET.SubElement(configuration, "Library", name="m", external="true")
    return root


def documentation(model: Path) -> bytes:
    """The readme as a web page, which is what FMI asks for."""
    text = html.escape((model / "readme.md").read_text(encoding="utf-8"), quote=False)
    head = f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{model.name}</title>'
    return f"{head}\n<pre>\n{text}</pre>\n</html>\n".encode()


# Systems


def ssp_version(fmi_versions: Iterable[str]) -> str:
    """SSP 1.0 knows FMI 1.0 and 2.0 only."""
    return "2.0" if "fmi3" in fmi_versions else "1.0"


def build_two_mass(
    name: str, benchmark: str, versions: str, archives: Mapping[tuple[str, str], bytes]
) -> Files:
    """The files of one SSP archive of the two masses."""
    template = string.Template((HERE / "systems" / "two-mass.ssd").read_text(encoding="utf-8"))
    text = template.substitute(
        name=name,
        ssp=ssp_version(FMI_VERSIONS[versions]),
        stop_time=STOP_TIMES[benchmark],
        ceiling=parameter_binding("ceiling", CEILINGS.get(benchmark, {})),
        floor=parameter_binding("floor", FLOORS.get(benchmark, {})),
    )
    upper, lower = FMI_VERSIONS[versions]
    return {
        "SystemStructure.ssd": text.encode(),
        "resources/TwoMassUpper.fmu": archives[upper, "TwoMassUpper"],
        "resources/TwoMassLower.fmu": archives[lower, "TwoMassLower"],
    }


def build_bodies(
    name: str, system: bodies.Bodies, version: str, archives: Mapping[tuple[str, str], bytes]
) -> Files:
    """The files of the SSP archive of some bodies of one kind."""
    versions = system.versions[version]
    text = bodies.ssd(name, system, versions, ssp_version(versions), parameter_binding)
    fmus = {
        f"resources/{system.model}-{v}.fmu": archives[v, system.model]
        for v in sorted(set(versions))
    }
    return {"SystemStructure.ssd": text.encode(), **fmus}


CLOCK_IN_SSD = {
    "clock_output": '\n          <ssd:Connector name="crossing.out" kind="output"/>',
    "clock_input": '\n          <ssd:Connector name="sample" kind="input"/>',
    "clock_connection": '\n      <ssd:Connection startElement="room" startConnector="crossing.out"'
    ' endElement="controller" endConnector="sample"/>',
}


def build_thermostat(name: str, version: str, archives: Mapping[tuple[str, str], bytes]) -> Files:
    """The files of the SSP archive of the thermostat; FMI 2.0 has no clocks to connect."""
    template = string.Template((HERE / "systems" / "thermostat.ssd").read_text(encoding="utf-8"))
    clock = CLOCK_IN_SSD if version == "fmi3" else dict.fromkeys(CLOCK_IN_SSD, "")
    return {
        "SystemStructure.ssd": template.substitute(
            name=name, ssp=ssp_version([version]), **clock
        ).encode(),
        "resources/ThermostatRoom.fmu": archives[version, "ThermostatRoom"],
        "resources/ThermostatController.fmu": archives[version, "ThermostatController"],
    }


def build_four_units(name: str, version: str, archives: Mapping[tuple[str, str], bytes]) -> Files:
    """The files of the SSP archive of the four units."""
    template = string.Template((HERE / "systems" / "four-units.ssd").read_text(encoding="utf-8"))
    models = [f"FourUnitsS{k}" for k in range(1, 5)]
    return {
        "SystemStructure.ssd": template.substitute(name=name, ssp=ssp_version([version])).encode(),
        **{f"resources/{model}.fmu": archives[version, model] for model in models},
    }


def build_rigid_link(name: str, version: str, archives: Mapping[tuple[str, str], bytes]) -> Files:
    """The files of the SSP archive of the two masses with a rigid link."""
    template = string.Template((HERE / "systems" / "rigid-link.ssd").read_text(encoding="utf-8"))
    with zipfile.ZipFile(io.BytesIO(archives[version, LINEAR])) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return {
        "SystemStructure.ssd": template.substitute(name=name, ssp=ssp_version([version])).encode(),
        **{
            f"resources/{mass}.fmu": archive_bytes(linear_system.fmu_files(system, files))
            for mass, system in linear_system.RIGID_LINK.items()
        },
    }


def parameter_binding(name: str, values: Mapping[str, str]) -> str:
    """The element of a component that gives its Real parameters values; nothing for no values."""
    if not values:
        return ""
    lines = [
        "<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues>",
        f'  <ssv:ParameterSet version="1.0" name="{name}"><ssv:Parameters>',
        *(
            f'    <ssv:Parameter name="{key}"><ssv:Real value="{value}"/></ssv:Parameter>'
            for key, value in values.items()
        ),
        "  </ssv:Parameters></ssv:ParameterSet>",
        "</ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>",
    ]
    return "".join(f"\n        {line}" for line in lines)


# Files


def write_archive(path: Path, files: Files) -> None:
    """Write a zip archive, and put it in place as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(archive_bytes(files))
    unfinished.replace(path)


def archive_bytes(files: Files) -> bytes:
    """A zip archive that depends on nothing but `files`."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3  # Unix, wherever it is made: external_attr is its file mode
            info.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name])
    return written.getvalue()


if __name__ == "__main__":
    main()
