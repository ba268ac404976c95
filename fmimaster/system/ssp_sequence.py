"""The trigger sequence of an SSD: an annotation of the root system, which other tools ignore."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from fmimaster.errors import FileError, did_you_mean
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, children, local_name, location, text_of
from fmimaster.system.xml_form import AT_LEAST_ONE, NAME, Form, Value, faults

ANNOTATION = "org.fmimaster.trigger-sequence"
"""Type of the annotation."""
NAMESPACE = "https://fmimaster.org/trigger-sequence"
"""Of all elements inside."""
VERSION = "1.0"

_VERSION = re.compile(r"1\.(0|[1-9][0-9]*)", re.ASCII)
_FORMS = {
    "TriggerSequence": Form(
        {"version": Value("a version 1.x", lambda t: _VERSION.fullmatch(t) is not None)},
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
    if element.tag != f"{{{NAMESPACE}}}TriggerSequence":
        name = local_name(element)
        raise FileError(
            f"{location(element)}: element {name} is not known here, expected TriggerSequence in the namespace "
            f"{NAMESPACE}.{did_you_mean(name, ['TriggerSequence'])}"
        )
    is_later = element.get("version") not in (None, VERSION)
    for fault in faults(element, _FORMS, NAMESPACE):
        if not (fault.unknown and is_later):
            raise FileError(f"{location(fault.element)}: {fault.text}.")
        document.note(fault.element, f"{fault.text}; it is left aside")
    return tuple(text_of(component, "name") for component in children(element, "Component"))


def write_sequence(names: Iterable[str]) -> str:
    """A trigger sequence as the element inside its annotation."""
    lines = [f'<TriggerSequence xmlns="{NAMESPACE}" version="{VERSION}">']
    lines += [f"  <Component name={quoteattr(name)}/>" for name in names]
    lines.append("</TriggerSequence>")
    return "".join(f"{line}\n" for line in lines)
