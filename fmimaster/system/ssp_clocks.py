"""Clocks of an SSD of SSP 1.0, which has no type for them, and semantic adaptation: annotations of a system."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from fmimaster.base.errors import DescriptionError, OptionError, did_you_mean
from fmimaster.system.adaptation import ELEMENTS, Direction
from fmimaster.system.clocks import ClockInterval, exact
from fmimaster.system.description import (
    ADAPTATION_SOURCE,
    Component,
    Connection,
    Endpoint,
    Parameter,
    Transformation,
)
from fmimaster.system.model import DataType
from fmimaster.system.ssp_annotations import Annotation
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, children, local_name, location, text_of, value_of
from fmimaster.system.xml_form import (
    ANY,
    BOOLEAN,
    INT,
    NAME,
    NUMBER,
    TEXT,
    WITH_VERSION,
    Form,
    Value,
    one_of,
)


def _seconds(least: float, words: str, *, may_be_least: bool) -> Value:
    """A time: a decimal number or a fraction."""

    def fits(text: str) -> bool:
        try:
            value = exact(text)
        except OptionError:
            return False
        return value > least or (may_be_least and value == least)

    return Value(words, fits)


_INTERVAL = _seconds(0.0, "a time above 0 in s, such as 0.1 or 1/3", may_be_least=False)
_SHIFT = _seconds(0.0, "a time in s, 0 or more", may_be_least=True)

_CONNECTION = Form(
    {"startConnector": NAME, "endConnector": NAME},
    {"startElement": NAME, "endElement": NAME, "factor": NUMBER, "offset": NUMBER},
)
"""A connection in an annotation, with the attributes of a connection of SSP, and those of its transformation."""


def _connection(element: Element, known: Collection[str]) -> Connection:
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


CLOCKS = Annotation(
    "org.fmimaster.clocks",
    "Clocks",
    "https://fmimaster.org/clocks",
    {
        "Clocks": Form(WITH_VERSION, inside={"Priority": ANY, "Interval": ANY, "Connection": ANY}),
        "Priority": Form({"component": NAME, "value": INT}),
        "Interval": Form(
            {"clock": NAME, "interval": _INTERVAL}, {"component": NAME, "shift": _SHIFT}
        ),
        "Connection": _CONNECTION,
    },
)
"""Priorities, intervals and connections of clocks."""


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
    for element in CLOCKS.elements(system, document):
        for below in children(element, "Priority"):
            name = _component(below, components)
            if name in priorities:
                raise DescriptionError(
                    f"{location(below)}: component '{name}' has two priorities. Expected one."
                )
            priorities[name] = int(text_of(below, "value"))
        intervals += (_interval(e, components) for e in children(element, "Interval"))
        connections += (_connection(e, known) for e in children(element, "Connection"))
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


_TYPES = {kind.value: kind for kind in DataType if kind.is_numeric}
_DIRECTIONS = {direction.value: direction for direction in Direction}
_SAMPLED: Mapping[str, Value] = {
    "period": _INTERVAL,
    "shift": _SHIFT,
    "clocked": BOOLEAN,
    "type": one_of(*_TYPES),
    "start": TEXT,
}
_NAMED = {"name": NAME}
ADAPTATION = Annotation(
    "org.fmimaster.semantic-adaptation",
    "SemanticAdaptation",
    "https://fmimaster.org/semantic-adaptation",
    {
        "SemanticAdaptation": Form(
            WITH_VERSION, inside={**dict.fromkeys(ELEMENTS, ANY), "Connection": ANY}
        ),
        "SampleAndHold": Form(_NAMED, _SAMPLED),
        "UnitDelay": Form(_NAMED, {**_SAMPLED, "microstep": BOOLEAN}),
        "LevelCrossing": Form({**_NAMED, "level": NUMBER}, {"direction": one_of(*_DIRECTIONS)}),
        "EventCounter": Form(_NAMED),
        "Quantizer": Form({**_NAMED, "step": NUMBER}, {"hysteresis": NUMBER}),
        "Connection": _CONNECTION,
    },
)
"""Elements of semantic adaptation and their connections."""
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
    for element in ADAPTATION.elements(system, document):
        found += element
    components = [_adaptation(element) for element in found if local_name(element) in ELEMENTS]
    names = [*known, *(c.name for c in components)]
    return components, [
        _connection(element, names) for element in found if local_name(element) == "Connection"
    ]


def _adaptation(element: Element) -> Component:
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
