"""A text file that is written during a run: it replaces an older file only when text is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import FileError
from fmimaster.base.files import given_path


def as_text(value: object) -> str:
    """A text as it is, binaries in hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else str(value)


def are_binaries(values: NDArray[Any]) -> bool:
    """Whether a column of objects has binaries: ``bytes``, also where a value is absent."""
    return values.dtype == object and any(isinstance(v, bytes) for v in np.ma.getdata(values).flat)


def objects(values: Sequence[str | bytes | None], absent: str | bytes = "") -> NDArray[Any]:
    """Texts or binaries as a column; a masked array if one is None, which is absent.

    Parameters
    ----------
    absent
        The value below the mask.
    """
    column = np.empty(len(values), object)
    column[:] = [absent if v is None else v for v in values]
    mask = [v is None for v in values]
    return np.ma.MaskedArray(column, mask) if any(mask) else column


_BINARY = getattr(os, "O_BINARY", 0)

_CLOSED = -1
"""No file has this number; the system gives that of a closed file to the next one that is opened."""


class TextFile:
    """A file that is opened at once, so that a mistake is found early, and whose content is replaced by the first text.

    Text is not buffered. If a text cannot be written completely, the file ends with the last complete line. A new file
    without any text is removed.

    Raises
    ------
    FileError
        If it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = given_path(path)
        self._is_new = not os.path.lexists(self._path)
        try:
            self._number = os.open(self._path, os.O_WRONLY | os.O_CREAT | _BINARY, 0o666)
        except OSError as error:
            raise FileError(
                f"The results file '{path}' cannot be written: {error.strerror}."
            ) from error
        self.is_regular = stat.S_ISREG(os.fstat(self._number).st_mode)
        """Whether it is a file on a disk, and not a pipe or device, where writing may block."""
        self._has_text = False

    @property
    def size(self) -> int:
        """Bytes of the text so far; 0 for a pipe or device, and before the first text."""
        return os.fstat(self._number).st_size if self._has_text and self.is_regular else 0

    def go_on_behind(self, size: int) -> None:
        """Append to the first bytes of what another process has written by this descriptor."""
        if size and self.is_regular:
            self._has_text = True
            os.ftruncate(self._number, size)
            os.lseek(self._number, size, os.SEEK_SET)

    def write(self, text: str | memoryview) -> None:
        """Append a text of whole lines; in UTF-8, if it comes as bytes."""
        if not self._has_text:
            self._has_text = True
            if self.is_regular:
                os.ftruncate(self._number, 0)
                os.lseek(self._number, 0, os.SEEK_SET)
        left = memoryview(text.encode("utf-8")) if isinstance(text, str) else text
        written = 0
        try:
            while written < len(left):
                written += os.write(self._number, left[written:])
        except OSError:
            self._end_with_a_line(bytes(left[:written]))
            raise

    def _end_with_a_line(self, written: bytes) -> None:
        """Remove an incomplete line."""
        part = len(written) - written.rfind(b"\n") - 1
        if part and self.is_regular:
            with suppress(OSError):
                size = os.fstat(self._number).st_size - part
                os.ftruncate(self._number, size)
                os.lseek(self._number, size, os.SEEK_SET)

    def flush(self) -> None:
        """Nothing to flush."""

    def close(self) -> None:
        """Close it. What another thread still writes then is an OSError, and goes into no other file."""
        number, self._number = self._number, _CLOSED
        os.close(number)
        if self._is_new and not self._has_text and self.is_regular:
            with suppress(OSError):
                self._path.unlink()


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
