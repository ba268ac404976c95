"""The calls of an instance as data, from which another instance of the same FMU repeats them.

A journal brings a new instance to the state of an old one whose state cannot be written to a file, or whose process has
ended. Values that were read are in it, too: reading changes some FMUs, and their comparison measures how exact the
repetition is. The calls of CVODE are kept even if the FMU can save its state: CVODE remembers earlier steps, and to start
it anew at each checkpoint would change the results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from math import isnan, nan
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.apart.plain import decoded, encoded
from fmimaster.base.data import dataclass
from fmimaster.fmu.around import ARGUMENTS
from fmimaster.inputs.polynomial import Polynomials
from fmimaster.system.model import DataType


class Noted(NamedTuple):
    """What entries repeat: a method of an instance, or a function that it has made for variables.

    Parameters
    ----------
    method : name of a method of :class:`fmimaster.fmu.instance.Instance`
    kind : type of the variables
    references : value references; of ``directional_derivative``: of the unknowns
    size : number of elements; of ``directional_derivative``: of the unknowns
    knowns, n_knowns : of ``directional_derivative``
    """

    method: str
    kind: DataType = DataType.FLOAT64
    references: tuple[int, ...] = ()
    size: int = 0
    knowns: tuple[int, ...] = ()
    n_knowns: int = 0


_HEAD = Struct("<HI")
"""An entry: the number of what it repeats, and the length of its content in bytes."""
_STEP = Struct("<ddd?")
"""Content of a step: time, size and reached time in s (NaN: its end), and whether an earlier state may be restored."""
_CENTRE = Struct("<dd")
"""Start of the content of polynomials: time and centre in s; the coefficients follow."""
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
        self.noted: list[Noted] = []
        self._numbers: dict[Noted, int] = {}
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

    def number(self, noted: Noted) -> int:
        """The number by which entries name what they repeat."""
        number = self._numbers.setdefault(noted, len(self.noted))
        if number == len(self.noted):
            self.noted.append(noted)
        return number

    def add(self, number: int, content: bytes = b"") -> None:
        """Add a call that has succeeded."""
        if self._is_open:
            self._trunk.entries += _HEAD.pack(number, len(content)) + content

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
        """Add entries of another journal in which the same is noted."""
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


def _packed_polynomials(time: float, polynomials: Polynomials) -> bytes:
    """Polynomials that are given from a time in s on."""
    return _CENTRE.pack(time, polynomials.centre) + polynomials.coefficients.tobytes()


def unpacked_polynomials(content: bytes, n: int) -> tuple[float, Polynomials]:
    """The time and the polynomials of :func:`_packed_polynomials`, of n inputs."""
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


def packed_arguments(*arguments: Any) -> bytes:
    """The arguments of any other method."""
    return encoded(arguments) if arguments else b""


def unpacked_arguments(method: str, content: bytes) -> tuple[Any, ...]:
    """The arguments of :func:`packed_arguments`."""
    kind: Any = tuple[ARGUMENTS[method]]  # type: ignore[valid-type]
    found: tuple[Any, ...] = decoded(kind, content) if content else ()
    return found


def noted_transfer(name: str, *made: Any) -> tuple[Noted, Callable[..., bytes]]:
    """What is noted of a function that a method has made, and what packs the content of its entries.

    Reading changes some FMUs, and an FMU tells intervals once: these are noted too.
    """
    match name:
        case "directional_derivative":
            unknowns, knowns, seed, sensitivity = made
            sizes = len(sensitivity), tuple(knowns), len(seed)
            return Noted(name, DataType.FLOAT64, tuple(unknowns), *sizes), lambda: packed(seed)
        case "polynomial_setter":
            references = tuple(made[0])
            return Noted(name, DataType.FLOAT64, references, len(references)), _packed_polynomials
        case "intervals":
            clocks = tuple(made[0])
            return Noted(name, DataType.CLOCK, clocks, len(clocks)), bytes
        case _:
            kind, references, values = made
            return Noted(name, kind, tuple(references), len(values)), lambda: packed(values)


def entries_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Each entry: the number of what it repeats, and its content."""
    at = 0
    while at < len(content):
        number, length = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        yield number, content[at : at + length]
        at += length


def renumbered(content: bytes, numbers: Sequence[int]) -> bytes:
    """Entries with other numbers: the k-th number in place of k."""
    if list(numbers) == list(range(len(numbers))):
        return content
    found = bytearray()
    for number, part in entries_of(content):
        found += _HEAD.pack(numbers[number], len(part)) + part
    return bytes(found)
