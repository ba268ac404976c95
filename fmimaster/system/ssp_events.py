"""Shared events of an SSD: an annotation of the system, which other tools ignore.

docs/proposal/ has its text and schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fmimaster.base.errors import FileError, did_you_mean
from fmimaster.system.description import SharedEvent
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import (
    Element,
    children,
    local_name,
    location,
    quoted,
    shown,
    text_of,
)
from fmimaster.system.xml_form import (
    ANNOTATIONS,
    ANY,
    AT_LEAST_ONE,
    AT_MOST_ONE,
    NAME,
    Form,
    Occurrence,
    Value,
    faults,
)

ANNOTATION = "org.fmimaster.fmi-ls-events"
"""Type of the annotation that is written; any type with the same last part is read, from any publisher."""
_ENDING = ".fmi-ls-events"
NAMESPACE = "https://fmimaster.org/fmi-ls-events"
"""Of all elements inside. Version 0.1 had none, and no SharedEvents around them; that is read too."""
VERSION = "0.2.0"

_KNOWN = 2
"""Minor version; additions of later versions are ignored with a note."""
_VERSION = re.compile(r"0\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?", re.ASCII)
_EXTENSION = {"Annotations": AT_MOST_ONE}
_FORMS = ANNOTATIONS | {
    "SharedEvents": Form(
        {"version": Value("a version 0.x.y", lambda t: _VERSION.fullmatch(t) is not None)},
        inside={"SharedEvent": AT_LEAST_ONE} | _EXTENSION,
    ),
    "SharedEvent": Form({"name": NAME}, inside={"Member": Occurrence(2)} | _EXTENSION),
    "Member": Form({"component": NAME, "event": NAME}, inside={"Partner": ANY} | _EXTENSION),
    "Partner": Form({"role": NAME, "component": NAME}, inside=_EXTENSION),
}
"""As in the schema fmi3LayeredStandardEventsSystem.xsd."""


def read_shared_events(system: Element, document: Document) -> tuple[SharedEvent, ...]:
    """Shared events of one system, not of those nested in it.

    Raises
    ------
    FileError
        If an element is not known, or an attribute is missing.
    """
    found: list[SharedEvent] = []
    for annotation in children(system, "Annotations", "Annotation"):
        if (annotation.get("type") or "").endswith(_ENDING):
            document.read_annotations.append(annotation)
            for element in annotation:
                found += _shared_events(element, document)
    return tuple(found)


def _shared_events(element: Element, document: Document) -> Iterator[SharedEvent]:
    if element.tag == "SharedEvent":  # version 0.1
        _check(element, "", document)
        yield _shared_event(element)
    elif element.tag == f"{{{NAMESPACE}}}SharedEvents":
        _check(element, NAMESPACE, document)
        yield from map(_shared_event, children(element, "SharedEvent"))
    else:
        name = local_name(element)
        raise FileError(
            f"{location(element)}: element {name} is not known here, expected SharedEvents in the namespace "
            f"{NAMESPACE}.{did_you_mean(name, ['SharedEvents'])}"
        )


def _check(element: Element, namespace: str, document: Document) -> None:
    version = _VERSION.fullmatch(element.get("version") or "")
    is_later = version is not None and int(version[1]) > _KNOWN
    for fault in faults(element, _FORMS, namespace):
        if not (fault.unknown and is_later):
            raise FileError(f"{location(fault.element)}: {fault.text}.")
        document.note(fault.element, f"{fault.text}; it is ignored")


def _shared_event(element: Element) -> SharedEvent:
    members = list(children(element, "Member"))
    partners = []
    for m in members:
        roles = set[str]()
        for p in children(m, "Partner"):
            if (role := text_of(p, "role")) in roles:
                raise FileError(
                    f"{location(p)}: the role {shown(role)} is bound twice. Expected one Partner for each role."
                )
            roles.add(role)
            partners.append((text_of(m, "component"), role, text_of(p, "component")))
    return SharedEvent(
        text_of(element, "name"),
        tuple((text_of(m, "component"), text_of(m, "event")) for m in members),
        tuple(partners),
    )


def write_shared_events(shared_events: Iterable[SharedEvent]) -> str:
    """Shared events as the annotation of a system: the text inside of ``<ssd:Annotations>``.

    All shared events are in one annotation; the text is empty if there are none.
    """
    shared_events = list(shared_events)
    if not shared_events:
        return ""
    lines = [f'<ssc:Annotation type="{ANNOTATION}">']
    lines.append(f'  <SharedEvents xmlns="{NAMESPACE}" version="{VERSION}">')
    for shared in shared_events:
        lines.append(f"    <SharedEvent name={quoted(shared.name)}>")
        for component, event in shared.members:
            bound = [(role, other) for owner, role, other in shared.partners if owner == component]
            end = ">" if bound else "/>"
            names = f"component={quoted(component)} event={quoted(event)}"
            lines.append(f"      <Member {names}{end}")
            for role, other in bound:
                names = f"role={quoted(role)} component={quoted(other)}"
                lines.append(f"        <Partner {names}/>")
            lines += ["      </Member>"] * bool(bound)
        lines.append("    </SharedEvent>")
    lines += ["  </SharedEvents>", "</ssc:Annotation>"]
    return "".join(f"{line}\n" for line in lines)
