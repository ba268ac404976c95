"""The plan of a system: everything that can be known before an FMU is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from fmimaster.errors import OptionError, did_you_mean
from fmimaster.plan.graph import (
    AlgebraicLoop,
    Visit,
    dependency_arcs,
    trigger_sequence,
    visits,
)
from fmimaster.plan.layout import Group, Layout, make_layout
from fmimaster.system.description import Source, Transformation
from fmimaster.system.model import Causality, DataType, Initial, Model, Variable
from fmimaster.system.resolve import Link, ResolvedComponent, ResolvedSystem, is_lossless


@dataclass(frozen=True)
class InstancePlan:
    """One instance: what it is made from and what it is given at the start."""

    name: str
    source: Source
    model: Model
    start_values: Mapping[str, tuple[Any, ...]]
    """Variable name → values of all its elements; no array, so that plans can be compared."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A link in terms of the value store."""

    link: Link
    source_type: DataType
    source: slice
    target_type: DataType
    target: slice
    derivatives: tuple[slice, ...]
    """Outputs that are the first, second, … derivative of the source; Float64."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self.target.stop - self.target.start)

    @property
    def is_lossless(self) -> bool:
        """Whether no value can be lost by the conversion of types, but by rounding to Float32."""
        return is_lossless(self.link.output, self.link.input)

    @property
    def transformation(self) -> Transformation:
        """What happens to a value on the way."""
        return self.link.transformation


@dataclass(frozen=True, slots=True)
class Recorded:
    """A variable that is a column of the results."""

    name: str
    instance: int
    variable: Variable
    slot: slice


@dataclass(frozen=True)
class Plan:
    """One system, ready to be computed."""

    instances: tuple[InstancePlan, ...]
    """In the order of the system description."""
    links: tuple[Link, ...]
    trigger_sequence: tuple[int, ...]
    """Instance indices, upstream first."""
    visits: tuple[Visit, ...]
    """Order of set-and-get in Initialization Mode; an instance may recur."""
    step_loops: tuple[AlgebraicLoop, ...]
    """Algebraic loops by the dependencies of Step Mode."""
    layout: Layout
    wires: Mapping[tuple[int, Group], tuple[Wire, ...]]
    """What feeds each group of each instance, in the order of its slots."""
    recorded: tuple[Recorded, ...]
    notes: tuple[str, ...] = ()

    @property
    def initial_loops(self) -> tuple[AlgebraicLoop, ...]:
        """Algebraic loops in Initialization Mode."""
        return tuple(v.loop for v in self.visits if v.loop is not None)

    def has_inputs(self, instance: int) -> bool:
        """Whether anything feeds the instance."""
        return any((instance, g) in self.wires for g in (Group.CONTINUOUS, Group.DISCRETE))


def make_plan(
    system: ResolvedSystem, *, outputs: Sequence[str] = (), bare_names: bool = False
) -> Plan:
    """Derive the plan of a system: a pure function.

    Parameters
    ----------
    outputs
        Globs of the names ``"component.variable"`` to record; empty for the outputs of all components.
    bare_names : bool
        Whether columns of the first component are named without its name, as users of single FMUs expect.

    Raises
    ------
    OptionError
        If a glob fits no variable.
    """
    models = [c.model for c in system.components]
    sequence = trigger_sequence(models, system.links)
    stops = visits(
        dependency_arcs(models, system.links, initial=True),
        dependency_arcs(models, system.links, initial=True, assumed=False),
        sequence,
    )
    step_stops = visits(
        dependency_arcs(models, system.links, initial=False),
        dependency_arcs(models, system.links, initial=False, assumed=False),
        sequence,
    )
    chosen = _chosen(system.components, outputs, bare_names)
    layout = make_layout(_members(system, [(i, v) for i, v, _ in chosen]))
    return Plan(
        instances=tuple(
            InstancePlan(
                c.name, c.source, c.model, {n: tuple(v.tolist()) for n, v in c.start_values.items()}
            )
            for c in system.components
        ),
        links=system.links,
        trigger_sequence=sequence,
        visits=stops,
        step_loops=tuple(v.loop for v in step_stops if v.loop is not None),
        layout=layout,
        wires=_wires(system.links, layout),
        recorded=tuple(
            Recorded(name, i, v, layout.slots[i, Group.OUTPUTS, v.name][1]) for i, v, name in chosen
        ),
        notes=system.notes,
    )


def _chosen(
    components: Sequence[ResolvedComponent], globs: Sequence[str], bare_names: bool
) -> list[tuple[int, Variable, str]]:
    """Variables to record: instance, variable, name of the column."""
    every = [
        (i, v, v.name if bare_names and i == 0 else f"{c.name}.{v.name}")
        for i, c in enumerate(components)
        for v in c.model.variables
        if v.type not in (DataType.BINARY, DataType.CLOCK)
        and not v.clocks
        and v.causality is not Causality.INDEPENDENT
    ]
    if not globs:
        return [
            (i, v, name)
            for i, v, name in every
            if v.causality is Causality.OUTPUT and not (bare_names and i > 0)
        ]
    names = [name for _, _, name in every]
    for glob in globs:
        if not any(_fits(name, glob) for name in names):
            raise OptionError(
                f"Output variable '{glob}' fits no variable.{did_you_mean(glob, names)}"
            )
    return [entry for entry in every if any(_fits(entry[2], glob) for glob in globs)]


def _fits(name: str, glob: str) -> bool:
    """Whether a name is the glob or fits it; brackets belong to names of array elements, not to the glob."""
    return name == glob or fnmatchcase(name, glob.replace("[", "[[]"))


def _members(
    system: ResolvedSystem, recorded: Sequence[tuple[int, Variable]]
) -> list[dict[Group, list[Variable]]]:
    """Variables of each group of each instance, each group in the order of the model description."""
    members = []
    for i, component in enumerate(system.components):
        fed = {k.input.name: k for k in system.links if k.target == i}
        read = {k.output.name for k in system.links if k.source == i}
        read |= {v.name for j, v in recorded if j == i}
        slopes = {
            v.derivative_of: v.name
            for v in component.model.with_causality(Causality.OUTPUT)
            if v.type is DataType.FLOAT64
        }
        for name in list(read):
            while (name := slopes.get(name, "")) and name not in read:
                read.add(name)
        given = component.start_values.keys()
        groups: dict[Group, list[Variable]] = {group: [] for group in Group}
        for v in component.model.variables:
            if v.name in read:
                groups[Group.OUTPUTS].append(v)
            if v.name in fed:
                continuous = v.is_continuous and v.type is DataType.FLOAT64
                groups[Group.CONTINUOUS if continuous else Group.DISCRETE].append(v)
            if v.name in given and v.causality is Causality.STRUCTURAL_PARAMETER:
                groups[Group.STRUCTURAL].append(v)
            elif v.name in given:
                groups[Group.START].append(v)
                if v.initial is Initial.EXACT and v.name not in fed:
                    groups[Group.INITIAL].append(v)
        members.append(groups)
    return members


def _wires(links: Sequence[Link], layout: Layout) -> dict[tuple[int, Group], tuple[Wire, ...]]:
    by_target = {(k.target, k.input.name): k for k in links}
    derivative_of: dict[tuple[int, str], str] = {}
    for i, groups in enumerate(layout.groups):
        for segment in groups.get(Group.OUTPUTS, ()):
            for v in segment.variables:
                if v.derivative_of and v.type is DataType.FLOAT64:
                    derivative_of[i, v.derivative_of] = v.name
    wires: dict[tuple[int, Group], tuple[Wire, ...]] = {}
    for i, groups in enumerate(layout.groups):
        for group in (Group.CONTINUOUS, Group.DISCRETE):
            found = []
            for segment in groups.get(group, ()):
                for name, target in segment.slots().items():
                    link = by_target[i, name]
                    kind, source = layout.slots[link.source, Group.OUTPUTS, link.output.name]
                    slots, output = [], link.output.name
                    while output := derivative_of.get((link.source, output), ""):
                        slot = layout.slots[link.source, Group.OUTPUTS, output][1]
                        if slot in slots:  # a circle: the FMU contradicts itself
                            break
                        slots.append(slot)
                    found.append(Wire(link, kind, source, segment.type, target, tuple(slots)))
            if found:
                wires[i, group] = tuple(found)
    return wires
