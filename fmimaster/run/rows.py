"""The registers of an executor, and the rows that it fills and that are passed on in blocks.

Registers are all data that change during a run, except the value store, the FMUs and the state of the loop over time."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.apart import shared_run
from fmimaster.apart.shared_run import SharedNumber, marks
from fmimaster.events.zeno import MOST_MICROSTEPS
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

RegisterCopy = tuple[NDArray[Any], ...]
"""The arrays of the registers, in their order."""


class Counted(IntEnum):
    """Kinds of calls that are counted: the rows of ``Registers.calls``."""

    STEPS = 0
    RESTORES = 1
    EVENTS = 2


class Registers:
    """Memory of an executor from one execution to the next.

    The arrays are allocated once. Both executors work on them; the kernel borrows them.

    Parameters
    ----------
    n_instances, n_places, n_buffers : int
    start : float
        Initial time in s of all instances.

    Attributes
    ----------
    at : shape (n_instances,)
        Present time of each instance in s.
    stepped : shape (n_instances,)
        Number of the step that led each instance to its state; goes back with it.
    pending : shape (n_instances,)
        Whether ``DoStep`` has requested an event that the instance has not had: it must not step on before.
    follows_polynomials : shape (n_instances,)
        Whether the instance has been given a polynomial: then it is given one each time.
    next_events : shape (n_instances,)
        Time in s of the next event that each instance has named; inf for none.
    initialized : shape (n_instances,)
        Whether each instance has left Initialization Mode, and is not terminated. It is not copied: a run that continues
        initializes all.
    calling : shape (n_instances,)
        What the integrator of each instance has called last, for the kernel; it is not copied.
    calls : shape (number of kinds, n_instances)
        How often each kind of call was made, see :class:`Counted`.
    kept_from : shape (n_instances,)
        Time in s of the earliest state of each instance that was saved in the present execution; inf if none was. It is
        nothing that is remembered, and not copied.
    place_at, place_stepped : shape (n_places,)
        ``at`` and ``stepped`` of the instance that was saved in a place.
    kept_limit, kept_requests : shape (n_buffers,), (n_buffers, n_instances)
        Limit in s, and instances that requested an event, when a buffer was kept.
    """

    def __init__(self, n_instances: int, n_places: int, n_buffers: int, start: float) -> None:
        self.at = np.full(n_instances, start)
        self.stepped = np.zeros(n_instances, np.int64)
        self.pending = np.zeros(n_instances, np.uint8)
        self.follows_polynomials = np.zeros(n_instances, np.intc)
        self.next_events = np.full(n_instances, np.inf)
        self.calls = np.zeros((len(Counted), n_instances), np.int64)
        self.kept_from = np.full(n_instances, np.inf)
        self.initialized = marks(n_instances)
        self.calling = marks(n_instances)
        self.place_at = np.full(n_places, start)
        self.place_stepped = np.zeros(n_places, np.int64)
        self.kept_limit = np.full(n_buffers, start)
        self.kept_requests = np.zeros((n_buffers, n_instances), np.uint8)

    def by_instance(self) -> RegisterCopy:
        """The arrays with one value for each instance, in their last dimension."""
        return *self._copied_by_instance(), self.initialized

    def _copied_by_instance(self) -> RegisterCopy:
        events, calls = self.next_events, self.calls
        return self.at, self.stepped, self.pending, self.follows_polynomials, events, calls

    def copy(self) -> RegisterCopy:
        """A copy of all registers."""
        return tuple(array.copy() for array in self._arrays())

    def begin_anew(self) -> None:
        """What is not copied is as it was at first: no instance is initialized or called, and no state is kept."""
        self.initialized[:], self.calling[:], self.kept_from[:] = 0, 0, np.inf

    def restore(self, copy: RegisterCopy) -> None:
        """Restore the result of :meth:`copy`, from registers of the same sizes."""
        for array, saved in zip(self._arrays(), copy, strict=True):
            array[...] = saved

    def _arrays(self) -> RegisterCopy:
        places = self.place_at, self.place_stepped
        return *self._copied_by_instance(), *places, self.kept_limit, self.kept_requests


BLOCK_BYTES = 2 * 1024 * 1024
"""Size of the rows that are collected before they are handed on: an eighth of that makes the loop of ten small FMUs a
quarter slower, since handing on takes some 0.1 ms; more gains nothing."""

LEAST_ROWS, MOST_ROWS = 100, 50_000
"""Most rows of a block, for any size of rows: many enough for little overhead, few enough to be timely."""

LENT = 4
"""Rows that are taken where they are kept are so many times more: only Python between two blocks takes time then."""

SPARE_ROWS = MOST_MICROSTEPS + 128
"""A full block has room for so many more: 16 single steps and the event after them, with a row for each event iteration,
that are done before the block is handed on. Memory that is not used is not taken from the system."""


Memory = tuple[NDArray[np.float64], Mapping[DataType, NDArray[Any]]]
"""For rows: times, and per type the values, shape (rows, columns)."""


class RowBlock:
    """The rows that were sampled and not yet passed on: time, and the recorded variables per type."""

    def __init__(self, plan: Plan, store: ValueStore, capacity: int | None = None) -> None:
        self.capacity = capacity = capacity or _rows_of_a_block(plan)
        self._taken = 0
        """Number of rows that were passed on early."""
        self._count: NDArray[np.int64] | memoryview[int] = np.zeros(1, np.int64)
        self._own = self.times, self.values = self._room(plan)
        self.least, self.most = len(self.times), LENT * capacity + SPARE_ROWS
        """Rows for which other memory has room."""
        self._sources: list[tuple[DataType, NDArray[Any], Any]] = [
            (kind, store.values[kind], _as_slice(chosen)) for kind, chosen in plan.rows.items()
        ]
        self._is_held = _held(plan)
        self._held = {kind: np.flatnonzero(is_held) for kind, is_held in self._is_held.items()}
        """What is compared."""

    def _room(self, plan: Plan) -> Memory:
        """Times and values; in the process of a run, where the process that waits for it can read them."""
        shared, n = shared_run.keeper_of_rows(), self.capacity + SPARE_ROWS
        size = row_bytes(plan) * n
        address = 0 if shared is None else shared.take(size)
        if shared is None or not address:
            return np.empty(n), {k: np.empty((n, len(c)), k.dtype) for k, c in plan.rows.items()}
        self._count = shared.numbers[SharedNumber.COUNT :][:1]
        shared.numbers[SharedNumber.BLOCK], shared.numbers[SharedNumber.CAPACITY] = address, n
        return rows_in(plan, n, shared.at(address, size))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self._count[0])

    @count.setter
    def count(self, value: int) -> None:
        self._count[0] = value

    @property
    def clocks(self) -> NDArray[Any] | None:
        """Rows of clocks: one in which a clock is active is an iteration of an event with a value of its own."""
        return self.values.get(DataType.CLOCK)

    @property
    def is_movable(self) -> bool:
        """Whether the next rows can be taken in other memory, see :meth:`move`."""
        return shared_run.keeper_of_rows() is None

    @property
    def looked(self) -> object:
        """What the executor has found in the rows, for :meth:`Recorder.take`; None for nothing."""
        return None

    def move(self, memory: Memory | None) -> None:
        """Take the next rows in other memory; None: in that of the block. There must be none in it."""
        if memory is not None or self.times is not self._own[0]:
            self._move_to(memory or self._own)

    def _move_to(self, memory: Memory) -> None:
        self.times, self.values = memory
        self.capacity = len(self.times) - SPARE_ROWS

    def begin_anew(self) -> None:
        """Take the rows of another run, in the memory of the block."""
        self.clear()
        if self.is_movable:
            self.move(None)

    @property
    def room(self) -> int:
        """How many rows can still be taken; those of an event besides."""
        return self.capacity - self.count

    def columns(self) -> list[tuple[NDArray[Any], NDArray[Any], bool]]:
        """Parts of the store, each contiguous, their columns of the block, and whether these are compared with the
        last row."""
        return [
            part
            for kind, source, chosen in self._sources
            for part in contiguous_parts(source, chosen, self.values[kind], self._is_held[kind])
        ]

    def append(self, time: float) -> None:
        """Take a row from the store.

        One in which no clock is active is not taken if it is at the time of the last one and has the same values: those
        that have no clock, since others are absent.
        """
        k = self.count
        self.times[k] = time
        for kind, source, chosen in self._sources:
            self.values[kind][k] = source[chosen]
        if (
            k
            and not (self.clocks is not None and self.clocks[k].any())
            and self.times[k - 1] == time
            and all(
                np.array_equal(self.values[kind][k, held], self.values[kind][k - 1, held])
                for kind, held in self._held.items()
            )
        ):
            return
        self.count = k + 1

    def begin_behind(self, time: float, values: Mapping[DataType, NDArray[Any]]) -> None:
        """Begin with a row that was passed on already: an equal one is not taken again."""
        if self.is_movable:
            self.move(None)  # where rows are kept it would be kept again
        self.times[0] = time
        for kind, row in values.items():
            self.values[kind][0] = row
        self.count = self._taken = 1

    def take(self) -> tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]:
        """All rows: times, and per type the values, shape (rows, columns); they are valid until the next one is taken."""
        rows = self.take_early()
        self.clear()
        return rows

    def clear(self) -> None:
        """Make room for other rows."""
        self.count = self._taken = 0

    def take_early(self) -> tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]:
        """All rows that were not taken before. They stay in the block: an executor may be adding to them."""
        first, n = self._taken, self.count
        self._taken = n
        return self.times[first:n], {kind: self.part(kind, first, n) for kind in self.values}

    def part(self, kind: DataType, first: int, stop: int) -> NDArray[Any]:
        """Rows of one type."""
        return self.values[kind][first:stop]


def contiguous_parts(
    source: NDArray[Any], chosen: Any, target: NDArray[Any], is_held: NDArray[np.bool_]
) -> list[tuple[NDArray[Any], NDArray[Any], bool]]:
    """The chosen elements of an array in parts that follow each other and are all held or all not, each with its columns of
    the target."""
    indices = np.arange(len(source))[chosen]
    parts, at = list[tuple[NDArray[Any], NDArray[Any], bool]](), 0
    breaks = (np.diff(indices) != 1) | (is_held[1:] != is_held[:-1])
    for run in np.split(indices, np.flatnonzero(breaks) + 1):
        first, n = int(run[0]), len(run)
        parts.append((source[first : first + n], target[..., at : at + n], bool(is_held[at])))
        at += n
    return parts


def _held(plan: Plan) -> dict[DataType, NDArray[np.bool_]]:
    """Which elements of a row have a value at all times: neither clocks nor what is clocked."""
    held = {
        kind: np.full(len(chosen), kind is not DataType.CLOCK) for kind, chosen in plan.rows.items()
    }
    for column in plan.recorded:
        if column.present is not None:
            held[column.type][column.column] = False
    return held


def row_bytes(plan: Plan) -> int:
    """Bytes of a row: time and the recorded values, with 8 bytes for a reference to a text."""
    size: int = 8 + sum(kind.dtype.itemsize * len(slots) for kind, slots in plan.rows.items())
    return size


def rows_in(
    plan: Plan, n: int, memory: memoryview
) -> tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]:
    """Times and values of so many rows in one piece of memory; text and binaries, which are objects, lie elsewhere."""
    times, at = np.frombuffer(memory, np.float64, n), 8 * n
    values: dict[DataType, NDArray[Any]] = {}
    # the widest types first: then all are aligned
    for kind, chosen in sorted(plan.rows.items(), key=lambda item: -item[0].dtype.itemsize):
        if kind.dtype == object:
            values[kind] = np.empty((n, len(chosen)), object)
            continue
        values[kind] = np.frombuffer(memory, kind.dtype, n * len(chosen), at).reshape(n, -1)
        at += values[kind].nbytes
    return times, {kind: values[kind] for kind in plan.rows}


def _rows_of_a_block(plan: Plan) -> int:
    """How many rows are collected."""
    has_objects = any(kind.dtype == object for kind in plan.rows)
    keeper = shared_run.keeper_of_rows()
    if keeper is not None and (has_objects or keeper.keeps_each_row):
        return 1  # what only this process has is passed on at once
    return min(max(BLOCK_BYTES // row_bytes(plan), LEAST_ROWS), MOST_ROWS)


def _as_slice(indices: tuple[int, ...]) -> slice | NDArray[np.intp]:
    """A slice where the indices follow each other, which NumPy copies faster."""
    if indices == tuple(range(indices[0], indices[0] + len(indices))):
        return slice(indices[0], indices[0] + len(indices))
    return np.array(indices)
