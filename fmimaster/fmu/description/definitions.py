"""Types that a model description defines."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from fmimaster.fmu.description.dialects import Dialect
from fmimaster.fmu.description.findings import Findings
from fmimaster.system.xml import Element, children, shown

_LEAST_ITEM = -(2**63)
"""Type of an enumeration in FMI 3.0."""


@dataclass(frozen=True, slots=True)
class TypeDefinition:
    """A type to which variables can refer."""

    element: Element
    """Its element, with the attributes that variables inherit."""
    items: Mapping[str, int] | None
    """Items of an enumeration: name → value."""


def read_types(root: Element, dialect: Dialect, findings: Findings) -> dict[str, TypeDefinition]:
    """Name → type."""
    found: dict[str, TypeDefinition] = {}
    for element in children(root, "TypeDefinitions"):
        for definition in element:
            name, inner = definition.get("name") or "", dialect.type_definition(definition)
            if inner is None or not name:
                what = "a type definition without a name or a type is ignored"
                findings.note(definition, what, shown(name))
            elif name in found:
                what = "a type has several definitions; the first one is used"
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
            what = "an item of an enumeration without a name or a whole number is ignored"
            findings.note(item, what, shown(name))
        elif found.setdefault(name, value) != value:
            what = "an item of an enumeration has several definitions; the first one is used"
            findings.note(item, what, shown(name))
    return found or None
