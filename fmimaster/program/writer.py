"""Writes instructions one after the other: intervals, places, buffers, repetitions; and tracks the outputs in the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from math import inf

from fmimaster.base.data import dataclass
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.program.instructions.outputs import Forget, Keep, Recall, Remember, Revert, Sample
from fmimaster.program.instructions.steps import Repeat, Restore, Save, Until
from fmimaster.program.knowledge import Effects

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


class Writer:
    """Numbers places and buffers, and follows what it writes: which buffer holds which outputs.

    Parameters
    ----------
    plan : Plan
    history : int
        Number of accepted points in the history.

    Attributes
    ----------
    n_places, n_buffers : int
        How many were numbered so far.
    begin_buffer : int or None
        Buffer of the outputs at the start of the interval of the last program, if it keeps them.
    between : list of int
        Buffers of outputs inside the interval that an accepted attempt leaves to the history, the earliest first.
    """

    def __init__(self, plan: Plan, history: int) -> None:
        self.plan = plan
        self.history = history
        self.n_places = 0
        self.n_buffers = 0
        self.begin_buffer: int | None = None
        self.between: list[int] = []
        self._start()

    def _start(self) -> None:
        """Start a program, over the whole interval."""
        self._instructions: list[Instruction | None] = []
        self._trace = Trace()
        self._intervals: list[Interval] = []
        self._saved: dict[int, int] = {}
        self._wants_begin = self._until_jumps = False
        self._n_between = 0
        self._enter(0.0, 1.0)

    def program(self, name: str) -> Program:
        """The program with all instructions since the last call."""
        written = tuple(i for i in self._instructions if i is not None)
        self.begin_buffer = self._trace.kept.get(self._intervals[0].outputs.number)
        self._start()
        return Program(name, written)

    # The interval

    @contextmanager
    def over(self, begin: float, end: float) -> Iterator[None]:
        """Use a part of the interval inside this context: fractions of the present one. Contexts can be nested."""
        outer = self._intervals[-1]
        length = outer.end - outer.begin
        self._enter(outer.begin + begin * length, outer.begin + end * length)
        yield
        self._intervals.pop()

    @property
    def end(self) -> float:
        """End of the present interval, as a fraction of the whole one."""
        return self._intervals[-1].end

    def _enter(self, begin: float, end: float) -> None:
        line = len(self._instructions)
        self._instructions.append(None)  # the place of a KEEP, if a polynomial needs it
        self._intervals.append(Interval(begin, end, line, self._trace.outputs()))

    def write(self, instruction: Instruction) -> None:
        """Write an instruction that needs no number."""
        self._instructions.append(instruction)
        instruction.effect(self._trace)

    # Going back

    def save(self, instances: Iterable[int]) -> dict[int, int]:
        """Save the FMU states of these instances; returns instance → place, for :meth:`restore`."""
        instances = list(instances)
        for instance in instances:
            if instance not in self._saved:  # or it has not moved since
                self.write(Save(instance, self.n_places))
                self._saved[instance] = self.n_places
                self.n_places += 1
        return {instance: self._saved[instance] for instance in instances}

    def restore(self, places: dict[int, int]) -> None:
        """Restore FMU states that :meth:`save` has saved."""
        for instance, place in places.items():
            self.write(Restore(instance, place))
            self._saved[instance] = place

    def keep(self) -> int:
        """Keep all outputs in a buffer, whose number is returned; outputs that are kept already are not kept again."""
        outputs = self._trace.outputs()
        if outputs.number not in self._trace.kept:
            self.write(Keep(self.new_buffer()))
        return self._trace.kept[outputs.number]

    def recall(self, buffer: int) -> None:
        """All outputs ← buffer."""
        self.write(Recall(buffer))

    @contextmanager
    def through_begin(self) -> Iterator[None]:
        """Context in which all polynomials also go through the outputs at the start of the interval."""
        outer, self._wants_begin = self._wants_begin, True
        yield
        self._wants_begin = outer

    @contextmanager
    def until_jumps(self) -> Iterator[None]:
        """Context in which discrete signals that have stepped to a jump that is known before still have the value before
        it."""
        outer, self._until_jumps = self._until_jumps, True
        yield
        self._until_jumps = outer

    @contextmanager
    def reverted(self, instances: Mapping[int, int]) -> Iterator[None]:
        """Context in which the outputs of these instances are those of a buffer: instance → buffer."""
        now = self.keep() if instances else 0
        for instance, buffer in instances.items():
            self.revert(instance, buffer)
        yield
        for instance in instances:
            self.revert(instance, now)

    @contextmanager
    def as_at_the_start(self, instances: Iterable[int]) -> Iterator[None]:
        """Context in which the outputs of these instances are those at the start of the whole interval."""
        whole = self._intervals[0]
        ahead = sorted(i for i in set(instances) if self._trace.is_ahead(i, whole.begin))
        with self.reverted({i: self._begin(whole) for i in ahead}):
            yield

    def revert(self, instance: int, buffer: int) -> None:
        """Outputs of one instance, and when they were read ← buffer."""
        self.write(Revert(instance, buffer))

    def new_buffer(self) -> int:
        """Number of a buffer for :meth:`keep_in`."""
        self.n_buffers += 1
        return self.n_buffers - 1

    def keep_in(self, buffer: int) -> None:
        """Keep all outputs in a buffer, in place of what was kept there before."""
        self.write(Keep(buffer))

    def keep_between(self) -> None:
        """Keep all outputs as a point of the history between the start of the step and its end, once it is accepted.

        All variants of an algorithm that keep such points must keep equally many.
        """
        if self._n_between == len(self.between):
            self.between.append(self.new_buffer())
        self.keep_in(self.between[self._n_between])
        self._n_between += 1

    def keep_begin(self) -> int:
        """Keep the outputs at the start of the present interval, also if steps were written since; returns the
        buffer."""
        return self._begin(self._intervals[-1])

    def _begin(self, interval: Interval) -> int:
        """Buffer of the outputs at the start of an interval."""
        kept = self._trace.kept
        if interval.outputs.number not in kept:
            buffer = self.new_buffer()
            self._instructions[interval.line] = Keep(buffer)
            self._trace.hold(buffer, interval.outputs)
        return kept[interval.outputs.number]

    def keep_begins(self, instance: int) -> tuple[int, ...]:
        """Keep the outputs at the start of the present interval, and of those around it; returns the buffers.

        The start of an interval further out gives a polynomial a point before the present one, which would make it
        extrapolate. It is taken only if a source is ahead already, so that it must be interpolated.
        """
        sources = self.plan.sources[instance]
        buffers: dict[int, None] = {}
        for interval in reversed(self._intervals):
            buffers[self._begin(interval)] = None
            if not interval.outputs.are_ahead(sources, interval.begin):
                break
        return tuple(buffers)

    # History and results

    def remember(self, buffer: int | None = None) -> None:
        """The outputs, or those of a buffer, become the newest point of the history; nothing if there is none."""
        if self.history:
            self.write(Remember(buffer))

    def forget(self) -> None:
        """Remove all points before this instant from the history."""
        if self.history:
            self.write(Forget())

    def sample(self) -> None:
        """Record a row."""
        self.write(Sample())

    # Iterating

    @contextmanager
    def repeat(
        self, *, least: int, most: int, tolerance: float, bounded: bool = False
    ) -> Iterator[None]:
        """Repeat the instructions written inside until the outputs have converged; see UNTIL."""
        self.write(Repeat(least, most, bounded))
        self._saved = {}  # the next pass starts with other states
        yield
        self.write(Until(tolerance))
