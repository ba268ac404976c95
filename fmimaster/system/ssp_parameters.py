"""Parameters of an SSD: bindings, parameter sets (SSV) and mappings (SSM); its experiment, and settings in annotations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fmimaster.base.errors import DescriptionError, FileError, did_you_mean
from fmimaster.system.declarations import Experiment
from fmimaster.system.description import Parameter
from fmimaster.system.model import Source, Unit
from fmimaster.system.notes import meant
from fmimaster.system.ssp_annotations import CONSTRAINTS, LIFETIMES, POWER_BONDS, SEQUENCE
from fmimaster.system.ssp_document import Document, read_transformation, read_unit
from fmimaster.system.ssp_events import ADAPTATION, CLOCKS, SHARED_EVENTS
from fmimaster.system.ssp_schema import INTEGERS
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

_KINDS: Mapping[str, type] = {
    "Real": float,
    "Float64": float,
    "Float32": float,
    **dict.fromkeys(("Integer", *INTEGERS), int),
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


# Experiment -----------------------------------------------------------------------------------------------------------

_OURS = "org.fmimaster"
_SIMULATION = "Simulation"
_SETTINGS = ("stepSize", "tolerance")
"""Attributes of the element in our annotation."""
_ANNOTATIONS = (
    _OURS,
    SHARED_EVENTS,
    *(a.type for a in (ADAPTATION, CLOCKS, CONSTRAINTS, LIFETIMES, POWER_BONDS, SEQUENCE)),
)
"""Types of all annotations of fmimaster."""
_NEAR_TYPE = 0.9
"""Share of equal letters from which a type is treated as misspelt; types of other publishers differ by more."""
_STEP_SIZES = (
    (_OURS, _SIMULATION, "stepSize"),
    ("com.opensimulationplatform", "FixedStepAlgorithm", "baseStepSize"),
    ("org.openmodelica", "FixedStepMaster", "stepSize"),
)
"""Places where tools write the step size: type of annotation, element in it, attribute. The first one present is
used."""
_TOLERANCES = ((_OURS, _SIMULATION, "tolerance"),)


def read_experiment(document: Document) -> Experiment:
    """Start and stop time; step size and tolerance from an annotation of fmimaster, or the step size from that of a
    known tool.

    Annotations of the root system, of the default experiment and of the whole description are read.
    All others are ignored, with a note for each type.
    """
    root = document.root
    default = child(root, "DefaultExperiment")
    tolerance, used = _first(document, _TOLERANCES)
    step_size, also_used = _first(document, _STEP_SIZES)
    for element in root.iter():
        if local_name(element) != "Annotation":
            continue
        is_read = element in (used, also_used) or any(
            element is a for a in document.read_annotations
        )
        kind = element.get("type") or ""
        if kind == _OURS or not is_read:
            _refuse_misspelt(element, kind)
        if not is_read:
            document.note(element, f"annotations of type '{kind}' are ignored")
    start_time, stop_time = (
        None if default is None else value_of(default, name, float, None)
        for name in ("startTime", "stopTime")
    )
    return Experiment(start_time, stop_time, tolerance, step_size)


def _refuse_misspelt(annotation: Element, kind: str) -> None:
    """Refuse misspelt names in an annotation of fmimaster, and a misspelt type of such an annotation."""
    if kind == _OURS:
        for element in annotation:
            _check_settings(element)
    elif kind not in _ANNOTATIONS and (near := meant(kind, _ANNOTATIONS, _NEAR_TYPE)) is not None:
        raise DescriptionError(
            f"{location(annotation)}: type '{kind}' of an Annotation is not known. Did you mean '{near}'?"
        )


def _check_settings(element: Element) -> None:
    name = local_name(element)
    if name != _SIMULATION:
        raise DescriptionError(
            f"{location(element)}: element '{name}' of an annotation of type '{_OURS}' is not known. Expected "
            f"{_SIMULATION}."
        )
    for attribute in element.attrib:
        if attribute not in _SETTINGS:
            raise DescriptionError(
                f"{location(element)}: attribute '{attribute}' of {name} is not known."
                f"{did_you_mean(attribute, _SETTINGS)} Expected {' or '.join(_SETTINGS)}."
            )


def _first(
    document: Document, choices: Iterable[tuple[str, str, str]]
) -> tuple[float | None, Element | None]:
    """The number in the first of these annotations, and the annotation."""
    inside = [
        (annotation, element)
        for path in (("DefaultExperiment",), ("System",), ())
        for annotation in children(document.root, *path, "Annotations", "Annotation")
        for element in annotation.iter()
    ]
    for kind, name, attribute in choices:
        for annotation, element in inside:
            if annotation.get("type") != kind or local_name(element) != name:
                continue
            if element.get(attribute) is not None:
                value = _positive(element, attribute)
                if kind != _OURS:
                    said = f"{name} of '{kind}'"
                    document.note(element, f"step size {value:g} s is read from {said}")
                return value, annotation
    return None, None


def _positive(element: Element, name: str) -> float:
    value = value_of(element, name, float, 0.0)
    if not 0 < value < math.inf:
        raise FileError(
            f"{location(element)}: attribute '{name}' of {local_name(element)} is {value:g}, "
            "expected a number above 0."
        )
    return value
