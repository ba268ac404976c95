"""The rows that an executor fills, and that are passed on in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.control.zeno import MOST_MICROSTEPS
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

BLOCK_BYTES = 1024 * 1024
"""Size of the rows that are collected before they are handed on: they stay in the cache of a core, and a quarter of that
makes the loop of ten small FMUs a quarter slower, since handing on takes some 0.1 ms."""

LEAST_ROWS, MOST_ROWS = 100, 25_000
"""Most rows of a block, for any size of rows: many enough for little overhead, few enough to be timely."""

SPARE_ROWS = MOST_MICROSTEPS + 128
"""A full block has room for so many more: 16 single steps and the event after them, with a row for each event iteration,
that are done before the block is handed on. Memory that is not used is not taken from the system."""


class RowBlock:
    """The rows that were sampled and not yet passed on: time, and the recorded variables per type."""

    def __init__(self, plan: Plan, store: ValueStore, capacity: int | None = None) -> None:
        self.capacity = capacity = capacity or _rows_of_a_block(plan)
        self.count = 0
        self._taken = 0
        """Number of rows that were passed on early."""
        self.times = np.empty(capacity + SPARE_ROWS)
        self.values: dict[DataType, NDArray[Any]] = {}
        self._sources: list[tuple[NDArray[Any], NDArray[Any], Any]] = []
        for kind, chosen in plan.rows.items():
            block = self.values[kind] = np.empty(
                (capacity + SPARE_ROWS, len(chosen)), dtype=kind.dtype
            )
            self._sources.append((block, store.values[kind], _as_slice(chosen)))
        self.clocks: NDArray[Any] | None = self.values.get(DataType.CLOCK)
        """Rows of clocks: one in which a clock is active is an iteration of an event with a value of its own."""

    @property
    def room(self) -> int:
        """How many rows can still be taken; those of an event besides."""
        return self.capacity - self.count

    def columns(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Parts of the store and the columns of the block that they go to, each part contiguous."""
        return [
            part
            for block, source, chosen in self._sources
            for part in contiguous_parts(source, chosen, block)
        ]

    def append(self, time: float) -> None:
        """Take a row from the store; one that equals the last one at the same time is not taken again, unless a clock
        is active in it."""
        k = self.count
        self.times[k] = time
        for block, source, chosen in self._sources:
            block[k] = source[chosen]
        if (
            k
            and not (self.clocks is not None and self.clocks[k].any())
            and self.times[k - 1] == time
            and all(np.array_equal(block[k], block[k - 1]) for block, _, _ in self._sources)
        ):
            return
        self.count = k + 1

    def begin_behind(self, time: float, values: Mapping[DataType, NDArray[Any]]) -> None:
        """Begin with a row that was passed on already: an equal one is not taken again."""
        self.times[0] = time
        for kind, row in values.items():
            self.values[kind][0] = row
        self.count = self._taken = 1

    def take(self) -> tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]:
        """All rows: times, and per type the values, shape (rows, columns); they are valid until the next one is taken."""
        rows = self.take_early()
        self.count = self._taken = 0
        return rows

    def take_early(self) -> tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]:
        """All rows that were not taken before. They stay in the block: an executor may be adding to them."""
        first, n = self._taken, self.count
        self._taken = n
        return self.times[first:n], {kind: self.part(kind, first, n) for kind in self.values}

    def part(self, kind: DataType, first: int, stop: int) -> NDArray[Any]:
        """Rows of one type."""
        return self.values[kind][first:stop]


def contiguous_parts(
    source: NDArray[Any], chosen: Any, target: NDArray[Any]
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """The chosen elements of an array in parts of elements that follow each other, each with its columns of the target."""
    indices = np.arange(len(source))[chosen]
    parts, at = [], 0
    for run in np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1):
        first, n = int(run[0]), len(run)
        parts.append((source[first : first + n], target[..., at : at + n]))
        at += n
    return parts


def _rows_of_a_block(plan: Plan) -> int:
    """How many rows are collected: time and the recorded values, with 8 bytes for a reference to a text."""
    row: int = 8 + sum(kind.dtype.itemsize * len(slots) for kind, slots in plan.rows.items())
    return min(max(BLOCK_BYTES // row, LEAST_ROWS), MOST_ROWS)


def _as_slice(indices: tuple[int, ...]) -> slice | NDArray[np.intp]:
    """A slice where the indices follow each other, which NumPy copies faster."""
    if indices == tuple(range(indices[0], indices[0] + len(indices))):
        return slice(indices[0], indices[0] + len(indices))
    return np.array(indices)
