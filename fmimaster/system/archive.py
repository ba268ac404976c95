"""Safe reading of zip archives and folders: FMUs, SSP archives, and an FMU inside an SSP archive.

An archive is checked as a whole when it is opened. It is refused before anything is read or written if it could write
outside of its target, has an implausible size, or needs a password. The same hash is the same content.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO

from fmimaster.base.errors import FileError, did_you_mean
from fmimaster.base.files import (
    check_content,
    check_is_file,
    check_size,
    long_path,
    open_file,
    read_whole,
    reason_of,
)
from fmimaster.system.model import Source
from fmimaster.system.zip_entries import DAMAGE, METHODS, checked_entries, open_zip

_NOT_ON_WINDOWS = re.compile(
    r"|(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*[. ]|.*[<>:\"|?*\x01-\x1f].*|.{256,}",
    re.IGNORECASE,
)
"""Names of devices, names that would be shortened or written into another file, and names that are too long."""

_CHUNK = 2**20
"""Bytes that are copied at once."""


class Archive(ABC):
    """A zip archive or a folder as files with names. A context manager.

    Names are relative, separated by ``/``, and never lead outside of the archive.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of all files, without folders."""

    @abstractmethod
    def folders(self) -> tuple[str, ...]:
        """Names of folders, at least of those without files: an FMU can need an empty folder of resources."""

    @abstractmethod
    def __contains__(self, name: str) -> bool:
        """Whether there is a file of this name."""

    @abstractmethod
    def size(self) -> int:
        """Bytes that all files take when unpacked."""

    def checksums(self) -> frozenset[tuple[str, int, int]] | None:
        """Name, size in bytes and CRC-32 of each file; None if they are not known without reading the files."""
        return None

    @abstractmethod
    def copy(self, name: str, target: IO[bytes]) -> None:
        """Write the content of one file, however large, into a stream."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Content of one file; it must fit into memory."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def unpack(self, target: Path, leave_out: tuple[str, ...] = ()) -> None:
        """Write all files and folders into a new or empty folder, except those whose names start with one of
        ``leave_out``.

        Raises
        ------
        FileError
            If the folder is not empty or has no room for the files, or a file cannot be read or
            written.
        """
        try:
            target.mkdir(parents=True, exist_ok=True)
            if any(target.iterdir()):  # existing links could lead outside
                raise FileError(f"Cannot unpack '{self.source}' into '{target}': it is not empty.")
            needed, free = self.size(), shutil.disk_usage(target).free
            if needed > free:
                raise FileError(
                    f"'{self.source}' unpacks to {needed:,} bytes, '{target}' has room for "
                    f"{free:,}. Make room, or check that the archive is what it should be."
                )
            folders = [n for n in self.folders() if not f"{n}/".startswith(leave_out)]
            names = [n for n in self.names() if not n.startswith(leave_out)]
            written = _names_on_windows(folders, names) if sys.platform == "win32" else {}
            files = {name: long_path(target / written.get(name, name)) for name in names}
            made = [target / written.get(name, name) for name in folders]
            for folder in dict.fromkeys((*made, *(file.parent for file in files.values()))):
                folder.mkdir(parents=True, exist_ok=True)
            for name, file in files.items():
                with file.open("xb") as stream:
                    self.copy(name, stream)
        except (
            OSError,
            ValueError,
        ) as error:  # ValueError: a name that this file system cannot have
            raise FileError(
                f"Cannot unpack '{self.source}' into '{target}': {reason_of(error)}. "
                "Choose a folder that can be written to, with enough room."
            ) from error

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _names_on_windows(folders: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Names of folders and files → those that Windows gives them: without dots at the end, which some FMUs have.

    Raises
    ------
    ValueError
        If no file of Windows can have a name, for some of which it opens something else, or if two files have one name.
    """
    names = tuple(names)
    written: dict[str, str] = {}
    for name in (*folders, *names):
        *parents, last = name.split("/")
        parts = [*(part.removesuffix(".") for part in parents), last.rstrip(". ")]
        for part in parts:
            if name != "." and _NOT_ON_WINDOWS.fullmatch(part):
                raise ValueError(f"no file of Windows can have the name {part or last!r}")
        written[name] = "/".join(parts) or "."
    known: dict[str, str] = {}
    for name in names:
        first = known.setdefault(written[name].lower(), name)
        if first != name:
            raise ValueError(f"{first!r} and {name!r} are one file on Windows")
    return written


def open_archive(source: Source) -> Archive:
    """Open a zip archive, a folder, or an archive inside of either.

    Raises
    ------
    FileError
        If it is missing, not a regular file, empty, a Git LFS pointer, not an archive, damaged or encrypted, or has a
        member that leads outside or an implausible size.
    """
    if source.member:
        return _Zip(source, _inner(source))
    if source.path.is_dir():
        return _Folder(source)
    return _Zip(source, open_file(source.path))


def read_file(source: Source) -> bytes:
    """Content of a file on disk, or of a member of an archive.

    Raises
    ------
    FileError
        If it is missing, not a regular file, empty, a Git LFS pointer, too large for the memory, or cannot be read.
    """
    if source.member:
        with open_archive(Source(source.path)) as archive:
            content = archive.read(source.member)
    else:
        content = read_whole(source.path)
    check_content(content[:200], len(content), str(source))
    return content


def _inner(source: Source) -> IO[bytes]:
    """A member of an archive or folder, as a file without a name: it can be too large for memory."""
    stream = tempfile.TemporaryFile(prefix="fmimaster-")  # noqa: SIM115 (the archive closes it)
    try:
        with open_archive(Source(source.path)) as archive:
            archive.copy(source.member, stream)
    except BaseException:
        stream.close()
        raise
    stream.seek(0)
    return stream


class _Folder(Archive):
    """A folder on disk, such as an unpacked FMU. It contains only regular files and links to regular files."""

    def names(self) -> tuple[str, ...]:
        root = self.source.path
        found = []
        for folder, _, files in os.walk(root):  # does not follow links to folders
            paths = (Path(folder) / file for file in files)
            found += [path.relative_to(root).as_posix() for path in paths if path.is_file()]
        return tuple(sorted(found))

    def folders(self) -> tuple[str, ...]:
        root = self.source.path
        return tuple(sorted(Path(f).relative_to(root).as_posix() for f, _, _ in os.walk(root)))

    def __contains__(self, name: str) -> bool:
        return (self.source.path / name).is_file()

    def size(self) -> int:
        return sum((self.source.path / name).stat().st_size for name in self.names())

    def copy(self, name: str, target: IO[bytes]) -> None:
        with open_file(self._path(name)) as stream:
            shutil.copyfileobj(stream, target, _CHUNK)

    def read(self, name: str) -> bytes:
        return read_whole(self._path(name))

    def _path(self, name: str) -> Path:
        if os.path.isabs(name) or ".." in name.replace("\\", "/").split("/"):
            raise FileError(
                f"'{name}' is not a relative path inside '{self.source}'. Expected a file in it."
            )
        path = self.source.path / name
        check_is_file(path)
        return path

    def close(self) -> None:
        """Nothing to do: no file is open."""


class _Zip(Archive):
    """A zip archive, checked at opening."""

    def __init__(self, source: Source, stream: IO[bytes]) -> None:
        super().__init__(source)
        self._stream = stream
        try:
            self._zip = open_zip(source, stream)
            packed = stream.seek(0, os.SEEK_END)
            self._entries, self._folders = checked_entries(self._zip, packed, source)
        except BaseException:
            stream.close()
            raise

    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def folders(self) -> tuple[str, ...]:
        return self._folders

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def size(self) -> int:
        return sum(entry.file_size for entry in self._entries.values())

    def checksums(self) -> frozenset[tuple[str, int, int]]:
        return frozenset((name, e.file_size, e.CRC) for name, e in self._entries.items())

    def copy(self, name: str, target: IO[bytes]) -> None:
        with self._open(name) as stream:
            while chunk := self._next(name, stream):
                target.write(chunk)

    def read(self, name: str) -> bytes:
        content = BytesIO()
        check_size(self._entry(name).file_size, f"{self.source}/{name}")
        self.copy(name, content)
        return content.getvalue()

    def _entry(self, name: str) -> zipfile.ZipInfo:
        entry = self._entries.get(name)
        if entry is None:
            if any(known.startswith(name.rstrip("/") + "/") for known in self._entries):
                raise FileError(f"'{name}' in '{self.source}' is a folder, expected a file.")
            near = did_you_mean(name, self._entries)
            raise FileError(f"'{self.source}' has no file '{name}'.{near}")
        return entry

    def _open(self, name: str) -> IO[bytes]:
        entry = self._entry(name)
        if entry.compress_type not in METHODS:
            raise self._unreadable(name, f"it is packed by method {entry.compress_type}")
        try:
            return self._zip.open(entry)
        except DAMAGE as error:
            raise self._unreadable(name, error) from error

    def _next(self, name: str, stream: IO[bytes]) -> bytes:
        try:
            return stream.read(_CHUNK)
        except DAMAGE as error:
            raise self._unreadable(name, error) from error

    def _unreadable(self, name: str, why: object) -> FileError:
        return FileError(
            f"'{name}' in '{self.source}' cannot be read: {why}. The archive is damaged or "
            "packed in an unusual way; get it again, or pack it again with the usual method (deflate)."
        )

    def close(self) -> None:
        self._zip.close()
        self._stream.close()


_MOST_HASHES = 256
"""Most files whose hashes are kept for the next run."""


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits.

    It is computed again only if the size or the date of the file has changed.
    """
    status = path.stat()
    return _file_hash(path.absolute(), status.st_size, status.st_mtime_ns)


def source_hash(source: Source) -> str:
    """SHA-256 of an FMU or a table, in hexadecimal digits.

    For a file or a member of an archive, that of its content, as ``sha256sum`` shows it. For a folder, that of the names
    and contents of all its files.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    if not source.member and source.path.is_file():
        return file_hash(source.path)
    found = _Hash()
    with open_archive(Source(source.path)) as archive:
        if source.member:
            archive.copy(source.member, found)  # type: ignore[arg-type]  # it is only written
            return found.value
        for name in sorted(archive.names()):
            found.write(name.encode() + b"\0")
            archive.copy(name, found)  # type: ignore[arg-type]
            found.write(b"\0")
    return found.value


class _Hash:
    """A hash as a stream to write into."""

    def __init__(self) -> None:
        self._found = sha256()

    def write(self, data: bytes) -> int:
        self._found.update(data)
        return len(data)

    @property
    def value(self) -> str:
        return self._found.hexdigest()


@lru_cache(maxsize=_MOST_HASHES)
def _file_hash(path: Path, _size: int, _changed: int) -> str:
    found = sha256()
    with path.open("rb") as stream:
        while part := stream.read(_CHUNK):
            found.update(part)
    return found.hexdigest()
