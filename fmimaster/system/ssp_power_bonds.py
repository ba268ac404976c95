"""Power bonds of an SSD: an annotation of a system, which other tools ignore."""

from __future__ import annotations

from math import inf
from typing import Literal, cast

from fmimaster.system.description import Port, PowerBond
from fmimaster.system.power_bonds import ANNOTATION, NAMESPACE
from fmimaster.system.ssp_annotation import check_annotation
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, children, location, text_of, value_of
from fmimaster.system.xml_form import AT_LEAST_ONE, NAME, WITH_VERSION, Form, Times, between, one_of

_POSITIVE = between(0.0, inf)
_FORMS = {
    "PowerBonds": Form(WITH_VERSION, inside={"PowerBond": AT_LEAST_ONE}),
    "PowerBond": Form(
        {"name": NAME},
        {"scale": _POSITIVE, "tolerance": _POSITIVE},
        inside={"Port": Times(2, 2)},
    ),
    "Port": Form({"component": NAME, "input": NAME, "output": NAME, "power": one_of("in", "out")}),
}


def read_power_bonds(system: Element, document: Document) -> tuple[PowerBond, ...]:
    """Power bonds of one system, not of those nested in it.

    Raises
    ------
    FileError
        If an element is not known, or an attribute is missing.
    """
    found = list[PowerBond]()
    for annotation in children(system, "Annotations", "Annotation"):
        if annotation.get("type") == ANNOTATION:
            document.read_annotations.append(annotation)
            for element in annotation:
                check_annotation(element, "PowerBonds", NAMESPACE, _FORMS, document)
                found += map(_power_bond, children(element, "PowerBond"))
    return tuple(found)


def _power_bond(element: Element) -> PowerBond:
    first, second = map(_port, children(element, "Port"))
    return PowerBond(
        text_of(element, "name"),
        (first, second),
        value_of(element, "scale", float, None),
        value_of(element, "tolerance", float, None),
        location(element),
    )


def _port(element: Element) -> Port:
    component, u, y = (text_of(element, a) for a in ("component", "input", "output"))
    return Port(component, u, y, cast(Literal["in", "out"], text_of(element, "power")))
