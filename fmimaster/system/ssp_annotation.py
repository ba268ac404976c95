"""Common parts of fmimaster's annotations in an SSD: one element in its own namespace, with a version."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fmimaster.base.errors import DescriptionError, FileError, OptionError, did_you_mean
from fmimaster.system.clocks import exact
from fmimaster.system.description import Connection, Endpoint, Transformation
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, local_name, location, text_of, value_of
from fmimaster.system.xml_form import NAME, NUMBER, Form, Value, faults

VERSION = "1.0"
"""The version that is written; any version 1.x is read."""


def check_annotation(
    element: Element, name: str, namespace: str, forms: Mapping[str, Form], document: Document
) -> None:
    """Compare the element in an annotation with its form; additions of later versions are ignored with a note.

    Raises
    ------
    FileError
        If it is another element, or has a fault.
    """
    if element.tag != f"{{{namespace}}}{name}":
        found = local_name(element)
        raise FileError(
            f"{location(element)}: element {found} is not known here, expected {name} in the namespace "
            f"{namespace}.{did_you_mean(found, [name])}"
        )
    is_later = element.get("version") not in (None, VERSION)
    for fault in faults(element, forms, namespace):
        if not (fault.unknown and is_later):
            raise FileError(f"{location(fault.element)}: {fault.text}.")
        document.note(fault.element, f"{fault.text}; it is ignored")


def _seconds(least: float, words: str, *, may_be_least: bool) -> Value:
    """A time: a decimal number or a fraction."""

    def fits(text: str) -> bool:
        try:
            value = exact(text)
        except OptionError:
            return False
        return value > least or (may_be_least and value == least)

    return Value(words, fits)


INTERVAL = _seconds(0.0, "a time above 0 in s, such as 0.1 or 1/3", may_be_least=False)
SHIFT = _seconds(0.0, "a time in s, 0 or more", may_be_least=True)

CONNECTION = Form(
    {"startConnector": NAME, "endConnector": NAME},
    {"startElement": NAME, "endElement": NAME, "factor": NUMBER, "offset": NUMBER},
)
"""A connection in an annotation, with the attributes of a connection of SSP, and those of its transformation."""


def annotated_connection(element: Element, known: Collection[str]) -> Connection:
    """A connection in an annotation; without an element, an end is a connector of the system.

    Parameters
    ----------
    known
        Names of the elements of the system.

    Raises
    ------
    DescriptionError
        If an end is not an element of the system.
    """
    for name in ("startElement", "endElement"):
        end = element.get(name)
        if end is not None and end not in known:
            raise DescriptionError(
                f"{location(element)}: there is no element '{end}' in this system.{did_you_mean(end, known)}"
            )
    return Connection(
        Endpoint(element.get("startElement") or "", text_of(element, "startConnector")),
        Endpoint(element.get("endElement") or "", text_of(element, "endConnector")),
        Transformation(
            value_of(element, "factor", float, 1.0), value_of(element, "offset", float, 0.0)
        ),
    )
