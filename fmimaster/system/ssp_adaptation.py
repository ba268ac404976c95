"""Elements of semantic adaptation of an SSD: an annotation of a system, which other tools ignore."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from fmimaster.base.errors import DescriptionError
from fmimaster.system.adaptation import ELEMENTS, Direction
from fmimaster.system.description import ADAPTATION_SOURCE, Component, Connection
from fmimaster.system.model import DataType
from fmimaster.system.ssp_annotation import (
    CONNECTION,
    INTERVAL,
    SHIFT,
    annotated_connection,
    check_annotation,
)
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, children, local_name, location, text_of
from fmimaster.system.xml_form import (
    ANY,
    BOOLEAN,
    NAME,
    NUMBER,
    TEXT,
    WITH_VERSION,
    Form,
    Value,
    one_of,
)

ANNOTATION = "org.fmimaster.semantic-adaptation"
"""Type of the annotation."""
NAMESPACE = "https://fmimaster.org/semantic-adaptation"
"""Of all elements inside."""
_TYPES = {kind.value: kind for kind in DataType if kind.is_numeric}
_DIRECTIONS = {direction.value: direction for direction in Direction}
_SAMPLED: Mapping[str, Value] = {
    "period": INTERVAL,
    "shift": SHIFT,
    "clocked": BOOLEAN,
    "type": one_of(*_TYPES),
    "start": TEXT,
}
_NAMED = {"name": NAME}
_FORMS = {
    "SemanticAdaptation": Form(
        WITH_VERSION, inside={**dict.fromkeys(ELEMENTS, ANY), "Connection": ANY}
    ),
    "SampleAndHold": Form(_NAMED, _SAMPLED),
    "UnitDelay": Form(_NAMED, {**_SAMPLED, "microstep": BOOLEAN}),
    "LevelCrossing": Form({**_NAMED, "level": NUMBER}, {"direction": one_of(*_DIRECTIONS)}),
    "EventCounter": Form(_NAMED),
    "Quantizer": Form({**_NAMED, "step": NUMBER}, {"hysteresis": NUMBER}),
    "Connection": CONNECTION,
}
_IS_TRUE = ("true", "1").__contains__
_PARSED: Mapping[str, Callable[[str], Any]] = {
    "clocked": _IS_TRUE,
    "microstep": _IS_TRUE,
    "type": _TYPES.__getitem__,
    "direction": _DIRECTIONS.__getitem__,
    "level": float,
    "step": float,
    "hysteresis": float,
}
"""Attributes that are no texts in Python."""


def read_adaptation(
    system: Element, known: Collection[str], document: Document
) -> tuple[list[Component], list[Connection]]:
    """Elements of semantic adaptation of one system, not of those nested in it, and their connections.

    Parameters
    ----------
    known
        Names of the other elements of the system.

    Raises
    ------
    FileError, DescriptionError
        If an element is not known, an attribute is missing or wrong, or a connection leads to no element.
    """
    found: list[Element] = []
    for annotation in children(system, "Annotations", "Annotation"):
        if annotation.get("type") == ANNOTATION:
            document.read_annotations.append(annotation)
            for element in annotation:
                check_annotation(element, "SemanticAdaptation", NAMESPACE, _FORMS, document)
                found += element
    components = [_component(element) for element in found if local_name(element) in ELEMENTS]
    names = [*known, *(c.name for c in components)]
    return components, [
        annotated_connection(element, names)
        for element in found
        if local_name(element) == "Connection"
    ]


def _component(element: Element) -> Component:
    given: dict[str, Any] = {
        name: _PARSED.get(name, str)(text.strip())
        for name, text in element.items()
        if name != "name" and not name.startswith("{")
    }
    if given.get("type") is DataType.BOOLEAN and "start" in given:
        given["start"] = _IS_TRUE(given["start"])
    try:
        adaptation = ELEMENTS[local_name(element)](**given)
    except DescriptionError as error:
        raise DescriptionError(f"{location(element)}: {error}") from None
    return Component(text_of(element, "name"), ADAPTATION_SOURCE, adaptation=adaptation)
