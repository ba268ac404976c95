"""The rows that the kernel fills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.run.rows import RowBlock, contiguous_parts
from fmimaster.system.model import DataType


class KernelRows(RowBlock):
    """Rows that the kernel fills and counts.

    Text and binaries change seldom: a *sample* of all of them is made in Python when one has changed, and the kernel
    writes the number of the sample into each row.
    """

    def __init__(self, plan: Plan, store: ValueStore, kernel: Any) -> None:
        self._kernel = kernel
        super().__init__(plan, store)
        self._number = np.full(1, -1, np.int64)
        """Of the newest sample; -1 before the first one."""
        self._numbers = np.zeros((len(self.times), 1), np.int64)
        self._newest = {
            kind: np.full(block.shape[1], None, object)
            for kind, block in self.values.items()
            if kind.dtype == object
        }
        self._samples: dict[DataType, list[NDArray[Any]]] = {kind: [] for kind in self._newest}

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self._kernel.n_rows)

    @count.setter
    def count(self, value: int) -> None:
        self._kernel.n_rows = value

    def columns(self) -> list[tuple[NDArray[Any], NDArray[Any], bool]]:
        """As of :class:`RowBlock`: numbers, and the number of the sample of all others."""
        parts = super().columns()
        numbers = [part for part in parts if part[0].dtype != object]
        return numbers + ([(self._number, self._numbers, True)] if self._newest else [])

    def sampled(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Recorded text and binaries in the store, each part contiguous, and in the newest sample."""
        return [
            (values, newest)
            for block, source, chosen in self._sources
            for kind, sample in self._newest.items()
            if block is self.values[kind]
            for values, newest, _ in contiguous_parts(source, chosen, sample, self._is_held[kind])
        ]

    def sample(self) -> None:
        """Text and binaries are those in the store from now on."""
        parts = self.sampled()
        is_new = not all(np.array_equal(values, newest) for values, newest in parts)
        for values, newest in parts:
            newest[:] = values
        if is_new:
            self._add_sample()

    def _add_sample(self) -> None:
        for kind, newest in self._newest.items():
            self._samples[kind].append(newest.copy())
        self._number += 1

    def begin_behind(self, time: float, values: Mapping[DataType, NDArray[Any]]) -> None:
        """Begin with a row that was passed on already: an equal one is not taken again."""
        super().begin_behind(time, values)
        for kind, newest in self._newest.items():
            newest[:] = values[kind]
        self._forget_samples()
        self._add_sample()
        self._numbers[0] = self._number

    def take(self) -> tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]:
        """All rows; see :meth:`RowBlock.take`."""
        rows = super().take()
        if self._number[0] > 0:
            self._forget_samples()
            self._add_sample()
        return rows

    def _forget_samples(self) -> None:
        self._number[0] = -1
        for samples in self._samples.values():
            samples.clear()

    def part(self, kind: DataType, first: int, stop: int) -> NDArray[Any]:
        """Rows of one type."""
        if kind.dtype != object or first == stop:
            return super().part(kind, first, stop)
        numbers = self._numbers[first:stop, 0]
        oldest, newest = int(numbers[0]), int(numbers[-1])
        samples: NDArray[Any] = np.stack(self._samples[kind][oldest : newest + 1])
        return samples[numbers - oldest]
