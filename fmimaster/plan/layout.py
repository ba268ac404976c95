"""Where every value of a run lives: slots and groups.

One array per type holds first the outputs of all instances, then their other groups. So all outputs can be copied at
once, and one group of one instance is one FMI call per type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from fmimaster.system.model import DataType, Variable


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
    """Input clocks, or counters in their place, with the inputs that they bring along; set at events."""
    CLOCKS = 7
    """Output clocks that feed input clocks; read at events."""
    TUNED = 8
    """Tunable parameters that change during the run."""


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
    """Length of the part of each array that holds the outputs of all instances: it begins at 0."""
    groups: tuple[Mapping[Group, tuple[Segment, ...]], ...]
    """Per instance: group → segments. A group without variables is missing."""
    slots: Mapping[tuple[int, Group, str], tuple[DataType, slice]] = field(repr=False)
    """(instance, group, variable name) → type and range."""

    def segments(self, instance: int, group: Group) -> tuple[Segment, ...]:
        """Segments of a group of an instance; empty if it has no variables."""
        return self.groups[instance].get(group, ())


def make_layout(members: Sequence[Mapping[Group, Iterable[Variable]]]) -> Layout:
    """Give every variable a slot.

    Parameters
    ----------
    members
        Per instance: group → its variables.
    """
    sizes: dict[DataType, int] = {}
    groups: list[dict[Group, tuple[Segment, ...]]] = [{} for _ in members]
    output_sizes: dict[DataType, int] = {}
    for is_output in (True, False):
        for i, instance in enumerate(members):
            for group, variables in instance.items():
                if (group is Group.OUTPUTS) == is_output:
                    segments = _segments(list(variables), sizes)
                    if segments:
                        groups[i][group] = segments
        if is_output:
            output_sizes = dict(sizes)
    slots = {
        (i, group, name): (segment.type, slot)
        for i, instance_groups in enumerate(groups)
        for group, segments in instance_groups.items()
        for segment in segments
        for name, slot in segment.slots().items()
    }
    return Layout(sizes, {t: output_sizes.get(t, 0) for t in sizes}, tuple(groups), slots)


def _segments(variables: list[Variable], sizes: dict[DataType, int]) -> tuple[Segment, ...]:
    segments = []
    for kind in DataType:
        chosen = tuple(v for v in variables if v.type is kind)
        if chosen:
            start = sizes.get(kind, 0)
            sizes[kind] = start + sum(v.size for v in chosen)
            segments.append(Segment(kind, start, sizes[kind], chosen))
    return tuple(segments)
