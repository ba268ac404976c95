"""Shared events of an SSD: an annotation of the system, which other tools ignore."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from fmimaster.errors import FileError, did_you_mean
from fmimaster.system.description import SharedEvent
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, children, local_name, location, text_of

ANNOTATION = "org.fmimaster.fmi-ls-events"
"""Type of the annotation that is written; any type with the same last part is read, whatever its publisher."""
_ENDING = ".fmi-ls-events"


def read_shared_events(system: Element, document: Document) -> tuple[SharedEvent, ...]:
    """Shared events of one system, not of those nested in it.

    Raises
    ------
    FileError
        If an element is not known, or an attribute is missing.
    """
    found = []
    for annotation in children(system, "Annotations", "Annotation"):
        if (annotation.get("type") or "").endswith(_ENDING):
            document.read_annotations.append(annotation)
            for element in annotation:
                _check_name(element, "SharedEvent")
                found.append(SharedEvent(text_of(element, "name"), _members(element)))
    return tuple(found)


def _members(element: Element) -> tuple[tuple[str, str], ...]:
    for below in element:
        _check_name(below, "Member")
    return tuple((text_of(m, "component"), text_of(m, "event")) for m in element)


def _check_name(element: Element, expected: str) -> None:
    name = local_name(element)
    if name != expected:
        raise FileError(
            f"{location(element)}: element {name} is not known here, expected "
            f"{expected}.{did_you_mean(name, [expected])}"
        )


def write_shared_events(shared_events: Iterable[SharedEvent]) -> str:
    """Shared events as the annotations of a system: what stands between ``<ssd:Annotations>`` and its end.

    Each has its own, because an annotation of SSP holds one element.
    """
    lines = []
    for shared in shared_events:
        lines.append(f'<ssc:Annotation type="{ANNOTATION}">')
        lines.append(f"  <SharedEvent name={quoteattr(shared.name)}>")
        for component, event in shared.members:
            lines.append(f"    <Member component={quoteattr(component)} event={quoteattr(event)}/>")
        lines += ["  </SharedEvent>", "</ssc:Annotation>"]
    return "".join(f"{line}\n" for line in lines)
