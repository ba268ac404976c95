"""Resolves a description: which output feeds which input, and which start values each component has.

Nested systems are flattened, names are found in the models, and directions, types, shapes and units are determined.
Decisions are reported in notes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fmimaster.base.errors import DescriptionError
from fmimaster.system.constraints import with_units_of_ends
from fmimaster.system.conversions import (
    Conversions,
    check_transformation,
    checked_link,
    with_units_of_sources,
)
from fmimaster.system.description import (
    Component,
    Connector,
    Endpoint,
    PowerBond,
    SystemDescription,
)
from fmimaster.system.model import (
    Causality,
    DataType,
    Initial,
    Model,
    Transformation,
    Unit,
    Variability,
    Variable,
)
from fmimaster.system.notes import Notes, meant
from fmimaster.system.resolved import (
    Link,
    OpenInput,
    ResolvedComponent,
    ResolvedPowerBond,
    ResolvedSystem,
    RootConnector,
    Varied,
)
from fmimaster.system.shared_events import resolve_shared_events
from fmimaster.system.start_values import apply, note_outside_range, start_values
from fmimaster.system.units import check_time_units, describe
from fmimaster.system.wiring import Wiring


def resolve(
    description: SystemDescription,
    models: Mapping[str, Model],
    *,
    overrides: Mapping[str, Any] | None = None,
    allow_lossy_conversions: bool = False,
    power_bonds: Sequence[PowerBond] = (),
    varied: Collection[str] = (),
) -> ResolvedSystem:
    """Resolve a description for these models.

    Parameters
    ----------
    models
        Full component name → model.
    overrides
        Start values that override those of the description, see :func:`fmimaster.system.start_values.start_values`.
    allow_lossy_conversions
        Whether a connection may convert between types even if a value can be lost.
    power_bonds
        Power bonds that the user adds to those of the description.
    varied
        Names of start values that change from run to run.

    Raises
    ------
    DescriptionError
        For names that do not exist, ends that cannot be connected, and invalid values of variables.
    """
    if not models:
        raise DescriptionError(f"System '{description.system.name}' has no components. Add one.")
    parts = dict(description.components())
    models = {name: _with_declared_units(model, parts[name]) for name, model in models.items()}
    notes, warnings = Notes(), Notes()
    check_time_units(models, notes)
    wiring = Wiring(description.system, models, notes, warnings)
    unit = Conversions(wiring, models, Notes()).unit
    models = with_units_of_ends(description, models, wiring, unit)
    models = with_units_of_sources(description, models, wiring, unit)
    conversions = Conversions(wiring, models, notes)
    given = start_values(description, models, wiring, conversions, overrides or {}, notes, warnings)
    changes: Mapping[str, tuple[Varied, ...]] = {}
    if varied:
        from fmimaster.system.varied import varied_values  # few runs are repeated

        changes = varied_values(varied, given, description, models, wiring, conversions)
    components = []
    for name, component in parts.items():
        model, values = apply(name, models[name], given[name])
        note_outside_range(name, model, values, given[name], warnings)
        components.append(
            ResolvedComponent(name, component.source, model, values, priority=component.priority)
        )
    links, open_inputs = _links(components, wiring, conversions, allow_lossy_conversions)
    parameter_links = _parameter_links(components, wiring, conversions, allow_lossy_conversions)
    _note_contradictions(description, {c.name: c.model for c in components}, wiring, notes)
    of_fmus = dict.fromkeys(note for c in components for note in c.model.notes)
    shared_events = resolve_shared_events(
        description.shared_events(), {c.name: c.model for c in components}, allow_lossy_conversions
    )
    bonds, bond_notes = _power_bonds(description, power_bonds, models, links)
    return ResolvedSystem(
        tuple(components),
        tuple(links),
        tuple(open_inputs),
        (*description.notes, *of_fmus, *notes.lines(), *bond_notes),
        shared_events,
        parameter_links,
        bonds,
        warnings.lines(),
        tuple(_root_connectors(components, wiring, conversions)),
        description.structure,
        changes,
    )


def _power_bonds(
    description: SystemDescription,
    given: Sequence[PowerBond],
    models: Mapping[str, Model],
    links: Sequence[Link],
) -> tuple[tuple[ResolvedPowerBond, ...], tuple[str, ...]]:
    described, structure = tuple(description.power_bonds()), description.structure
    if not (described or given or any(model.power_ports for model in models.values())):
        return (), ()
    # few systems have any
    from fmimaster.system.power_bonds import resolve_power_bonds

    absent = None if structure is None else structure.absent
    return resolve_power_bonds(described, given, models, links, absent)


def _root_connectors(
    components: Sequence[ResolvedComponent], wiring: Wiring, conversions: Conversions
) -> Iterator[RootConnector]:
    """The outputs of the root system that a component feeds."""
    index = {c.name: i for i, c in enumerate(components)}
    for end in wiring.fed:
        if end.element or (way := wiring.into(end)).start.element not in index:
            continue
        source = index[way.start.element]
        output = components[source].model.variable(way.start.connector)
        assert output is not None  # the wiring has checked it
        transformation, _ = conversions.along(way)
        unit = conversions.unit(end)
        if unit is None and transformation.is_identity:
            unit = output.unit
        is_number = output.type.is_float or output.type.is_integer
        if is_number or transformation.is_identity:
            name = "" if unit is None else unit.name
            yield RootConnector(end.connector, source, output, transformation, name)


def _links(
    components: Sequence[ResolvedComponent],
    wiring: Wiring,
    conversions: Conversions,
    allow_lossy: bool,
) -> tuple[list[Link], list[OpenInput]]:
    """The source of each input of each component."""
    index = {c.name: i for i, c in enumerate(components)}
    links, open_inputs = [], []
    checked = set()
    for target, found in enumerate(components):
        for variable in found.model.with_causality(Causality.INPUT):
            end = Endpoint(found.name, variable.name)
            checked.add(end)
            way = wiring.into(end)
            transformation, notes = conversions.along(way)
            source = index.get(way.start.element)
            output = (
                None if source is None else components[source].model.variable(way.start.connector)
            )
            if source is None or output is None or not way.connections:
                root = "" if way.start.element else way.start.connector
                open_inputs.append(OpenInput(target, variable, root, transformation))
                continue
            link = Link(source, output, target, variable, transformation, notes)
            links.append(checked_link(link, wiring.text(end), allow_lossy))
    for end in wiring.fed:  # units of connections that lead to no input must fit as well
        if end not in checked and not wiring.fed_directly(end):
            conversions.along(wiring.into(end))
    _check_one_source(links, components)
    return links, open_inputs


def _parameter_links(
    components: Sequence[ResolvedComponent],
    wiring: Wiring,
    conversions: Conversions,
    allow_lossy: bool,
) -> tuple[Link, ...]:
    """The sources of parameters: calculated parameters of other components, which the wiring has checked."""
    index = {c.name: i for i, c in enumerate(components)}
    links = []
    for target, found in enumerate(components):
        for variable in found.model.with_causality(Causality.PARAMETER):
            end = Endpoint(found.name, variable.name)
            if end not in wiring.fed or (way := wiring.into(end)).start.element not in index:
                continue
            source = index[way.start.element]
            output = components[source].model.variable(way.start.connector)
            assert output is not None
            link = Link(source, output, target, variable, *conversions.along(way))
            links.append(checked_link(link, wiring.text(end), allow_lossy))
            is_constant = variable.variability is Variability.CONSTANT
            if variable.initial is not Initial.EXACT or is_constant:
                raise DescriptionError(
                    f"{wiring.text(end)}: '{end}' cannot be set in Initialization Mode (initial=exact is missing). Connect "
                    "a parameter that can."
                )
    return tuple(links)


def _check_one_source(links: Sequence[Link], components: Sequence[ResolvedComponent]) -> None:
    """Refuse two sources of one input under two of its names."""
    found: dict[tuple[int, DataType, int], Link] = {}
    for link in links:
        key = (link.target, link.input.type, link.input.value_reference)
        other = found.setdefault(key, link)
        sources = [(k.source, k.output.name, k.transformation) for k in (other, link)]
        if sources[0] == sources[1]:
            continue
        name = components[link.target].name
        names = [f"'{components[k.source].name}.{k.output.name}'" for k in (other, link)]
        raise DescriptionError(
            f"'{name}.{other.input.name}' and '{name}.{link.input.name}' are two names of one input (value reference "
            f"{link.input.value_reference}), and {names[0]} feeds the one, {names[1]} the other. Remove one of "
            "the two: an input can have one source only."
        )


def _with_declared_units(model: Model, component: Component) -> Model:
    """The model with the units of the description's connectors for variables without a unit."""
    declared = {c.name: c.unit for c in component.connectors if c.unit is not None}
    if not declared:
        return model
    variables = tuple(
        replace(v, unit=declared[v.name]) if v.unit is None and v.name in declared else v
        for v in model.variables
    )
    return model if variables == model.variables else replace(model, variables=variables)


def feed_open_inputs(
    system: ResolvedSystem, component: ResolvedComponent, names: Mapping[str, Sequence[OpenInput]]
) -> ResolvedSystem:
    """Add a component whose outputs feed open inputs: output name → the inputs it feeds."""
    source = len(system.components)
    links = []
    for name, targets in names.items():
        output = component.model.variable(name)
        assert output is not None
        for target in targets:
            text = f"'{name}' into '{system.components[target.target].name}.{target.input.name}'"
            check_transformation(target.input, target.transformation, text)
            links.append(Link(source, output, target.target, target.input, target.transformation))
    _check_one_source((*system.links, *links), (*system.components, component))
    roots = (
        RootConnector(name, source, output, Transformation(), _unit(first))
        for name, (first, *_) in names.items()
        if first.connector == name and (output := component.model.variable(name)) is not None
    )
    fed = {(k.target, k.input.name) for k in links}
    return replace(
        system,
        components=(*system.components, component),
        links=(*system.links, *links),
        root_connectors=(*roots, *system.root_connectors),
        open_inputs=tuple(o for o in system.open_inputs if (o.target, o.input.name) not in fed),
    )


def _unit(fed: OpenInput) -> str:
    """The unit of the source of an input; unknown if the value is transformed."""
    is_same = fed.input.unit is not None and fed.transformation.is_identity
    return fed.input.unit.name if is_same and fed.input.unit is not None else ""


_STRICT = (
    Causality.INPUT,
    Causality.PARAMETER,
    Causality.CALCULATED_PARAMETER,
    Causality.STRUCTURAL_PARAMETER,
)
"""Kinds that only a variable of that kind can have; any other variable can be connected as an output."""


def _note_contradictions(
    description: SystemDescription, models: Mapping[str, Model], wiring: Wiring, notes: Notes
) -> None:
    """Note all connectors whose kind, type, unit or dimensions differ from those of their variables."""
    for name, component in description.components():
        _of_component(name, component, models[name], notes)
    _of_systems(models, wiring, notes)


def _of_component(name: str, component: Component, model: Model, notes: Notes) -> None:
    for connector in component.connectors:
        text = f"'{name}.{connector.name}'"
        variable = model.variable(connector.name)
        if variable is None:
            near = meant(connector.name, (v.name for v in model.variables))
            notes.add(
                "connectors are not variables of their FMU and are ignored",
                text if near is None else f"{text} (did you mean '{near}'?)",
            )
            continue
        for what, described, real in _compared(connector, variable):
            notes.add(
                f"connectors are declared with another {what} than in the FMU, whose declaration is used",
                f"{text} ({described}; the FMU: {real})",
            )


def _compared(connector: Connector, variable: Variable) -> list[tuple[str, str, str]]:
    """Each difference: its kind, the connector's declaration, and the FMU's declaration."""
    found = []
    if _contradict(connector.kind, variable.causality):
        found.append(("kind", connector.kind.value, variable.causality.value))
    if connector.type is not None and connector.type is not variable.type:
        found.append(("type", connector.type.value, variable.type.value))
    if connector.unit and variable.unit and not _are_equal(connector.unit, variable.unit):
        found.append(("unit", describe(connector.unit), describe(variable.unit)))
    if connector.dimensions is not None and not _fit(connector.dimensions, variable.shape):
        found.append(("dimension", _shape(connector.dimensions), _shape(variable.shape)))
    if connector.clocks and {*connector.clocks} != {*variable.clocks}:
        found.append(("clock", ", ".join(connector.clocks), ", ".join(variable.clocks) or "none"))
    if connector.interval and variable.clock and not variable.clock.takes_interval:
        given = variable.clock.scheduled(connector.interval)
        if replace(given, is_given=False) != variable.clock:
            kind = variable.clock.interval_variability.value
            known = f" {variable.clock.interval} s" if variable.clock.interval else ""
            found.append(("interval", str(connector.interval), f"{kind}{known}"))
    return found


def _contradict(described: Causality, real: Causality) -> bool:
    if described is Causality.LOCAL:  # the connections decide
        return False
    return described is not real and not {described, real}.isdisjoint(_STRICT)


def _are_equal(a: Unit, b: Unit) -> bool:
    if a.exponents is None or b.exponents is None:
        return a.name == b.name
    return (a.exponents[:-1], a.factor, a.offset) == (b.exponents[:-1], b.factor, b.offset)


def _fit(dimensions: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(dimensions) == len(shape) and all(
        d in (None, n) for d, n in zip(dimensions, shape, strict=True)
    )


def _shape(dimensions: tuple[int | None, ...]) -> str:
    return " x ".join("?" if d is None else str(d) for d in dimensions) or "scalar"


def _of_systems(models: Mapping[str, Model], wiring: Wiring, notes: Notes) -> None:
    """Connectors of systems pass values on unchanged, regardless of their declared type."""
    for fed in wiring.fed:
        connection = wiring.feeding(fed)
        assert connection is not None
        for end, other in (
            (connection.start, connection.end),
            (connection.end, connection.start),
        ):
            connector = wiring.connectors.get(end)
            model = models.get(other.element)
            variable = None if model is None else model.variable(other.connector)
            if connector is None or connector.type is None or variable is None:
                continue
            if connector.type is not variable.type:
                notes.add(
                    "connectors of systems are declared with another type than what they are connected to; values "
                    "are passed unchanged",
                    f"'{end}' ({connector.type.value}; '{other}': {variable.type.value})",
                )
