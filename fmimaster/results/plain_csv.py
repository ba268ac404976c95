"""CSV files of plain numbers, which most results are: read in large parts.

All else, and what is wrong, is left to the reader in :mod:`fmimaster.results.csv`, which takes each cell in turn and has
words for mistakes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.files import MOST_LINE, open_file
from fmimaster.results import numbers
from fmimaster.results.kept_rows import KeptRows
from fmimaster.results.table import Table

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
        for values in (_by_kernel if numbers.has_kernel() else _by_numpy)(stream, len(names)):
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
        values, used = numbers.read(text, columns)
        rest = text[used:]
        if b"\n" in rest or len(rest) > MOST_LINE:
            yield None
        if len(values):
            yield values
    if rest:
        values, used = numbers.read(rest + b"\n", columns)
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
