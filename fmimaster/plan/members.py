"""Which variables of an instance belong to which group."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fmimaster.plan.events import Trigger
from fmimaster.plan.layout import Group
from fmimaster.plan.policy import EventUse, Policy, has_settings, settings
from fmimaster.system.model import Causality, DataType, Initial, Variable
from fmimaster.system.resolved import ResolvedComponent, ResolvedSystem


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


def initial_sources(system: ResolvedSystem, triggers: Sequence[Trigger]) -> list[set[str]]:
    """Per instance, names of the outputs that others need at the start, and may be read then."""
    found: list[set[str]] = [set() for _ in system.components]
    payload = (k for t in triggers for k in t.links)
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
    """The names, and those of all outputs that are derivatives of them."""
    slopes = {
        v.derivative_of: v.name
        for v in component.model.with_causality(Causality.OUTPUT)
        if v.type is DataType.FLOAT64
    }
    found = set(read)
    for start in read:
        name = start
        while (name := slopes.get(name, "")) and name not in found:
            found.add(name)
    return found
