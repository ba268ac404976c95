"""The two files of a checkpoint: the state of a run, which is replaced as a whole; and its rows, which only grow.

The state is written as a whole or not at all, and read without trust. The file beside it has rows, events and steps of the
run in the order in which they came, with the calls of FMUs: so the cost of a checkpoint does not grow with the run. A
checkpoint names its length; what comes behind belongs to a part of the run that is done again.
"""

from __future__ import annotations

import json
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from io import BytesIO
from pathlib import Path
from struct import Struct
from struct import error as StructError  # noqa: N812 (it is a class)
from typing import Any, BinaryIO
from zlib import crc32

from fmimaster.base.codec import joined, separated
from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import (
    check_fits,
    check_is_file,
    check_size,
    decoding,
    own_name,
    parsed_json,
    put_in_place,
    reason_of,
    words_of,
)

FORMAT = "fmimaster checkpoint 3"
_HEAD, _STATE, _PARTS = "checkpoint.json", "state.json", "parts"


@dataclass(frozen=True)
class CheckpointFile:
    """What a checkpoint contains.

    Parameters
    ----------
    time : float
        Time of the run in s.
    fingerprint : what → its hash or version
        What the run that goes on must have in common.
    identity, length : bytes, int
        Number of the run, and length of its file of rows.
    settings : str
        The settings as a text of JSON; empty if they cannot be written.
    not_written : str
        Why they cannot.
    output_file : str
        Where the rows go; empty for none.
    repeated : tuple of str
        Names of the instances whose calls are repeated, because their state cannot be written.
    state, parts : str, list of bytes
        The state of the run as a text of JSON, and the bytes to which the JSON of state and settings refers.
    """

    time: float
    fingerprint: Mapping[str, str]
    identity: bytes
    length: int
    settings: str
    not_written: str
    output_file: str
    repeated: tuple[str, ...]
    state: str
    parts: list[bytes]

    def write(self, path: Path) -> None:
        """Write the file; an older one is replaced when the new one has reached the disk.

        Raises
        ------
        FileError
        """
        head = {
            "format": FORMAT,
            "time": self.time,
            "fingerprint": dict(self.fingerprint),
            "identity": self.identity.hex(),
            "length": self.length,
            "settings": self.settings,
            "settings not written": self.not_written,
            "output file": self.output_file,
            "instances whose calls are repeated": list(self.repeated),
        }
        content = BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_HEAD, json.dumps(head, indent=1))
            archive.writestr(_STATE, self.state)
            archive.writestr(_PARTS, joined(self.parts))
        part = own_name(path)
        try:
            with part.open("xb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            put_in_place(part, path)
            _settle(path.parent)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise FileError(
                f"The checkpoint '{path}' cannot be written: {reason_of(error)}."
            ) from error

    @classmethod
    def read(cls, path: Path) -> CheckpointFile:
        """Read a file.

        Raises
        ------
        FileError
            If it does not exist, is damaged or is no checkpoint.
        """
        if not path.exists():
            raise FileError(
                f"There is no checkpoint '{path}'. The first one is written when all FMUs are initialized."
            )
        check_is_file(path)
        expected = "a checkpoint of fmimaster, or it is damaged or truncated"
        with decoding(path, expected, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            if _HEAD not in archive.namelist():
                raise FileError(f"'{path}' is not a checkpoint of fmimaster.")
            return cls._of(path, archive)

    @classmethod
    def _of(cls, path: Path, archive: zipfile.ZipFile) -> CheckpointFile:
        head = parsed_json(_member(path, archive, _HEAD))
        if head["format"] != FORMAT:
            raise FileError(
                f"'{path}' is a checkpoint of another version of fmimaster: {str(head['format'])[:100]!r}. Resume the run "
                "with that version, or start it again."
            )
        try:
            return cls(
                float(head["time"]),
                _texts(head["fingerprint"]),
                bytes.fromhex(head["identity"]),
                int(head["length"]),
                str(head["settings"]),
                str(head["settings not written"]),
                str(head["output file"]),
                tuple(map(str, head["instances whose calls are repeated"])),
                _member(path, archive, _STATE).decode(),
                separated(_member(path, archive, _PARTS)),
            )
        except (LookupError, ValueError, TypeError, FileError) as error:
            raise damaged(path, error) from None


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    """A member, which is stored as it is: what is packed could be of any size."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > path.stat().st_size:
        raise damaged(path, ValueError(f"'{name}' is packed"))
    if name == _PARTS:
        check_fits(entry.file_size, path)
    else:
        check_size(entry.file_size, f"{path}/{name}")
    return archive.read(entry)


def damaged(path: Path, error: Exception) -> FileError:
    """The error for a checkpoint whose content makes no sense."""
    return FileError(
        f"The checkpoint '{path}' is damaged: {words_of(error)}. Simulate from the start."
    )


def is_checkpoint(path: Path) -> bool:
    """Whether a file is a checkpoint, so that another one may replace it."""
    return has_member(path, _HEAD)


def has_member(path: Path, name: str) -> bool:
    """Whether a file is an archive with a member of this name."""
    try:
        with zipfile.ZipFile(path) as archive:
            return name in archive.namelist()
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile):
        return False


def check_fingerprint(path: Path, written: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Refuse a checkpoint of another run.

    Raises
    ------
    OptionError
        With the first difference.
    """
    for what in {**written, **present}:
        before, now = written.get(what), present.get(what)
        if before == now:
            continue
        known = f"{what} {before} before, and {now} now" if _is_short(before, now) else what
        raise OptionError(
            f"The checkpoint '{path}' does not belong to this run: another {known}. A run can be continued only with "
            "the same FMUs, system, settings and version of fmimaster. Simulate from the start."
        )


def _is_short(*texts: str | None) -> bool:
    return all(t is not None and len(t) < len("1234567890123456") for t in texts)


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("the fingerprint is missing")
    return {str(k): str(v) for k, v in value.items()}


def _settle(folder: Path) -> None:
    """Let the name of a new file reach the disk, where the system can do that for a folder."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# The rows -------------------------------------------------------------------------------------------------------------

_MAGIC = b"fmimaster rows 1\n"
_ID_LENGTH = 16
_RECORD = Struct("<BQI")
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
        with self._written():
            self._file = path.open("r+b" if length else "wb")
            if not length:
                self._file.write(_MAGIC + identity)
            else:
                self._file.truncate(length)
                self._file.seek(length)
        self.length = length or len(_MAGIC) + len(identity)

    @classmethod
    def new(cls, checkpoint: Path) -> RowLog:
        """A new one beside a checkpoint; the one of an older checkpoint of that name stays until it is replaced."""
        identity = os.urandom(_ID_LENGTH)
        return cls(rows_path(checkpoint, identity), identity)

    def append(self, kind: Record, content: bytes) -> None:
        """Append a record."""
        head = _RECORD.pack(kind, len(content), crc32(content))
        with self._lock, self._written():
            if self._file is not None:
                self._file.write(head)
                self._file.write(content)
                self.length += len(head) + len(content)

    def settle(self) -> int:
        """Let all records reach the disk; returns the length in bytes."""
        with self._lock, self._written():
            if self._file is not None:
                self._file.flush()
                os.fsync(self._file.fileno())
            return self.length

    def close(self) -> None:
        """Write the rest and close the file; no record is taken any more."""
        with self._lock, self._written():
            file, self._file = self._file, None
            if file is not None:
                file.close()

    @contextmanager
    def _written(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            message = f"'{self.path}' cannot be written: {reason_of(error)}."
            raise FileError(message) from error


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
                kind, size, checksum = _RECORD.unpack(file.read(_RECORD.size))
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
        raise FileError(f"'{path}' cannot be read: {reason_of(error)}.") from error
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
