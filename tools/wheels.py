"""The source distribution and the wheels of all systems, as they are published.

    python tools/wheels.py [--output dist] [--targets NAME ...]

The package is built once, without a C compiler; a wheel is that with the kernel for its system, made by zig, and the
reference FMUs with binaries of all systems. Nothing is published of which users could miss something: all that a library
needs is compared with what each system of the wheel's tag has. Needs `pip install -e ".[release]"`.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import cross_kernel
from cross_kernel import TARGETS, Target
from linked import faults, linked, of_folder

ROOT = Path(__file__).resolve().parents[1]

MOST = 3_000_000
"""[bytes] A wheel without its reference FMUs."""

_REPRODUCIBLE = {"SOURCE_DATE_EPOCH": "315532800"}  # the first date that a ZIP archive can have
_PYTHON = re.compile("_?Py")
_FMI = {"2": re.compile("fmi2[A-Z]"), "3": re.compile("fmi3[A-Z]")}


def main() -> None:
    """Build and check; prints the files and their sizes."""
    parser = argparse.ArgumentParser(description="Build sdist and wheels of all systems.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder, default: dist")
    parser.add_argument(
        *("--targets", "-t"), nargs="+", choices=TARGETS, metavar="NAME", help="default: all"
    )
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        call("build", "--outdir", name, str(ROOT), CC="false")
        (sdist,) = folder.glob("*.tar.gz")
        (package,) = folder.glob("*-py3-none-any.whl")
        reference = folder / "reference"
        build = [str(ROOT / "fmus" / "build.py"), str(reference), "--werror", "--targets", "all"]
        run(sys.executable, *build)
        systems = folder / "system"
        library = [str(ROOT / "fmus" / "system_library.py"), str(systems), *build[2:]]
        run(sys.executable, *library)
        print(f"{shutil.copy(sdist, given.output)}  {sdist.stat().st_size / 1e6:.1f} MB")
        for target in given.targets or TARGETS:
            wheel = made(TARGETS[target], package, reference, systems, folder / target)
            check(wheel, TARGETS[target])
            print(f"{shutil.copy(wheel, given.output)}  {sizes(wheel)}", flush=True)


def made(target: Target, package: Path, reference: Path, systems: Path, folder: Path) -> Path:
    """The wheel of a target: the package with the kernel, the reference FMUs, and the libraries of exported systems."""
    call("wheel", "unpack", "--dest", str(folder), str(package))
    (unpacked,) = folder.iterdir()
    kernel = unpacked / "fmimaster" / "kernel" / f"_kernel{suffix(target)}"
    cross_kernel.build(target, folder / "work", kernel)
    shutil.copytree(reference, unpacked / "fmimaster" / "reference")
    shutil.copytree(systems, unpacked / "fmimaster" / "kernel" / "system")
    (about,) = unpacked.glob("*.dist-info/WHEEL")
    generator = re.findall("^Generator: .*$", about.read_text(encoding="utf-8"), re.MULTILINE)
    tags = [f"Tag: cp310-abi3-{platform}" for platform in target.wheel.split(".")]
    lines = ["Wheel-Version: 1.0", *generator, "Root-Is-Purelib: false", *tags]
    about.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    call("wheel", "pack", "--dest-dir", str(folder), str(unpacked))
    (wheel,) = folder.glob("*.whl")
    return wheel


def suffix(target: Target) -> str:
    """Of an extension module for every Python from 3.10 on."""
    return ".pyd" if target.name.endswith("-windows") else ".abi3.so"


def check(wheel: Path, target: Target) -> None:
    """Refuse a wheel whose kernel or FMUs need what a system of its tag may not have, or that is too large."""
    told = [f"{name}: {fault}" for name, fault in wrong(wheel, target)]
    if of_package(wheel) > MOST:
        told.append(f"{of_package(wheel)} bytes without the reference FMUs, {MOST} are allowed")
    if told:
        raise SystemExit("\n  ".join([f"{wheel.name} is not as it must be:", *told]))


def wrong(wheel: Path, target: Target) -> Iterator[tuple[str, str]]:
    """Name of a file in a wheel, and what is wrong with it."""
    with zipfile.ZipFile(wheel) as archive:
        name = f"fmimaster/kernel/_kernel{suffix(target)}"
        kernel = archive.read(name)
        for fault in faults(kernel, target, "PyInit__kernel".__eq__, ("python3.dll",)):
            yield name, fault
        known = cross_kernel.FUNCTIONS_OF_PYTHON | cross_kernel.DATA_OF_PYTHON
        asked = {n for part in linked(kernel) for n in part.imported if _PYTHON.match(n)}
        for unknown in sorted(asked - known):
            yield name, f"it needs {unknown}, which is not in the stable ABI of Python 3.10"
        libraries = [n for n in archive.namelist() if n.startswith("fmimaster/kernel/system/")]
        missing = {*TARGETS} - {name.split("/")[3] for name in libraries}
        yield from (("fmimaster/kernel/system", f"there is none for {p}") for p in sorted(missing))
        for name in libraries:
            platform = name.split("/")[3]
            if platform in TARGETS:
                for fault in faults(archive.read(name), TARGETS[platform], is_of_fmi):
                    yield name, fault
        fmus = [n for n in archive.namelist() if n.endswith(".fmu")]
        if not fmus:
            yield "fmimaster/reference", "it has no FMU"
        for name in fmus:
            for fault in wrong_in_fmu(archive.read(name)):
                yield name, fault


def is_of_fmi(name: str) -> bool:
    """Whether a function has a name of FMI 2.0 or 3.0."""
    return any(known.match(name) for known in _FMI.values())


def wrong_in_fmu(content: bytes) -> Iterator[str]:
    """What is wrong with a reference FMU."""
    with zipfile.ZipFile(io.BytesIO(content)) as fmu:
        paths = [n for n in fmu.namelist() if n.startswith("binaries/")]
        folders = {path.split("/")[1] for path in paths}
        is_fmi2 = "linux64" in folders
        missing = {t.fmi2 if is_fmi2 else t.name for t in TARGETS.values()} - folders
        yield from (f"it has no binary for {folder}" for folder in sorted(missing))
        may_export = _FMI["2" if is_fmi2 else "3"].match
        for path in paths:
            target = of_folder(path.split("/")[1])
            for fault in faults(fmu.read(path), target, lambda n: bool(may_export(n))):
                yield f"{path}: {fault}"


def of_package(wheel: Path) -> int:
    """[bytes] What a wheel has besides its reference FMUs, compressed."""
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    fmus = [e for e in entries if e.filename.startswith("fmimaster/reference/")]
    return wheel.stat().st_size - sum(e.compress_size for e in fmus)


def sizes(wheel: Path) -> str:
    """The size of a wheel, in words."""
    whole, own = wheel.stat().st_size / 1e6, of_package(wheel) / 1e6
    return f"{whole:.1f} MB, {own:.1f} MB without the reference FMUs"


def call(module: str, *arguments: str, **environment: str) -> None:
    """Run a command of Python; its output is shown if it fails, and this ends with its status."""
    run(sys.executable, "-m", module, *arguments, **environment)


def run(*command: str, **environment: str) -> None:
    """Run a command, likewise."""
    done = subprocess.run(
        command,
        env=os.environ | _REPRODUCIBLE | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        print(done.stdout)
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
