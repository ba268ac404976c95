"""Hashes of FMUs and other files of a system: the same hash is the same content."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from fmimaster.system.archive import open_archive
from fmimaster.system.model import Source

_READ_AT_ONCE = 2**20
"""Bytes that are read at once."""

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
        while part := stream.read(_READ_AT_ONCE):
            found.update(part)
    return found.hexdigest()
