"""Instants in an SSD: clocks of SSP 1.0, which has no type for them, semantic adaptation, and shared events.

All are annotations of a system, which other tools ignore. docs/proposal/ has the text and the schema of shared events.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from fmimaster.base.errors import DescriptionError, FileError
from fmimaster.system.adaptation import ELEMENTS, Direction
from fmimaster.system.clocks import ClockInterval
from fmimaster.system.description import (
    ADAPTATION_SOURCE,
    Component,
    Connection,
    Parameter,
    SharedEvent,
)
from fmimaster.system.model import DataType
from fmimaster.system.ssp_annotations import Annotation, a_time, check_form, not_known
from fmimaster.system.ssp_document import Document, linear, read_ends, refuse_unknown
from fmimaster.system.xml import (
    Element,
    as_written,
    children,
    local_name,
    location,
    quoted,
    shown,
    text_of,
    value_of,
)
from fmimaster.system.xml_form import (
    ANNOTATIONS,
    ANY,
    AT_LEAST_ONE,
    AT_MOST_ONE,
    BOOLEAN,
    INT,
    NAME,
    NUMBER,
    TEXT,
    WITH_VERSION,
    Form,
    Occurrence,
    Value,
    one_named,
)

_INTERVAL = a_time("a time above 0 in s, such as 0.1 or 1/3", lambda t: t > 0)
_SHIFT = a_time("a time in s, 0 or more", lambda t: t >= 0)

_CONNECTION = Form(
    {"startConnector": NAME, "endConnector": NAME},
    {"startElement": NAME, "endElement": NAME, "factor": NUMBER, "offset": NUMBER},
)
"""A connection in an annotation, with the attributes of a connection of SSP, and those of its transformation."""


def _connection(element: Element, known: Collection[str]) -> Connection:
    """A connection in an annotation, between elements with known names."""
    ends = read_ends(element)
    for end in ends:
        if end.element:
            refuse_unknown(end.element, known, "element", location(element))
    return Connection(*ends, linear(element))


CLOCKS = Annotation(
    "clocks",
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
    for element in CLOCKS.inside(system, document):
        if local_name(element) == "Interval":
            intervals.append(_interval(element, components))
        elif local_name(element) == "Connection":
            connections.append(_connection(element, known))
        elif (name := _component(element, components)) in priorities:
            raise DescriptionError(
                f"{location(element)}: component '{name}' has two priorities. Expected one."
            )
        else:
            priorities[name] = CLOCKS.values(element)["value"]
    return Clocks(priorities, tuple(intervals), tuple(connections))


def _component(element: Element, components: Collection[str]) -> str:
    name = text_of(element, "component")
    refuse_unknown(name, components, "component", location(element))
    return name


def _interval(element: Element, components: Collection[str]) -> Parameter:
    """The interval of a clock of a component, or of all clocks that a connector of the system feeds."""
    values = CLOCKS.values(element)
    is_own = "component" not in values
    name = values["clock"] if is_own else f"{_component(element, components)}.{values['clock']}"
    interval = ClockInterval(values["interval"], values.get("shift"))
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


_SAMPLED: Mapping[str, Value] = {
    "period": _INTERVAL,
    "shift": _SHIFT,
    "clocked": BOOLEAN,
    "type": one_named({kind.value: kind for kind in DataType if kind.is_numeric}),
    "start": TEXT,
}
_NAMED = {"name": NAME}
ADAPTATION = Annotation(
    "semantic-adaptation",
    {
        "SemanticAdaptation": Form(
            WITH_VERSION, inside={**dict.fromkeys(ELEMENTS, ANY), "Connection": ANY}
        ),
        "SampleAndHold": Form(_NAMED, _SAMPLED),
        "UnitDelay": Form(_NAMED, {**_SAMPLED, "microstep": BOOLEAN}),
        "LevelCrossing": Form(
            {**_NAMED, "level": NUMBER}, {"direction": one_named({d.value: d for d in Direction})}
        ),
        "EventCounter": Form(_NAMED),
        "Quantizer": Form({**_NAMED, "step": NUMBER}, {"hysteresis": NUMBER}),
        "Connection": _CONNECTION,
    },
)
"""Elements of semantic adaptation and their connections."""


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
    found = list(ADAPTATION.inside(system, document))
    components = [_adaptation(element) for element in found if local_name(element) in ELEMENTS]
    names = [*known, *(c.name for c in components)]
    return components, [
        _connection(element, names) for element in found if local_name(element) == "Connection"
    ]


def _adaptation(element: Element) -> Component:
    given = ADAPTATION.values(element)
    name = given.pop("name")
    if given.get("type") is DataType.BOOLEAN and "start" in given:
        given["start"] = given["start"].strip() in ("true", "1")
    try:
        adaptation = ELEMENTS[local_name(element)](**given)
    except DescriptionError as error:
        raise DescriptionError(f"{location(element)}: {error}") from None
    return Component(name, ADAPTATION_SOURCE, adaptation=adaptation)


SHARED_EVENTS = "org.fmimaster.fmi-ls-events"
"""Type of the annotation that is written; any type with the same last part is read, from any publisher."""
_ENDING = ".fmi-ls-events"
EVENTS_NAMESPACE = "https://fmimaster.org/fmi-ls-events"
"""Of all elements inside. Version 0.1 had none, and no SharedEvents around them; that is read too."""
EVENTS_VERSION = "0.3.0"

_KNOWN = 3
"""Minor version; additions of later versions are ignored with a note."""
_VERSION = re.compile(r"0\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?", re.ASCII)
_EXTENSION = {"Annotations": AT_MOST_ONE}
_FORMS = ANNOTATIONS | {
    "SharedEvents": Form(
        {"version": Value("a version 0.x.y", as_written(str, _VERSION))},
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
    elif element.tag == f"{{{EVENTS_NAMESPACE}}}SharedEvents":
        _check(element, EVENTS_NAMESPACE, document)
        yield from map(_shared_event, children(element, "SharedEvent"))
    else:
        raise not_known(element, "SharedEvents", EVENTS_NAMESPACE)


def _check(element: Element, namespace: str, document: Document) -> None:
    version = _VERSION.fullmatch(element.get("version") or "")
    is_later = version is not None and int(version[1]) > _KNOWN
    check_form(element, _FORMS, namespace, document, is_later=is_later)


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
    lines = [f'<ssc:Annotation type="{SHARED_EVENTS}">']
    lines.append(f'  <SharedEvents xmlns="{EVENTS_NAMESPACE}" version="{EVENTS_VERSION}">')
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
