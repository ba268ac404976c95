"""Constraints of an SSD: an annotation of the system, which other tools ignore."""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.system.constraints import constraint_component, usual_level
from fmimaster.system.description import (
    START_TOLERANCE,
    Component,
    Connection,
    Constraint,
    ConstraintEnd,
    Level,
)
from fmimaster.system.ssp_annotation import check_annotation
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, children, location, text_of, value_of
from fmimaster.system.xml_form import (
    AT_LEAST_ONE,
    NAME,
    NUMBER,
    WITH_VERSION,
    Form,
    Times,
    between,
    one_of,
)

ANNOTATION = "org.fmimaster.constraints"
"""Type of the annotation."""
NAMESPACE = "https://fmimaster.org/constraints"
"""Namespace of all elements inside."""
_LEVELS = {level.value: level for level in Level}
_FORMS = {
    "Constraints": Form(
        WITH_VERSION,
        inside={"Constraint": AT_LEAST_ONE},
    ),
    "Constraint": Form(
        {"name": NAME},
        {"level": one_of(*_LEVELS), "tolerance": between(0.0, inf)},
        inside={"End": Times(2, 2)},
    ),
    "End": Form(
        {"element": NAME, "force": NAME},
        {"position": NAME, "velocity": NAME, "factor": NUMBER},
    ),
}


def read_constraints(
    system: Element, known: Collection[str], document: Document
) -> tuple[list[Component], list[Connection]]:
    """Components and connections of the constraints of one system, not of those nested in it.

    Parameters
    ----------
    known
        Names of the elements of the system.

    Raises
    ------
    FileError, DescriptionError
        If an element is not known, an attribute is missing, or an end is not an element of the system.
    """
    components, connections = list[Component](), list[Connection]()
    for annotation in children(system, "Annotations", "Annotation"):
        if annotation.get("type") != ANNOTATION:
            continue
        document.read_annotations.append(annotation)
        for element in annotation:
            check_annotation(element, "Constraints", NAMESPACE, _FORMS, document)
            for below in children(element, "Constraint"):
                try:
                    component, connected = constraint_component(
                        text_of(below, "name"), _constraint(below, known)
                    )
                except DescriptionError as error:
                    raise DescriptionError(f"{location(below)}: {error}") from None
                components.append(component)
                connections += connected
    return components, connections


def _constraint(element: Element, known: Collection[str]) -> Constraint:
    first, second = (_end(end, known) for end in children(element, "End"))
    level = element.get("level")
    usual = usual_level(first, second)
    return Constraint(
        (first, second),
        usual if level is None else _LEVELS[level],
        value_of(element, "tolerance", float, START_TOLERANCE),
    )


def _end(element: Element, known: Collection[str]) -> ConstraintEnd:
    name = text_of(element, "element")
    if name not in known:
        raise DescriptionError(
            f"there is no element '{name}' in this system.{did_you_mean(name, known)}"
        )
    return ConstraintEnd(
        name,
        text_of(element, "force"),
        element.get("position") or "",
        element.get("velocity") or "",
        value_of(element, "factor", float, 1.0),
    )
