"""Parameters of an SSD: bindings, parameter sets (SSV) and mappings (SSM)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fmimaster.base.errors import DescriptionError, FileError
from fmimaster.system.description import Parameter, Source
from fmimaster.system.model import Unit
from fmimaster.system.notes import meant
from fmimaster.system.ssp_document import Document, read_transformation, read_unit
from fmimaster.system.xml import (
    Element,
    child,
    children,
    local_name,
    location,
    parse_text,
    text_of,
    value_of,
)

_INTEGERS = ("Integer", *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)))
_KINDS: Mapping[str, type] = {
    "Real": float,
    "Float64": float,
    "Float32": float,
    **dict.fromkeys(_INTEGERS, int),
    "Boolean": bool,
    "String": str,
    "Enumeration": str,
    "Binary": bytes,
}
"""Elements with a value: those of SSP 1.0, and those that SSP 2.0 adds."""


def read_parameters(
    element: Element, document: Document, component: Source | None = None
) -> tuple[Parameter, ...]:
    """Parameters in the bindings of a component or system.

    Of several parameters for one variable, the last one is used.

    Parameters
    ----------
    component
        Source of the component; None for a system.
    """
    found: dict[str, Parameter] = {}
    for binding in children(element, "ParameterBindings", "ParameterBinding"):
        found |= {p.name: p for p in _binding(binding, document, component)}
    return tuple(found.values())


def _binding(binding: Element, document: Document, component: Source | None) -> Iterator[Parameter]:
    _check_type(binding, "application/x-ssp-parameter-set")
    units = document.units
    inline = list(children(binding, "ParameterValues", "ParameterSet"))
    if binding.get("source"):
        values = document.read(binding, component, "ParameterSet")
        units = {}
        if inline:
            document.note(binding, "parameter sets inside of a binding with a source are ignored")
    elif inline:
        values = inline[0]
        if len(inline) > 1:
            document.note(binding, "of several parameter sets in one binding, the first is read")
    else:
        document.note(binding, "parameter bindings without source or ParameterSet are ignored")
        return
    parameters = _parameter_set(values, units, binding.get("prefix") or "", document)
    mapping = child(binding, "ParameterMapping")
    if mapping is None:
        yield from parameters.values()
    else:
        yield from _mapped(parameters, mapping, document, component)


def _check_type(element: Element, expected: str) -> None:
    kind = element.get("type") or expected
    if kind != expected:
        raise DescriptionError(
            f"{location(element)}: {local_name(element)} has type '{kind}', which is not known. "
            f"Expected '{expected}'."
        )


def _parameter_set(
    element: Element, units: Mapping[str, Unit], prefix: str, document: Document
) -> Mapping[str, Parameter]:
    units = {**units, **document.read_units(element)}
    found: dict[str, Parameter] = {}
    for parameter in children(element, "Parameters", "Parameter"):
        name = prefix + text_of(parameter, "name")
        if name in found:
            document.note(parameter, "parameters are given twice; the later values are used", name)
        if child(parameter, "Dimension") is not None:
            document.note(
                parameter, "dimensions of parameters are ignored; those of the FMU are used"
            )
        found[name] = _parameter(parameter, name, units)
    return found


def _parameter(element: Element, name: str, units: Mapping[str, Unit]) -> Parameter:
    for value in element:
        kind = _KINDS.get(local_name(value))
        if kind is not None:
            return Parameter(
                name, _value(value, kind), read_unit(value, units), where=location(element)
            )
    raise FileError(
        f"{location(element)}: parameter '{name}' has no value. Expected one of "
        f"{', '.join(_KINDS)}."
    )


def _value(element: Element, kind: type) -> Any:
    texts = [each.get("value") or "" for each in children(element, "Value")]  # SSP 2.0
    text = element.get("value")
    if text is not None and texts:
        raise FileError(
            f"{location(element)}: {local_name(element)} has a value and elements Value. Expected one of the two."
        )
    if text is None and not texts:
        raise FileError(
            f"{location(element)}: attribute 'value' of {local_name(element)} is missing."
        )
    if text is not None:
        texts = [text] if kind is str else text.split() or [text]
    values: list[Any] = [
        each if kind is str else parse_text(element, "value", kind, each) for each in texts
    ]
    return tuple(values) if len(values) > 1 else values[0]


def _mapped(
    parameters: Mapping[str, Parameter],
    mapping: Element,
    document: Document,
    component: Source | None,
) -> Iterator[Parameter]:
    """Parameters with the names of a mapping.

    Those that it does not mention are not applied; SSP 2.0 requires it, 1.0 does not define it.
    """
    _check_type(mapping, "application/x-ssp-parameter-mapping")
    if mapping.get("source"):
        entries = document.read(mapping, component, "ParameterMapping")
        if child(mapping, "ParameterMapping") is not None:
            document.note(mapping, "mappings inside of one with a source are ignored")
    else:
        inline = child(mapping, "ParameterMapping")
        entries = mapping if inline is None else inline
    used: set[str] = set()
    targets: set[str] = set()
    for entry in children(entries, "MappingEntry"):
        if not entry.get("source"):
            document.note(entry, "mapping entries without a source are skipped")
            continue
        source, target = text_of(entry, "source"), text_of(entry, "target")
        if source not in parameters:
            _note_unknown_source(entry, source, parameters, document)
            continue
        if target in targets:
            document.note(
                entry, "several parameters are mapped to one name; the last one is used", target
            )
        used.add(source)
        targets.add(target)
        suppressed = value_of(entry, "suppressUnitConversion", bool, False)
        yield replace(
            parameters[source],
            name=target,
            unit=None if suppressed else parameters[source].unit,
            transformation=read_transformation(entry),
        )
    for name in parameters:
        if name not in used:
            document.note(mapping, "parameters without a mapping are not applied", name)


def _note_unknown_source(
    entry: Element, source: str, parameters: Mapping[str, Parameter], document: Document
) -> None:
    """A mapping may be made for a larger set; a name similar to one of the set is a mistake."""
    near = meant(source, parameters)
    if near is None:
        document.note(entry, "mapped parameters are not in the parameter set", source)
        return
    document.warnings.add(
        "mapped parameters are not in the parameter set and are ignored. Correct the spelling",
        f"'{source}' (did you mean '{near}'?)",
        location(entry),
    )
