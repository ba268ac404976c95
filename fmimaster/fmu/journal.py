"""The calls of an instance as data, and their repetition on another instance of the same FMU.

A journal brings a new instance to the state of an old one whose state cannot be written to a file, or whose process has
ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from math import isnan, nan
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.inputs.polynomial import Polynomials
from fmimaster.system.model import DataType


class Entry(IntEnum):
    """Kinds of entries of a journal: calls that change an instance, or may change it."""

    SET = 0
    GET = 1
    DERIVE = 2
    POLYNOMIALS = 3
    ENTER_CONFIGURATION_MODE = 4
    EXIT_CONFIGURATION_MODE = 5
    ENTER_INITIALIZATION_MODE = 6
    ENTER_EVENT_MODE = 7
    ENTER_STEP_MODE = 8
    UPDATE = 9
    STEP = 10
    DESERIALIZE = 11
    INTERVALS = 12
    SET_INTERVAL = 13
    SET_SHIFT = 14


_WITH_VARIABLES = frozenset(
    {Entry.SET, Entry.GET, Entry.DERIVE, Entry.POLYNOMIALS, Entry.INTERVALS}
)
"""Kinds of entries that have a number of variables."""


class Transferred(NamedTuple):
    """The variables of SET, GET, DERIVE, POLYNOMIALS or INTERVALS.

    Parameters
    ----------
    references : value references; of DERIVE: of the unknowns
    size : number of elements; of DERIVE: of the unknowns
    knowns, n_knowns : of DERIVE
    """

    entry: Entry
    kind: DataType
    references: tuple[int, ...]
    size: int
    knowns: tuple[int, ...] = ()
    n_knowns: int = 0


_HEAD = Struct("<BHI")
"""An entry: its kind, the number of its variables, and the length of its content in bytes."""
_STEP = Struct("<ddd?")
"""Content of STEP: time, size and reached time in s (NaN: its end), and whether an earlier state may be restored."""
_EXPERIMENT = Struct("<ddd")
"""Content of ENTER_INITIALIZATION_MODE: start, stop, tolerance; NaN for None."""
_CENTRE = Struct("<dd")
"""Start of the content of POLYNOMIALS: time and centre in s; the coefficients follow."""
_LENGTH = Struct("<I")


@dataclass(eq=False)
class _Trunk:
    """Entries from the instantiation on, or from a serialized state on."""

    state: bytes | None = None
    entries: bytearray = field(default_factory=bytearray)


@dataclass
class _Place:
    """The history of a saved state: the first entries of a trunk, and others that are not there any more."""

    trunk: _Trunk
    at: int
    tail: bytes = b""


class Journal:
    """The calls that led an instance from its instantiation to its present state, and to its saved states.

    A state that is restored cuts the journal back to its save. The journal may begin anew with a serialized state, so that
    it stays short; the entries of the initialization are kept, because a state is restored in an initialized instance.
    """

    def __init__(self) -> None:
        self._is_open = True
        self.transfers: list[Transferred] = []
        self._numbers: dict[Transferred, int] = {}
        self._opening = b""
        """Entries of the initialization, if a trunk begins with a serialized state."""
        self._trunk = _Trunk()
        self._places: dict[int, _Place] = {}
        self.unchanged = 0
        """Length of the first part of :attr:`entries` that was not cut since this number was set to its length."""

    @property
    def entries(self) -> bytearray:
        """The present entries from the instantiation, or the serialized state, on."""
        return self._trunk.entries

    @property
    def state(self) -> bytes | None:
        """The serialized state with which it begins; None for the instantiation."""
        return self._trunk.state

    def number(self, transferred: Transferred) -> int:
        """The number by which entries name these variables."""
        number = self._numbers.setdefault(transferred, len(self.transfers))
        if number == len(self.transfers):
            self.transfers.append(transferred)
        return number

    def add(self, entry: Entry, content: bytes = b"", number: int = 0) -> None:
        """Add a call that has succeeded."""
        if self._is_open:
            self._trunk.entries += _HEAD.pack(entry, number, len(content)) + content

    def save(self, place: int) -> None:
        """The present state was saved in a place."""
        self._places[place] = _Place(self._trunk, len(self._trunk.entries))

    def restore(self, place: int) -> None:
        """The state of a place was restored: what came after it did not happen."""
        chosen = self._places[place]
        trunk, at = chosen.trunk, chosen.at
        if trunk is not self._trunk:
            self.unchanged = 0
        self.unchanged = min(self.unchanged, at)
        for other in self._places.values():
            if other.trunk is trunk and other.at > at:
                other.tail = bytes(trunk.entries[at : other.at]) + other.tail
                other.at = at
        del trunk.entries[at:]
        trunk.entries += chosen.tail
        chosen.at, chosen.tail = len(trunk.entries), b""
        self._trunk = trunk

    def begin_anew(self, state: bytes) -> None:
        """The present state, in Step Mode, has been serialized: the journal begins with it.

        Saved states keep the entries that they need.
        """
        if self._trunk.state is None:
            self._opening = bytes(self._trunk.entries)
        self._trunk = _Trunk(state)
        self.unchanged = 0

    def reset(self) -> None:
        """The instance is as after its instantiation. Saved states keep the entries that they need."""
        self._trunk = _Trunk()
        self.unchanged = 0

    def close(self) -> None:
        """Forget all entries and take no more."""
        self._is_open = False
        self._trunk = _Trunk()
        self._places = dict.fromkeys(self._places, _Place(self._trunk, 0))

    def extend(self, entries: bytes) -> None:
        """Add entries of another journal with the same transfers."""
        self._trunk.entries += entries

    @property
    def places(self) -> Collection[int]:
        """Places in which states were saved."""
        return self._places.keys()

    @property
    def opening(self) -> bytes:
        """The entries of the initialization, if the journal has begun anew with a serialized state since."""
        return b"" if self._trunk.state is None else self._opening

    def histories(self) -> Iterator[History]:
        """The histories of saved states, and at last that of the present state."""
        others = {id(p.trunk): p.trunk for p in self._places.values()}
        others.pop(id(self._trunk), None)
        for trunk in (*others.values(), self._trunk):
            # states that were saved before a serialized state in Step Mode belong to the initialization
            if (trunk.state is None) is (self._trunk.state is None):
                saved = [
                    (p.at, place, p.tail) for place, p in self._places.items() if p.trunk is trunk
                ]
                end = len(trunk.entries) if trunk is self._trunk else 0
                yield History(trunk.state, bytes(trunk.entries), end, sorted(saved))


class History(NamedTuple):
    """What leads an initialized instance, or a new one if there is no serialized state, to several states.

    Parameters
    ----------
    state : serialized state with which it begins; None for a new instance
    entries : bytes
    end : number of bytes up to the present state
    saved : (number of bytes, place, further entries), in order
        How each saved state is reached.
    """

    state: bytes | None
    entries: bytes
    end: int
    saved: list[tuple[int, int, bytes]]


# Content of entries ---------------------------------------------------------------------------------------------------


def packed(values: NDArray[Any]) -> bytes:
    """Values of any type as bytes."""
    if values.dtype != object:
        return values.tobytes()
    parts = [v.encode() if isinstance(v, str) else bytes(v) for v in values.tolist()]
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def unpacked(kind: DataType, content: bytes) -> NDArray[Any]:
    """The values of :func:`packed`; shape (number of elements,)."""
    if kind.dtype != object:
        return np.frombuffer(content, kind.dtype)
    found, at = list[str | bytes](), 0
    while at < len(content):
        (length,) = _LENGTH.unpack_from(content, at)
        part = content[at + _LENGTH.size : at + _LENGTH.size + length]
        found.append(part.decode() if kind is DataType.STRING else part)
        at += _LENGTH.size + length
    return np.array([*found, None], object)[:-1]


def packed_polynomials(time: float, polynomials: Polynomials) -> bytes:
    """Polynomials that are given from a time in s on."""
    return _CENTRE.pack(time, polynomials.centre) + polynomials.coefficients.tobytes()


def unpacked_polynomials(content: bytes, n: int) -> tuple[float, Polynomials]:
    """The time and the polynomials of :func:`packed_polynomials`, of n inputs."""
    time, centre = _CENTRE.unpack_from(content)
    coefficients = np.frombuffer(content, offset=_CENTRE.size).reshape(-1, n)
    return time, Polynomials(coefficients, centre)


def packed_step(time: float, size: float, reached: float | None, may_go_back: bool) -> bytes:
    """A step: see ``_STEP``."""
    return _STEP.pack(time, size, nan if reached is None else reached, may_go_back)


def unpacked_step(content: bytes) -> tuple[float, float, float | None, bool]:
    """The arguments of :func:`packed_step`."""
    time, size, reached, may_go_back = _STEP.unpack(content)
    return time, size, None if isnan(reached) else reached, may_go_back


def packed_time(clock: int, seconds: Fraction) -> bytes:
    """An interval or a shift in s that is set for a clock, by its value reference."""
    return f"{clock} {seconds}".encode()


def unpacked_time(content: bytes) -> tuple[int, Fraction]:
    """The arguments of :func:`packed_time`."""
    clock, seconds = content.decode().split()
    return int(clock), Fraction(seconds)


def packed_experiment(start: float, stop: float | None, tolerance: float | None) -> bytes:
    """Start, stop and tolerance of an experiment."""
    return _EXPERIMENT.pack(start, *(nan if v is None else v for v in (stop, tolerance)))


def unpacked_experiment(content: bytes) -> tuple[float, float | None, float | None]:
    """The arguments of :func:`packed_experiment`."""
    start, stop, tolerance = _EXPERIMENT.unpack(content)
    return start, None if isnan(stop) else stop, None if isnan(tolerance) else tolerance


def entries_of(content: bytes) -> Iterator[tuple[Entry, int, bytes]]:
    """Each entry: its kind, the number of its variables, and its content."""
    at = 0
    while at < len(content):
        kind, number, length = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        yield Entry(kind), number, content[at : at + length]
        at += length


def renumbered(content: bytes, numbers: Sequence[int]) -> bytes:
    """Entries with other numbers of variables: the k-th number in place of k."""
    if list(numbers) == list(range(len(numbers))):
        return content
    found = bytearray()
    for entry, number, part in entries_of(content):
        of = numbers[number] if entry in _WITH_VARIABLES else 0
        found += _HEAD.pack(entry, of, len(part)) + part
    return bytes(found)
