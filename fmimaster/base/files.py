"""The border for files of strangers: a path that is missing, not a regular file, or too large for the memory is refused
before it is opened; what a decoder raises for invalid content is a FileError; an output file never replaces an input.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from fmimaster.base.errors import FileError, did_you_mean
from fmimaster.base.memory import left

_T = TypeVar("_T")

MOST_IN_MEMORY = 256 * 2**20
"""Bytes of a file that is read as a whole, such as an XML document. The largest model descriptions in use have 100 MB."""

MOST_GROWTH = 500
"""Largest ratio of the size of a table in memory to that of its file. Columns that change compress by 1 to 10, constant
ones by any factor, but the time of each row is always stored."""
ANY_GROWTH = 512 * 2**20
"""Size in bytes of a table in memory below which any ratio is allowed."""
_LARGEST_SHARE = 0.5
"""Part of the free memory that the content of a file may take: while it is read, parts of it are there twice."""
_MOST_BRACKETS = 5_000_000
"""Lists and objects in a document of JSON: each takes some 100 bytes."""
MOST_LINE = 64 * 2**20
"""Characters of a line; the header of a million columns has about so many."""
_INVALID = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, EOFError),
    *(MemoryError, BufferError, AssertionError, struct.error, zlib.error),
)
"""What decoders raise for invalid content; RuntimeError includes too many levels, and methods that are not known."""

_NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)
"""What the system says of a path that no file can have; EINVAL on Windows: a character such as ``<``, a circle of links."""
_LONGEST_NAME = 255
"""Characters in the name of a file or a folder, in each file system in use."""

_TRIES = 10 if sys.platform == "win32" else 1

_LONGEST_PATH = 247
"""Characters of a path of Windows; that of a file may have some more, that of a folder may not."""
DEVICE = r"(?is)(con|prn|aux|nul|com\d|lpt\d)(\..*)?"
"""Names that Windows keeps for devices, with any suffix."""

_REMEDY = "Get it again, or write it again."

_LFS_POINTER = b"version https://git-lfs"
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}


def given_path(path: str | os.PathLike[str]) -> Path:
    """A path from a user; it need not exist.

    Raises
    ------
    FileError
        If no file can have this path: it is empty, too long, has an invalid character, or its links form a circle.
    """
    try:
        if not os.fspath(path):
            raise FileError("The path of a file is empty. Give a name.")
        os.stat(path)
    except UnicodeEncodeError:
        raise FileError(f"'{path}' cannot be the path of a file: it is not a text.") from None
    except ValueError as error:
        raise FileError(f"'{path}' cannot be the path of a file: {error}.") from None
    except OSError as error:
        if error.errno in _NO_PATH:
            raise FileError(f"'{path}' cannot be the path of a file: {error.strerror}.") from None
    longest = max(Path(path).parts, key=len, default="")
    if len(longest) > _LONGEST_NAME:  # Windows only tells that there is no such file
        why = os.strerror(errno.ENAMETOOLONG)
        raise FileError(f"'{path}' cannot be the path of a file: {why}.")
    if sys.platform == "win32" and (device := re.fullmatch(DEVICE, Path(path).name)) and device[2]:
        raise FileError(
            f"'{path}' cannot be the path of a file: '{device[1]}' is a device of Windows."
        )
    return long_path(Path(path))


def long_path(path: Path) -> Path:
    """The same path; on Windows, one of 248 characters and more in the form that has no limit."""
    if sys.platform != "win32" or str(path).startswith("\\\\?\\"):
        return path
    whole = os.path.abspath(path)
    if len(whole) <= _LONGEST_PATH:
        return path
    return Path(f"\\\\?\\UNC{whole[1:]}" if whole.startswith("\\\\") else f"\\\\?\\{whole}")


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
        return _patiently(lambda: path.open("rb"))
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


def check_growth(unpacked: int, path: Path) -> None:
    """Refuse a file of which the content takes implausibly more memory than the file has bytes.

    Parameters
    ----------
    unpacked : int, in bytes
    """
    packed = path.stat().st_size
    if unpacked > max(ANY_GROWTH, MOST_GROWTH * packed):
        raise FileError(
            f"'{path}' has {packed:,} bytes and would take {unpacked:,} in memory. A file that grows by a factor above "
            f"{MOST_GROWTH} is not read. Check that it is what it should be."
        )
    check_fits(unpacked, path)


def check_fits(size: int, where: object) -> None:
    """Refuse content that would take more than half of the memory that is free.

    Parameters
    ----------
    size : int, in bytes
    """
    if size > ANY_GROWTH and (free := left()) is not None and size > _LARGEST_SHARE * free:
        raise FileError(
            f"'{where}' would take {size:,} bytes in memory, of which {free:,} are free. Use a machine with more memory."
        )


@contextmanager
def decoding(where: object, expected: str, *others: type[Exception]) -> Iterator[None]:
    """Raise as a FileError whatever a decoder raises for a file that it cannot read.

    Parameters
    ----------
    where
        Path of the file.
    expected
        What it should be, for the message: ``"a Parquet file"``.
    others
        Further exceptions of the decoder.
    """
    invalid: tuple[type[Exception], ...] = (OSError, *_INVALID, *others)
    try:
        yield
    except FileError:
        raise
    except UnicodeDecodeError as error:
        raise FileError(
            f"'{where}' is not {expected}: it is not text in UTF-8. {_REMEDY}"
        ) from error
    except invalid as error:
        if isinstance(error, OSError) and error.errno:  # of the system, not of a decoder
            raise _unreadable(where, error) from error
        raise FileError(f"'{where}' is not {expected}: {words_of(error)}. {_REMEDY}") from error


def words_of(error: Exception) -> str:
    """What a decoder says, in one line."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, KeyError) and text.isidentifier():
        return f"it has no '{text}'"
    return " ".join(text.split()).rstrip(". ") or type(error).__name__


def read_json(path: Path) -> Any:
    """The content of a document of JSON.

    Raises
    ------
    FileError
        If it cannot be read, or is not JSON of plausible size.
    """
    with decoding(path, "JSON"):
        return parsed_json(read_whole(path))


def parsed_json(text: bytes | str) -> Any:
    """The content of a text of JSON.

    Raises
    ------
    ValueError, RecursionError
        If it is not JSON of plausible size.
    """
    opening = (b"[", b"{") if isinstance(text, bytes) else ("[", "{")
    if sum(map(text.count, opening)) > _MOST_BRACKETS:  # type: ignore[arg-type]
        raise ValueError(f"it has more than {_MOST_BRACKETS:,} lists and objects")
    return json.loads(text)


def lines_of(stream: IO[str], where: object) -> Iterator[str]:
    """The lines of a text.

    Raises
    ------
    FileError
        If one is implausibly long.
    """
    while line := stream.readline(MOST_LINE):
        if len(line) == MOST_LINE and not line.endswith("\n"):
            raise FileError(
                f"'{where}' has a line of more than {MOST_LINE:,} characters. Check that it is what it should be."
            )
        yield line


_PART = r"(?s)(.+)\.[0-9a-f]{8}\.part"


def own_name(path: Path) -> Path:
    """A name beside a file under which only this process writes, until the file is complete: ``NAME.a1b2c3d4.part``."""
    return path.with_name(f"{path.name}.{os.urandom(4).hex()}.part")


def put_in_place(complete: Path, path: Path) -> None:
    """Give a complete file its name; an older file of that name is replaced.

    Raises
    ------
    OSError
        If it cannot be; both files stay. Windows replaces no file that another program has open.
    """
    _patiently(lambda: os.replace(complete, path))


def _patiently(act: Callable[[], _T]) -> _T:
    """Do something with a file; on Windows for a second, while another program, such as a virus scanner, has it open."""
    for _ in range(_TRIES - 1):
        with suppress(PermissionError):
            return act()
        time.sleep(0.1)
    return act()


def reason_of(error: Exception) -> str:
    """Why a file cannot be read or written, without the number of an error of the system."""
    words = str((isinstance(error, OSError) and error.strerror) or error)
    if sys.platform == "win32" and isinstance(error, PermissionError):
        return f"{words} (close it if another program has it open, or check your rights)"
    return words


def is_for_the_same(part: Path, other: Path) -> bool:
    """Whether two names are both those of :func:`own_name` for one file."""
    names = [re.fullmatch(_PART, str(one)) for one in (part, other)]
    return None not in names and len({name[1] for name in names if name}) == 1


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


def _unreadable(path: object, error: OSError) -> FileError:
    return FileError(f"'{path}' cannot be read: {reason_of(error)}.")


def refuse_to_overwrite(
    path: Path, read: Iterable[Path], *, is_ours: Callable[[Path], bool] = lambda path: False
) -> None:
    """Refuse an output file that is an input, also under another name, or that is an FMU or a description.

    Parameters
    ----------
    is_ours
        Whether an archive was written by fmimaster, and may be written again.

    Raises
    ------
    FileError
    """
    if not path.is_file():  # new, or a pipe
        return
    for other in read:
        with suppress(OSError):  # it is not there, which is an error elsewhere
            if os.path.samefile(path, other):
                raise FileError(
                    f"'{path}' would overwrite the input '{other}'. Choose another name."
                )
    try:
        with path.open("rb") as stream:
            begin = stream.read(1000).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError:  # what cannot be read may still be written
        return
    is_archive = begin.startswith(b"PK\x03\x04") and not is_ours(path)
    if is_archive or (begin.startswith(b"<") and b"<svg" not in begin):
        raise FileError(
            f"'{path}' would be overwritten, but it is an FMU, another archive or an XML file. Choose another name."
        )


def check_file_to_write(
    path: Path, what: str, read: Iterable[Path], is_ours: Callable[[Path], bool]
) -> None:
    """Refuse a file that cannot be written, or that holds something else.

    Parameters
    ----------
    what
        Its content in words, for messages.
    read, is_ours
        As for :func:`refuse_to_overwrite`.

    Raises
    ------
    FileError
    """
    if path.is_dir():
        raise FileError(f"'{path}' is a folder. Give the name of a file for {what}.")
    if not path.parent.is_dir():
        raise FileError(f"'{path}' cannot be written: the folder '{path.parent}' does not exist.")
    refuse_to_overwrite(path, read, is_ours=is_ours)
