"""Numbers as text and back, many at a time, in C where the kernel was built.

Our own C writes the digits of Python's repr, so a file is the same with and without the kernel; pyarrow writes ``1`` for
1.0. 10^6 rows of 4 take 0.36 s of CPU time, 2.8 s in Python, of which repr is 2.5 s (benchmarks/csv_ways.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.files import MOST_LINE, open_file
from fmimaster.kernel import kernel
from fmimaster.results.columns import is_masked
from fmimaster.results.kept_rows import KeptRows
from fmimaster.results.table import Table

_WRITTEN = frozenset(map(np.dtype, ("f8", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4")))
"""Types of columns that C writes; all but floats as Int64."""


def has_kernel() -> bool:
    """Whether the other functions can be called."""
    return kernel() is not None


def can_write(column: NDArray[Any]) -> bool:
    """Whether all of a column are numbers that C writes as Python does."""
    return column.dtype in _WRITTEN and not is_masked(column)


def written(columns: Sequence[NDArray[Any]]) -> memoryview:
    """Rows of columns that can be written, with a newline behind each: floats with the digits of Python's repr."""
    ffi, lib = kernel().ffi, kernel().lib
    rows = len(columns[0])
    table = ffi.new("fm_cells[]", len(columns))
    kept = []
    for entry, column in zip(table, columns, strict=True):
        values = column if type(column) is np.ndarray else np.ma.getdata(column)
        if values.dtype.kind != "f":
            values = values.astype(np.int64)
        kept.append(values)
        entry.type = lib.FM_FLOAT64 if values.dtype.kind == "f" else lib.FM_INT64
        entry.values, entry.stride = ffi.cast("char *", values.ctypes.data), values.strides[0]
    text = np.empty(rows * len(columns) * (lib.FM_LONGEST_NUMBER + 1), np.uint8)
    used = lib.fm_write_rows(table, len(columns), rows, _powers(), ffi.from_buffer("char[]", text))
    return text.data[:used]


def read(text: bytes, columns: int) -> tuple[NDArray[np.float64], int]:
    """The first rows of a text, up to one that has not plain decimal numbers only.

    Returns
    -------
    shape (rows, columns), and how many bytes they take.
    """
    ffi, lib = kernel().ffi, kernel().lib
    shortest = 2 * columns  # bytes of a row: empty lines are none
    rows_at_most = min(text.count(b"\n"), len(text) // shortest + 1)
    values, used = np.empty((rows_at_most, columns)), ffi.new("size_t *")
    target = ffi.from_buffer("double[]", values)
    rows = lib.fm_read_rows(
        ffi.from_buffer("char[]", text), columns, len(values), _powers(), target, used
    )
    return values[:rows], used[0]


@cache
def _powers() -> Any:
    """Powers of ten with 128 bits, in halves: ``10**k / 2**(floor(log2(10**k)) - 127)``; of 0.1 and less rounded up."""
    ffi, lib = kernel().ffi, kernel().lib
    powers = []
    for k in range(lib.FM_LEAST_POWER, lib.FM_LARGEST_POWER + 1):
        ten = 10 ** abs(k)
        size = ten.bit_length()
        number = ten << 128 >> size if k >= 0 else (1 << size + 127) // ten + 1
        powers += [number >> 64, number & 2**64 - 1]
    return ffi.new("uint64_t[]", powers)


_BYTES_AT_ONCE = 2**22
"""Of a file: with its numbers it takes a small part of the memory of a large table."""


def read_plain(path: Path, names: Sequence[str], header_lines: int) -> Table | None:
    """The table in a file with these columns, if it has plain decimal numbers only, and all is as it must be."""
    with open_file(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        header = [stream.readline() for _ in range(header_lines)]
        if any(
            b"\r" in line.removesuffix(b"\r\n") for line in header
        ):  # lines were counted by them
            return None
        kept: KeptRows | None = None
        last = -np.inf
        for values in (_by_kernel if has_kernel() else _by_numpy)(stream, len(names)):
            if values is None or not _follow(values[:, 0], last):
                return None
            if kept is None:
                rows = len(values) * size // stream.tell()
                kept = KeptRows(rows, values.itemsize * len(names))
            last = values[-1, 0]
            kept.append(values[:, 0], {float: values[:, 1:]})
    if kept is None:
        return None
    time, tables = kept.joined()
    return Table(time=time, columns=dict(zip(names[1:], tables[float].T, strict=True)))


def _follow(time: NDArray[np.float64], last: float) -> bool:
    """Whether times are finite and do not decrease."""
    return bool(np.isfinite(time).all() and time[0] >= last and (time[1:] >= time[:-1]).all())


def _by_kernel(stream: IO[bytes], columns: int) -> Iterator[NDArray[np.float64] | None]:
    """Some rows after the others, never none; None where something else comes."""
    rest = b""
    while part := stream.read(_BYTES_AT_ONCE):
        text = rest + part
        values, used = read(text, columns)
        rest = text[used:]
        if b"\n" in rest or len(rest) > MOST_LINE:
            yield None
        if len(values):
            yield values
    if rest:
        values, used = read(rest + b"\n", columns)
        yield values if len(values) and used == len(rest) + 1 else None


def _by_numpy(stream: IO[bytes], columns: int) -> Iterator[NDArray[np.float64] | None]:
    """The same, all rows at once."""
    lines = map(bytes.decode, stream)
    first = next((line for line in lines if line.strip("\r\n")), None)
    if first is not None:
        try:
            values = np.loadtxt(chain([first], lines), delimiter=",", comments=None, ndmin=2)
        except ValueError:
            values = np.empty((0, 0))
        yield values if values.shape[1] == columns else None
