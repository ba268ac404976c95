"""Clocks of an SSD of SSP 1.0, which has no type for them: an annotation of a system, which other tools ignore."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.system.clocks import ClockInterval, exact
from fmimaster.system.description import Component, Connection, Parameter
from fmimaster.system.ssp_annotation import (
    CONNECTION,
    INTERVAL,
    SHIFT,
    annotated_connection,
    check_annotation,
)
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, children, location, text_of, value_of
from fmimaster.system.xml_form import ANY, INT, NAME, WITH_VERSION, Form

ANNOTATION = "org.fmimaster.clocks"
"""Type of the annotation."""
NAMESPACE = "https://fmimaster.org/clocks"
"""Of all elements inside."""
_FORMS = {
    "Clocks": Form(WITH_VERSION, inside={"Priority": ANY, "Interval": ANY, "Connection": ANY}),
    "Priority": Form({"component": NAME, "value": INT}),
    "Interval": Form({"clock": NAME, "interval": INTERVAL}, {"component": NAME, "shift": SHIFT}),
    "Connection": CONNECTION,
}


class Clocks(NamedTuple):
    """What the annotations of a system say about clocks."""

    priorities: Mapping[str, int]
    """Component → its priority among discrete-event units."""
    intervals: tuple[Parameter, ...]
    """Start values of clocks, for the list of the system."""
    connections: tuple[Connection, ...]

    def with_priorities(self, components: Iterable[Component]) -> tuple[Component, ...]:
        """The components of the system, each with its priority."""
        return tuple(
            replace(c, priority=self.priorities.get(c.name, c.priority)) for c in components
        )


def read_clocks(
    system: Element, components: Collection[str], known: Collection[str], document: Document
) -> Clocks:
    """Priorities, intervals and connections of clocks in one system, not in those nested in it.

    Parameters
    ----------
    components, known
        Names of the components of the system, and of all its elements.

    Raises
    ------
    FileError, DescriptionError
        If an element is not known, an attribute is missing, or a name is not that of an element.
    """
    priorities: dict[str, int] = {}
    intervals: list[Parameter] = []
    connections: list[Connection] = []
    for annotation in children(system, "Annotations", "Annotation"):
        if annotation.get("type") != ANNOTATION:
            continue
        document.read_annotations.append(annotation)
        for element in annotation:
            check_annotation(element, "Clocks", NAMESPACE, _FORMS, document)
            for below in children(element, "Priority"):
                name = _component(below, components)
                if name in priorities:
                    raise DescriptionError(
                        f"{location(below)}: component '{name}' has two priorities. Expected one."
                    )
                priorities[name] = int(text_of(below, "value"))
            intervals += (_interval(e, components) for e in children(element, "Interval"))
            connections += (annotated_connection(e, known) for e in children(element, "Connection"))
    return Clocks(priorities, tuple(intervals), tuple(connections))


def _component(element: Element, components: Collection[str]) -> str:
    name = text_of(element, "component")
    if name not in components:
        raise DescriptionError(
            f"{location(element)}: there is no component '{name}' in this system.{did_you_mean(name, components)}"
        )
    return name


def _interval(element: Element, components: Collection[str]) -> Parameter:
    """The interval of a clock of a component, or of all clocks that a connector of the system feeds."""
    clock = text_of(element, "clock")
    is_own = element.get("component") is None
    name = clock if is_own else f"{_component(element, components)}.{clock}"
    shift = element.get("shift")
    interval = ClockInterval(
        exact(text_of(element, "interval")), None if shift is None else exact(shift)
    )
    return Parameter(name, interval, where=location(element), must_fit=True)


def read_interval(clock: Element) -> ClockInterval | None:
    """The interval of a connector's element ``Clock`` (SSP 2.0, as in FMI 3.0); None if it has none.

    Raises
    ------
    DescriptionError
        If the interval is not above 0, or the shift is below 0.
    """
    resolution = value_of(clock, "resolution", int, 0)

    def seconds(what: str) -> Fraction | None:
        counter = value_of(clock, f"{what}Counter", int, None)
        if counter and resolution > 0:
            return Fraction(counter, resolution)
        return value_of(clock, f"{what}Decimal", Fraction, None)

    interval = seconds("interval")
    if interval is None:
        return None
    try:
        return ClockInterval(interval, seconds("shift"))
    except DescriptionError as error:
        raise DescriptionError(f"{location(clock)}: {error}") from None
