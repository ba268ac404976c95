"""Lifetimes of components and connections of an SSD: an annotation of a system, which other tools ignore."""

from __future__ import annotations

from dataclasses import replace

from fmimaster.base.errors import DescriptionError, OptionError, did_you_mean
from fmimaster.system.clocks import exact
from fmimaster.system.description import Connection, Endpoint, System
from fmimaster.system.lifetime import Lifetime
from fmimaster.system.ssp_annotation import check_annotation
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, children, location, text_of
from fmimaster.system.xml_form import ANY, NAME, WITH_VERSION, Form, Value

ANNOTATION = "org.fmimaster.lifetimes"
"""Type of the annotation."""
NAMESPACE = "https://fmimaster.org/lifetimes"
"""Of all elements inside."""


def _is_time(text: str) -> bool:
    try:
        exact(text)
    except OptionError:
        return False
    return True


_TIME = Value("a time in s, such as 0.1 or 1/3", _is_time)
_FIELDS = {
    "fromTime": "from_time",
    "untilTime": "until_time",
    "fromEvent": "from_event",
    "untilEvent": "until_event",
}
"""Attribute → field of :class:`Lifetime`."""
_LIFETIME = {name: _TIME if name.endswith("Time") else NAME for name in _FIELDS}
_FORMS = {
    "Lifetimes": Form(WITH_VERSION, inside={"Component": ANY, "Connection": ANY}),
    "Component": Form({"name": NAME}, _LIFETIME),
    "Connection": Form(
        {"startConnector": NAME, "endConnector": NAME},
        {"startElement": NAME, "endElement": NAME, **_LIFETIME},
    ),
}


def with_lifetimes(described: System, system: Element, document: Document) -> System:
    """A system with the lifetimes of its annotations; those of nested systems are in their own ones.

    Parameters
    ----------
    described
        The system, as it is without them.

    Raises
    ------
    FileError, DescriptionError
        If an element is not known, an attribute is missing or wrong, or there is no such component or connection.
    """
    components, connections = list(described.components), list(described.connections)
    names, ends = [c.name for c in components], [str(c) for c in connections]
    for annotation in children(system, "Annotations", "Annotation"):
        if annotation.get("type") != ANNOTATION:
            continue
        document.read_annotations.append(annotation)
        for element in annotation:
            check_annotation(element, "Lifetimes", NAMESPACE, _FORMS, document)
            for below in children(element, "Component"):
                k = _place(below, "component", text_of(below, "name"), names)
                components[k] = replace(components[k], lifetime=_lifetime(below))
            for below in children(element, "Connection"):
                k = _place(below, "connection", _ends(below), ends)
                connections[k] = replace(connections[k], lifetime=_lifetime(below))
    return replace(described, components=tuple(components), connections=tuple(connections))


def _place(element: Element, what: str, name: str, names: list[str]) -> int:
    """The place of a component or connection, which is then taken."""
    if name not in names:
        raise DescriptionError(
            f"{location(element)}: there is no {what} '{name}' in this system, or it has a lifetime already. Expected one "
            f"lifetime for each.{did_you_mean(name, names)}"
        )
    k = names.index(name)
    names[k] = ""
    return k


def _ends(element: Element) -> str:
    start, end = (
        Endpoint(element.get(f"{end}Element") or "", text_of(element, f"{end}Connector"))
        for end in ("start", "end")
    )
    return str(Connection(start, end))


def _lifetime(element: Element) -> Lifetime:
    given = {field: element.get(name) for name, field in _FIELDS.items()}
    try:
        return Lifetime(**given)
    except DescriptionError as error:
        raise DescriptionError(f"{location(element)}: {error}") from None
