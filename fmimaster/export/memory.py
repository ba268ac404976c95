"""The memory that the kernel may use, as blocks, in which addresses have places."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fmimaster.kernel._kernel import ffi


class Place(NamedTuple):
    """A place in the memory of an image."""

    block: int
    offset: int


class Memory:
    """The blocks of memory to which the kernel can point. What has no bytes has a block of its own, for its address."""

    def __init__(self, things: Iterable[Any]) -> None:
        self._kept = list(things)
        parts = sorted(part for thing in _flat(self._kept) if (part := _part(thing)) is not None)
        self._blocks = list[_Block]()
        for part in parts:
            last = self._blocks[-1] if self._blocks else _Block(0, 0, False)
            if part.begin < last.end or part.begin == last.begin:
                end, is_object = max(last.end, part.end), last.is_object or part.is_object
                self._blocks[-1] = _Block(last.begin, end, is_object)
            else:
                self._blocks.append(part)
        self._begins = [block.begin for block in self._blocks]

    def place(self, address: int) -> Place | None:
        """The place at an address; None if it is in no block."""
        k = bisect_right(self._begins, address) - 1
        if k < 0 or (address >= self._blocks[k].end and address != self._begins[k]):
            return None
        return Place(k, address - self._begins[k])

    def bounds(self, block: int) -> tuple[int, int]:
        """Address and size of a block in bytes."""
        begin, end, _ = self._blocks[block]
        return begin, end - begin

    def content(self, block: int) -> bytearray:
        """Its bytes; 0 where objects of Python are."""
        begin, end, is_object = self._blocks[block]
        if is_object:
            return bytearray(end - begin)
        return bytearray(ffi.buffer(ffi.cast("char *", begin), end - begin))


class _Block(NamedTuple):
    """Memory between two addresses, and whether it has objects of Python."""

    begin: int
    end: int
    is_object: bool


def _flat(things: Iterable[Any]) -> Iterator[Any]:
    for thing in things:
        if isinstance(thing, list | tuple):
            yield from _flat(thing)
        else:
            yield thing


def _part(thing: Any) -> _Block | None:
    """The memory of something that is lent to the kernel."""
    if isinstance(thing, np.ndarray):
        begin = thing.ctypes.data
        return _Block(begin, begin + thing.nbytes, thing.dtype == object)
    kind = ffi.typeof(thing) if isinstance(thing, ffi.CData) else None
    if kind is None or kind.kind not in ("pointer", "array"):
        return None
    if kind.kind == "pointer" and kind.item.kind in ("void", "function"):
        return None
    size = ffi.sizeof(thing) if kind.kind == "array" else ffi.sizeof(kind.item)
    return _Block(number(thing), number(thing) + size, False)


def number(address: Any) -> int:
    """An address as a number."""
    return int(ffi.cast("uintptr_t", address))
