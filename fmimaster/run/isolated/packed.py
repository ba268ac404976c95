"""An FMU as the bytes of one file, to be sent to another machine."""

from __future__ import annotations

import tempfile
import zipfile
from hashlib import sha256
from io import BytesIO
from typing import IO

from fmimaster.base.files import open_file
from fmimaster.system.archive import open_archive, read_file
from fmimaster.system.model import Source

MOST_FILE = 1 << 32
"""Largest number of bytes of an FMU's file."""
PART = 1 << 20
"""Bytes that are read at one time."""


def packed(source: Source) -> IO[bytes]:
    """An FMU as the bytes of one file."""
    if source.member:
        return BytesIO(read_file(source))
    if source.path.is_file():
        return open_file(source.path)
    file = tempfile.TemporaryFile(prefix="fmimaster-")  # noqa: SIM115 (the caller closes it)
    with open_archive(source) as folder, zipfile.ZipFile(file, "w") as archive:
        for name in folder.names():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
                folder.copy(name, entry)
    return file


def measured(file: IO[bytes]) -> tuple[int, str]:
    """Size and hash of a file, which is then at its begin."""
    file.seek(0)
    found, size = sha256(), 0
    while part := file.read(PART):
        found.update(part)
        size += len(part)
    file.seek(0)
    return size, found.hexdigest()
