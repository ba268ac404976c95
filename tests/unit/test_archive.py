"""Zip archives and folders are read safely."""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from fmimaster.base.errors import FileError
from fmimaster.system.archive import open_archive, read_file
from fmimaster.system.model import Source

WINDOWS = sys.platform == "win32"
needs_links = pytest.mark.skipif(WINDOWS, reason="a link needs a privilege of Windows")

CONTENT = {
    "modelDescription.xml": b"<xml/>",
    "binaries/a.so": b"\x7fELF",
    "resources/none.txt": b"",
}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 1234567\n"


def zipped(content: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            info = zipfile.ZipInfo("placeholder")
            info.filename = info.orig_filename = name  # the constructor would tidy the name up
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return stream.getvalue()


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


@pytest.fixture
def fmu(tmp_path: Path) -> Path:
    return written(tmp_path / "pump.fmu", zipped(CONTENT))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in CONTENT.items():
        file = tmp_path / "unpacked" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return tmp_path / "unpacked"


@pytest.fixture
def ssp(tmp_path: Path, fmu: Path) -> Source:
    content = {"SystemStructure.ssd": b"<xml/>", "resources/pump.fmu": fmu.read_bytes()}
    path = written(tmp_path / "system.ssp", zipped(content))
    return Source(path, "resources/pump.fmu")


# What works ---------------------------------------------------------------------------------------


def test_a_zip_archive_a_folder_and_an_archive_in_an_archive_read_alike(
    fmu: Path, folder: Path, ssp: Source
) -> None:
    for source in (Source(fmu), Source(folder), ssp):
        with open_archive(source) as archive:
            assert set(archive.names()) == set(CONTENT)
            assert {name: archive.read(name) for name in CONTENT} == CONTENT
            assert archive.size() == sum(map(len, CONTENT.values()))


def test_unpacking_writes_all_files_byte_for_byte(
    fmu: Path, folder: Path, ssp: Source, tmp_path: Path
) -> None:
    for i, source in enumerate((Source(fmu), Source(folder), ssp)):
        target = tmp_path / "targets" / str(i)
        with open_archive(source) as archive:
            archive.unpack(target)
        assert files(target) == CONTENT


def test_a_member_of_a_folder_can_be_an_archive(fmu: Path) -> None:
    with open_archive(Source(fmu.parent, "pump.fmu")) as archive:
        assert set(archive.names()) == set(CONTENT)


def test_a_file_is_read_from_disk_and_from_an_archive(fmu: Path) -> None:
    assert read_file(Source(fmu)) == fmu.read_bytes()
    assert read_file(Source(fmu, "binaries/a.so")) == b"\x7fELF"


def test_bytes_before_the_archive_do_no_harm(tmp_path: Path) -> None:
    path = written(tmp_path / "self_extracting.fmu", b"#!stub\n" + zipped(CONTENT))
    with open_archive(Source(path)) as archive:
        assert archive.read("modelDescription.xml") == b"<xml/>"


# What is not there, or is something else ----------------------------------------------------------


def test_a_missing_file_suggests_its_neighbour(fmu: Path) -> None:
    with pytest.raises(FileError, match=r"pmp\.fmu' does not exist\. Did you mean 'pump\.fmu'\?"):
        open_archive(Source(fmu.with_name("pmp.fmu")))


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"does not exist, nor does its folder\. Check the path\."):
        open_archive(Source(tmp_path / "nowhere" / "pump.fmu"))


def test_a_missing_member_suggests_its_neighbour(ssp: Source) -> None:
    with pytest.raises(
        FileError, match=r"no file 'pump\.fmu'\. Did you mean 'resources/pump\.fmu'"
    ):
        open_archive(Source(ssp.path, "pump.fmu"))


def test_a_folder_where_a_file_is_expected_is_told(ssp: Source, folder: Path) -> None:
    with pytest.raises(
        FileError, match=r"'resources' in '.*system\.ssp' is a folder, expected a file"
    ):
        open_archive(Source(ssp.path, "resources"))
    with pytest.raises(FileError, match="unpacked' is a folder, expected a file"):
        read_file(Source(folder))


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "pump.fmu", b"")
    with pytest.raises(FileError, match=r"pump\.fmu' is empty\. Get it again\."):
        open_archive(Source(path))


def test_a_git_lfs_pointer_is_told_with_size_and_remedy(tmp_path: Path) -> None:
    message = r"is a Git LFS pointer, not the file itself \(1,234,567 bytes\)\. Run 'git lfs pull'"
    path = written(tmp_path / "pump.fmu", POINTER)
    with pytest.raises(FileError, match=message):
        open_archive(Source(path))
    with pytest.raises(FileError, match=message):
        read_file(Source(path))


def test_a_git_lfs_pointer_inside_an_archive_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "system.ssp", zipped({"pump.fmu": POINTER}))
    with pytest.raises(FileError, match=r"system\.ssp/pump\.fmu' is a Git LFS pointer"):
        open_archive(Source(path, "pump.fmu"))


def test_something_else_than_a_zip_archive_is_told_with_its_first_bytes(tmp_path: Path) -> None:
    path = written(tmp_path / "pump.fmu", b"<html>Not found</html>")
    with pytest.raises(
        FileError, match=r"is not a zip archive, .* begins with b'<html>Not found<'"
    ):
        open_archive(Source(path))


def test_an_incomplete_archive_is_told(fmu: Path) -> None:
    fmu.write_bytes(fmu.read_bytes()[:-40])
    with pytest.raises(FileError, match="is a damaged or incomplete zip archive"):
        open_archive(Source(fmu))


def test_a_damaged_member_is_told_by_its_checksum(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:  # stored, so that the text can be found
        archive.writestr("a.txt", b"precious")
    path = written(tmp_path / "a.fmu", stream.getvalue().replace(b"precious", b"previous"))
    with open_archive(Source(path)) as archive:
        with pytest.raises(FileError, match=r"'a\.txt' in .* cannot be read: Bad CRC-32"):
            archive.read("a.txt")
        with pytest.raises(FileError, match="Bad CRC-32"):
            archive.unpack(tmp_path / "target")


def test_an_unknown_compression_is_told(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.txt": b"text"}))
    for header, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):  # method field of the two headers
        start = data.find(header) + at
        data[start : start + 2] = (97).to_bytes(2, "little")
    path = written(tmp_path / "a.fmu", bytes(data))
    with (
        open_archive(Source(path)) as archive,
        pytest.raises(FileError, match="packed in an unusual way"),
    ):
        archive.read("a.txt")


# What would be unsafe -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "/etc/cron.d/job",
        "../outside.txt",
        "a/../../outside.txt",
        "..",
        "C:/outside.txt",
        "c:outside.txt",
        "..\\outside.txt",
        "a\\..\\..\\outside.txt",
        "\\outside.txt",
        "\\\\server\\share\\outside.txt",
        "c:\\outside.txt",
        "../folder/",
        "..\\folder\\",
        "a\0b",
    ],
)
def test_a_name_that_leads_outside_is_refused_before_anything_is_written(
    name: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "a.fmu", zipped({"harmless.txt": b"", name: b"x"}))
    with pytest.raises(
        FileError, match=r"not a relative path inside the archive\. Nothing was unpacked"
    ):
        open_archive(Source(path)).unpack(tmp_path / "target")
    assert [p.name for p in tmp_path.iterdir()] == ["a.fmu"]


def test_names_with_dots_that_stay_inside_are_fine(tmp_path: Path) -> None:
    names = ("a..b", ".hidden", *(() if WINDOWS else ("...", "a/b..")))
    path = written(tmp_path / "a.fmu", zipped(dict.fromkeys(names, b"x")))
    with open_archive(Source(path)) as archive:
        archive.unpack(tmp_path / "target")
    assert set(files(tmp_path / "target")) == set(names)


@pytest.mark.skipif(not WINDOWS, reason="files of this system can have these names")
@pytest.mark.parametrize(
    "name", ["...", "a./.../b", "a /b", "NUL", "a/con.txt", "ab:c", "a?", "a\nb"]
)
def test_names_that_no_file_of_windows_can_have_are_refused(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.fmu", zipped({"a.txt": b"x", name: b"x"}))
    with (
        open_archive(Source(path)) as archive,
        pytest.raises(FileError, match=r"Cannot unpack .*: no file of Windows can have the name '"),
    ):
        archive.unpack(tmp_path / "target")
    assert not any((tmp_path / "target").iterdir())


@pytest.mark.skipif(not WINDOWS, reason="files of this system can have these names")
def test_windows_leaves_out_dots_at_the_end_of_names(tmp_path: Path) -> None:
    """As FMUs of Hopsan have them, which are made on Windows."""
    path = written(tmp_path / "a.fmu", zipped({"resources/K_1./a.txt.": b"1", "b. .": b"2"}))
    with open_archive(Source(path)) as archive:
        archive.unpack(tmp_path / "target")
    assert files(tmp_path / "target") == {"resources/K_1/a.txt": b"1", "b": b"2"}
    assert (tmp_path / "target" / "resources" / "K_1." / "a.txt.").read_bytes() == b"1"
    path = written(tmp_path / "b.fmu", zipped({"a": b"1", "A.": b"2"}))
    with (
        open_archive(Source(path)) as archive,
        pytest.raises(FileError, match=r"'a' and 'A\.' are one file on Windows"),
    ):
        archive.unpack(tmp_path / "other")


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        link = zipfile.ZipInfo("resources")
        link.create_system = 3  # Unix
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc")
        archive.writestr("resources/passwd", "x")
    path = written(tmp_path / "a.fmu", stream.getvalue())
    with pytest.raises(
        FileError, match=r"holds a symbolic link, 'resources', which could lead outside"
    ):
        open_archive(Source(path))


def test_an_encrypted_archive_is_refused(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.txt": b"text"}))
    for header, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # flags field of the two headers
        data[data.find(header) + at] |= 0x1
    path = written(tmp_path / "a.fmu", bytes(data))
    with pytest.raises(
        FileError, match=r"'a\.txt' in .* is encrypted\. Pack .* without a password\."
    ):
        open_archive(Source(path))


@pytest.mark.parametrize("name", ["resources/empty/", "resources\\empty\\"])
def test_empty_folders_are_unpacked_unless_left_out(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "a.fmu", zipped({"a.txt": b"1", name: b"", "sources/": b""}))
    with open_archive(Source(path)) as archive:
        archive.unpack(tmp_path / "first", ("sources/",))
    with open_archive(Source(tmp_path / "first")) as archive:
        archive.unpack(tmp_path / "second")
    for unpacked in (tmp_path / "first", tmp_path / "second"):
        found = sorted(p.relative_to(unpacked).as_posix() for p in unpacked.rglob("*"))
        assert found == ["a.txt", "resources", "resources/empty"]


def test_a_file_and_an_empty_folder_of_one_name_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.fmu", zipped({"a": b"1", "a/": b""}))
    with pytest.raises(FileError, match="has a file 'a' and a folder of this name"):
        open_archive(Source(path))


def test_unpacking_needs_an_empty_folder(fmu: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "there.txt").write_text("")
    if not WINDOWS:  # a link needs a privilege there
        (target / "resources").symlink_to(tmp_path)
    with (
        open_archive(Source(fmu)) as archive,
        pytest.raises(FileError, match=r"Cannot unpack .* it is not empty"),
    ):
        archive.unpack(target)
    assert not (tmp_path / "none.txt").exists()


def test_an_archive_larger_than_the_disk_is_refused_before_anything_is_written(
    fmu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 5, 5))
    with (
        open_archive(Source(fmu)) as archive,
        pytest.raises(FileError, match=r"unpacks to 10 bytes, .* has room for 5"),
    ):
        archive.unpack(tmp_path / "target")
    assert not files(tmp_path / "target")


def test_a_folder_gives_no_file_outside_of_it(folder: Path) -> None:
    (folder.parent / "secret.txt").write_text("x", encoding="utf-8")
    with (
        open_archive(Source(folder)) as archive,
        pytest.raises(FileError, match="not a relative path"),
    ):
        archive.read("../secret.txt")


def test_a_file_that_is_a_folder_as_well_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.fmu", zipped({"a": b"", "a-b": b"", "a/b/c": b""}))
    with pytest.raises(FileError, match="has a file 'a' and a folder of this name"):
        open_archive(Source(path))


# Backslashes between folders: 34 of 654 public FMUs have them ---------------------------------------------------------


def with_backslashes(content: dict[str, bytes]) -> bytes:
    return zipped({name.replace("/", "\\"): data for name, data in content.items()})


def test_entries_with_backslashes_are_read_as_paths(tmp_path: Path) -> None:
    content = {**CONTENT, "resources/": b""}
    path = written(tmp_path / "a.fmu", with_backslashes(content))
    with open_archive(Source(path)) as archive:
        assert set(archive.names()) == set(CONTENT)
        assert archive.read("binaries/a.so") == b"\x7fELF"
        archive.unpack(tmp_path / "target")
    assert files(tmp_path / "target") == CONTENT


def test_an_archive_with_backslashes_in_one_with_backslashes_is_read(tmp_path: Path) -> None:
    inner = with_backslashes(CONTENT)
    path = written(tmp_path / "a.ssp", with_backslashes({"resources/pump.fmu": inner}))
    with open_archive(Source(path, "resources/pump.fmu")) as archive:
        assert archive.read("binaries/a.so") == b"\x7fELF"


def test_a_folder_marked_as_in_ms_dos_is_no_file(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        folder = zipfile.ZipInfo("binaries")
        folder.external_attr = 0x10
        archive.writestr(folder, b"")
        archive.writestr("binaries/a.so", b"x")
    with open_archive(Source(written(tmp_path / "a.fmu", stream.getvalue()))) as archive:
        assert archive.names() == ("binaries/a.so",)


def test_empty_parts_of_names_count_for_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.fmu", zipped({"./": b"", "./a.txt": b"1", "b//./c.txt": b"2"}))
    with open_archive(Source(path)) as archive:
        assert archive.names() == ("a.txt", "b/c.txt")


# Names that stand for two files ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["a/b.txt", "a\\b.txt", "./a/b.txt", "a//b.txt"])
def test_two_files_of_one_name_that_differ_are_refused(second: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a/b.txt", b"one")
        archive.writestr(second, b"two")
    path = written(tmp_path / "a.fmu", stream.getvalue())
    with pytest.raises(FileError, match=r"several files with the name 'a/b\.txt' that differ"):
        open_archive(Source(path))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["a/b.txt", "a\\b.txt"])
def test_the_same_file_twice_does_no_harm(second: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a/b.txt", b"one")
        archive.writestr(second, b"one")
    with open_archive(Source(written(tmp_path / "a.fmu", stream.getvalue()))) as archive:
        assert archive.names() == ("a/b.txt",)
        archive.unpack(tmp_path / "target")
    assert files(tmp_path / "target") == {"a/b.txt": b"one"}


# Sizes that no FMU has ------------------------------------------------------------------------------------------------


def test_an_archive_that_grows_too_much_is_refused(tmp_path: Path) -> None:
    zeros = bytes(2**20)
    path = written(tmp_path / "a.fmu", zipped({f"{k}.bin": zeros for k in range(257)}))
    with pytest.raises(
        FileError, match=r"has [\d,]+ bytes and unpacks to 269,484,032\. An archive"
    ):
        open_archive(Source(path))


def test_a_size_that_is_not_that_of_the_content_ends_the_reading(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.bin": bytes(2**20)}))
    at = data.find(b"PK\x01\x02") + 24  # its size as the list of entries has it
    data[at : at + 4] = (10).to_bytes(4, "little")
    path = written(tmp_path / "a.fmu", bytes(data))
    with (
        open_archive(Source(path)) as archive,
        pytest.raises(FileError, match=r"'a\.bin' in .* cannot be read: Bad CRC-32"),
    ):
        archive.read("a.bin")


def test_an_archive_with_very_many_entries_is_refused(tmp_path: Path) -> None:
    entry = zipped({"a.txt": b""})
    start, end = entry.find(b"PK\x01\x02"), entry.find(b"PK\x05\x06")
    listed = entry[start:end] * (2**24 // (end - start) + 1)
    closing = bytearray(entry[end:])
    closing[12:16] = len(listed).to_bytes(4, "little")
    path = written(tmp_path / "a.fmu", entry[:start] + listed + closing)
    with pytest.raises(FileError, match=r"the list of its entries has [\d,]+ bytes, at most 16,"):
        open_archive(Source(path))


def test_folders_in_folders_without_end_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.fmu", zipped({"a/" * 2000 + "b": b"x"}))
    with pytest.raises(FileError, match="of less than 100 folders"):
        open_archive(Source(path))


def test_a_name_that_is_too_long_for_the_file_system_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "a.fmu", zipped({"a" * 300: b"x"}))
    why = "no file of Windows can have" if WINDOWS else "File name too long"
    with (
        open_archive(Source(path)) as archive,
        pytest.raises(FileError, match=rf"Cannot unpack .*: {why}"),
    ):
        archive.unpack(tmp_path / "target")


def test_large_files_are_copied_in_chunks_and_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.base.files.MOST_IN_MEMORY", 2**20)
    folder = tmp_path / "folder"
    folder.mkdir()
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("large.bin", bytes(2**21))
    written(folder / "a.fmu", inner.getvalue())
    written(folder / "large.bin", bytes(2**21))
    outer = written(tmp_path / "a.ssp", zipped({"a.fmu": inner.getvalue()}))
    sources = (
        Source(folder),
        Source(folder / "a.fmu"),
        Source(outer, "a.fmu"),
        Source(folder, "a.fmu"),
    )
    for k, source in enumerate(sources):
        with open_archive(source) as archive:
            with pytest.raises(FileError, match=r"large\.bin' has more than 1,048,576 bytes"):
                archive.read("large.bin")
            archive.unpack(tmp_path / str(k))
        assert (tmp_path / str(k) / "large.bin").stat().st_size == 2**21


# Regular files only ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(WINDOWS, reason="Windows has no pipes in folders")
def test_a_named_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    pipe = folder.parent / "pipe.fmu"
    os.mkfifo(pipe)
    os.mkfifo(folder / "pipe.xml")
    for read in (open_archive, read_file):
        with pytest.raises(FileError, match=r"pipe\.fmu' is a named pipe, expected a file"):
            read(Source(pipe))
    with open_archive(Source(folder)) as archive:
        assert set(archive.names()) == set(CONTENT)
        assert "pipe.xml" not in archive
        with pytest.raises(FileError, match=r"pipe\.xml' is a named pipe, expected a file"):
            archive.read("pipe.xml")


def test_a_device_is_refused(tmp_path: Path) -> None:
    device = Path("NUL")
    if not WINDOWS:
        device = tmp_path / "a.fmu"
        device.symlink_to("/dev/zero")
    for read in (open_archive, read_file):
        with pytest.raises(FileError, match=rf"{device.name}' is a device, expected a file"):
            read(Source(device))


@needs_links
def test_a_link_that_leads_nowhere_or_to_itself_is_told(tmp_path: Path) -> None:
    nowhere, circle = tmp_path / "a.fmu", tmp_path / "b.fmu"
    nowhere.symlink_to("missing")
    circle.symlink_to(circle)
    with pytest.raises(FileError, match=r"a\.fmu' does not exist"):
        open_archive(Source(nowhere))
    with pytest.raises(FileError, match=r"b\.fmu' cannot be read: Too many levels of symbolic"):
        open_archive(Source(circle))


@needs_links
def test_a_folder_with_links_is_read(folder: Path) -> None:
    (folder / "libm.so.6").symlink_to("binaries/a.so")
    (folder / "libc.so").symlink_to("nowhere")
    with open_archive(Source(folder)) as archive:
        assert set(archive.names()) == {*CONTENT, "libm.so.6"}
        assert archive.size() == sum(map(len, CONTENT.values())) + 4


@pytest.mark.parametrize(
    ("mode", "kind"), [(stat.S_IFIFO, "a named pipe"), (stat.S_IFCHR, "a device")]
)
def test_an_entry_that_is_no_regular_file_is_refused(mode: int, kind: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        entry = zipfile.ZipInfo("resources/x")
        entry.external_attr = (mode | 0o666) << 16
        archive.writestr(entry, b"")
    path = written(tmp_path / "a.fmu", stream.getvalue())
    with pytest.raises(FileError, match=f"holds {kind}, 'resources/x'"):
        open_archive(Source(path))
