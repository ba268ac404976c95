"""Zip archives whose bytes depend on nothing but their contents."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

Files = dict[str, bytes]
"""What is in an archive: contents by path."""


def write_archive(path: Path, files: Files) -> None:
    """Write a zip archive, and put it in place as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(archive_bytes(files))
    unfinished.replace(path)


def archive_bytes(files: Files) -> bytes:
    """A zip archive that depends on nothing but `files`."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3  # Unix, wherever it is made: external_attr is its file mode
            info.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name])
    return written.getvalue()
