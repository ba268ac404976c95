"""What files of shared libraries say of themselves, also when they lie."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fmimaster.fmu.library_file import (
    MachineCode,
    MissingDll,
    all_needed_dlls,
    machine_code,
    needed_dlls,
)

AMD64, ARM64, I386 = 0x8664, 0xAA64, 0x14C


def dll(*imports: str, machine: int = AMD64, delayed: tuple[str, ...] = ()) -> bytes:
    """The headers of a DLL with one section, which holds its import tables."""
    is_64 = machine != I386
    begin, place = 0x1000, 0x400  # of the section: in memory and in the file
    names = (*imports, *delayed)
    later = 20 * (len(imports) + 1)
    texts = later + 32 * (len(delayed) + 1)
    where = [begin + texts + sum(len(n) + 1 for n in names[:k]) for k in range(len(names))]
    tables = b"".join(struct.pack("<3I2I", 0, 0, 0, at, 0) for at in where[: len(imports)])
    tables += bytes(20)
    tables += b"".join(struct.pack("<8I", 1, at, *[0] * 6) for at in where[len(imports) :])
    tables += bytes(32) + b"".join(n.encode() + b"\0" for n in names)
    directories = [0, 0, begin, later, *[0] * 22, begin + later, 32, *[0] * 4]
    optional = struct.pack("<H", 0x20B if is_64 else 0x10B).ljust(108 if is_64 else 92, b"\0")
    optional += struct.pack("<I", 16) + struct.pack("<32I", *directories)
    head = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64)
    head += b"PE\0\0" + struct.pack("<2H3I2H", machine, 1, 0, 0, 0, len(optional), 0x2022)
    section = struct.pack("<8s4I16x", b".idata", len(tables), begin, len(tables), place)
    return (head + optional + section).ljust(place, b"\0") + tables


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.dll"


@pytest.mark.parametrize("machine", [AMD64, ARM64, I386])
def test_the_dlls_that_a_library_needs_are_read(file: Path, machine: int) -> None:
    file.write_bytes(dll("A.dll", "b.DLL", machine=machine, delayed=("later.dll",)))
    assert needed_dlls(file) == ("A.dll", "b.DLL")


def test_parts_of_windows_are_no_files(file: Path) -> None:
    file.write_bytes(dll("api-ms-win-crt-math-l1-1-0.dll", "ext-ms-win-a.dll", "own.dll"))
    assert needed_dlls(file) == ("own.dll",)


def test_missing_dlls_are_found_through_those_beside_the_library(
    file: Path, tmp_path: Path
) -> None:
    system = tmp_path / "System32"
    system.mkdir()
    (system / "kernel32.dll").write_bytes(b"")
    file.write_bytes(dll("Solver.dll", "KERNEL32.dll"))
    (tmp_path / "solver.DLL").write_bytes(dll("kernel32.dll", "gone.dll", "model.dll"))
    assert all_needed_dlls(file, [system]).missing == (MissingDll("gone.dll", "solver.DLL"),)
    (tmp_path / "GONE.dll").write_bytes(dll())
    needed = all_needed_dlls(file, [system])
    assert needed.missing == ()
    assert {p.name.lower() for p in needed.beside} == {"solver.dll", "gone.dll"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (dll(), MachineCode("Windows", "x86-64")),
        (dll(machine=I386), MachineCode("Windows", "x86")),
        (dll(machine=ARM64), MachineCode("Windows", "AArch64")),
        (b"\x7fELF\2\1".ljust(18, b"\0") + b"\x3e\0", MachineCode("Linux", "x86-64")),
        (bytes.fromhex("cffaedfe0c000001"), MachineCode("macOS", "AArch64")),
        (bytes.fromhex("cafebabe0000000201000007"), MachineCode("macOS", "x86-64")),
        (b"", None),
        (b"MZ", None),
        (b"<html>", None),
    ],
)
def test_the_machine_of_a_library(file: Path, content: bytes, code: MachineCode | None) -> None:
    file.write_bytes(content)
    assert machine_code(file) == code


def test_this_python_is_for_this_system() -> None:
    code = machine_code(Path(sys.executable))
    assert code is not None
    assert code.system == {"win32": "Windows", "darwin": "macOS"}.get(sys.platform, "Linux")


@given(st.data())
def test_a_damaged_library_has_bounded_tables(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(dll("a.dll", "b.dll"))
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, 500))] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.getbasetemp() / "damaged.dll"
    file.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    assert len(needed_dlls(file)) <= 1000
    machine_code(file)


def test_a_table_without_end_is_bounded(file: Path) -> None:
    content = bytearray(dll("a.dll"))
    content[0x400:] = struct.pack("<3I2I", 0, 0, 0, 0x1000 + 5000 * 20, 0) * 5000 + b"x.dll\0"
    struct.pack_into("<4I", content, 64 + 24 + 240 + 8, 200_000, 0x1000, 200_000, 0x400)
    file.write_bytes(content)
    assert needed_dlls(file) == ("x.dll",)
