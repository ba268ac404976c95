"""Differences between the connectors of a description and the variables of the FMUs. The FMUs' declarations are
used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fmimaster.system.description import Component, Connector, SystemDescription
from fmimaster.system.model import Causality, Model, Unit, Variable
from fmimaster.system.notes import Notes, meant
from fmimaster.system.units import describe
from fmimaster.system.wiring import Wiring

_STRICT = (
    Causality.INPUT,
    Causality.PARAMETER,
    Causality.CALCULATED_PARAMETER,
    Causality.STRUCTURAL_PARAMETER,
)
"""Kinds that only a variable of that kind can have; any other variable can be connected as an output."""


def note_contradictions(
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
