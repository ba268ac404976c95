"""The variables that a run uses: the groups to which those of each instance belong, and the recorded columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.plan.contacts import force_inputs
from fmimaster.plan.layout import Group, Layout, Signal, with_derivatives
from fmimaster.plan.policy import EventUse, Policy, has_settings, settings
from fmimaster.system.model import Causality, DataType, Initial, Model, Transformation, Variable
from fmimaster.system.resolved import Link, ResolvedComponent, ResolvedSystem, RootConnector


def group_members(
    system: ResolvedSystem,
    use: EventUse,
    read: Sequence[set[str]],
    triggers: Sequence[Collection[str]],
    clocks: Sequence[set[str]],
    sources: Sequence[Collection[str]],
) -> list[dict[Group, list[Variable]]]:
    """Variables of each group of each instance, each group in the order of the model description.

    Parameters
    ----------
    read, triggers, clocks, sources
        Per instance, names of outputs that events and results need, of triggers with payload, of clocks that others
        need, and of outputs that are needed at the start.
    """
    fed: list[set[str]] = [set() for _ in system.components]
    for link in (*system.links, *system.parameter_links):
        fed[link.target].add(link.input.name)
        read[link.source].add(link.output.name)
    known: dict[tuple[object, ...], dict[Group, list[Variable]]] = {}
    found = []
    for i, c in enumerate(system.components):
        names = (fed[i], read[i], triggers[i], clocks[i], sources[i], c.start_values)
        # thousands of instances may have the same model and the same use
        alike = id(c.model), use.policies_of(i), *map(frozenset, names)
        if alike not in known:
            known[alike] = _groups(c, use.policies_of(i), *names[:-1])
        found.append(known[alike])
    return found


def initial_sources(system: ResolvedSystem, payload: Iterable[Link]) -> list[set[str]]:
    """Per instance, names of the outputs that others need at the start, and may be read then.

    Parameters
    ----------
    payload
        Links to inputs that are set together with triggers.
    """
    found: list[set[str]] = [set() for _ in system.components]
    for link in (*system.links, *system.parameter_links, *payload):
        found[link.source].add(link.output.name)
    return [
        {
            name
            for name in _with_derivatives(component, names)
            if (v := component.model.variable(name)) and v.get_in_initialization
        }
        for component, names in zip(system.components, found, strict=True)
    ]


def _groups(
    component: ResolvedComponent,
    policies: Sequence[Policy],
    fed: set[str],
    read: set[str],
    triggers: Collection[str],
    clocks: set[str],
    sources: Collection[str],
) -> dict[Group, list[Variable]]:
    """The groups of one instance."""
    model, given = component.model, component.start_values.keys()
    read = _with_derivatives(component, read)
    forces = force_inputs(model)
    parameters = settings(model) if has_settings(model, policies) else {}
    groups: dict[Group, list[Variable]] = {group: [] for group in Group}
    shown = {
        v.name for v in model.variables if v.type is DataType.CLOCK and v.name in read
    } | clocks
    shown |= {clock for v in model.variables if v.name in read for clock in v.clocks}
    for v in model.variables:
        if v.name in read and v.type is not DataType.CLOCK:
            groups[Group.CLOCKED if v.clocks else Group.OUTPUTS].append(v)
            if v.name in sources and not v.clocks:
                groups[Group.SOURCES].append(v)
        if v.name in triggers:
            groups[Group.TRIGGERS].append(v)
        elif v.name in fed and v.causality is Causality.PARAMETER:
            groups[Group.PARAMETERS].append(v)
        elif v.name in fed:
            continuous = v.is_continuous and v.type is DataType.FLOAT64
            groups[Group.CONTINUOUS if continuous else Group.DISCRETE].append(v)
        if v.name in forces:
            groups[Group.FORCES].append(v)
        if v.name in parameters:
            groups[Group.SETTINGS].append(v)
        if v.type is DataType.CLOCK:
            is_asked = v.clock is not None and v.clock.is_told_by_fmu and v.name in triggers
            if is_asked:
                groups[Group.INTERVALS].append(v)
            if v.name in shown or is_asked:
                is_input = v.causality is Causality.INPUT
                groups[Group.INPUT_CLOCKS if is_input else Group.CLOCKS].append(v)
        if v.name in given and v.causality is Causality.STRUCTURAL_PARAMETER:
            groups[Group.STRUCTURAL].append(v)
        elif v.name in given:
            # FMI 2.0: inputs have no initial, and cannot be set before Initialization Mode
            before = v.initial is not None
            if before:
                groups[Group.START].append(v)
            if not before or (v.initial is Initial.EXACT and v.name not in fed):
                groups[Group.INITIAL].append(v)
    return groups


def _with_derivatives(component: ResolvedComponent, read: set[str]) -> set[str]:
    """The names, and those of all outputs that are derivatives or left limits of them."""
    outputs = component.model.with_causality(Causality.OUTPUT)
    chosen = (v for v in outputs if v.type is DataType.FLOAT64 or v.left_limit_of)
    return with_derivatives(read, chosen)


NOTHING_RECORDED = (
    "only time is recorded: no FMU has an output that can be recorded; output_variables (--output-variable '*') "
    "records other variables"
)
"""The note for results without columns."""


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
    """For a clocked variable: type and elements in the rows of its clocks. It has a value only if one of them is
    active. None if there is always a value."""
    usual: float | None = None
    """Of a floating point output of an FMU: the largest of its nominal value, its minimum and its maximum."""
    transformation: Transformation = Transformation()
    """From the value of the variable to that of the column: of a connector of the root system. That is a second view of the
    variable that feeds it, at the same place in a row; it needs no FMI call."""
    is_repeated: bool = False
    """Whether it repeats other data: a connector of the root system whose variable has its own column, or is an input
    signal."""
    is_judged: bool = False
    """Whether the error of a run is judged by it: a continuous output or a continuous state, but no indicator of events."""
    is_coupled: bool = False
    """Whether it is such an output and feeds another component."""

    @property
    def is_comparable(self) -> bool:
        """Whether it is a floating point output of an FMU, and always has a value."""
        is_output = not self.is_signal and not self.is_repeated
        return is_output and self.type.is_float and self.present is None

    def converted(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the variable as the column shows them."""
        if self.transformation.is_identity:
            return values
        return values * self.transformation.factor + self.transformation.offset

    @property
    def is_signal(self) -> bool:
        """Whether it is computed by the run, and not a variable of an instance."""
        return self.instance is None


class Chosen(NamedTuple):
    """A variable that is recorded, before it has a place."""

    instance: int | None
    name: str
    """Of the column."""
    variable: str
    is_output: bool
    connector: RootConnector | None = None
    """Of the root system, if the column shows one."""


def chosen_variables(
    components: Sequence[ResolvedComponent],
    globs: Sequence[str],
    bare_names: bool,
    signals: Sequence[Signal],
    connectors: Sequence[RootConnector] = (),
    *,
    must_fit: bool = True,
) -> list[Chosen]:
    """Variables to record: connectors of the root system first, then those of the components, then signals of the run.

    Without globs these are the outputs of all components, except clocks, and signals that are given as input.

    Raises
    ------
    OptionError
        If a glob fits no variable.
    """
    every = []
    for i, c in enumerate(components):
        prefix = "" if bare_names and i == 0 else f"{c.name}."
        for v in c.model.variables:
            if _can_be_recorded(v):
                is_output = not c.is_input and _is_recorded_unasked(v)
                every.append(Chosen(i, prefix + v.name, v.name, is_output))
    if connectors:
        taken = {entry.name for entry in every}
        every = [
            Chosen(c.source, c.name, c.output.name, True, c)
            for c in connectors
            if c.name not in taken and _can_be_recorded(c.output)
        ] + every
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
        if not found and must_fit:
            in_order = [entry.name for entry in every]
            raise OptionError(
                f"Output variable '{glob}' fits no variable.{did_you_mean(glob, in_order)}"
            )
        fitting |= found or set()
    fitting |= {s.name for s in signals if s.is_mark}
    return [entry for entry in every if entry.name in fitting]


def _is_recorded_unasked(variable: Variable) -> bool:
    """Outputs, but no clocks: the values that they activate show when they tick."""
    return variable.causality is Causality.OUTPUT and variable.type is not DataType.CLOCK


def _can_be_recorded(variable: Variable) -> bool:
    return variable.causality is not Causality.INDEPENDENT and variable.left_limit_of is None


_UNCHANGED = Transformation()


def place_columns(
    components: Sequence[ResolvedComponent],
    chosen: Sequence[Chosen],
    layout: Layout,
    coupled: Collection[tuple[int, str]] = frozenset(),
) -> tuple[tuple[Recorded, ...], dict[DataType, tuple[int, ...]]]:
    """The columns with their places in the value store and in a row, and the elements of the store that a row takes.

    Parameters
    ----------
    coupled
        Instance and name of each output that feeds another component.
    """
    rows: dict[DataType, list[int]] = {}
    placed: dict[tuple[DataType, int, int], slice] = {}

    def place(kind: DataType, slot: slice) -> slice:
        start, stop = slot.start, slot.stop
        found = placed.get((kind, start, stop))
        if found is None:
            row = rows.setdefault(kind, [])
            at = len(row)
            row += range(start, stop)
            # usually all outputs are recorded: then one object is both places
            found = slot if at == start else slice(at, at + stop - start)
            placed[kind, start, stop] = found
        return found

    shows_connectors = any(entry.connector is not None for entry in chosen)
    own = {(c.instance, c.variable) for c in chosen if c.connector is None and shows_connectors}
    states = [_states(component.model) for component in components]
    columns = []
    slots, outputs = layout.slots, Group.OUTPUTS
    for i, name, variable, _, connector in chosen:
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
        if v.clocks and v.type is not DataType.CLOCK:  # a clock that cannot tick is inactive
            clocks = (place(*layout.placed(i, clock)) for clock in v.clocks)
            present = DataType.CLOCK, tuple(column.start for column in clocks)
        kind, slot = slots.get((i, outputs, variable)) or layout.placed(i, variable)
        if connector is None:
            unit, usual, transformation = v.unit.name if v.unit else "", _usual(v), _UNCHANGED
        else:
            unit, usual, transformation = connector.unit, None, connector.transformation
        is_input = components[i].is_input
        is_repeated = connector is not None and ((i, variable) in own or is_input)
        shows_all = present is None and not is_repeated and not is_input
        is_judged = shows_all and _is_judged(components[i].model, v, states[i])
        is_coupled = is_judged and (i, variable) in coupled
        place_in_row = place(kind, slot)
        columns.append(
            Recorded(  # without names: there may be very many
                *(name, i, variable, kind, v.shape, unit, slot, place_in_row, present, usual),
                *(transformation, is_repeated, is_judged, is_coupled),
            )
        )
    return tuple(columns), {kind: tuple(slots) for kind, slots in rows.items()}


def _states(model: Model) -> frozenset[str]:
    """Continuous states, by the derivatives that ModelStructure lists."""
    derivatives = (model.variable(name) for name in model.state_derivatives)
    return frozenset(v.derivative_of for v in derivatives if v and v.derivative_of)


def moves_steadily(model: Model, variable: Variable) -> bool:
    """Whether a variable is continuous, or a floating point output of an FMU that only does not say so.

    Some tools declare all outputs discrete.
    """
    if variable.is_continuous:
        return True
    is_output = variable.type.is_float and variable.causality is Causality.OUTPUT
    return is_output and not model.tells_discrete_outputs


def _is_judged(model: Model, variable: Variable, states: Collection[str]) -> bool:
    """Whether it is a continuous state, or a continuous output that does not only tell of events.

    An indicator is 0 at its event, and a number relative to its largest value says little. States count also where the
    FMU lists them as indicators, as a ball does with its height. The gap of a constraint is 0 in the limit, too.
    """
    if not moves_steadily(model, variable):
        return False
    if model.residuals and variable.name not in model.residuals:
        return False
    is_output = variable.causality is Causality.OUTPUT and variable.name not in model.event_outputs
    return is_output or variable.name in states


def _usual(variable: Variable) -> float | None:
    """The usual magnitude of a variable, by the declarations of its FMU."""
    if not variable.type.is_float or variable.causality is not Causality.OUTPUT:
        return None
    low, high = variable.min, variable.max
    usual = abs(variable.nominal)
    if low is None and high is None:
        return usual
    return max(usual, *(abs(limit) for limit in (low, high) if limit is not None))
