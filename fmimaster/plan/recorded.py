"""Which variables are recorded, and where each column of the results lies in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from fmimaster.errors import OptionError, did_you_mean
from fmimaster.plan.layout import Group, Layout, Signal
from fmimaster.system.model import Causality, DataType, Variable
from fmimaster.system.resolve import ResolvedComponent

NOTHING_RECORDED = (
    "nothing but time is recorded: no FMU has an output that can be recorded; output_variables (--output-variable '*') "
    "records other variables"
)
"""The note for results without any column."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A column of the results."""

    name: str
    instance: int | None
    """None for a signal of the run."""
    variable: str
    """Its name in the FMU, or the name of the signal."""
    type: DataType
    shape: tuple[int, ...]
    unit: str
    slot: slice
    """Its elements in the array of its type in the value store."""
    column: slice
    """Its elements in the rows of its type."""
    present: tuple[DataType, tuple[int, ...]] | None = None
    """Of a clocked variable: type and elements in the rows of the clocks of which one must be active, or there is no value;
    None if there is always one."""
    usual: float | None = None
    """Of a floating point output of an FMU: the largest of its nominal value, its minimum and its maximum."""

    @property
    def is_comparable(self) -> bool:
        """Whether it is a floating point output of an FMU, and always has a value."""
        return not self.is_signal and self.type.is_float and self.present is None

    @property
    def is_signal(self) -> bool:
        """Whether it is no variable of an instance, but computed by the run."""
        return self.instance is None


class Chosen(NamedTuple):
    """A variable that is recorded, before it has a place."""

    instance: int | None
    name: str
    """Of the column."""
    variable: str
    is_output: bool


def chosen_variables(
    components: Sequence[ResolvedComponent],
    globs: Sequence[str],
    bare_names: bool,
    signals: Sequence[Signal],
) -> list[Chosen]:
    """Variables to record.

    Raises
    ------
    OptionError
        If a glob fits no variable.
    """
    every = [
        Chosen(i, v.name if bare_names and i == 0 else f"{c.name}.{v.name}", v.name, is_output)
        for i, c in enumerate(components)
        for v in c.model.variables
        if v.type not in (DataType.BINARY, DataType.CLOCK)
        and not v.clocks
        and v.causality is not Causality.INDEPENDENT
        for is_output in [v.causality is Causality.OUTPUT and not (bare_names and i > 0)]
    ]
    every += [Chosen(None, s.name, s.name, True) for s in signals if s.is_recorded]
    if not globs:
        return [entry for entry in every if entry.is_output]
    names = {entry.name for entry in every}
    fitting = {glob for glob in globs if glob in names}
    for glob in globs:
        if glob in fitting:
            continue
        # brackets belong to names of array elements, not to the glob
        pattern = glob.replace("[", "[[]")
        found = {n for n in names if fnmatchcase(n, pattern)} if {"*", "?"} & {*glob} else None
        if not found:
            in_order = [entry.name for entry in every]
            if glob in _clocked_names(components, bare_names):
                raise OptionError(
                    f"Output variable '{glob}' is a clock or has a value only while its clock ticks; it cannot be recorded "
                    "in this version. Leave it out."
                )
            raise OptionError(
                f"Output variable '{glob}' fits no variable.{did_you_mean(glob, in_order)}"
            )
        fitting |= found
    return [entry for entry in every if entry.name in fitting]


def _clocked_names(components: Sequence[ResolvedComponent], bare_names: bool) -> set[str]:
    """Names of clocks and clocked variables, as columns of them would be named."""
    return {
        v.name if bare_names and i == 0 else f"{c.name}.{v.name}"
        for i, c in enumerate(components)
        for v in c.model.variables
        if v.clocks or v.type is DataType.CLOCK
    }


def place_columns(
    components: Sequence[ResolvedComponent], chosen: Sequence[Chosen], layout: Layout
) -> tuple[tuple[Recorded, ...], dict[DataType, tuple[int, ...]]]:
    """The columns with their places in the value store and in a row, and the elements of the store that a row takes."""
    rows: dict[DataType, list[int]] = {}

    def place(kind: DataType, slot: slice) -> slice:
        row = rows.setdefault(kind, [])
        row.extend(range(slot.start, slot.stop))
        return slice(len(row) - slot.stop + slot.start, len(row))

    columns = []
    for i, name, variable, _ in chosen:
        if i is None:
            signal, at = layout.signals[variable]
            slot, kind = slice(at, at + 1), DataType.FLOAT64
            columns.append(
                Recorded(name, None, variable, kind, (), signal.unit, slot, place(kind, slot))
            )
            continue
        v = components[i].model.variable(variable)
        assert v is not None
        present = None
        if v.clocks:
            clocks = (place(*layout.slots[i, Group.CLOCKS, clock]) for clock in v.clocks)
            present = DataType.CLOCK, tuple(column.start for column in clocks)
        group = Group.CLOCKED if v.clocks else Group.OUTPUTS
        kind, slot = layout.slots[i, group, variable]
        unit = v.unit.name if v.unit else ""
        place_in_row = place(kind, slot)
        columns.append(
            Recorded(name, i, variable, kind, v.shape, unit, slot, place_in_row, present, _usual(v))
        )
    return tuple(columns), {kind: tuple(slots) for kind, slots in rows.items()}


def _usual(variable: Variable) -> float | None:
    """The magnitude that is usual for a variable, by what its FMU declares."""
    if not variable.type.is_float or variable.causality is not Causality.OUTPUT:
        return None
    limits = [abs(limit) for limit in (variable.min, variable.max) if limit is not None]
    return max(abs(variable.nominal), *limits) if limits else abs(variable.nominal)
