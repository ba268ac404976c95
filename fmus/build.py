"""Build the reference FMUs and the systems made of them.

    python fmus/build.py OUTPUT [--targets all | --cc CC] [--werror]

makes OUTPUT/fmi2/<Model>.fmu, OUTPUT/fmi3/<Model>.fmu and OUTPUT/systems/<system>.ssp. The same
sources make the same bytes. The FMUs have a binary for this machine, made by its C compiler. With
--targets they have one for each system of targets.py, or for those that are named, made by zig.
Needs fmpy for the C headers of FMI and the name of the platform.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import fmpy
import hybrid_binary
import hybrid_system
import hybrid_writer
import linear_system
import linear_writer
import reference_systems
from archives import Files, write_archive
from c_code import c_header, c_source
from description import fmi2_description, fmi3_description, xml_bytes
from targets import TARGETS, THIS_MACHINE, Target, universal, zig

HERE = Path(__file__).resolve().parent
INTERFACE = HERE / "interface"
FMI_HEADERS = Path(fmpy.__file__).parent / "c-code"
LICENSE = HERE.parent / "LICENSE"
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://fmimaster.org/fmus")

C_FLAGS = (
    *("-std=c11", "-O2", "-fPIC", "-fvisibility=hidden"),
    "-ffp-contract=off",  # a * b + c is rounded twice everywhere: all platforms have the same bits
    *("-Wall", "-Wextra"),  # with --werror, which `make` and CI give, warnings are errors
    "-Wno-unused-parameter",  # FMI functions have parameters that most FMUs do not need
    "-DFMI3_OVERRIDE_FUNCTION_PREFIX",  # a shared library has the names of the standard
)

LINK_FLAGS = ("-shared", "-fPIC")

CROSS_LINK_FLAGS = ("-s", "-O2")
"""For a library that is published: no names but those of FMI. zig links its own functions by -O, too; without it a library
of Windows has the time at which it was made, and so never the same bytes."""

NO_COMPILER = 3
"""Exit status when there is no C compiler, or none that works."""

MANIFEST_PATHS = {
    "fmi-ls-manifest.xml": hybrid_writer.MANIFEST,
    "input-polynomials.xml": hybrid_writer.POLYNOMIALS,
}
"""Where in an FMU the manifests of its layered standards are, by their files in the folder of a model."""

ONLY_FMI3 = {
    *("ClockKinds", "Countdown", "EventAdder", "EventDelay", "EventSource", "FillingTank"),
    *(
        "Logger",
        "Partitions",
        "PoliceOfficer",
        "Sampler",
        "SharedVariable",
        "Superdense",
        "TrafficLight",
    ),
}
"""Models that are nothing without Event Mode."""


def main() -> None:
    options = parser("Build the reference FMUs and systems.")
    options.add_argument("--only", nargs="+", metavar="MODEL", help="these FMUs, and no systems")
    arguments = options.parse_args()
    compilers = compilers_of(arguments)
    models = sorted(path.parent for path in HERE.glob("*/model.c"))
    if arguments.only:
        models = [model for model in models if model.name in arguments.only]
    print(f"Compiling {len(models)} reference FMUs", flush=True)  # as pip install -v shows
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        builds = [pool.submit(build_model, model, compilers) for model in models]
        try:
            fmus = [fmu for build in builds for fmu in build.result()]  # all, before one is written
        except CompilerError as error:
            pool.shutdown(cancel_futures=True)
            print(error, file=sys.stderr)
            raise SystemExit(NO_COMPILER) from None
    archives: dict[tuple[str, str], bytes] = {}
    for version, model, files in fmus:
        path = arguments.output / version / f"{model}.fmu"
        write_archive(path, files)
        archives[version, model] = path.read_bytes()
    if arguments.only:
        return
    for name, files in reference_systems.all_systems(archives):
        write_archive(arguments.output / "systems" / f"{name}.ssp", files)


class CompilerError(Exception):
    """The C compiler fails; the message has its command and what it says."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler for one system."""

    target: Target
    command: list[str]
    link_flags: Sequence[str] = ()


def parser(description: str) -> argparse.ArgumentParser:
    """The options of a command that compiles into a folder."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="folder to build into")
    parser.add_argument("--cc", default=os.environ.get("CC"), help="C compiler, default: $CC or cc")
    parser.add_argument(
        *("--targets", "-t"),
        nargs="+",
        choices=("all", *TARGETS),
        metavar="TARGET",
        help=f"binaries for these systems, by zig: all, {', '.join(TARGETS)}",
    )
    parser.add_argument("--werror", action="store_true", help="warnings of the compiler are errors")
    return parser


def compilers_of(arguments: argparse.Namespace) -> list[Compiler]:
    """Those that the options name."""
    flags = ["-Werror"] * arguments.werror
    return find_compilers(arguments.targets, arguments.cc, flags)


def find_compilers(names: list[str] | None, cc: str | None, flags: list[str]) -> list[Compiler]:
    """One for each target, or the C compiler of this machine."""
    if not names:
        return [Compiler(THIS_MACHINE, find_compiler(cc) + flags)]
    chosen = [t for t in TARGETS.values() if "all" in names or t.name in names]
    return [Compiler(t, zig("cc", "-target", t.zig, *flags), CROSS_LINK_FLAGS) for t in chosen]


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


def build_model(model: Path, compilers: list[Compiler]) -> list[tuple[str, str, Files]]:
    """Version of FMI, name and files of the FMUs of one model; what their C sources share is compiled once."""
    versions = ("fmi3",) if model.name in ONLY_FMI3 else ("fmi2", "fmi3")
    objects: Files = {}
    return [(v, model.name, build_fmu(model, v, compilers, objects)) for v in versions]


def build_fmu(model: Path, version: str, compilers: list[Compiler], objects: Files) -> Files:
    """The files of one FMU; `version` is fmi2 or fmi3, `objects` those of :func:`compile_library`."""
    parts = parts_of(model, version)
    description = parts.description
    for root in (description, parts.of_binary):
        root.set("instantiationToken", token(model))
    description.set("generationTool", f"fmimaster {package_version()}")
    description.set("version", package_version())
    sources = source_files(model, version, parts)
    c_names = sorted(name for name in sources if name.endswith(".c"))
    if version == "fmi2":
        description = fmi2_description(description, c_names, parts.manifests)
    else:
        description = fmi3_description(description)
        sources["buildDescription.xml"] = xml_bytes(build_description(model.name, c_names))
    files = {
        "modelDescription.xml": xml_bytes(description),
        "documentation/index.html": documentation(model),
        "documentation/licenses/license.txt": LICENSE.read_bytes(),
    }
    files |= binaries(model.name, version, sources, compilers, objects)
    files |= parts.manifests | parts.data
    return files | {f"sources/{name}": content for name, content in sources.items()}


@dataclass(frozen=True)
class Parts:
    """What an FMU is made of besides its C sources."""

    description: ET.Element
    of_binary: ET.Element
    """The description of the variables that the binary has."""
    events: ET.Element | None
    """The manifest by which the binary is made."""
    manifests: Files
    data: Files
    """Files that the binary reads."""


def parts_of(model: Path, version: str) -> Parts:
    """The parts of one model: written in its folder, or made of an example."""
    if model.name == linear_writer.MODEL:
        example = linear_system.EXAMPLE
        data = {linear_writer.DATA: linear_writer.data(example)}
        return Parts(linear_writer.description(example), linear_writer.largest(), None, {}, data)
    if model.name == hybrid_binary.MODEL:
        system = hybrid_system.EXAMPLE
        return Parts(
            hybrid_writer.description(system, is_fmi2=version == "fmi2"),
            hybrid_binary.largest(),
            hybrid_binary.largest_manifest(),
            hybrid_writer.manifests(system),
            {hybrid_binary.DATA: hybrid_binary.data(system)},
        )
    root = ET.parse(model / "modelDescription.xml").getroot()
    files = {name: model / name for name in MANIFEST_PATHS if (model / name).exists()}
    manifests = {MANIFEST_PATHS[name]: path.read_bytes() for name, path in files.items()}
    of_events = files.get("fmi-ls-manifest.xml")
    events = None if of_events is None else ET.parse(of_events).getroot()
    return Parts(root, root, events, manifests, {})


def token(model: Path) -> str:
    """A UUID that changes with the sources: XML, binary and saved FMU states belong together."""
    paths = [HERE / "description.py", HERE / "c_code.py", *model.glob("*.c"), *model.glob("*.xml")]
    paths += INTERFACE.glob("*.[ch]")
    if model.name == linear_writer.MODEL:
        paths += HERE.glob("linear_*.py")
    if model.name == hybrid_binary.MODEL:
        paths += HERE.glob("hybrid_*.py")
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
    text = "".join(
        (INTERFACE / name).read_text(encoding="utf-8") for name in ("model.h", "instance.h")
    )
    functions = re.findall(r"^(?!static )[\w* ]+?\b((?:fm|model)_[a-z_]+)\(", text, re.MULTILINE)
    objects = re.findall(r"^extern [\w ]+ (fm_[a-z_]+)", text, re.MULTILINE)
    return sorted({*functions, *objects})


def source_files(model: Path, version: str, parts: Parts) -> Files:
    """The C sources of one FMU, by name."""
    other = "fmi3.c" if version == "fmi2" else "fmi2.c"
    paths = [*model.glob("*.c"), *INTERFACE.glob("*.[ch]")]
    sources = {path.name: path.read_bytes() for path in paths if path.name != other}
    sources["variables.h"] = c_header(
        parts.of_binary,
        parts.events,
        external_names(),
        has_resources=bool(parts.data),
        hears_calls=b"model_called(" in sources["model.c"],
    ).encode()
    is_linear = model.name == linear_writer.MODEL
    variables = c_source(parts.of_binary, parts.events, version, by_element=is_linear)
    sources["variables.c"] = variables.encode()
    return sources


def binaries(
    model: str, version: str, sources: Files, compilers: list[Compiler], objects: Files
) -> Files:
    """The shared libraries of one FMU, in the folders of their systems."""
    made: dict[str, list[bytes]] = {}
    for compiler in compilers:
        target = compiler.target
        folder = target.fmi2 if version == "fmi2" else target.name
        path = f"binaries/{folder}/{model}{target.suffix}"
        made.setdefault(path, []).append(compile_library(model, sources, compiler, objects))
    return {path: universal(libraries) for path, libraries in made.items()}


def compile_library(model: str, sources: Files, compiler: Compiler, objects: Files) -> bytes:
    """The shared library. `objects` has compiled sources by their contents, and gets those that it lacks."""
    library = model + compiler.target.suffix
    headers = hashlib.sha256(b"".join(sources[n] for n in sorted(sources) if n.endswith(".h")))
    of_all = f"{compiler.target.name} {headers.hexdigest()}"
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        for source, content in sources.items():
            (folder / source).write_bytes(content)
        made = []
        for source in sorted(name for name in sources if name.endswith(".c")):
            made.append(f"{source.removesuffix('.c')}.o")
            key = f"{of_all} {hashlib.sha256(sources[source]).hexdigest()}"
            if key not in objects:
                flags = [*C_FLAGS, f"-I{FMI_HEADERS}", "-c", source, "-o", made[-1]]
                objects[key] = output_of([*compiler.command, *flags], folder, made[-1])
            (folder / made[-1]).write_bytes(objects[key])
        flags = [*LINK_FLAGS, *compiler.link_flags, *made, "-o", library, "-lm"]
        return output_of([*compiler.command, *flags], folder, library)


def output_of(command: list[str], folder: Path, name: str) -> bytes:
    """The file that a compiler makes."""
    result = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace"
    )
    if result.returncode != 0:
        raise CompilerError(
            f"The C compiler cannot make {name}: {shlex.join(command)}\n{result.stderr}"
        )
    return (folder / name).read_bytes()


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


if __name__ == "__main__":
    main()
