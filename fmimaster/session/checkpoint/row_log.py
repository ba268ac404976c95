"""The file beside a checkpoint: rows, events and steps of the run in the order in which they came, with the calls of FMUs.

It only grows, so that the cost of a checkpoint does not grow with the run. A checkpoint names its length; what comes
behind belongs to a part of the run that is done again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from struct import Struct
from struct import error as StructError  # noqa: N812 (it is a class)
from typing import BinaryIO
from zlib import crc32

from fmimaster.base.errors import FileError
from fmimaster.base.files import check_fits, check_is_file

_MAGIC = b"fmimaster rows 1\n"
_ID_LENGTH = 16
_HEAD = Struct("<BQI")
"""A record: its kind, the length of its content in bytes, and the checksum of its content."""


class Record(IntEnum):
    """Kinds of records."""

    ROWS = 0
    EVENTS = 1
    STEPS = 2
    CALLS = 3


class RowLog:
    """Appends records. Two threads may do this.

    Parameters
    ----------
    path : Path
    identity : bytes
        The number of the run, which its checkpoint names too.
    length : int
        Length in bytes of an older file that stays.

    Raises
    ------
    FileError
        If it cannot be written, also from each method.
    """

    def __init__(self, path: Path, identity: bytes, length: int = 0) -> None:
        self.path = path
        self.identity = identity
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        try:
            self._file = path.open("r+b" if length else "wb")
            if not length:
                self._file.write(_MAGIC + identity)
            else:
                self._file.truncate(length)
                self._file.seek(length)
        except OSError as error:
            raise self._failed(error) from error
        self.length = length or len(_MAGIC) + len(identity)

    @classmethod
    def new(cls, checkpoint: Path) -> RowLog:
        """A new one beside a checkpoint; the one of an older checkpoint of that name stays until it is replaced."""
        identity = os.urandom(_ID_LENGTH)
        return cls(rows_path(checkpoint, identity), identity)

    def append(self, kind: Record, content: bytes) -> None:
        """Append a record."""
        head = _HEAD.pack(kind, len(content), crc32(content))
        with self._lock:
            if self._file is None:
                return
            try:
                self._file.write(head)
                self._file.write(content)
            except OSError as error:
                raise self._failed(error) from error
            self.length += len(head) + len(content)

    def settle(self) -> int:
        """Let all records reach the disk; returns the length in bytes."""
        with self._lock:
            if self._file is not None:
                try:
                    self._file.flush()
                    os.fsync(self._file.fileno())
                except OSError as error:
                    raise self._failed(error) from error
            return self.length

    def close(self) -> None:
        """Write the rest and close the file; no record is taken any more."""
        with self._lock:
            file, self._file = self._file, None
            try:
                if file is not None:
                    file.close()
            except OSError as error:
                raise self._failed(error) from error

    def _failed(self, error: OSError) -> FileError:
        return FileError(f"'{self.path}' cannot be written: {error.strerror or error}.")


def rows_path(checkpoint: Path, identity: bytes) -> Path:
    """The file beside a checkpoint."""
    return checkpoint.with_name(f"{checkpoint.name}.{identity.hex()[:8]}.rows")


def remove_others(checkpoint: Path, kept: Path) -> None:
    """Remove the files of older checkpoints of that name."""
    for path in checkpoint.parent.glob(f"{_escaped(checkpoint.name)}.????????.rows"):
        if path != kept and _is_row_log(path):
            try:
                path.unlink()
            except OSError:  # it only takes room
                continue


def records(path: Path, identity: bytes, length: int) -> Iterator[tuple[Record, bytes]]:
    """The records up to a length in bytes.

    Raises
    ------
    FileError
        If the file cannot be read, is not that of this run, or is damaged.
    """
    try:
        if path.exists():
            check_is_file(path)
        with path.open("rb") as file:
            if file.read(len(_MAGIC) + len(identity)) != _MAGIC + identity:
                raise FileError(f"'{path}' does not belong to the checkpoint beside it.")
            if length < file.tell():
                raise ValueError("it is shorter than its head")
            while file.tell() < length:
                kind, size, checksum = _HEAD.unpack(file.read(_HEAD.size))
                check_fits(min(size, length), path)
                content = file.read(size) if file.tell() + size <= length else b""
                if len(content) != size or crc32(content) != checksum:
                    raise ValueError("a checksum does not fit")
                yield Record(kind), content
    except FileNotFoundError:
        raise FileError(
            f"'{path}' is missing: it belongs to the checkpoint and holds its rows. Put both into one folder, and do "
            "not rename them."
        ) from None
    except OSError as error:
        raise FileError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, StructError):
        raise FileError(
            f"'{path}' is damaged or truncated, so the run cannot be continued."
        ) from None


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _is_row_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False
