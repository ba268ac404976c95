"""Tracks the outputs in the value store while a program is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from fmimaster.plan.layout import Group
from fmimaster.program.effects import Effects

AHEAD = 1e-12
"""Fractions of the interval that differ by no more are the same."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of all instances at one place of the program."""

    number: int
    """Other outputs have another number."""
    read: Mapping[int, float]
    """Instance → fraction of the interval at which its outputs were read."""
    otherwise: float
    """The fraction for all other instances: 0 at the start; inf where a repetition starts, since it is not known there."""

    def are_ahead(self, instances: Iterable[int], fraction: float) -> bool:
        """Whether the outputs of one of these instances were read after a fraction of the interval."""
        return any(self.read.get(i, self.otherwise) > fraction + AHEAD for i in instances)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a program: the whole one, or one inside another."""

    begin: float
    end: float
    line: int
    """Where a KEEP of the outputs at its start has its place."""
    outputs: Outputs
    """At its start."""


@dataclass
class Trace(Effects):
    """Times of instances, read times of their outputs, and the contents of buffers, in the first pass of each
    repetition."""

    kept: dict[int, int] = field(default_factory=dict)
    """Number of outputs → the buffer that holds them."""
    _stands: dict[int, float] = field(default_factory=dict)
    _places: dict[int, float] = field(default_factory=dict)
    _read: dict[int, float] = field(default_factory=dict)
    _otherwise: float = 0.0
    _number: int = 0
    _last: int = 0
    _buffers: dict[int, Outputs] = field(default_factory=dict)

    def outputs(self) -> Outputs:
        """The outputs here."""
        return Outputs(self._number, dict(self._read), self._otherwise)

    def is_ahead(self, instance: int, fraction: float) -> bool:
        """Whether the outputs of an instance here were read after a fraction of the interval."""
        return self._read.get(instance, self._otherwise) > fraction + AHEAD

    def change(self) -> None:
        """The outputs, or other values stored by KEEP, may differ from here on."""
        self._last += 1
        self._number = self._last

    def step(self, i: int, end: float) -> None:
        """The instance has stepped."""
        self._stands[i] = end
        self.change()

    def get(self, i: int, group: Group) -> None:
        """Outputs of the instance have been read."""
        if group in (Group.OUTPUTS, Group.SOURCES):
            self._read[i] = self._stands.get(i, 0.0)
            self.change()

    def align(self, i: int) -> None:
        """The outputs of the instance may have been read again."""
        self.change()

    def save(self, i: int, place: int) -> None:
        """The instance has been saved."""
        self._places[place] = self._stands.get(i, 0.0)

    def restore(self, i: int, place: int) -> None:
        """The instance has been restored."""
        self._stands[i] = self._places.get(place, 0.0)

    def keep(self, buffer: int) -> None:
        """A buffer holds the outputs, in place of what it held before."""
        self.kept = {number: b for number, b in self.kept.items() if b != buffer}
        self.hold(buffer, self.outputs())

    def hold(self, buffer: int, outputs: Outputs) -> None:
        """A buffer that is not used yet holds these outputs."""
        self.kept[outputs.number] = buffer
        self._buffers[buffer] = outputs

    def recall(self, buffer: int) -> None:
        """The outputs are those of a buffer again."""
        known = self._buffers.get(buffer)
        if known is None:
            self.change()
            return
        self._number, self._otherwise = known.number, known.otherwise
        self._read = dict(known.read)

    def revert(self, i: int, buffer: int) -> None:
        """The outputs of one instance are those of a buffer again."""
        known = self._buffers.get(buffer)
        before = inf if known is None else known.read.get(i, known.otherwise)
        self._read[i] = before
        self.change()

    def repeat(self) -> None:
        """A repetition starts: its second pass finds other outputs than the first."""
        self._read, self._otherwise = {}, inf
        self.change()
