"""The values of a column: numbers, texts, binaries; and when they are present, at ticks or over spans of time.

Here are also the tolerances by which columns are compared: what compares them is imported only where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmimaster.base.errors import FileError

Array = NDArray[np.float64]

SAME_TIME = 1e-9
"""Times of two tables are the same if they differ by this part of the larger one at most: files of other programs have
fewer digits."""

TOLERANCE = 0.01
"""Largest permitted deviation, relative to the range of the reference: a difference that is visible in a figure."""

_MOST_COLUMNS = 500_000
"""Columns of a file: each takes some 1000 bytes without its values."""


def has_mask(column: ArrayLike) -> bool:
    """Whether values of a column can be absent; numpy.ma, which takes 20 ms to import, is not asked about plain arrays."""
    return type(column) is not np.ndarray and np.ma.isMaskedArray(column)


def is_masked(column: ArrayLike) -> bool:
    """Whether a value of a column is absent."""
    return has_mask(column) and np.ma.is_masked(column)


def numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """A column as floats; NaN where it has no value."""
    return np.asarray(np.ma.filled(np.ma.asarray(column).astype(np.float64), np.nan))


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


class Spans(NamedTuple):
    """Consecutive rows in which a column has values."""

    first: NDArray[np.intp]
    """The first row of each."""
    last: NDArray[np.intp]
    """The last one."""

    def are_ticks(self, time: Array) -> bool:
        """Whether none of them lasts: values are present at instants only, as those of clocked variables."""
        return bool((time[self.first] == time[self.last]).all())


def is_present(column: NDArray[Any]) -> NDArray[np.bool_]:
    """In which rows a column, of shape (n,), has a value."""
    if not has_mask(column):
        return np.ones(len(column), bool)
    return ~np.ma.getmaskarray(column)


def values_of(column: NDArray[Any]) -> NDArray[Any]:
    """The values of a column that are present, in their order."""
    return np.asarray(np.ma.getdata(column)[is_present(column)]) if has_mask(column) else column


def spans(column: NDArray[Any]) -> Spans:
    """The spans of a column of shape (n,)."""
    here = np.concatenate(([False], is_present(column), [False])).astype(np.int8)
    changes = np.diff(here)
    return Spans(np.flatnonzero(changes == 1), np.flatnonzero(changes == -1) - 1)


def is_clocked(time: Array, column: NDArray[Any]) -> bool:
    """Whether a column of shape (n,) has its values at instants only."""
    return has_mask(column) and spans(column).are_ticks(time)


class Pairs(NamedTuple):
    """Ticks of two columns."""

    ours: list[int]
    theirs: list[int]
    """Places of those that both have, in pairs."""
    alone: list[float]
    """Times in s of those that only one of them has."""


def paired(ours: Array, theirs: Array) -> Pairs:
    """The ticks at the same times; of several at one time the first of both belong together, then the second, ….

    Parameters
    ----------
    ours, theirs : shape (n,), (m,)
        Times in s, which do not decrease.
    """
    found = Pairs([], [], [])
    a, b = ours.tolist(), theirs.tolist()
    i = j = 0
    while i < len(a) and j < len(b):
        if abs(a[i] - b[j]) <= SAME_TIME * max(abs(a[i]), abs(b[j])):
            found.ours.append(i)
            found.theirs.append(j)
            i, j = i + 1, j + 1
        elif a[i] < b[j]:
            found.alone.append(a[i])
            i += 1
        else:
            found.alone.append(b[j])
            j += 1
    found.alone.extend(a[i:] + b[j:])
    return found


def check_width(columns: int, where: object) -> None:
    """Refuse a table with implausibly many columns."""
    if columns > _MOST_COLUMNS:
        raise FileError(
            f"'{where}' has {columns:,} columns, more than the {_MOST_COLUMNS:,} that are read. Write fewer of them."
        )
