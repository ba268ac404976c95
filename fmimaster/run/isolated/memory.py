"""Memory that the process of a run and the host of an FMU share; it grows in parts that are never moved."""

from __future__ import annotations

import ctypes
import os
import resource
import weakref
from functools import cache
from mmap import MAP_SHARED, PROT_READ, PROT_WRITE
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LINE = 64
"""Bytes of a line of the cache: values begin at one."""

_PART = 1 << 16
"""Least size of a part in bytes."""

_MOST = 1 << 36
"""Room in bytes that a host has for all parts; only those that exist take memory."""
_SHARE = 8
"""Where the address space is limited (``ulimit -v``), one part of so many of it is that room."""


class SharedMemory:
    """Memory behind a descriptor.

    Parameters
    ----------
    descriptor : int
        Owned by this object.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._parts: dict[int, ctypes.Array[ctypes.c_char]] = {}
        """Where it begins → part."""
        self._size = self._used = 0

    @classmethod
    def new(cls) -> SharedMemory:
        """Memory without content."""
        return cls(os.memfd_create("fmimaster", os.MFD_CLOEXEC))

    @classmethod
    def of_run(cls, descriptor: int) -> SharedMemory:
        """In a host: the memory of the run, whose descriptor is closed before an FMU could write into it."""
        memory = cls(-1)
        memory._whole = _mapped(descriptor, 0, _room())
        os.close(descriptor)
        return memory

    def allocate(self, size: int) -> tuple[int, int, int]:
        """Room for so many bytes: begin and size of its part, and where it lies in it."""
        size = -(-max(size, 1) // _LINE) * _LINE
        if not self._parts or self._used + size > len(self._parts[self._size_before]):
            self._size_before = self._size
            length = -(-max(size, _PART) // _PART) * _PART
            self._size += length
            os.ftruncate(self.descriptor, self._size)
            self.part(self._size_before, length)
            self._used = 0
        at, self._used = self._used, self._used + size
        return self._size_before, len(self._parts[self._size_before]), at

    _size_before = 0
    """Begin of the last part."""
    _whole: ctypes.Array[ctypes.c_char] | None = None
    """Of a host: all parts, also those that do not exist yet."""

    def part(self, begin: int, length: int) -> ctypes.Array[ctypes.c_char]:
        """A part, from its begin; the other process has allocated it."""
        if begin not in self._parts:
            self._parts[begin] = (
                _mapped(self.descriptor, begin, length)
                if self._whole is None
                else (ctypes.c_char * length).from_buffer(self._whole, begin)
            )
        return self._parts[begin]

    def array(self, room: tuple[int, int, int], kind: Any, n: int) -> NDArray[Any]:
        """Allocated room as an array of n elements."""
        begin, length, at = room
        return np.frombuffer(memoryview(self.part(begin, length)), kind, n, at)

    def close(self) -> None:
        """Close the descriptor; parts live as long as arrays in them."""
        os.close(self.descriptor)
        self._parts.clear()


def _room() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return _MOST
    return min(_MOST, limit // _SHARE // _PART * _PART)


@cache
def _c() -> ctypes.CDLL:
    c = ctypes.CDLL(None, use_errno=True)
    c.mmap.restype = ctypes.c_void_p
    c.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return c


def _mapped(descriptor: int, begin: int, length: int) -> ctypes.Array[ctypes.c_char]:
    """Memory of this process; unmapped when the last array in it is deleted.

    ``mmap.mmap`` keeps a copy of the descriptor (until Python 3.13, ``trackfd``). Arrays of a run are in cycles, so that
    each run would leave descriptors open until garbage is collected.
    """
    access = PROT_READ | PROT_WRITE
    address = _c().mmap(None, length, access, MAP_SHARED, descriptor, begin)
    if address == ctypes.c_void_p(-1).value:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    part = (ctypes.c_char * length).from_address(address)
    weakref.finalize(part, _c().munmap, address, length).atexit = False
    return part
