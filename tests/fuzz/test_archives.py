"""Hostile archives end in files inside the target, or in an error of ours."""

from __future__ import annotations

import io
import stat
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

from fuzzing import survives
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import edited_bytes, hostile_text

from fmimaster.fmu.event_manifest import EventManifest
from fmimaster.fmu.manifest_writer import add_manifest, write_manifest
from fmimaster.system.archive import open_archive, read_file
from fmimaster.system.model import Source

NAMES = (
    *("modelDescription.xml", "binaries/a.so", "binaries\\a.so", "./binaries//a.so", "binaries"),
    *("resources/", "resources\\", "../x", "..\\x", "/x", "C:\\x", "a/../b", "a\0b", "é", "\udc80"),
    *("a/" * 200 + "b", "x" * 300, "", "/", "\\", ".", "..", "SystemStructure.ssd", "inner.fmu"),
)
MODES = (0, *(k << 16 for k in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR, stat.S_IFREG)), 0x10)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)

Entry = tuple[str, bytes, int, int]


def packed(entries: list[Entry], comment: bytes = b"") -> bytes:
    """An archive of entries: name, content, attributes, method."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")  # two entries of one name
        archive.comment = comment
        for name, content, attributes, method in entries:
            info = zipfile.ZipInfo("placeholder")
            info.filename = info.orig_filename = name  # the constructor would tidy the name up
            info.external_attr, info.compress_type = attributes, method
            archive.writestr(info, content if content != b"large" else bytes(10**6))
    return stream.getvalue()


PLAIN: list[Entry] = [
    ("modelDescription.xml", b"<fmiModelDescription/>", 0, zipfile.ZIP_DEFLATED),
    ("binaries/x86_64-linux/a.so", b"\x7fELF" * 100, 0, zipfile.ZIP_DEFLATED),
    ("resources/", b"", 0x10, zipfile.ZIP_STORED),
    ("resources\\r.txt", b"text", 0, zipfile.ZIP_STORED),
]


@cache
def archives() -> tuple[bytes, ...]:
    """Archives that can be read; one holds another, one is large when unpacked."""
    plain = packed(PLAIN)
    outer = packed([("inner.fmu", plain, 0, zipfile.ZIP_DEFLATED), *PLAIN], b"comment")
    zeros = packed([(f"{m}.bin", b"large", 0, m) for m in METHODS[1:]])
    return plain, outer, zeros


def entries() -> st.SearchStrategy[list[Entry]]:
    name = st.one_of(st.sampled_from(NAMES), st.text(max_size=12), hostile_text())
    content = st.one_of(st.binary(max_size=50), st.sampled_from((b"large", b"<a/>")))
    entry = st.tuples(
        name.map(lambda n: n[:5000]), content, st.sampled_from(MODES), st.sampled_from(METHODS)
    )
    return st.lists(entry, max_size=6)


def unpack(path: Path, target: Path) -> None:
    """What is done with an archive: all of it, and no file outside of the target."""
    with open_archive(Source(path)) as archive:
        names = archive.names()
        archive.unpack(target)
    inside = {p.relative_to(target).as_posix() for p in target.rglob("*") if not p.is_dir()}
    assert inside == set(names)
    assert not any(p.is_symlink() for p in target.rglob("*"))
    for name in names[:3]:
        with open_archive(Source(path, name)) as archive:
            archive.names()


def look(content: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="fmimaster-fuzz-") as folder:
        path = Path(folder) / "a.fmu"
        path.write_bytes(content)
        survives(unpack, path, Path(folder) / "target")
        survives(read_file, Source(path, "modelDescription.xml"))
        manifest = write_manifest(EventManifest())
        survives(add_manifest, path, manifest, Path(folder) / "b.fmu")
        assert {p.name for p in Path(folder).iterdir()} <= {"a.fmu", "b.fmu", "target"}


@settings(max_examples=150, deadline=None)
@given(content=edited_bytes(archives()))
def test_edited_archives(content: bytes) -> None:
    look(content)


@settings(max_examples=100, deadline=None)
@given(entries=entries())
def test_archives_of_odd_entries(entries: list[Entry]) -> None:
    try:
        content = packed(entries)
    except (ValueError, UnicodeError):  # no archive can hold such a name
        return
    look(content)
