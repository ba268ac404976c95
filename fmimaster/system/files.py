"""Regular files on disk; a path that is missing, not a file, or too large for the memory is refused before it is
opened."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import IO

from fmimaster.errors import FileError, did_you_mean

MOST_IN_MEMORY = 256 * 2**20
"""Bytes of a file that is read as a whole, such as an XML document. The largest model descriptions in use have 100 MB."""

_LFS_POINTER = b"version https://git-lfs"
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}


def check_exists(path: Path) -> None:
    """Refuse a path that does not exist, and suggest similar ones."""
    if _mode(path) is not None:
        return
    if not path.parent.is_dir():
        raise FileError(f"'{path}' does not exist, nor does its folder. Check the path.")
    try:
        near = did_you_mean(path.name, (p.name for p in path.parent.iterdir()))
    except OSError:  # the folder cannot be listed
        near = ""
    raise FileError(f"'{path}' does not exist.{near or ' Check the path.'}")


def check_is_file(path: Path) -> None:
    """Refuse paths that are not regular files: opening a named pipe or a device could block forever."""
    check_exists(path)
    if (kind := special_kind(_mode(path) or 0)) is not None:
        raise FileError(f"'{path}' is {kind}, expected a file.")


def special_kind(mode: int) -> str | None:
    """The kind of a file in words, such as ``"a named pipe"``; None for a regular file."""
    return _KINDS.get(stat.S_IFMT(mode))


def open_file(path: Path) -> IO[bytes]:
    """Open a regular file for reading."""
    check_is_file(path)
    try:
        return path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from error


def read_whole(path: Path) -> bytes:
    """Content of a regular file; it must fit into memory."""
    with open_file(path) as stream:
        try:
            size = os.fstat(stream.fileno()).st_size
            check_size(size, str(path))
            return stream.read(size)  # memory for so many bytes is taken at once
        except OSError as error:
            raise _unreadable(path, error) from error


def check_size(size: int, where: str) -> None:
    """Refuse a file that is too large for the memory."""
    if size > MOST_IN_MEMORY:
        raise FileError(
            f"'{where}' has more than {MOST_IN_MEMORY:,} bytes, the most that are read of such a file. Check that it is "
            "what it should be."
        )


def check_content(head: bytes, size: int, where: str) -> None:
    """Refuse a file that is empty or a Git LFS pointer."""
    if head.startswith(_LFS_POINTER):
        expected = re.search(rb"^size (\d{1,18})\b", head, re.MULTILINE)
        missing = f" ({int(expected[1]):,} bytes)" if expected else ""
        raise FileError(
            f"'{where}' is a Git LFS pointer, not the file itself{missing}. Run 'git lfs pull' in its repository."
        )
    if size == 0:
        raise FileError(f"'{where}' is empty. Get it again.")


def _mode(path: Path) -> int | None:
    """Mode of the file at a path, after links are followed; None if there is nothing."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a null character
        return None
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> FileError:
    return FileError(f"'{path}' cannot be read: {error.strerror or error}.")
