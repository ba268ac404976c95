"""Results as CSV files by the rules of FMI.

Comma-separated; one header row with the names in double quotes, the first of them ``time``; numbers
as C reads them; Booleans as 0 and 1; no units, no comments. Times do not decrease; a repeated time
is an event. In addition to the rules, arrays become a column per element (``x[1,2]``, counted from 1), text
is in double quotes, binaries are written as hexadecimal text, and the cell of an absent value is empty: a text without
letters has its quotes.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import FileError
from fmimaster.base.files import decoding, given_path, lines_of, open_file
from fmimaster.results import numbers
from fmimaster.results.columns import as_text, check_width, is_masked, objects
from fmimaster.results.numbers import read_plain
from fmimaster.results.row_writer import RowWriter, TextFile, check_columns, writing
from fmimaster.results.table import Table

_ROWS_AT_ONCE = 4096
"""Most rows that are held as text at once: limits the memory without loss of speed."""

_CELLS_AT_ONCE = 16 * _ROWS_AT_ONCE
"""The same for wide rows."""


_TIME = re.compile(r"t|(?i:time)\s*([\[(]\s*s\s*[\])]|/\s*s)?")

_CELL = r'(?:^|,) *("(?:[^"]|"")*"|[^,]*)'
"""A cell with its quotes, behind the comma before it."""

_LONGEST_CELL = 200
"""Letters of a cell in a message."""

_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}


def is_time(name: object) -> bool:
    """Whether a column is the time by its name: ``t``, ``Time``, ``time [s]``, ``time (s)``, ``time/s``."""
    return isinstance(name, str) and _TIME.fullmatch(name.strip()) is not None


class CsvWriter(RowWriter):
    """Writes a table block by block, so that a run of any length needs little memory.

    The header is written with the first block, which may have no rows; an older file is replaced only then. A
    text stream that is given (opened with ``newline=""``) stays open; a file is closed by :meth:`close` or at the end of
    a ``with``.
    """

    def __init__(self, target: str | os.PathLike[str] | TextIO) -> None:
        self._target = target
        self._is_begun = False
        """Whether another process has written the header."""
        self._file = TextFile(target) if isinstance(target, str | os.PathLike) else None
        self._stream: TextFile | TextIO = self._file or cast(TextIO, target)

    @property
    def has_written(self) -> bool:
        """Whether there was a block, also in another process."""
        return super().has_written or self._is_begun

    @property
    def may_block(self) -> bool:
        """Whether writing may block, for example until a pipe is read."""
        return self._file is None or not self._file.is_regular

    @property
    def size(self) -> int:
        """Bytes of the file so far; 0 for a pipe or a stream."""
        return 0 if self._file is None else self._file.size

    def go_on_behind(self, size: int) -> None:
        """Append to what another process has written by this object: these are so many bytes, of a whole row."""
        self._is_begun = size > 0
        if self._file is not None:
            self._file.go_on_behind(size)

    def write(self, block: Table) -> None:
        """Append the rows of a block; all blocks have the same columns."""
        block = block.expand()
        if self._names is None:
            self._names = block.names
            if not self._is_begun:
                self._put(",".join(map(_quoted, ("time", *block.names))) + "\n")
        check_columns(self._names, block.names)
        columns = (block.time, *block.columns.values())
        rows = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // len(columns)))
        for first in range(0, block.rows, rows):
            self._put(_rows([column[first : first + rows] for column in columns]))

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._file is not None:
            with self._writing():
                self._file.close()

    def flush(self) -> None:
        """Flush the written data to the system."""
        with self._writing():
            self._stream.flush()

    def _put(self, text: str | memoryview) -> None:
        with self._writing():
            if self._file is not None:
                self._file.write(text)
            else:
                self._stream.write(text if isinstance(text, str) else str(text, "ascii"))

    def _writing(self) -> AbstractContextManager[None]:
        if self._file is None:
            return writing("the stream")
        return writing(f"'{self._target}'", " It ends with the last complete row.")

    def __exit__(self, *_: object) -> None:
        self.close()


def write_csv(results: Table, target: str | os.PathLike[str] | TextIO) -> None:
    """Write the rows of a whole table, with the same bytes as block by block."""
    with CsvWriter(target) as writer:
        writer.write(results)


def read_csv(path: str | os.PathLike[str], integers: Collection[str] = ()) -> Table:
    """Read a table from a CSV file.

    Names may stand without quotes, and blanks may follow a comma. A column whose first value is quoted is text; all
    others become floats, except those in ``integers``, which are read as Python integers of any size. Columns are masked
    where a cell is empty. The elements of an array stay columns of their own.
    """
    path = given_path(path)
    with decoding(path, "a CSV file", csv.Error):
        with _opened(path) as stream:
            source = _Source(path, stream)
            results = read_plain(path, source.names, source.header_lines) or _read(source)
        return replace(results, columns={**results.columns, **_integers(path, integers)})


def _opened(path: Path) -> TextIO:
    return TextIOWrapper(open_file(path), encoding="utf-8-sig", newline="")


class _Source:
    """An open file after its header, with messages for its errors."""

    def __init__(self, path: Path, stream: TextIO) -> None:
        header = csv.reader(lines_of(stream, path), skipinitialspace=True)
        self.path = path
        self.stream = stream
        self.names = [name.strip() for name in next(header, [])]
        self.kinds: list[type | None] = [float, *(None for _ in self.names[1:])]
        """Kind of each column; None if it had no value so far."""
        self.header_lines = header.line_num
        check_width(len(self.names), path)
        if not self.names:
            raise FileError(f"'{path}' is empty; expected a header whose first name is 'time'.")
        if is_time(self.names[0]):
            self.names[0] = "time"
        if self.names[0] != "time":
            first = self.names[0][:_LONGEST_CELL]
            self.fail(1, f"the first column is '{first}'; expected 'time'.{self._hint()}")
        for name, times in Counter(self.names).items():
            if times > 1:
                shown = name[:_LONGEST_CELL]
                self.fail(1, f"the column '{shown}' occurs {times} times; expected each name once.")

    def _hint(self) -> str:
        """A hint about the header, with a leading blank."""
        first = self.names[0]
        separator = next((s for s in _OTHER_SEPARATORS if s in first), None)
        if len(self.names) == 1 and separator is not None:
            return f" Columns are separated by commas, not by {_OTHER_SEPARATORS[separator]}."
        if first.lower().startswith("time"):
            return " Its unit is s."
        return ""

    def rows(self) -> Iterator[list[Any]]:
        """The rows that are not blank, checked: quoted cells as str, numbers as float, empty ones as None, or as "" in a
        column of numbers."""
        latest: list[str] = []
        lines = (latest.append(line) or line for line in lines_of(self.stream, self.path))  # type: ignore[func-returns-value]
        reader = csv.reader(lines, skipinitialspace=True, quoting=csv.QUOTE_NONNUMERIC)
        kinds = self.kinds
        last = -np.inf
        rows: Iterator[list[Any]] = filter(None, reader)
        try:
            for row in rows:
                line = self.header_lines + reader.line_num
                if len(row) != len(self.names):
                    self.fail_width(line, row)
                if "" in row or list(map(type, row)) != kinds:
                    self._settle(line, row, "".join(latest))
                time = row[0]
                if not np.isfinite(time):
                    self.fail(line, f"time is {time!r}; expected a finite number.")
                if time < last:
                    self.fail(line, f"time goes from {last!r} to {time!r}; it must not decrease.")
                last = time
                latest.clear()
                yield row
        except UnicodeDecodeError:  # a ValueError too, but not that of a cell
            raise
        except ValueError as error:
            self.fail_number(self.header_lines + reader.line_num, error)

    def _settle(self, line: int, row: list[Any], text: str) -> None:
        """Determine the kinds of columns without values so far; an empty cell fits every column except time."""
        kinds = self.kinds
        if any(cell == "" and kind is not float for cell, kind in zip(row, kinds, strict=True)):
            written = re.findall(_CELL, text.strip("\r\n"))
            for i, cell in enumerate(row):
                if cell == "" and kinds[i] is not float and written[i] == "":
                    row[i] = None
        for i, cell in enumerate(row):
            if kinds[i] is None and cell is not None:
                kinds[i] = type(cell)
            if type(cell) is not kinds[i] and (cell not in ("", None) or i == 0):
                self.fail_kind(line, row, i)

    def fail(self, line: int, message: str) -> NoReturn:
        raise FileError(f"'{self.path}', line {line}: {message}")

    def fail_width(self, line: int, row: Sequence[object]) -> NoReturn:
        expected = f"the header has {len(self.names)} names"
        self.fail(line, f"the row has a wrong number of cells, {len(row)}; {expected}.")

    def fail_kind(self, line: int, row: Sequence[object], wrong: int) -> NoReturn:
        number = self.kinds[wrong] is float
        expected = "a number without quotes" if number else "text in double quotes"
        self._fail_cell(line, wrong, row[wrong], expected)

    def fail_number(self, line: int, error: ValueError) -> NoReturn:
        """Find the cell that Python's csv module only reports as not a number."""
        with _opened(self.path) as stream:
            reader = csv.reader(lines_of(stream, self.path), skipinitialspace=True)
            row = next(row for row in reader if reader.line_num >= line)
        if len(row) != len(self.names):
            self.fail_width(line, row)
        wrong = next(i for i, cell in enumerate(row) if str(error).endswith(f": {cell!r}"))
        self._fail_cell(line, wrong, row[wrong], "a number")

    def _fail_cell(self, line: int, wrong: int, cell: object, expected: str) -> NoReturn:
        name, found = self.names[wrong][:_LONGEST_CELL], repr(cell)[:_LONGEST_CELL]
        self.fail(line, f"column '{name}' has {found}; expected {expected}.")


def _read(source: _Source) -> Table:
    """Collect the rows in blocks of columns, of which the numbers are arrays at once."""
    rows = source.rows()
    blocks: list[list[NDArray[Any]]] = [[np.empty(0)] for _ in source.names]
    while block := list(islice(rows, _ROWS_AT_ONCE)):
        cells = zip(*block, strict=True)
        for parts, column, kind in zip(blocks, cells, source.kinds, strict=True):
            parts.append(objects(column) if kind is str else _numbers(column))
    time, *columns = map(_joined, blocks, source.kinds)
    return Table(time=time, columns=dict(zip(source.names[1:], columns, strict=True)))


def _numbers(cells: Sequence[Any]) -> NDArray[Any]:
    """An array of floats, masked where a cell is empty."""
    if "" not in cells and None not in cells:
        return np.array(cells, np.float64)
    absent = [cell in ("", None) for cell in cells]
    values = [np.nan if cell in ("", None) else cell for cell in cells]
    return np.ma.MaskedArray(np.array(values, np.float64), absent)


def _joined(parts: Sequence[NDArray[Any]], kind: type | None) -> NDArray[Any]:
    """The parts of a column as one array; a column without any value is one of absent numbers."""
    if kind is str:  # no text was in the first parts
        parts = [p if p.dtype == object else objects([None] * len(p)) for p in parts]
    if any(map(np.ma.isMaskedArray, parts)):
        return np.ma.concatenate(parts)  # type: ignore[no-any-return,no-untyped-call]
    return np.concatenate(parts)


def _integers(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read these columns again without floats, which round integers beyond 2**53."""
    if not names:
        return {}
    with _opened(path) as stream:
        rows = list(filter(None, csv.reader(lines_of(stream, path), skipinitialspace=True)))
    columns = dict(
        zip((name.strip() for name in rows[0]), zip(*rows[1:], strict=True), strict=True)
    )
    try:
        return {n: np.array([_integer(c) for c in columns[n]], dtype=object) for n in names}
    except ValueError as error:
        wrong = str(error).rpartition(": ")[2]
        raise FileError(f"'{path}' has {wrong} where an integer is expected.") from error


def _integer(cell: str) -> int:
    try:
        return int(cell)
    except ValueError:
        if not float(cell).is_integer():  # 3.0 is an integer too
            raise
        return int(float(cell))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _rows(columns: Sequence[NDArray[Any]]) -> str | memoryview:
    """The text of rows."""
    if numbers.has_kernel() and all(map(numbers.can_write, columns)):
        return numbers.written(columns)
    return "\n".join(map(",".join, zip(*map(_cells, columns), strict=True))) + "\n"


def _cells(column: NDArray[Any]) -> Iterable[str]:
    """The shortest text of each value that C and Python read back as the same value; empty where there is none."""
    if is_masked(column):
        cells = _cells(np.ma.getdata(column))
        return (
            "" if absent else c for c, absent in zip(cells, np.ma.getmaskarray(column), strict=True)
        )
    if column.dtype.kind == "b":
        column = column.astype(np.int8)
    if column.dtype.kind == "O":
        return (_quoted(as_text(v)) for v in column)
    if column.dtype.kind == "f" and column.dtype != np.float64:
        return map(str, column)  # .tolist() would show the digits of the double
    return map(repr, column.tolist())
