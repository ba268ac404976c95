"""Entries of a zip archive, checked as a whole before anything is read.

Names are relative paths with ``/``, even if the archive has backslashes, as many FMUs do.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable
from itertools import pairwise
from typing import IO

from fmimaster.base.errors import FileError
from fmimaster.base.files import check_content, special_kind
from fmimaster.system.model import Source

DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, IndexError, OverflowError, NotImplementedError, RuntimeError),
)
"""Exceptions of ``zipfile`` for invalid bytes."""


METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods of compression that FMI and SSP allow. They need bounded memory."""

_MOST_BYTES = 32 * 2**30
"""Largest size of all files of an archive, unpacked."""
_MOST_GROWTH = 200
"""Largest ratio of unpacked to packed size; libraries have 2 to 5, tables of numbers up to 50."""
ANY_GROWTH = 256 * 2**20
"""Unpacked size in bytes below which any ratio is allowed."""
_MOST_DIRECTORY = 16 * 2**20
"""Largest list of entries in bytes: 100 000 entries with names of usual length."""
_MOST_FOLDERS = 100
"""Most folders around a file."""


def open_zip(source: Source, stream: IO[bytes]) -> zipfile.ZipFile:
    """Open a zip archive.

    Raises
    ------
    FileError
        If it is empty, a Git LFS pointer, not an archive, or damaged.
    """
    try:
        return zipfile.ZipFile(_Careful(stream))
    except DAMAGE as error:
        stream.seek(0)
        head = stream.read(200)
        check_content(head, stream.seek(0, os.SEEK_END), str(source))
        if head.startswith(b"PK"):
            raise FileError(
                f"'{source}' is a damaged or incomplete zip archive: {error}. Get it again."
            ) from error
        raise FileError(
            f"'{source}' is not a zip archive, as an FMU or SSP archive must be: it begins with "
            f"{head[:16]!r}."
        ) from error


def checked_entries(
    archive: zipfile.ZipFile, packed: int, source: Source
) -> tuple[dict[str, zipfile.ZipInfo], tuple[str, ...]]:
    """Name → entry of each file, and the names of entries that are folders.

    Parameters
    ----------
    packed : int
        Size of the archive in bytes.

    Raises
    ------
    FileError
        For a name that leads outside, several files with one name, a link or a device, an encrypted entry, or an
        implausible size.
    """
    found: dict[str, zipfile.ZipInfo] = {}
    folders: dict[str, None] = {}
    for info in archive.infolist():
        name = entry_name(info, source)
        if not name:
            continue
        if is_folder(info):
            folders[name] = None
            continue
        _check_kind(info, name, source)
        first = found.setdefault(name, info)
        if (first.CRC, first.file_size) != (info.CRC, info.file_size):
            raise FileError(
                f"'{source}' has several files with the name '{name}' that differ, so it is not clear which is meant. "
                "Pack it again with one of them."
            )
    _check_no_file_is_a_folder(found, folders, source)
    _check_growth(sum(info.file_size for info in found.values()), packed, source)
    return found, tuple(folders)


def entry_name(info: zipfile.ZipInfo, source: Source) -> str:
    """Relative path of an entry, with ``/`` between folders; empty for the archive's own folder."""
    name = info.orig_filename.replace("\\", "/")
    parts = name.split("/")
    outside = name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in parts
    if outside or not name or "\0" in name or len(parts) > _MOST_FOLDERS:
        shown = info.orig_filename[:200]
        raise FileError(
            f"'{source}' has a member named {shown!r}, which is not a relative path inside the archive. Nothing was "
            f"unpacked; pack it again with relative names, of less than {_MOST_FOLDERS} folders."
        )
    return "/".join(part for part in parts if part not in ("", "."))


def is_folder(info: zipfile.ZipInfo) -> bool:
    """Whether an entry is a folder: by its name, or by the mark of MS-DOS."""
    marked = bool(info.external_attr & 0x10) and not info.file_size
    return marked or info.orig_filename.endswith(("/", "\\"))


def _check_kind(info: zipfile.ZipInfo, name: str, source: Source) -> None:
    if (kind := special_kind(info.external_attr >> 16)) is not None:
        raise FileError(
            f"'{source}' holds {kind}, '{name}', which could lead outside of the "
            "archive. Nothing was unpacked; pack it again with the file itself."
        )
    if info.flag_bits & 0x1:
        raise FileError(
            f"'{name}' in '{source}' is encrypted. Pack the archive again without a password."
        )


def _check_no_file_is_a_folder(
    files: Iterable[str], folders: Iterable[str], source: Source
) -> None:
    # with the lowest character for '/', the entries below a name follow directly after it
    names = [*files, *(f"{name}/" for name in folders)]
    ordered = sorted(name.replace("/", "\0") for name in names)
    for name, following in pairwise(ordered):
        if following.startswith(name + "\0"):
            raise FileError(
                f"'{source}' has a file '{name.replace(chr(0), '/')}' and a folder of this name. Pack it again with one "
                "of them."
            )


def _check_growth(unpacked: int, packed: int, source: Source) -> None:
    if unpacked > _MOST_BYTES or unpacked > max(ANY_GROWTH, _MOST_GROWTH * packed):
        raise FileError(
            f"'{source}' has {packed:,} bytes and unpacks to {unpacked:,}. An archive that grows by a factor above "
            f"{_MOST_GROWTH}, or to more than {_MOST_BYTES:,} bytes, is not unpacked. Check that it is what it should be."
        )


class _Careful:
    """A stream that refuses to read too much at once: ``zipfile`` does this only for the list of entries."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_DIRECTORY:
            raise zipfile.BadZipFile(
                f"the list of its entries has {size:,} bytes, at most {_MOST_DIRECTORY:,} are read"
            )
        return self._stream.read(size)

    def close(self) -> None:
        self._stream.close()
