"""What executes programs, seen from the outer loop; and the rows that it fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions import Program
from fmimaster.program.outcome import Outcome
from fmimaster.program.store import ValueStore
from fmimaster.run.registers import Registers
from fmimaster.system.model import DataType

BLOCK_BYTES = 256 * 1024
"""Size of the rows that are collected before they are handed on: they stay in the cache of a core."""

LEAST_ROWS, MOST_ROWS = 100, 10_000
"""Rows of such a block, whatever their size: enough to make handing on cheap, few enough to be timely."""

SPARE_ROWS = 128
"""A full block still takes so many: 16 single steps and the event after them, which may bring a row for each of 100
updates, are done before the block is handed on."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """What FMUs are told when they enter Initialization Mode; times in s."""

    start: float
    stop: float | None = None
    tolerance: float | None = None


class Executor(Protocol):
    """Executes programs on the instances of a plan."""

    store: ValueStore
    registers: Registers
    rows: RowBlock
    next_events: NDArray[np.float64]
    """Time in s of the next event that each instance has named; inf for none."""
    calls: NDArray[np.int64]
    """Per kind of call and instance, how often it was made: see :class:`Counted`."""

    @property
    def seconds(self) -> Sequence[float]:
        """Wall time per instance spent in DoStep, in s."""

    def run(self, program: Program, begin: float, end: float) -> Outcome:
        """Execute a program over the interval from begin to end, in s."""

    def step(self, attempt: Program, commit: Program, begin: float, end: float) -> Outcome | None:
        """Attempt one interval, and commit it if nothing happened: None. Else the outcome, which is not yet committed."""

    def rest(self) -> None:
        """Nothing will be asked of it for a while: threads may sleep."""

    def repeat(
        self,
        attempt: Program,
        commit: Program,
        times: Sequence[float] | NDArray[np.float64],
    ) -> tuple[int, Outcome]:
        """Attempt and commit interval after interval while nothing happens.

        Parameters
        ----------
        times : at least two, increasing, in s

        Returns
        -------
        Number of committed intervals, and the outcome of the one after them, which is not yet committed. It comes back
        at the last interval, when the next row is the last that has room, after some wall time, or when an attempt did
        not simply succeed.
        """


def make_store(plan: Plan, n_buffers: int, history: int = 0) -> ValueStore:
    """A value store with the start values of the plan in it."""
    store = ValueStore(
        plan.layout,
        len(plan.instances),
        n_buffers,
        history=history,
        n_triggers=len(plan.triggers),
    )
    for (i, group, name), (kind, slot) in plan.layout.slots.items():
        if group in (Group.STRUCTURAL, Group.START, Group.INITIAL):
            store.values[kind][slot] = plan.instances[i].start_values[name]
    return store


class RowBlock:
    """The rows that have been sampled and not yet handed on: time, and the recorded variables per type."""

    def __init__(self, plan: Plan, store: ValueStore, capacity: int | None = None) -> None:
        self.capacity = capacity = capacity or _rows_of_a_block(plan)
        self.count = 0
        self.times = np.empty(capacity + SPARE_ROWS)
        self.values: dict[DataType, NDArray[Any]] = {}
        self._sources: list[tuple[NDArray[Any], NDArray[Any], Any]] = []
        slots: dict[DataType, list[int]] = {}
        for column in plan.recorded:
            slots.setdefault(column.variable.type, []).extend(
                range(column.slot.start, column.slot.stop)
            )
        for kind, chosen in slots.items():
            block = self.values[kind] = np.empty(
                (capacity + SPARE_ROWS, len(chosen)), dtype=kind.dtype
            )
            self._sources.append((block, store.outputs[kind], _as_slice(chosen)))

    @property
    def room(self) -> int:
        """How many rows can still be taken; those of an event besides."""
        return self.capacity - self.count

    def columns(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Parts of the outputs in the store and the columns of the block that they go to, each part in one piece."""
        parts = []
        for block, source, chosen in self._sources:
            indices = np.arange(len(source))[chosen]
            breaks = np.flatnonzero(np.diff(indices) != 1) + 1
            at = 0
            for run in np.split(indices, breaks):
                first, n = int(run[0]), len(run)
                parts.append((source[first : first + n], block[:, at : at + n]))
                at += n
        return parts

    def append(self, time: float) -> None:
        """Take a row from the store; one that equals the last one at the same time is not taken again."""
        k = self.count
        self.times[k] = time
        for block, source, chosen in self._sources:
            block[k] = source[chosen]
        if (
            k
            and self.times[k - 1] == time
            and all(np.array_equal(block[k], block[k - 1]) for block, _, _ in self._sources)
        ):
            return
        self.count = k + 1

    def take(self) -> tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]:
        """All rows: times, and per type the values, shape (rows, columns); they are there until the next one comes."""
        n, self.count = self.count, 0
        return self.times[:n], {kind: block[:n] for kind, block in self.values.items()}


def _rows_of_a_block(plan: Plan) -> int:
    """How many rows are collected: time and the recorded variables, with 8 bytes for a reference to a text."""
    row: int = 8 + sum(
        c.variable.type.dtype.itemsize * (c.slot.stop - c.slot.start) for c in plan.recorded
    )
    return min(max(BLOCK_BYTES // row, LEAST_ROWS), MOST_ROWS)


def _as_slice(indices: list[int]) -> slice | NDArray[np.intp]:
    """A slice where the indices follow each other, which NumPy copies faster."""
    if indices == list(range(indices[0], indices[0] + len(indices))):
        return slice(indices[0], indices[0] + len(indices))
    return np.array(indices)
