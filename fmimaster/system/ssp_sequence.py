"""The trigger sequence of an SSD: an annotation of the root system, which other tools ignore."""

from __future__ import annotations

from collections.abc import Iterable

from fmimaster.base.errors import FileError
from fmimaster.system.ssp_annotation import VERSION, check_annotation
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, children, location, quoted, text_of
from fmimaster.system.xml_form import AT_LEAST_ONE, NAME, WITH_VERSION, Form

ANNOTATION = "org.fmimaster.trigger-sequence"
"""Type of the annotation."""
NAMESPACE = "https://fmimaster.org/trigger-sequence"
"""Of all elements inside."""
_FORMS = {
    "TriggerSequence": Form(
        WITH_VERSION,
        inside={"Component": AT_LEAST_ONE},
    ),
    "Component": Form({"name": NAME}),
}


def read_sequence(system: Element, document: Document) -> tuple[str, ...]:
    """Full names of the components in the order in which they are stepped; empty if the root system has no annotation.

    Whether each component is named once is checked when the system is planned.

    Raises
    ------
    FileError
        If an element is not known, an attribute is missing, or there are two annotations.
    """
    found = [
        annotation
        for annotation in children(system, "Annotations", "Annotation")
        if annotation.get("type") == ANNOTATION
    ]
    if not found:
        return ()
    document.read_annotations += found
    elements = [element for annotation in found for element in annotation]
    if len(elements) != 1:
        where = elements[1] if elements else found[0]
        raise FileError(
            f"{location(where)}: the system has {len(elements) or 'no'} trigger sequences in annotations of type "
            f"{ANNOTATION}. Expected one."
        )
    element = elements[0]
    check_annotation(element, "TriggerSequence", NAMESPACE, _FORMS, document)
    return tuple(text_of(component, "name") for component in children(element, "Component"))


def write_sequence(names: Iterable[str]) -> str:
    """A trigger sequence as the element inside its annotation."""
    lines = [f'<TriggerSequence xmlns="{NAMESPACE}" version="{VERSION}">']
    lines += [f"  <Component name={quoted(name)}/>" for name in names]
    lines.append("</TriggerSequence>")
    return "".join(f"{line}\n" for line in lines)
