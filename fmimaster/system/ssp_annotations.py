"""Annotations of fmimaster in an SSD: their common form, lifetimes, the trigger sequence, power bonds, constraints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError, FileError, OptionError, did_you_mean
from fmimaster.system.clocks import Lifetime, exact
from fmimaster.system.constraints import constraint_component, usual_level
from fmimaster.system.description import (
    Component,
    Connection,
    Constraint,
    ConstraintEnd,
    Level,
    Port,
    PowerBond,
    System,
)
from fmimaster.system.ssp_document import Document, read_ends
from fmimaster.system.xml import Element, children, local_name, location, quoted, text_of
from fmimaster.system.xml_form import (
    ANY,
    AT_LEAST_ONE,
    NAME,
    NUMBER,
    WITH_VERSION,
    Form,
    Occurrence,
    Value,
    between,
    faults,
    one_named,
    one_of,
)

VERSION = "1.0"
"""The version that is written; any version 1.x is read."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A kind of annotation of systems, which other tools ignore: one element in its own namespace, with a version."""

    name: str
    """Last part of its type and of its namespace."""
    forms: Mapping[str, Form]
    """Of the element, which is the first one, and of those inside of it."""

    @property
    def type(self) -> str:
        """Type of the annotation."""
        return f"org.fmimaster.{self.name}"

    @property
    def namespace(self) -> str:
        """Of all elements inside."""
        return f"https://fmimaster.org/{self.name}"

    def values(self, element: Element) -> dict[str, Any]:
        """The values of the attributes of an element inside."""
        return self.forms[local_name(element)].values(element)

    def inside(self, system: Element, document: Document) -> Iterator[Element]:
        """The elements in the annotations of one system, not of those nested in it, each annotation after a check.

        Raises
        ------
        FileError
            As :meth:`check`.
        """
        known = {f"{{{self.namespace}}}{name}" for name in self.forms}
        for annotation in children(system, "Annotations", "Annotation"):
            if annotation.get("type") == self.type:
                document.read_annotations.append(annotation)
                for element in annotation:
                    self.check(element, document)
                    yield from (below for below in element if below.tag in known)

    def check(self, element: Element, document: Document) -> None:
        """Compare the element in an annotation with its form; additions of later versions are ignored with a note.

        Raises
        ------
        FileError
            If it is another element, or has a fault.
        """
        expected = next(iter(self.forms))
        if element.tag != f"{{{self.namespace}}}{expected}":
            raise not_known(element, expected, self.namespace)
        is_later = element.get("version") not in (None, VERSION)
        check_form(element, self.forms, self.namespace, document, is_later=is_later)


def not_known(element: Element, expected: str, namespace: str) -> FileError:
    """The error about an element that is another one than its annotation holds."""
    found = local_name(element)
    return FileError(
        f"{location(element)}: element {found} is not known here, expected {expected} in the namespace "
        f"{namespace}.{did_you_mean(found, [expected])}"
    )


def check_form(
    element: Element,
    forms: Mapping[str, Form],
    namespace: str,
    document: Document,
    *,
    is_later: bool,
) -> None:
    """Compare an element with its form; what a later version may have added is ignored with a note.

    Raises
    ------
    FileError
        If it has a fault.
    """
    for fault in faults(element, forms, namespace):
        if not (fault.unknown and is_later):
            raise FileError(f"{location(fault.element)}: {fault.text}.")
        document.note(fault.element, f"{fault.text}; it is ignored")


def a_time(words: str, holds: Callable[[Fraction], bool] = lambda _: True) -> Value:
    """A time as a decimal number or a fraction, of which this holds; its value is the text."""

    def parse(text: str) -> str:
        try:
            if holds(exact(text)):
                return text
        except OptionError:
            pass
        raise ValueError

    return Value(words, parse)


_TIME = a_time("a time in s, such as 0.1 or 1/3")
_FIELDS = {
    "fromTime": "from_time",
    "untilTime": "until_time",
    "fromEvent": "from_event",
    "untilEvent": "until_event",
}
"""Attribute → field of :class:`Lifetime`."""
_LIFETIME = {name: _TIME if name.endswith("Time") else NAME for name in _FIELDS}
LIFETIMES = Annotation(
    "lifetimes",
    {
        "Lifetimes": Form(WITH_VERSION, inside={"Component": ANY, "Connection": ANY}),
        "Component": Form({"name": NAME}, _LIFETIME),
        "Connection": Form(
            {"startConnector": NAME, "endConnector": NAME},
            {"startElement": NAME, "endElement": NAME, **_LIFETIME},
        ),
    },
)
"""When components and connections exist."""


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
    for element in LIFETIMES.inside(system, document):
        if local_name(element) == "Component":
            k = _place(element, "component", text_of(element, "name"), names)
            components[k] = replace(components[k], lifetime=_lifetime(element))
        else:
            k = _place(element, "connection", str(Connection(*read_ends(element))), ends)
            connections[k] = replace(connections[k], lifetime=_lifetime(element))
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


def _lifetime(element: Element) -> Lifetime:
    values = LIFETIMES.values(element)
    try:
        return Lifetime(**{field: values.get(name) for name, field in _FIELDS.items()})
    except DescriptionError as error:
        raise DescriptionError(f"{location(element)}: {error}") from None


SEQUENCE = Annotation(
    "trigger-sequence",
    {
        "TriggerSequence": Form(
            WITH_VERSION,
            inside={"Component": AT_LEAST_ONE},
        ),
        "Component": Form({"name": NAME}),
    },
)
"""The trigger sequence of the root system."""


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
        if annotation.get("type") == SEQUENCE.type
    ]
    if not found:
        return ()
    document.read_annotations += found
    elements = [element for annotation in found for element in annotation]
    if len(elements) != 1:
        where = elements[1] if elements else found[0]
        raise FileError(
            f"{location(where)}: the system has {len(elements) or 'no'} trigger sequences in annotations of type "
            f"{SEQUENCE.type}. Expected one."
        )
    element = elements[0]
    SEQUENCE.check(element, document)
    return tuple(text_of(component, "name") for component in children(element, "Component"))


def write_sequence(names: Iterable[str]) -> str:
    """A trigger sequence as the element inside its annotation."""
    lines = [f'<TriggerSequence xmlns="{SEQUENCE.namespace}" version="{VERSION}">']
    lines += [f"  <Component name={quoted(name)}/>" for name in names]
    lines.append("</TriggerSequence>")
    return "".join(f"{line}\n" for line in lines)


_POSITIVE = between(0.0, inf)
POWER_BONDS = Annotation(
    "power-bonds",
    {
        "PowerBonds": Form(WITH_VERSION, inside={"PowerBond": AT_LEAST_ONE}),
        "PowerBond": Form(
            {"name": NAME},
            {"scale": _POSITIVE, "tolerance": _POSITIVE},
            inside={"Port": Occurrence(2, 2)},
        ),
        "Port": Form(
            {"component": NAME, "input": NAME, "output": NAME, "power": one_of("in", "out")}
        ),
    },
)
"""Power bonds between components."""


def read_power_bonds(system: Element, document: Document) -> tuple[PowerBond, ...]:
    """Power bonds of one system, not of those nested in it.

    Raises
    ------
    FileError
        If an element is not known, or an attribute is missing.
    """
    return tuple(map(_power_bond, POWER_BONDS.inside(system, document)))


def _power_bond(element: Element) -> PowerBond:
    first, second = (Port(**POWER_BONDS.values(port)) for port in children(element, "Port"))
    values = POWER_BONDS.values(element)
    return PowerBond(ports=(first, second), where=location(element), **values)


CONSTRAINTS = Annotation(
    "constraints",
    {
        "Constraints": Form(
            WITH_VERSION,
            inside={"Constraint": AT_LEAST_ONE},
        ),
        "Constraint": Form(
            {"name": NAME},
            {
                "level": one_named({level.value: level for level in Level}),
                "tolerance": between(0.0, inf),
            },
            inside={"End": Occurrence(2, 2)},
        ),
        "End": Form(
            {"element": NAME, "force": NAME},
            {"position": NAME, "velocity": NAME, "factor": NUMBER},
        ),
    },
)
"""Constraints between components."""


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
    for element in CONSTRAINTS.inside(system, document):
        name = text_of(element, "name")
        try:
            component, connected = constraint_component(name, _constraint(element, known))
        except DescriptionError as error:
            raise DescriptionError(f"{location(element)}: {error}") from None
        components.append(component)
        connections += connected
    return components, connections


def _constraint(element: Element, known: Collection[str]) -> Constraint:
    first, second = (_end(end, known) for end in children(element, "End"))
    values = {"level": usual_level(first, second), **CONSTRAINTS.values(element)}
    del values["name"]
    return Constraint((first, second), **values)


def _end(element: Element, known: Collection[str]) -> ConstraintEnd:
    end = ConstraintEnd(**CONSTRAINTS.values(element))
    if end.element not in known:
        raise DescriptionError(
            f"there is no element '{end.element}' in this system.{did_you_mean(end.element, known)}"
        )
    return end
