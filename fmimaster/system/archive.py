"""Safe reading of zip archives and folders: FMUs, SSP archives, and an FMU inside an SSP archive.

An archive is checked as a whole when it is opened. One that could write outside of its target, or
that cannot be read without a password, is refused before anything is read or written.
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
import stat
import zipfile
import zlib
from abc import ABC, abstractmethod
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import IO

from fmimaster.errors import FileError, did_you_mean
from fmimaster.system.description import Source

_LFS_POINTER = b"version https://git-lfs"
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, OSError)
"""What reading a member raises if its bytes or its method of compression are not as expected."""


class Archive(ABC):
    """Files that belong together, by name: a zip archive or a folder. A context manager.

    Names are relative, separated by ``/``, and never lead outside of the archive.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of all files, without folders."""

    @abstractmethod
    def size(self) -> int:
        """Bytes that all files take when unpacked."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Content of one file."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def unpack(self, target: Path, leave_out: tuple[str, ...] = ()) -> None:
        """Write all files into a folder that is new or empty, but those whose names start with one of ``leave_out``.

        Raises
        ------
        FileError
            If the folder is not empty or has no room for the files, or a file cannot be read or
            written.
        """
        try:
            target.mkdir(parents=True, exist_ok=True)
            if any(target.iterdir()):  # links that are there already could lead outside
                raise FileError(f"Cannot unpack '{self.source}' into '{target}': it is not empty.")
            needed, free = self.size(), shutil.disk_usage(target).free
            if needed > free:
                raise FileError(
                    f"'{self.source}' unpacks to {needed:,} bytes, '{target}' has room for "
                    f"{free:,}. Make room, or check that the archive is what it should be."
                )
            for name in self.names():
                if name.startswith(leave_out):
                    continue
                file = target / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(self.read(name))
        except OSError as error:
            raise FileError(
                f"Cannot unpack '{self.source}' into '{target}': {error.strerror or error}. "
                "Choose a folder that can be written to, with enough room."
            ) from error

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def open_archive(source: Source) -> Archive:
    """Open a zip archive, a folder, or an archive inside of either.

    Raises
    ------
    FileError
        If it is missing, empty, a Git LFS pointer, no archive, damaged, encrypted, or has a member
        that leads outside.
    """
    if not source.member and source.path.is_dir():
        return _Folder(source)
    if source.member:
        return _Zip(source, BytesIO(read_file(source)))
    _check_is_file(source.path)
    try:
        return _Zip(source, source.path.open("rb"))
    except OSError as error:
        raise _unreadable(source.path, error) from error


def read_file(source: Source) -> bytes:
    """Content of a file on disk, or of a member of an archive.

    Raises
    ------
    FileError
        If it is missing, a folder, empty, a Git LFS pointer, or cannot be read.
    """
    if source.member:
        with open_archive(Source(source.path)) as archive:
            content = archive.read(source.member)
    else:
        content = _read(source.path)
    _check_content(content[:200], len(content), source)
    return content


def check_exists(path: Path) -> None:
    """Refuse a path where there is nothing, and suggest what is there instead."""
    if path.exists():
        return
    if not path.parent.is_dir():
        raise FileError(f"'{path}' does not exist, nor does its folder. Check the path.")
    near = did_you_mean(path.name, (p.name for p in path.parent.iterdir()))
    raise FileError(f"'{path}' does not exist.{near or ' Check the path.'}")


class _Folder(Archive):
    """A folder on disk, such as an unpacked FMU."""

    def names(self) -> tuple[str, ...]:
        root = self.source.path
        found = []
        for folder, _, files in os.walk(root):  # does not follow links to folders
            found += [(Path(folder) / file).relative_to(root).as_posix() for file in files]
        return tuple(sorted(found))

    def size(self) -> int:
        return sum((self.source.path / name).stat().st_size for name in self.names())

    def read(self, name: str) -> bytes:
        _check_name(name, self.source)
        return _read(self.source.path / name)

    def close(self) -> None:
        """Nothing is open."""


class _Zip(Archive):
    """A zip archive, checked at opening."""

    def __init__(self, source: Source, stream: IO[bytes]) -> None:
        super().__init__(source)
        self._stream = stream
        try:
            self._zip = _open_zip(source, stream)
            for info in self._zip.infolist():
                _check_entry(info, source)
        except BaseException:
            stream.close()
            raise
        self._infos = {i.filename: i for i in self._zip.infolist() if not i.is_dir()}

    def names(self) -> tuple[str, ...]:
        return tuple(self._infos)

    def size(self) -> int:
        return sum(info.file_size for info in self._infos.values())

    def read(self, name: str) -> bytes:
        info = self._infos.get(name)
        if info is None:
            if any(known.startswith(name.rstrip("/") + "/") for known in self._infos):
                raise FileError(f"'{name}' in '{self.source}' is a folder, expected a file.")
            near = did_you_mean(name, self._infos)
            raise FileError(f"'{self.source}' has no file '{name}'.{near}")
        try:
            return self._zip.read(info)
        except _DAMAGE as error:
            raise FileError(
                f"'{name}' in '{self.source}' cannot be read: {error}. The archive is damaged or "
                "packed in an unusual way; get it anew, or pack it again with the usual method "
                "(deflate)."
            ) from error

    def close(self) -> None:
        self._zip.close()
        self._stream.close()


def _open_zip(source: Source, stream: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
        stream.seek(0)
        head = stream.read(200)
        _check_content(head, stream.seek(0, os.SEEK_END), source)
        if head.startswith(b"PK"):
            raise FileError(
                f"'{source}' is a damaged or incomplete zip archive: {error}. Get it anew."
            ) from error
        raise FileError(
            f"'{source}' is not a zip archive, as an FMU or SSP archive must be: it begins with "
            f"{head[:16]!r}."
        ) from error


def _check_entry(info: zipfile.ZipInfo, source: Source) -> None:
    _check_name(info.orig_filename, source)
    if stat.S_ISLNK(info.external_attr >> 16):
        raise FileError(
            f"'{source}' holds a symbolic link, '{info.filename}', which could lead outside of the "
            "archive. Nothing was unpacked; pack it again with the file itself."
        )
    if info.flag_bits & 0x1:
        raise FileError(
            f"'{info.filename}' in '{source}' is encrypted. Pack the archive again without a "
            "password."
        )


def _check_name(name: str, source: Source) -> None:
    outside = name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in name.split("/")
    if outside or not name or "\\" in name or "\0" in name:
        raise FileError(
            f"'{source}' has a member named {name!r}, which is not a relative path inside the "
            "archive. Nothing was unpacked; pack it again with relative names and '/' between "
            "folders."
        )


def _check_is_file(path: Path) -> None:
    check_exists(path)
    if path.is_dir():
        raise FileError(f"'{path}' is a folder, expected a file.")


def _check_content(head: bytes, size: int, source: Source) -> None:
    """Refuse what stands where a file should be: nothing, or a pointer to it."""
    if head.startswith(_LFS_POINTER):
        expected = re.search(rb"^size (\d+)", head, re.MULTILINE)
        missing = f" ({int(expected[1]):,} bytes)" if expected else ""
        raise FileError(
            f"'{source}' is a Git LFS pointer, not the file itself{missing}. Run 'git lfs pull' in "
            "its repository."
        )
    if size == 0:
        raise FileError(f"'{source}' is empty. Get it anew.")


def _read(path: Path) -> bytes:
    _check_is_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> FileError:
    return FileError(f"'{path}' cannot be read: {error.strerror or error}.")
