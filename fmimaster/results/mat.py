"""Results as MAT files in the form of Dymola and OpenModelica, which tools for Modelica and MATLAB open.

The file is MAT of version 4, transposed (``binTrans``): the matrices ``Aclass``, ``name``, ``description`` with the units
in brackets, ``dataInfo``, ``data_1`` for start and stop time, and ``data_2`` with a column per row of the results. All
numbers are doubles, and arrays become a variable per element. The form has no absent values: they are NaN, and the
description of such a variable says so. Texts and binaries have no place in the form and are left out, and integers beyond
2**53 are rounded, both with a warning. The matrix ``fmimaster`` holds the facts of the run. SciPy does not write it: it
needs the whole table in memory, and takes only ASCII names.

Source: Dymola User Manual, "Dymola result files"; MathWorks, "MAT-File Format", Version 4.
"""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import FileError
from fmimaster.base.files import check_growth, decoding, open_file
from fmimaster.base.installation import optional
from fmimaster.results.columns import check_width
from fmimaster.results.facts import Facts
from fmimaster.results.row_writer import BinaryWriter
from fmimaster.results.table import Table

log = logging.getLogger("fmimaster")

_DOUBLES, _INTEGERS, _TEXT = 0, 20, 51
"""Types of matrices in a header: little-endian doubles, 32-bit integers, and bytes of text."""
_HEADER = struct.Struct("<5i")
"""Type, rows, columns, whether it is complex, and the length of the name with its end."""
_EXACT = 2**53
"""Integers up to here are exact as doubles."""
_ABSENT = "NaN: absent"
"""Description of a variable with absent values."""
_MOST_COLUMNS = 2**31 - 1
_READ = ("Aclass", "name", "description", "dataInfo", "data_2", "fmimaster")
"""Matrices that are read."""
_KINDS = frozenset(
    ["char", "double", "single", "logical"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)


class MatWriter(BinaryWriter):
    """Writes a MAT file; the numbers that are known only at the end are put in then."""

    def prepared(self, block: Table) -> Table:
        block = block.expand()
        numbers = {n: values for n, values in block.columns.items() if values.dtype != object}
        if len(numbers) == len(block.columns):
            return block
        if not self.has_written:
            texts = ", ".join(name for name in block.names if name not in numbers)
            log.warning(
                "%s: the format has no place for text and binaries; left out: %s",
                self._path.name,
                texts,
            )
        return replace(
            block, columns=numbers, units={n: u for n, u in block.units.items() if n in numbers}
        )

    def begin(self, file: BinaryIO, block: Table) -> None:
        self._to = file
        self._rows = 0
        self._rounded: set[str] = set()
        self._times = [0.0, 0.0]
        names = list(block)
        descriptions = ["[s]", *(_description(block, name) for name in block.names)]
        n = len(names)
        # per variable: its matrix, its row there, linear interpolation, not defined outside of the time range
        info = [[0, 1, 0, -1], *([2, k + 2, 0, -1] for k in range(n - 1))]
        self._put_text("Aclass", ["Atrajectory", "1.1", "", "binTrans"], transposed=False)
        self._put_text("name", names)
        self._put_text("description", descriptions)
        self._put("dataInfo", _INTEGERS, 4, n, np.array(info, "<i4").tobytes())
        self._put("data_1", _DOUBLES, 1, 2, np.array(self._times, "<f8").tobytes())
        self._range_at = self._to.tell() - 16
        self._header_at = self._to.tell()
        self._put("data_2", _DOUBLES, n, 0, b"")

    def append(self, block: Table) -> None:
        table = np.empty((block.rows, len(block)), "<f8")
        for k, (name, values) in enumerate(block.items()):
            data = np.ma.getdata(values)
            table[:, k] = data
            if data.dtype.kind in "iu" and not -_EXACT <= data.min() <= data.max() <= _EXACT:
                self._warn_of_rounding(name)
            if np.ma.isMaskedArray(values):
                table[np.ma.getmaskarray(values), k] = np.nan
        if not self._rows:
            self._times[0] = float(block.time[0])
        self._times[1] = float(block.time[-1])
        self._rows += block.rows
        if self._rows > _MOST_COLUMNS:
            raise OSError(f"a MAT file of version 4 holds at most {_MOST_COLUMNS} rows")
        self._to.write(table.tobytes())

    def _warn_of_rounding(self, name: str) -> None:
        if name not in self._rounded:
            self._rounded.add(name)
            log.warning(
                "%s: the format has doubles only; integers beyond 2**53 are rounded: %s",
                self._path.name,
                name,
            )

    def end(self, document: bytes) -> None:
        if document:
            self._put("fmimaster", _TEXT, 1, len(document), document)
        self._to.seek(self._range_at)
        self._to.write(np.array(self._times, "<f8").tobytes())
        self._to.seek(self._header_at + 2 * 4)
        self._to.write(struct.pack("<i", self._rows))

    def _put(self, name: str, kind: int, rows: int, columns: int, content: bytes) -> None:
        self._to.write(_HEADER.pack(kind, rows, columns, 0, len(name) + 1))
        self._to.write(name.encode() + b"\0" + content)

    def _put_text(self, name: str, texts: Sequence[str], *, transposed: bool = True) -> None:
        """A matrix with a text per column, or else per row, filled with blanks."""
        encoded = [text.encode() for text in texts]
        width = max(1, *map(len, encoded))
        letters = np.frombuffer(b"".join(t.ljust(width) for t in encoded), np.uint8)
        matrix = letters.reshape(len(texts), width)
        if transposed:
            self._put(name, _TEXT, width, len(texts), matrix.tobytes())
        else:
            self._put(name, _TEXT, len(texts), width, matrix.T.tobytes())


def _description(block: Table, name: str) -> str:
    """The unit in brackets, with a note before it if values may be absent."""
    unit = block.units.get(name)
    note = _ABSENT if np.ma.isMaskedArray(block[name]) else ""
    return " ".join(part for part in (note, f"[{unit}]" if unit else "") if part)


def read_mat(path: Path) -> tuple[Table, Facts]:
    """A table from a MAT file in the form of Dymola, and its facts; constants (``data_1``) are left out.

    Raises
    ------
    FileError
        If the file has another form.
    """
    io = optional("scipy.io", "all", "A .mat file")
    errors = io.matlab.MatReadError
    with (
        decoding(path, "a MAT file in the form of Dymola", errors),
        open_file(path) as stream,
        mmap(stream.fileno(), 0, access=ACCESS_READ) as file,  # it never reads more than there is
    ):
        known = {name: (shape, kind) for name, shape, kind in io.whosmat(file) if name in _READ}
        for name, (_, kind) in known.items():
            if kind not in _KINDS:  # it can contain others, of any size
                raise FileError(f"'{path}': '{name}' is of type {kind}, not numbers or text.")
        check_growth(sum(math.prod(map(int, shape)) * 8 for shape, _ in known.values()), path)
        check_width(max(known["dataInfo"][0]), path)
        file.seek(0)
        read = io.loadmat(file, chars_as_strings=False, variable_names=list(known))
        form = _texts(read["Aclass"], transposed=False)
        transposed = form[-1] == "binTrans"
        names = _texts(read["name"], transposed=transposed)
        descriptions = _texts(read["description"], transposed=transposed)
        info, data = read["dataInfo"].astype(int), read["data_2"]
        if transposed:
            info, data = info.T, data.T
        columns, units = _columns(names, descriptions, info, data)
        document = b"".join(map(_bytes, read.get("fmimaster", ())))
        return Table(time=data[:, 0], columns=columns, units=units), Facts(path, document)


def _columns(
    names: Sequence[str], descriptions: Sequence[str], info: NDArray[Any], data: NDArray[Any]
) -> tuple[dict[str, NDArray[np.float64]], dict[str, str]]:
    """Columns and units of the variables that change; a negative number of a column means its negative values."""
    columns, units = {}, {}
    for name, description, (matrix, column, *_) in zip(names, descriptions, info, strict=True):
        if matrix == 2 and name != "time":
            values = data[:, abs(column) - 1]
            values = values if column > 0 else -values
            is_masked = description.startswith(_ABSENT)
            columns[name] = np.ma.MaskedArray(values, np.isnan(values)) if is_masked else values
            _, bracket, unit = description.rpartition("[")
            if bracket and unit.endswith("]"):
                units[name] = unit.removesuffix("]")
    return columns, {name: unit for name, unit in units.items() if unit}


def _texts(letters: NDArray[Any], *, transposed: bool) -> list[str]:
    rows = letters.T if transposed else letters
    return [_bytes(row).decode("utf-8", "replace").rstrip(" \0") for row in rows]


def _bytes(letters: NDArray[Any]) -> bytes:
    """SciPy takes each byte for a letter of Latin 1, and numpy stores a letter as a number of 32 bits."""
    return np.ascontiguousarray(letters, "U1").view(np.uint32).astype(np.uint8).tobytes()
