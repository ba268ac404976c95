"""A run as an image: what the kernel borrows for it, so that it runs elsewhere without Python.

The image has *blocks*, pieces of memory as they lie here, and says where in them addresses stand: of places in other
blocks, of functions of the kernel, of calls of FMUs. ``kernel/system_image.c`` loads it; both files define the format. It
is the same for each 64-bit platform with little-endian numbers.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.export.memory import Memory, Place, number
from fmimaster.export.walk import Unknown, Walk
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.program.instructions.base import Program
from fmimaster.run.native.executor import NativeExecutor
from fmimaster.run.native.fmu_entry import FmuEntry
from fmimaster.run.native.header import TYPES
from fmimaster.system.model import DataType

MAGIC = b"FMIMAGE\0"
VERSION = 1

ROWS = 1024
"""Rows for whose times an image has room; values are not kept in them."""

NOWHERE = 2**64 - 1
"""In place of the number of a block."""

_ADDRESS = 8
"""Bytes of an address."""


class ImageVariable(NamedTuple):
    """A variable of the system: one of an instance.

    Attributes
    ----------
    value : DataType, slice or None
        Where its value lies after a step, in the value store; None if it is read from the FMU.
    starts : sequence of DataType, slice or None
        Where its start value lies that is set before Initialization Mode, and that is set in it.
    """

    instance: int
    type: DataType
    reference: int
    size: int
    value: tuple[DataType, slice] | None = None
    starts: Sequence[tuple[DataType, slice] | None] = (None, None)


class StartText(NamedTuple):
    """The start value of a text or binary variable, of each element: an FMU gets it when it is instantiated."""

    instance: int
    type: DataType
    reference: int
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Member:
    """An FMU of the system, as it is loaded and instantiated where the image runs.

    Parameters
    ----------
    folder : str
        That has it: relative to the folder of the image, or absolute.
    version : int
        Of FMI.
    name, identifier, token : str
        Of the instance, model identifier, instantiation token.
    required : sequence of int
        Value references of the inputs that it requests in Intermediate Update Mode.
    """

    folder: str
    version: int
    name: str
    identifier: str
    token: str
    required: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ImageGrid:
    """The points of a grid: ``(start + n * step + offset) / resolution`` in s, all of them integers."""

    resolution: int
    start: int
    step: int
    offsets: Sequence[int]


@dataclass(frozen=True, slots=True)
class ImageParts:
    """What of a run becomes an image.

    Parameters
    ----------
    programs : sequence of Program
        Into Initialization Mode; the values there; into Step Mode; the first attempt; the commit; the rollback; the end.
    attempts : sequence of Program
        Of the intervals of the grid, again and again.
    """

    programs: Sequence[Program]
    attempts: Sequence[Program]
    grid: ImageGrid
    members: Sequence[Member]
    variables: Sequence[ImageVariable]
    texts: Sequence[StartText]
    n_places: int
    n_buffers: int


def write_image(executor: NativeExecutor, parts: ImageParts) -> bytes:
    """The image of a run that has not begun.

    Raises
    ------
    Unknown
        If something is in Python, or cannot be in an image.
    """
    if sys.byteorder != "little" or ffi.sizeof("void *") != _ADDRESS:
        raise Unknown("an image has little-endian numbers and addresses of 64 bits")
    kernel = executor.kernel
    entries = [entry for entry in executor.entries if isinstance(entry, FmuEntry)]
    assert len(entries) == len(parts.members)
    codes = [executor.encoded(program) for program in (*parts.programs, *parts.attempts)]
    times = np.zeros(ROWS)
    kernel.times, kernel.row_capacity = ffi.from_buffer("double[]", times), ROWS
    kernel.n_rows = kernel.n_columns = kernel.n_sampled = kernel.n_clocks = kernel.looked.n = 0
    kernel.threaded = kernel.overlaps = 0
    memory = Memory([*executor.lent(), times, kernel])
    components = {number(entry.component): i for i, entry in enumerate(entries)}
    walk = Walk(memory, components, [member.version for member in parts.members])
    places = [walk.look_at("fm_kernel", number(kernel), "kernel")]
    places += [walk.look_at("fm_instruction", number(code), "program") for code in codes]
    fmus = [walk.look_at("fm_fmu", number(entry.fmu), entry.instance.name) for entry in entries]
    for array in executor.store.values.values():
        if (place := memory.place(array.ctypes.data)) is not None:
            walk.reach(place)
    kept = [place for entry in entries for place in walk.saved_states(entry.fmu)]
    out = _Writer(memory, walk)
    out.header(MAGIC, VERSION, bytes.fromhex(ffi.string(lib.fm_kernel_hash).decode()))
    out.numbers(ffi.sizeof("fm_kernel"), ffi.sizeof("fm_instruction"), kernel.n_instances)
    out.blocks()
    out.places(walk.addresses + kept)
    out.table([(*out.at(here), *out.at(target)) for here, target in walk.relocations])
    names = sorted({name for _, name in walk.functions})
    out.numbers(len(names))
    for name in names:
        out.text(name)
    out.table([(*out.at(here), names.index(name)) for here, name in walk.functions])
    for calls in (walk.calls, walk.derivatives):
        out.table([(*out.at(call.place), call.instance, call.which) for call in calls])
    out.table([out.at(place) for place in places])
    grid = parts.grid
    out.numbers(grid.resolution, grid.start, grid.step)
    out.table([(offset,) for offset in grid.offsets])
    out.numbers(parts.n_places, parts.n_buffers)
    for member, fmu in zip(parts.members, fmus, strict=True):
        out.numbers(*out.at(fmu), member.version)
        for text in (member.folder, member.name, member.identifier, member.token):
            out.text(text)
        out.table([(reference,) for reference in member.required])
    out.table([_variable(out, executor, v) for v in parts.variables])
    out.numbers(len(parts.texts))
    for one in parts.texts:
        out.numbers(one.instance, TYPES[one.type], one.reference, len(one.values))
        for value in one.values:
            out.text(value)
    out.contents()
    out.numbers(crc32(out.bytes))
    return bytes(out.bytes)


def _variable(out: _Writer, executor: NativeExecutor, v: ImageVariable) -> Sequence[int]:
    """The row of a variable: instance, type, reference, size, place of the value, two places of start values."""
    found = [v.value, *v.starts]
    places = [NOWHERE, 0] * 3
    for k, slot in enumerate(found):
        if slot is not None:
            kind, part = slot
            array = executor.store.values[kind]
            place = out.memory.place(array.ctypes.data + part.start * array.itemsize)
            assert place is not None
            places[2 * k : 2 * k + 2] = out.at(place)
    return v.instance, TYPES[v.type], v.reference, v.size, *places


class _Writer:
    """Writes an image; blocks that nothing points to are left out."""

    def __init__(self, memory: Memory, walk: Walk) -> None:
        self.memory = memory
        self._walk = walk
        self.bytes = bytearray()

    def at(self, place: Place) -> tuple[int, int]:
        """A place by the number of its block in the image."""
        return self._walk.numbers[place.block], place.offset

    def header(self, magic: bytes, version: int, digest: bytes) -> None:
        self.bytes += magic
        self.numbers(version)
        self.bytes += digest

    def numbers(self, *values: int) -> None:
        self.bytes += struct.pack(f"<{len(values)}Q", *(v % 2**64 for v in values))

    def table(self, rows: Sequence[Sequence[int]]) -> None:
        """The number of rows, and these."""
        self.numbers(len(rows), *(value for row in rows for value in row))

    def places(self, places: Iterable[Place]) -> None:
        self.table(sorted({self.at(place) for place in places}))

    def text(self, text: str | bytes) -> None:
        """A text with its length, and a null at its end."""
        content = text.encode() if isinstance(text, str) else text
        self.numbers(len(content))
        self.bytes += content + b"\0"

    def blocks(self) -> None:
        """The sizes of the blocks."""
        self.table([(self.memory.bounds(block)[1],) for block in self._walk.numbers])

    def contents(self) -> None:
        """Their bytes; addresses are 0."""
        contents = {block: self.memory.content(block) for block in self._walk.numbers}
        for block, offset in self._walk.addresses:
            contents[block][offset : offset + _ADDRESS] = bytes(_ADDRESS)
        for content in contents.values():
            self.bytes += content
