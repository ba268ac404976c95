"""Units and types that a model description defines."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite

from fmimaster.errors import FileError
from fmimaster.fmu.description.dialects import Dialect
from fmimaster.fmu.description.findings import Findings
from fmimaster.system.model import BASE_UNITS, Unit
from fmimaster.system.xml import Element, child, children, shown, value_of

_GREATEST_POWER = 100
"""Of a base unit; no unit has a tenth of it."""

_LEAST_ITEM = -(2**63)
"""Of an enumeration in FMI 3.0."""


def read_units(root: Element, findings: Findings) -> dict[str, Unit]:
    """Name → unit. One whose definition cannot be used counts as named only, and is not converted."""
    found: dict[str, Unit] = {}
    for element in children(root, "UnitDefinitions", "Unit"):
        name = element.get("name") or ""
        base = child(element, "BaseUnit")
        try:
            unit = Unit(name) if base is None else _unit(name, base)
        except (FileError, ValueError):
            findings.note(
                element,
                "a unit has a definition that cannot be used, it is not converted",
                shown(name),
            )
            unit = Unit(name)
        if found.setdefault(name, unit) != unit:
            what = "a unit is defined again in another way, the first one counts"
            findings.note(element, what, shown(name))
    return found


def _unit(name: str, base: Element) -> Unit:
    exponents = tuple(value_of(base, b, int, 0) for b in BASE_UNITS)
    factor, offset = value_of(base, "factor", float, 1.0), value_of(base, "offset", float, 0.0)
    if not (isfinite(factor) and isfinite(offset) and factor):
        raise ValueError
    if any(abs(e) > _GREATEST_POWER for e in exponents):
        raise ValueError
    return Unit(name, exponents, factor, offset)


@dataclass(frozen=True, slots=True)
class TypeDefinition:
    """A type that variables can name."""

    element: Element
    """It has the attributes that a variable takes over."""
    items: Mapping[str, int] | None
    """Of an enumeration: name → value."""


def read_types(root: Element, dialect: Dialect, findings: Findings) -> dict[str, TypeDefinition]:
    """Name → type."""
    found: dict[str, TypeDefinition] = {}
    for element in children(root, "TypeDefinitions"):
        for definition in element:
            name, inner = definition.get("name") or "", dialect.type_definition(definition)
            if inner is None or not name:
                what = "a type definition without a name or a type is left aside"
                findings.note(definition, what, shown(name))
            elif name in found:
                what = "a type is defined again, the first one counts"
                findings.note(definition, what, shown(name))
            else:
                found[name] = TypeDefinition(inner, _items(inner, findings))
    return found


def _items(definition: Element, findings: Findings) -> Mapping[str, int] | None:
    found: dict[str, int] = {}
    for item in children(definition, "Item"):
        name, value = item.get("name"), None
        with suppress(ValueError):
            value = int(item.get("value") or "")
        if not name or value is None or not _LEAST_ITEM <= value <= -_LEAST_ITEM - 1:
            what = "an item of an enumeration needs a name and a whole number, it is left aside"
            findings.note(item, what, shown(name))
        elif found.setdefault(name, value) != value:
            what = "an item of an enumeration is defined again, the first one counts"
            findings.note(item, what, shown(name))
    return found or None
