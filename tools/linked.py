"""What a shared library asks of the system that loads it, and whether every system that its target names has that."""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import lief

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "fmus"))
from targets import TARGETS, Target  # noqa: E402  (in a folder that is no package)

lief.logging.disable()

Version = tuple[int, ...]

_NUMBERS = re.compile(r"\d+")
_OF_THIS_MACHINE = (str(ROOT), tempfile.gettempdir() + "/", str(Path.home()) + "/")
"""Beginnings of paths that a published library must not have."""
_OF_THE_LINKER = {"_mh_dylib_header", "__dso_handle"}
"""Names that a library of macOS exports because its linker makes them."""


@dataclass(frozen=True)
class Linked:
    """What a shared library needs and gives."""

    processor: str
    libraries: list[str]
    """Those that are loaded with it."""
    oldest: Version
    """The version of the C library of Linux, or of macOS, that it needs; () on Windows, where functions have none."""
    imported: set[str]
    exported: set[str]


def linked(library: bytes) -> list[Linked]:
    """One for each processor, which are several in a universal library of macOS."""
    kind = library[:4]
    if kind == b"\x7fELF":
        return [_elf(lief.ELF.parse(io.BytesIO(library)))]
    if kind[:2] == b"MZ":
        return [_pe(lief.PE.parse(io.BytesIO(library)))]
    with tempfile.NamedTemporaryFile() as file:  # bytes give its first processor only
        file.write(library)
        file.flush()
        parts = lief.MachO.parse(file.name)  # has what its parts are, and must live as long
        return [_mach_o(parts.at(number)) for number in range(len(parts))]


def _elf(library: lief.ELF.Binary) -> Linked:
    versions = [
        version.name
        for needed in library.symbols_version_requirement
        for version in needed.get_auxiliary_symbols()
    ]
    return Linked(
        {"X86_64": "x86_64", "AARCH64": "aarch64"}[library.header.machine_type.name],
        [str(name) for name in library.libraries],
        max((_version(v) for v in versions if v.startswith("GLIBC_")), default=()),
        {str(s.name) for s in library.imported_symbols},
        {str(s.name) for s in library.exported_symbols},
    )


def _pe(library: lief.PE.Binary) -> Linked:
    exports = library.get_export()
    return Linked(
        {"AMD64": "x86_64", "ARM64": "aarch64"}[library.header.machine.name],
        [imported.name.lower() for imported in library.imports],
        (),
        {entry.name for imported in library.imports for entry in imported.entries},
        {entry.name for entry in exports.entries} if exports else set(),
    )


def _mach_o(library: lief.MachO.Binary) -> Linked:
    own = lief.MachO.LoadCommand.TYPE.ID_DYLIB
    return Linked(
        {"X86_64": "x86_64", "ARM64": "aarch64"}[library.header.cpu_type.name],
        [loaded.name for loaded in library.libraries if loaded.command != own],
        tuple(library.build_version.minos),
        {str(s.name).removeprefix("_") for s in library.imported_symbols},
        {str(s.name).removeprefix("_") for s in library.exported_symbols} - _OF_THE_LINKER,
    )


def _version(text: str) -> Version:
    return tuple(int(number) for number in _NUMBERS.findall(text))


_ALWAYS_THERE = {
    "linux": re.compile(r"lib(c|m|pthread)\.so\.\d"),
    "windows": re.compile(r"kernel32\.dll|api-ms-win-crt-[a-z]+-l1-1-0\.dll"),
    "darwin": re.compile(r"/usr/lib/libSystem\.B\.dylib"),
}


def faults(
    library: bytes,
    target: Target,
    may_export: Callable[[str], bool],
    also: tuple[str, ...] = (),
) -> Iterator[str]:
    """What is wrong with a library that is published for a target; ``also`` may be loaded with it."""
    processor, system = target.name.split("-")
    for part in linked(library):
        if part.processor != processor and target.fmi2 != "darwin64":
            yield f"it is for {part.processor}"
        for name in part.libraries:
            if not _ALWAYS_THERE[system].fullmatch(name) and name not in also:
                yield f"it needs {name}"
        promised = _version(target.zig.split("-", 1)[1])
        if part.oldest[: len(promised)] > promised:
            yield f"it needs {system} {part.oldest}, and {promised} is promised"
        if not part.exported:
            yield "it exports nothing"
        for name in sorted(part.exported):
            if not may_export(name):
                yield f"it exports {name}"
    for path in _OF_THIS_MACHINE:
        if path.encode() in library:
            yield f"it has a path of this machine, {path}"


def of_folder(folder: str) -> Target:
    """The target whose binaries are in a folder of an FMU."""
    return next(t for t in TARGETS.values() if folder in (t.name, t.fmi2))
