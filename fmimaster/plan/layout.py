"""The place of every value of a run: slots and groups.

Each type has one array. It holds first the outputs of all instances and the signals of the run, which can be copied at
once, then the values that are read at events, and then all other groups. One group of one instance is one FMI call per
type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import IntEnum
from itertools import groupby
from typing import TYPE_CHECKING

from fmimaster.base.data import dataclass
from fmimaster.system.model import DataType, Transformation, Variable, is_lossless

if TYPE_CHECKING:
    from fmimaster.system.resolved import Link


class Group(IntEnum):
    """Groups of an instance's variables; the members of one are contiguous in the value store, per type."""

    STRUCTURAL = 0
    """Structural parameters with a given value; set in Configuration Mode."""
    START = 1
    """All other variables with a given value; set before Initialization Mode."""
    INITIAL = 2
    """Those of them that can be set in Initialization Mode; set again inside it."""
    CONTINUOUS = 3
    """Connected continuous inputs."""
    DISCRETE = 4
    """Connected inputs of all other kinds."""
    OUTPUTS = 5
    """Variables that feed others or are recorded."""
    TRIGGERS = 6
    """Input clocks, or counters in their place, with the inputs that are set together with them, at events."""
    CLOCKS = 7
    """Output clocks that others need or that are recorded; read at events."""
    SETTINGS = 8
    """Parameters for what an FMU does at its own events, and for inputs that come as coefficients; set before the run, and
    when the variant of the algorithm changes."""
    CLOCKED = 9
    """Outputs that have a value only while a clock of theirs is active; read at events."""
    SOURCES = 10
    """Those of the OUTPUTS that other instances need at the start, at the same places; read in Initialization Mode, where
    all others are left alone: some FMUs advance discrete tasks at each read."""

    PARAMETERS = 11
    """Connected parameters; set in Initialization Mode only."""

    INPUT_CLOCKS = 12
    """Input clocks that others need or that are recorded: whether each was active in the last event iteration; SET TRIGGERS
    writes it."""
    INTERVALS = 13
    """Time-based clocks whose intervals the FMU tells; see :attr:`ValueStore.intervals`."""
    FORCES = 14
    """Inputs for the forces at contacts, with their coefficients: the run determines them."""


AREAS = ((Group.OUTPUTS,), (Group.CLOCKED, Group.CLOCKS, Group.INPUT_CLOCKS))
"""Groups of values that can be read, in the order of their areas; all other groups come behind them."""

SET_IN_A_RUN = (
    Group.CONTINUOUS,
    Group.DISCRETE,
    Group.PARAMETERS,
    Group.TRIGGERS,
    Group.SETTINGS,
    Group.CLOCKED,
    Group.FORCES,
)
"""Variables with these get their values from connections, or from the method of the run: users cannot set them."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A Float64 value of the run that a hook writes: it is copied with the outputs, and can be recorded like them."""

    name: str
    unit: str = ""
    is_recorded: bool = True
    """Whether it can be recorded; otherwise it is the memory of a hook between steps."""
    is_mark: bool = False
    """Whether it qualifies the rows: it is recorded whatever a user has chosen."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The variables of one type in one group: a contiguous range of that type's array, and one FMI call."""

    type: DataType
    start: int
    stop: int
    variables: tuple[Variable, ...]

    @property
    def value_references(self) -> tuple[int, ...]:
        """Value references of the variables, in the order of the values."""
        return tuple(v.value_reference for v in self.variables)

    def slots(self) -> dict[str, slice]:
        """Variable name → its range in the array of its type."""
        found, at = {}, self.start
        for variable in self.variables:
            found[variable.name] = slice(at, at + variable.size)
            at += variable.size
        return found


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of the arrays, and the groups of each instance."""

    sizes: Mapping[DataType, int]
    output_sizes: Mapping[DataType, int]
    """Length of the first part of each array, with the outputs of all instances and the signals."""
    groups: tuple[Mapping[Group, tuple[Segment, ...]], ...]
    """Per instance: group → segments. A group without variables is missing."""
    slots: Mapping[tuple[int, Group, str], tuple[DataType, slice]] = field(repr=False)
    """(instance, group, variable name) → type and range."""
    signals: Mapping[str, tuple[Signal, int]] = field(default_factory=dict)
    """Name → signal, and its index in the Float64 values."""

    def segments(self, instance: int, group: Group) -> tuple[Segment, ...]:
        """Segments of a group of an instance; empty if it has no variables."""
        return self.groups[instance].get(group, ())

    def place(self, instance: int, name: str) -> tuple[DataType, slice] | None:
        """Where the value of an output, of any other variable that is read, or of a clock is; None for others."""
        for area in AREAS:
            for group in area:
                if (found := self.slots.get((instance, group, name))) is not None:
                    return found
        return None

    def placed(self, instance: int, name: str) -> tuple[DataType, slice]:
        """The same for a variable that has a place."""
        found = self.place(instance, name)
        assert found is not None, f"{name} has no place"
        return found

    def elements(self, instance: int, outputs: Iterable[Variable]) -> list[int]:
        """Where the elements of some outputs of an instance are in the array of their type."""
        slots = (self.slots[instance, Group.OUTPUTS, v.name][1] for v in outputs)
        return [k for slot in slots for k in range(slot.start, slot.stop)]


def make_layout(
    members: Sequence[Mapping[Group, Sequence[Variable]]], signals: Sequence[Signal] = ()
) -> Layout:
    """Give every variable and every signal a slot.

    Parameters
    ----------
    members
        Per instance: group → its variables.
    """
    sizes: dict[DataType, int] = {}
    groups: list[dict[Group, tuple[Segment, ...]]] = [{} for _ in members]
    others = tuple(
        group
        for group in Group
        if group is not Group.SOURCES and not any(group in area for area in AREAS)
    )
    output_sizes: dict[DataType, int] = {}
    placed: dict[str, tuple[Signal, int]] = {}
    parts_of: dict[int, list[tuple[DataType, int, tuple[Variable, ...]]]] = {}
    for area in (*AREAS, others):
        for i, instance in enumerate(members):
            for group in area:
                if variables := instance.get(group):
                    parts = parts_of.get(id(variables))  # instances with the same use share it
                    if parts is None:
                        parts = parts_of[id(variables)] = _by_type(variables)
                    groups[i][group] = _segments(parts, sizes)
        if area is AREAS[0]:
            start = sizes.get(DataType.FLOAT64, 0)
            placed = {s.name: (s, start + k) for k, s in enumerate(signals)}
            if signals:
                sizes[DataType.FLOAT64] = start + len(signals)
            output_sizes = dict(sizes)
    for i, instance in enumerate(members):
        wanted = {v.name for v in instance.get(Group.SOURCES, ())}
        if wanted:
            groups[i][Group.SOURCES] = _parts(groups[i][Group.OUTPUTS], wanted)
    slots: dict[tuple[int, Group, str], tuple[DataType, slice]] = {}
    for i, instance_groups in enumerate(groups):
        for group, segments in instance_groups.items():
            for segment in segments:
                kind, at = segment.type, segment.start
                for v in segment.variables:
                    slots[i, group, v.name] = kind, slice(at, at := at + v.size)
    sizes_of_outputs = {t: output_sizes.get(t, 0) for t in sizes}
    return Layout(sizes, sizes_of_outputs, tuple(groups), slots, placed)


def _by_type(variables: Sequence[Variable]) -> list[tuple[DataType, int, tuple[Variable, ...]]]:
    """Variables of one type each, with the number of their elements."""
    by_type: dict[DataType, list[Variable]] = {}
    for variable in variables:
        by_type.setdefault(variable.type, []).append(variable)
    kinds = sorted(by_type, key=_ORDER.__getitem__)
    return [(kind, sum(v.size for v in by_type[kind]), tuple(by_type[kind])) for kind in kinds]


def _segments(
    parts: Iterable[tuple[DataType, int, tuple[Variable, ...]]], sizes: dict[DataType, int]
) -> tuple[Segment, ...]:
    """Segments after all that have been placed so far."""
    segments = []
    for kind, size, variables in parts:
        start = sizes.get(kind, 0)
        sizes[kind] = start + size
        segments.append(Segment(kind, start, start + size, variables))
    return tuple(segments)


def _parts(segments: Iterable[Segment], wanted: Collection[str]) -> tuple[Segment, ...]:
    """The wanted variables of these segments, where they are: those that lie side by side in one segment."""
    found = []
    for segment in segments:
        slots = segment.slots()
        for is_wanted, part in groupby(segment.variables, lambda v: v.name in wanted):
            variables = tuple(part)
            start, stop = slots[variables[0].name].start, slots[variables[-1].name].stop
            found += [Segment(segment.type, start, stop, variables)] if is_wanted else []
    return tuple(found)


_ORDER = {kind: k for k, kind in enumerate(DataType)}


def with_derivatives(names: Collection[str], variables: Iterable[Variable]) -> set[str]:
    """The names, and those of all of these variables that are derivatives or left limits of them."""
    variables = list(variables)
    slopes = {v.derivative_of: v.name for v in variables if v.derivative_of}
    found = {*names, *(v.name for v in variables if v.left_limit_of in names)}
    for start in names:
        name = start
        while (name := slopes.get(name, "")) and name not in found:
            found.add(name)
    return found


@dataclass(frozen=True, slots=True)
class Route:
    """A link in terms of the value store."""

    link: Link
    source_type: DataType
    source: slice
    target_type: DataType
    target: slice
    derivatives: tuple[slice, ...]
    """Outputs that are the first, second, … derivative of the source; Float64."""
    left: slice | None = None
    """Output that is the left limit of the source, if the source is discontinuous at known times."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self.target.stop - self.target.start)

    @property
    def at_left(self) -> Route:
        """From the left limit of the source, which is the source itself unless it is discontinuous."""
        return self if self.left is None else replace(self, source=self.left)

    @property
    def has_discrete_source(self) -> bool:
        """Whether the output changes at events only, for example a Boolean; the input may be continuous."""
        return not self.link.output.is_continuous

    @property
    def is_lossless(self) -> bool:
        """Whether the conversion of types loses no value, except by rounding to Float32."""
        return is_lossless(self.link.output, self.link.input)

    @property
    def transformation(self) -> Transformation:
        """The transformation of a value."""
        return self.link.transformation


def routes(links: Sequence[Link], layout: Layout) -> dict[tuple[int, Group], tuple[Route, ...]]:
    """What feeds each group of inputs of each instance: (instance, group) → its routes in the order of their slots."""
    by_target = {(k.target, k.input.name): k for k in links}
    derivative_of: dict[tuple[int, str], str] = {}
    left_limits: dict[tuple[int, str], slice] = {}
    for i, groups in enumerate(layout.groups):
        for segment in groups.get(Group.OUTPUTS, ()):
            for v in segment.variables:
                if v.derivative_of and v.type is DataType.FLOAT64:
                    derivative_of[i, v.derivative_of] = v.name
                if v.left_limit_of:
                    left_limits[i, v.left_limit_of] = layout.slots[i, Group.OUTPUTS, v.name][1]
    fed: dict[tuple[int, Group], tuple[Route, ...]] = {}
    for i, groups in enumerate(layout.groups):
        for group in (Group.CONTINUOUS, Group.DISCRETE, Group.PARAMETERS):
            found = []
            for segment in groups.get(group, ()):
                for name, target in segment.slots().items():
                    link = by_target[i, name]
                    kind, source = layout.placed(link.source, link.output.name)
                    slots, output = [], link.output.name
                    while output := derivative_of.get((link.source, output), ""):
                        slot = layout.slots[link.source, Group.OUTPUTS, output][1]
                        if slot in slots:  # a cycle: the FMU contradicts itself
                            break
                        slots.append(slot)
                    left = left_limits.get((link.source, link.output.name))
                    route = Route(link, kind, source, segment.type, target, tuple(slots), left)
                    found.append(route)
            if found:
                fed[i, group] = tuple(found)
    return fed
