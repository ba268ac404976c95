"""The rows of a run in memory, with little overhead while they are added."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass

Block = Mapping[Any, NDArray[Any]]
"""Type → values of shape (rows, elements)."""

MOST_BYTES_RESERVED = 2**30
"""Expected rows get room for all of them, if they take so many bytes at most: only rows that come take memory."""

PART_BYTES = 32 * 2**20
"""Other rows get room for so many bytes at one time, or more: what is so large is given back to the system once freed."""

SPARE = 16
"""One row for so many expected ones, for rows at events; one part of so many of all rows, for each part of the rows."""


@dataclass(slots=True)
class _Part:
    """Room for some rows, which follow those of the part before."""

    times: NDArray[np.float64]
    values: dict[Any, NDArray[Any]]
    filled: int = 0

    @property
    def room(self) -> int:
        return len(self.times) - self.filled

    def has_next(self, times: NDArray[np.float64]) -> bool:
        """Whether rows with these times were made in the room behind the others."""
        return (
            len(times) <= self.room
            and times.ctypes.data == self.times.ctypes.data + self.times.itemsize * self.filled
        )

    def append(self, times: NDArray[np.float64], block: Block) -> None:
        begin, end = self.filled, self.filled + len(times)
        self.times[begin:end] = times
        for kind, values in block.items():
            self.values[kind][begin:end] = values
        self.filled = end


class KeptRows:
    """A growing table per type.

    Rows lie in parts, which are never moved while others come: they become one array when all are asked for. A table that
    doubles needs up to three times its size; so 10^7 rows of 4 outputs peak at 1.0 to 1.09 times the array.

    Parameters
    ----------
    expected : int
        How many rows are likely to come.
    row_bytes : int
        How many bytes a row takes.
    """

    def __init__(self, expected: int, row_bytes: int) -> None:
        self._row_bytes = row_bytes
        likely = expected + expected // SPARE
        self._next = likely if likely * row_bytes <= MOST_BYTES_RESERVED else 0
        """Rows of the next part; 0 if they are as usual."""
        self._parts: list[_Part] = []
        self._lock = threading.Lock()
        """Results may be asked for in place of a thread that did not return, just when it does."""

    def room_for(
        self, least: int, most: int, like: Block
    ) -> tuple[NDArray[np.float64], Block] | None:
        """Memory for the next rows, of these types and widths, if there is enough for the least: appended from there, they
        are not copied."""
        with self._lock:
            if not self._parts and not 0 < self._next < least:
                self._parts.append(self._part(least, like))
            if not self._parts or self._parts[-1].room < least:
                return None
            part = self._parts[-1]
            free = slice(part.filled, part.filled + min(most, part.room))
            return part.times[free], {kind: values[free] for kind, values in part.values.items()}

    def append(self, times: NDArray[np.float64], block: Block) -> None:
        """Put rows behind the others."""
        with self._lock:
            if self._parts and self._parts[-1].has_next(times):
                self._parts[-1].filled += len(times)
                return
            first = 0
            if self._parts:
                first = min(self._parts[-1].room, len(times))
                self._parts[-1].append(times[:first], {k: v[:first] for k, v in block.items()})
            if first < len(times):
                self._parts.append(self._part(len(times) - first, block))
                self._parts[-1].append(times[first:], {k: v[first:] for k, v in block.items()})

    def joined(self) -> tuple[NDArray[np.float64], dict[Any, NDArray[Any]]]:
        """All rows: times, and per type the values, shape (rows, elements)."""
        with self._lock:
            return self._joined()

    def _joined(self) -> tuple[NDArray[np.float64], dict[Any, NDArray[Any]]]:
        parts = self._parts
        if not parts:
            return np.empty(0), {}
        if len(parts) > 1:
            kept = self._filled()
            # with room for more, so that results of a run that goes on are seldom copied
            whole = _room(kept + self._usual_room(kept), parts[0].values)
            parts.insert(0, whole)
            while len(parts) > 1:  # each part is freed before the next one is copied
                part = parts[1]
                n = part.filled
                whole.append(part.times[:n], {k: v[:n] for k, v in part.values.items()})
                del parts[1], part
        (whole,) = parts
        n = whole.filled
        return whole.times[:n], {k: v[:n] for k, v in whole.values.items()}

    def _part(self, least: int, like: Block) -> _Part:
        rows = self._next or self._usual_room(self._filled())
        self._next = 0
        return _room(max(rows, least), like)

    def _filled(self) -> int:
        return sum(part.filled for part in self._parts)

    def _usual_room(self, kept: int) -> int:
        """Room that is made behind so many rows."""
        return max(PART_BYTES // self._row_bytes, kept // SPARE)


def _room(rows: int, like: Block) -> _Part:
    """Room for rows of these types and widths."""
    values = {k: np.empty((rows, *v.shape[1:]), dtype=v.dtype) for k, v in like.items()}
    return _Part(np.empty(rows), values)
