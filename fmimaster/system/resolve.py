"""From a description to facts: which output feeds which input, and which start values each component gets.

Nested systems are opened, names are looked up in the models, directions, types, shapes and units are settled. What
was decided is in notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.errors import DescriptionError
from fmimaster.system.description import (
    Component,
    Source,
    SystemDescription,
    Transformation,
)
from fmimaster.system.model import Causality, DataType, Model, Variable
from fmimaster.system.shared_events import (
    EventMember,
    check_each_once,
    find_members,
    payload_ends,
)
from fmimaster.system.start_values import apply, start_values
from fmimaster.system.units import convert_units
from fmimaster.system.wiring import Wiring


@dataclass(frozen=True, slots=True)
class Link:
    """One output that feeds one input, with what happens to the value on the way."""

    source: int
    """Index of the component that gives the value."""
    output: Variable
    target: int
    input: Variable
    transformation: Transformation = Transformation()
    """Product of all transformations and unit conversions on the way."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResolvedComponent:
    """A component with its model and all start values that were given."""

    name: str
    source: Source
    model: Model
    start_values: Mapping[str, NDArray[Any]]
    """Variable name → values, shape (size,)."""


@dataclass(frozen=True, slots=True)
class OpenInput:
    """An input that no output feeds."""

    target: int
    input: Variable
    connector: str
    """Connector of the root system that feeds it; empty if there is none."""
    transformation: Transformation


@dataclass(frozen=True, slots=True)
class ResolvedSharedEvent:
    """An event that occurs in several components at the same instant."""

    name: str
    members: tuple[EventMember, ...]
    payload: tuple[Link, ...] = ()
    """Which output's left limit goes to which input before the members are triggered."""


@dataclass(frozen=True, slots=True)
class ResolvedSystem:
    """A flat system: components, links, and the inputs that no output feeds."""

    components: tuple[ResolvedComponent, ...]
    links: tuple[Link, ...]
    open_inputs: tuple[OpenInput, ...]
    notes: tuple[str, ...]
    shared_events: tuple[ResolvedSharedEvent, ...] = ()


def resolve(
    description: SystemDescription,
    models: Mapping[str, Model],
    *,
    overrides: Mapping[str, Any] | None = None,
    allow_lossy_conversions: bool = False,
) -> ResolvedSystem:
    """Determine what a description means for these models.

    Parameters
    ----------
    models
        Full component name → model.
    overrides
        Start values that win over the description's, see :func:`fmimaster.system.start_values.start_values`.
    allow_lossy_conversions
        Whether a connection may convert between types where a value can be lost.

    Raises
    ------
    DescriptionError
        For names that do not exist, ends that cannot be connected, and values that a variable cannot take.
    """
    if not models:
        raise DescriptionError(f"System '{description.system.name}' has no components. Add one.")
    wiring = Wiring(description.system, models)
    given = start_values(description, models, wiring, overrides or {})
    components = []
    for name, component in description.components():
        model, values = apply(name, _with_declared_units(models[name], component), given[name])
        components.append(ResolvedComponent(name, component.source, model, values))
    index = {c.name: i for i, c in enumerate(components)}
    links, open_inputs = [], []
    for target, found in enumerate(components):
        for variable in found.model.with_causality(Causality.INPUT):
            way = wiring.into(found.name, variable.name)
            start = way.start
            source = index.get(start.element)
            output = None if source is None else components[source].model.variable(start.connector)
            if source is None or output is None or output is variable:
                root = "" if start.element else start.connector
                open_inputs.append(OpenInput(target, variable, root, way.transformation))
                continue
            link = Link(source, output, target, variable, way.transformation)
            text, suppress = wiring.text(found.name, variable.name), way.suppress_unit_conversion
            links.append(_converted(link, text, suppress, allow_lossy_conversions))
    contradictions = [
        note
        for name, component in description.components()
        for note in _contradictions(name, component, models[name])
    ]
    of_fmus = dict.fromkeys(note for c in components for note in c.model.notes)
    notes = (*description.notes, *of_fmus, *wiring.notes, *contradictions)
    shared_events = _shared_events(description, components, allow_lossy_conversions)
    return ResolvedSystem(tuple(components), tuple(links), tuple(open_inputs), notes, shared_events)


def _shared_events(
    description: SystemDescription, components: Sequence[ResolvedComponent], allow_lossy: bool
) -> tuple[ResolvedSharedEvent, ...]:
    models = {c.name: c.model for c in components}
    described = tuple(description.shared_events())
    check_each_once(described)
    found = []
    for shared in described:
        members = find_members(shared, models)
        payload = []
        for ends in payload_ends(shared, members, models):
            link = Link(ends.source, ends.output, ends.target, ends.input)
            payload.append(_converted(link, ends.text, False, allow_lossy))
        found.append(ResolvedSharedEvent(shared.name, members, tuple(payload)))
    return tuple(found)


def _contradictions(name: str, component: Component, model: Model) -> Iterator[str]:
    """Where the connectors of a description differ from the FMU; the FMU counts."""
    for connector in component.connectors:
        variable = model.variable(connector.name)
        if variable is None:
            yield f"connector '{name}.{connector.name}' is no variable of the FMU; it is left aside"
        elif connector.kind in (Causality.INPUT, Causality.OUTPUT) and (
            (connector.kind is Causality.INPUT) != (variable.causality is Causality.INPUT)
        ):
            yield (
                f"connector '{name}.{connector.name}' is declared as {connector.kind.value}; the FMU says "
                f"{variable.causality.value}"
            )
        elif connector.type is not None and connector.type is not variable.type:
            yield (
                f"connector '{name}.{connector.name}' is declared as {connector.type.value}; the FMU says "
                f"{variable.type.value}"
            )


def _with_declared_units(model: Model, component: Component) -> Model:
    """The model with the units of the description's connectors, where the FMU names none."""
    declared = {c.name: c.unit for c in component.connectors if c.unit is not None}
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
        links += [Link(source, output, t.target, t.input, t.transformation) for t in targets]
    fed = {(k.target, k.input.name) for k in links}
    return replace(
        system,
        components=(*system.components, component),
        links=(*system.links, *links),
        open_inputs=tuple(o for o in system.open_inputs if (o.target, o.input.name) not in fed),
    )


# Conversions ----------------------------------------------------------------------------------------------------------


def _converted(link: Link, text: str, suppress_units: bool, allow_lossy: bool) -> Link:
    """The link with unit conversion, after checks of type and shape."""
    source, target = link.output, link.input
    ends = f"'{source.name}' and '{target.name}'"
    if source.shape != target.shape:
        raise DescriptionError(
            f"{text}: shapes differ, {ends} are {source.shape or 'scalar'} and {target.shape or 'scalar'}. "
            "Connect variables of the same shape."
        )
    if source.clocks:
        raise DescriptionError(
            f"{text}: '{source.name}' is there only while its clock is active; connecting it is not possible in this "
            "version. Leave the connection out."
        )
    if source.type is target.type is DataType.CLOCK:
        return link
    notes = []
    if source.type is not target.type:
        notes.append(_type_note(source, target, text, allow_lossy))
    transformation = link.transformation
    if not suppress_units and source.type.is_float and target.type.is_float:
        match = convert_units(source.unit, target.unit, text)
        transformation = match.transformation.then(transformation)  # units first, by SSP
        if match.note:
            notes.append(match.note)
    if not transformation.is_identity and not target.type.is_float:
        raise DescriptionError(
            f"{text}: a linear transformation needs a floating point target, '{target.name}' is "
            f"{target.type.value}. Transform at a Float64 input, or leave the transformation out."
        )
    return replace(link, transformation=transformation, notes=tuple(notes))


def is_lossless(source: Variable, target: Variable) -> bool:
    """Whether every value of one variable can be one of the other; a Float64 may be rounded to Float32.

    An enumeration has the values of its items only, whatever its type could hold.
    """
    a, b = source.type, target.type
    if (a, b) == (DataType.FLOAT64, DataType.FLOAT32):
        return True
    if source.enumeration and b.is_integer:
        limits = np.iinfo(b.dtype)
        return all(limits.min <= v <= limits.max for v in source.enumeration.values())
    if source.enumeration and b.is_float:
        return all(b.dtype.type(v) == v for v in source.enumeration.values())
    long_to_float = a.dtype.itemsize == 8 and a.is_integer and b.is_float
    return bool(np.can_cast(a.dtype, b.dtype, "safe")) and not long_to_float


def _type_note(source: Variable, target: Variable, text: str, allow_lossy: bool) -> str:
    conversion = f"{source.type.value} to {target.type.value}"
    if not (source.type.is_numeric and target.type.is_numeric):
        raise DescriptionError(
            f"{text}: {conversion} cannot be converted. Connect variables of the same type."
        )
    if (source.type, target.type) == (DataType.FLOAT64, DataType.FLOAT32):
        return f"{conversion}, rounded"
    if is_lossless(source, target):
        return conversion
    if allow_lossy:
        return f"{conversion}, may lose values (allowed)"
    raise DescriptionError(
        f"{text}: {conversion} can lose values. Connect variables of matching types, or allow it with "
        "allow_lossy_conversions (--allow-lossy-conversions)."
    )
