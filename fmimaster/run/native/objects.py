"""Text and binaries in runs of the kernel, which knows only the addresses of these objects; and the rows that it fills.

Here objects are copied and made. The kernel takes an object at another address for another value, and asks here. So what it
reads from an FMU does not replace an equal object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.run.native.header import Context, called
from fmimaster.run.rows import Memory, RowBlock, contiguous_parts
from fmimaster.system.model import DataType

_ADDRESS_BYTES = int(ffi.sizeof("void *"))


class Objects:
    """Copies and compares objects for the kernel.

    Attributes
    ----------
    functions : fm_objects
    """

    def __init__(self, context: Context, sample: Callable[[], None]) -> None:
        self.keep = context.keep
        self.sample = sample
        self._arrays: list[tuple[int, NDArray[Any]]] = []
        self._handle = ffi.new_handle(self)
        functions = lib.fm_python_copy, lib.fm_python_differ, lib.fm_python_sample
        self.functions = ffi.new("fm_objects *", (*functions, self._handle))

    def lend(self, values: NDArray[Any]) -> Any:
        """The addresses in an array of objects, of which the kernel may have any part copied."""
        addresses = ffi.from_buffer("void *[]", values)
        self._arrays.append((_number(addresses), values))
        return addresses

    def part(self, address: Any, n: int) -> NDArray[Any]:
        """n elements of an array that was lent."""
        at = _number(address)
        begin, values = next(v for v in self._arrays if v[0] <= at < v[0] + v[1].nbytes)
        first = (at - begin) // _ADDRESS_BYTES
        return values[first : first + n]


def _number(address: Any) -> int:
    return int(ffi.cast("uintptr_t", address))


class Texts:
    """The call of an FMU's function that reads or sets text or binaries.

    Attributes
    ----------
    call : fm_texts
    """

    def __init__(
        self, context: Context, kind: DataType, is_get: bool, values: NDArray[Any]
    ) -> None:
        self.keep = context.keep
        self._values = values
        self._is_text = kind is DataType.STRING
        n = len(values)
        self._objects: list[Any] = [None] * n
        """Those whose bytes are known; they are kept, so that no other object has their address."""
        self._bytes: list[Any] = [None] * n
        self._known = ffi.new("fm_bytes[]", n)
        self._pointers = ffi.new("char *[]", n)
        self._sizes = ffi.NULL if self._is_text else ffi.new("size_t[]", n)
        self._handle = ffi.new_handle(self)
        renew = lib.fm_python_get_texts if is_get else lib.fm_python_set_texts
        arguments = self._pointers, self._sizes, self._known, renew, self._handle
        self.call = ffi.new("fm_texts *", arguments)

    def get(self) -> None:
        """What the FMU has returned → objects."""
        for k in range(len(self._values)):
            content = self._returned(k)
            value = content.decode("utf-8", "replace") if self._is_text else content
            if self._values[k] != value:
                self._values[k] = value
            self._know(k, content)

    def set(self) -> None:
        """Objects → what the FMU takes."""
        for k, value in enumerate(self._values):
            content = value.encode() + b"\0" if self._is_text else value
            self._know(k, content)
            self._pointers[k] = self._bytes[k]
            if not self._is_text:
                self._sizes[k] = len(content)

    def _returned(self, k: int) -> bytes:
        pointer = self._pointers[k]
        if self._is_text:
            return bytes(ffi.string(pointer)) if pointer else b""
        size = self._sizes[k]
        return bytes(ffi.buffer(pointer, size)) if size else b""

    def _know(self, k: int, content: bytes) -> None:
        """The object of an element, and its bytes."""
        self._objects[k] = self._values[k]
        self._bytes[k] = ffi.from_buffer("char[]", content)
        self._known[k] = ffi.cast("void *", id(self._values[k])), self._bytes[k], len(content)


def _copy(objects: Objects, target: Any, source: Any, n: int) -> None:
    objects.part(target, n)[:] = objects.part(source, n)


def _differ(objects: Objects, one: Any, other: Any, n: int) -> int | None:
    is_equal = np.array_equal(objects.part(one, n), objects.part(other, n))
    return None if is_equal else int(lib.FM_AGAIN)


called("fm_python_copy", _copy)
called("fm_python_differ", _differ)
called("fm_python_sample", lambda objects: objects.sample())
called("fm_python_get_texts", Texts.get)
called("fm_python_set_texts", Texts.set)


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
        self._groups = self._lend_groups()

    def _lend_groups(self) -> object:
        """Room for what the kernel finds in groups of rows."""
        block = self.values.get(DataType.FLOAT64)
        if block is None:
            return None
        n, width = self.most // lib.FM_GROUP + 1, block.shape[1]
        ranges, later = np.empty((3, n, width)), np.empty(n, np.int64)
        arrays = [ffi.from_buffer("double[]", a) for a in (block, *ranges)]
        looked = self._kernel.looked
        looked.rows, looked.low, looked.high, looked.squares = arrays
        looked.width, looked.later, looked.n = width, ffi.from_buffer("int64_t[]", later), 1
        return ranges, later

    @property
    def looked(self) -> object:
        """As of :class:`RowBlock`."""
        return None if self._groups is None else ffi.addressof(self._kernel, "looked")

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self._kernel.n_rows)

    @count.setter
    def count(self, value: int) -> None:
        self._kernel.n_rows, self._kernel.looked.n = value, 1

    def columns(self) -> list[tuple[NDArray[Any], NDArray[Any], bool]]:
        """As of :class:`RowBlock`: numbers, and the number of the sample of all others."""
        parts = super().columns()
        numbers = [part for part in parts if part[0].dtype != object]
        return numbers + ([(self._number, self._numbers, True)] if self._newest else [])

    @property
    def is_movable(self) -> bool:
        """As of :class:`RowBlock`; text and binaries are not."""
        return super().is_movable and not self._newest

    def _move_to(self, memory: Memory) -> None:
        super()._move_to(memory)
        k = self._kernel
        k.times = ffi.from_buffer("double[]", self.times)
        if self.clocks is not None:
            k.clocks = ffi.from_buffer("uint8_t[]", self.clocks)
        k.row_capacity = self.capacity
        begins = {kind: ffi.from_buffer("char[]", block) for kind, block in self.values.items()}
        if self._groups is not None:
            k.looked.rows = ffi.cast("double *", begins[DataType.FLOAT64])
        for column, (kind, offset) in enumerate(self._offsets):
            k.columns[column].rows = begins[kind] + offset

    @cached_property
    def _offsets(self) -> list[tuple[DataType, int]]:
        """Of each column: its type, and how many bytes it lies behind the begin of a row."""
        return [
            (kind, part.ctypes.data - self.values[kind].ctypes.data)
            for kind, source, chosen in self._sources
            for _, part, _ in contiguous_parts(
                source, chosen, self.values[kind], self._is_held[kind]
            )
        ]

    def begin_anew(self) -> None:
        """As of :class:`RowBlock`; no sample was made."""
        super().begin_anew()
        self._number[:] = -1
        for kind, newest in self._newest.items():
            newest[:] = None
            self._samples[kind].clear()

    def sampled(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Recorded text and binaries in the store, each part contiguous, and in the newest sample."""
        return [
            (values, newest)
            for kind, source, chosen in self._sources
            if kind in self._newest
            for values, newest, _ in contiguous_parts(
                source, chosen, self._newest[kind], self._is_held[kind]
            )
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
