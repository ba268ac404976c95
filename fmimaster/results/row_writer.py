"""Writers of the rows of a run, block by block: what all formats share, and text files that replace older ones."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR
from pathlib import Path
from typing import BinaryIO

from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import given_path, own_name, put_in_place, reason_of
from fmimaster.results.table import Table

_BINARY = getattr(os, "O_BINARY", 0)

_CLOSED = -1
"""No file has this number; the system gives that of a closed file to the next one that is opened."""


def _check_no_folder(path: Path) -> None:
    """Refuse a folder in these words on each system; Windows only denies the permission to open it."""
    if path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))


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
            _check_no_folder(self._path)
            self._number = os.open(self._path, os.O_WRONLY | os.O_CREAT | _BINARY, 0o666)
        except OSError as error:
            raise FileError(
                f"The results file '{path}' cannot be written: {reason_of(error)}."
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


class RowWriter(ABC):
    """Writes a table block by block, so that a run of any length needs little memory.

    An older file is replaced only if there is a block, which may have no rows.
    """

    _names: tuple[str, ...] | None = None
    """Of the columns; None before the first block."""

    @property
    def has_written(self) -> bool:
        """Whether there was a block."""
        return self._names is not None

    @property
    def may_block(self) -> bool:
        """Whether writing may block, for example until a pipe is read."""
        return False

    @property
    def size(self) -> int:
        """Bytes of whole rows in a file that is written row by row; 0 for a pipe, and for other formats."""
        return 0

    @property
    def embed(self) -> Callable[[bytes], None] | None:
        """Takes the document of facts into the file; None if the document stands beside the file."""
        return None

    @property
    def part(self) -> Path | None:
        """The incomplete file that becomes the file at the end; None if the file itself is written."""
        return None

    @abstractmethod
    def write(self, block: Table) -> None:
        """Append the rows of a block; all blocks have the same columns."""

    def flush(self) -> None:  # noqa: B027 (formats may override it)
        """Flush the written data to the system, as far as that is possible before the end."""

    def __enter__(self) -> RowWriter:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Complete the file and close it."""


def check_columns(expected: tuple[str, ...], found: tuple[str, ...]) -> None:
    """Refuse a block with other columns than the blocks before it.

    Raises
    ------
    OptionError
    """
    if expected != found:
        differing = ", ".join(sorted({*expected} ^ {*found})) or "their order"
        raise OptionError(
            f"A block of rows has other columns than the blocks before it: {differing}."
        )


@contextmanager
def writing(where: str, left: str = "") -> Iterator[None]:
    """Raise errors of the system about a file as FileError, except for a closed pipe.

    Parameters
    ----------
    where, left
        The file, and what remains of it, as a sentence after a space.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileError(
            f"The results cannot be written to {where}: {reason_of(error)}.{left} Make room there, or choose another "
            "place."
        ) from error


class BinaryWriter(RowWriter):
    """Writes a file of a binary format under another name, ``NAME.….part``, which replaces an older file when
    it is complete.

    Parameters
    ----------
    path
        The file. The other one is opened at once, so that a mistake is found early.

    Raises
    ------
    FileError
        If it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = given_path(path).resolve()  # a link stays one
        self._part = own_name(self._path)  # another run may write a file of this name too
        self._document = b""
        self._is_left = self._has_failed = False
        try:
            _check_no_folder(self._path)
            self._file: BinaryIO = self._part.open("x+b")
        except OSError as error:
            raise FileError(
                f"The results file '{path}' cannot be written: {reason_of(error)}."
            ) from error

    def write(self, block: Table) -> None:
        """Append the rows of a block; all blocks have the same columns."""
        block = self.prepared(block)
        if self._names is not None:
            check_columns(self._names, block.names)
        with self._writing():
            if self._names is None:
                self.begin(self._file, block)
                self._names = block.names
            if block.rows:
                self.append(block)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise as a FileError also what a library says about values that its format cannot hold."""
        left = " Nothing of it is left; a .csv file keeps the rows before that."
        try:
            with writing(f"'{self._path}'", left):
                yield
        except FileError:
            self._has_failed = True
            raise
        except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
            raise FileError(
                f"'{self._path}' cannot be written: {str(error).rstrip('.')}."
            ) from error

    @property
    def part(self) -> Path:
        """The incomplete file that becomes the file at the end."""
        return self._part

    @property
    def embed(self) -> Callable[[bytes], None]:
        """Takes the document of facts into the file."""
        return self._take_document

    def _take_document(self, document: bytes) -> None:
        self._document = document

    def prepared(self, block: Table) -> Table:
        """The block in the form that the format can hold."""
        return block.expand()

    @abstractmethod
    def begin(self, file: BinaryIO, block: Table) -> None:
        """Write the part before the rows; the block has the columns."""

    @abstractmethod
    def append(self, block: Table) -> None:
        """Write the rows of a block, of which there is at least one."""

    @abstractmethod
    def end(self, document: bytes) -> None:
        """Complete the file, with its document of facts."""

    def __exit__(self, *_: object) -> None:
        try:
            with self._writing():
                if self.has_written and not self._has_failed:
                    self.end(self._document)
                self._file.close()
            if self.has_written and not self._has_failed:
                self._replace()
        finally:
            with suppress(OSError):
                self._file.close()
            if not self._is_left:
                with suppress(OSError):
                    self._part.unlink()

    def _replace(self) -> None:
        """Give the complete file its name; where the older file does not let go, both stay."""
        try:
            put_in_place(self._part, self._path)
        except OSError as error:  # Windows: another program has it open
            self._is_left = True
            raise FileError(
                f"The results file '{self._path}' cannot be replaced: {reason_of(error)}. The rows are in '{self._part}'."
            ) from error
