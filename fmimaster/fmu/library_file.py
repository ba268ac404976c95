"""What the file of a shared library says of itself: its system, its processor, and the DLLs that it needs.

Libraries come from strangers: sizes and numbers in them are not trusted.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from fmimaster.base.data import dataclass

_ELF = {
    3: "x86",
    8: "MIPS",
    21: "PowerPC 64",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
}
"""Processors by their number in the header of an ELF file (e_machine)."""

_PE = {0x14C: "x86", 0x1C4: "ARM", 0x8664: "x86-64", 0xAA64: "AArch64"}
"""Processors by their number in the header of a PE file (Machine)."""

_MACH_O = {7: "x86", 12: "ARM", 0x0100_0007: "x86-64", 0x0100_000C: "AArch64"}
"""Processors by their number in the header of a Mach-O file (cputype)."""

_MOST_SECTIONS = 96
"""Of a PE file; Windows loads no file with more."""
_MOST_IMPORTS = 1000
"""DLLs that one file needs."""
_MOST_FILES = 500
"""Files that are looked into for one library."""
_LONGEST_NAME = 256

_API_SET = re.compile(r"(api|ext)-ms-", re.IGNORECASE)
"""Beginning of names that stand for a part of Windows, without a file."""


@dataclass(frozen=True, slots=True)
class MachineCode:
    """For which machines a file is."""

    system: str
    """``"Linux"``, ``"Windows"`` or ``"macOS"``."""
    processor: str
    """``"x86-64"``; that of the first part of a file for several processors."""


def machine_code(file: Path) -> MachineCode | None:
    """For which machines a file is; None if it is no machine code."""
    try:
        with file.open("rb") as stream:
            return _machine_code(stream)
    except (OSError, struct.error):
        return None


def _machine_code(stream: IO[bytes]) -> MachineCode | None:
    head = stream.read(64)
    if head[:4] == b"\x7fELF":
        number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
        return MachineCode("Linux", _ELF.get(number, f"processor {number} of the ELF standard"))
    if head[:4] in (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe"):
        (number,) = struct.unpack("<I", head[4:8])
        return MachineCode("macOS", _MACH_O.get(number, f"processor {number}"))
    if head[:4] == b"\xca\xfe\xba\xbe":  # several processors
        (number,) = struct.unpack(">I", head[8:12])
        return MachineCode("macOS", _MACH_O.get(number, f"processor {number}"))
    if head[:2] == b"MZ":
        stream.seek(struct.unpack("<I", head[60:64])[0])
        signature, number = struct.unpack("<4sH", stream.read(6))
        if signature == b"PE\0\0":
            return MachineCode("Windows", _PE.get(number, f"processor {number:#x}"))
    return None


def needed_dlls(file: Path) -> tuple[str, ...]:
    """Names of the DLLs without which Windows does not load a file; empty if it is no file of Windows.

    Not those that it loads later (delayed imports), nor names that stand for a part of Windows.
    """
    found: list[str] = []
    with suppress(OSError, struct.error), file.open("rb") as stream:
        found += (name for name in _imports(stream) if not _API_SET.match(name))
    return tuple(dict.fromkeys(found))


def _imports(stream: IO[bytes]) -> Iterator[str]:
    """Names in the import table of a PE file. Source: PE Format, sections 3, 4 and 6.4."""
    stream.seek(60)
    (start,) = struct.unpack("<I", stream.read(4))
    stream.seek(start)
    signature, count, size = struct.unpack("<4s2xH12xH2x", stream.read(24))
    if signature != b"PE\0\0" or count > _MOST_SECTIONS:
        return
    optional = stream.read(size)
    (magic,) = struct.unpack_from("<H", optional)
    directories = 112 if magic == 0x20B else 96  # 64 and 32 bit
    number, table = struct.unpack_from("<I8xI", optional, directories - 4)
    sections = [struct.unpack("<8x4I16x", stream.read(40)) for _ in range(count)]

    def at(address: int) -> bool:
        """Move to an address of the loaded file."""
        for virtual, begin, raw, place in sections:
            if begin <= address < begin + max(virtual, raw):
                stream.seek(place + address - begin)
                return True
        return False

    for k in range(_MOST_IMPORTS if number > 1 and table else 0):
        if not at(table + 20 * k):
            return
        (name,) = struct.unpack("<12xI4x", stream.read(20))
        if not name or not at(name):
            return
        yield stream.read(_LONGEST_NAME).partition(b"\0")[0].decode("ascii", "replace")


@dataclass(frozen=True, slots=True)
class MissingDll:
    """A DLL that is not found."""

    name: str
    needed_by: str
    """Name of the file that needs it."""


@dataclass(frozen=True, slots=True)
class NeededDlls:
    """The DLLs that a library needs, itself or through DLLs beside it, besides those of the system."""

    beside: tuple[Path, ...]
    missing: tuple[MissingDll, ...]


def all_needed_dlls(library: Path, others: Sequence[Path]) -> NeededDlls:
    """The DLLs that a library of Windows needs.

    Parameters
    ----------
    others
        Folders in which Windows looks besides the folder of the library.
    """
    there = _files(library.parent)
    elsewhere = {name for folder in others for name in _files(folder)}
    known, waiting = {library.name.lower()}, [library]
    beside: list[Path] = []
    missing: list[MissingDll] = []
    while waiting and len(known) < _MOST_FILES:
        file = waiting.pop()
        for name in needed_dlls(file):
            key = name.lower()
            if key in known:
                continue
            known.add(key)
            if key in there:
                beside.append(there[key])
                waiting.append(there[key])
            elif key not in elsewhere:
                missing.append(MissingDll(name, file.name))
    return NeededDlls(tuple(beside), tuple(missing))


def _files(folder: Path) -> dict[str, Path]:
    """Files of a folder by their names in small letters, which Windows does not tell from others."""
    with suppress(OSError), os.scandir(folder) as entries:
        return {entry.name.lower(): Path(entry.path) for entry in entries}
    return {}
