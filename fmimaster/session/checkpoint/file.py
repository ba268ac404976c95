"""A checkpoint as a file: written as a whole or not at all, and read without trust."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from fmimaster.base.codec import joined, separated
from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import (
    check_fits,
    check_is_file,
    check_size,
    decoding,
    own_name,
    parsed_json,
    words_of,
)

FORMAT = "fmimaster checkpoint 2"
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
            os.replace(part, path)
            _settle(path.parent)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise FileError(
                f"The checkpoint '{path}' cannot be written: {error.strerror or error}."
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
    try:
        with zipfile.ZipFile(path) as archive:
            return _HEAD in archive.namelist()
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
