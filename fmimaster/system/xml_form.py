"""The form of an XML file: its elements and attributes, their number, order and values.

It contains the rules of an XML schema, so reader and schema accept the same files, but with clearer messages. Rules
that a schema cannot express are checked by the reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from math import inf
from typing import Any, NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.base.errors import did_you_mean
from fmimaster.system.xml import Element, as_written, label, local_name, shown

_VERSION = re.compile(r"1\.(0|[1-9][0-9]*)", re.ASCII)
_BLANKS = " \t\r\n"
"""White space of XML; Python's ``strip`` removes more."""
_INSTANCE = "{http://www.w3.org/2001/XMLSchema-instance}"
"""Namespace whose attributes are allowed everywhere."""
_INTS = range(-(2**31), 2**31)
"""Values of xs:int."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Value:
    """Rule for the value of an attribute."""

    words: str
    parse: Callable[[str], Any]
    """Makes the value of a text; ValueError or KeyError for a wrong one."""

    def fits(self, text: str) -> bool:
        """Whether a text is such a value."""
        try:
            self.parse(text)
        except (ValueError, KeyError):
            return False
        return True


def _int(text: str) -> int:
    number = as_written(int, _WHOLE)(text.strip(_BLANKS))
    if number not in _INTS:
        raise ValueError
    return number


def _decimal(text: str) -> float:
    return as_written(float, _DECIMAL)(text.strip(_BLANKS))


def between(least: float, most: float) -> Value:
    """A number greater than ``least``, up to ``most``."""

    def parse(text: str) -> float:
        if not least < (number := _decimal(text)) <= most:
            raise ValueError
        return number

    above = f"above {least:g}"
    return Value(
        f"a number {above}" if most == inf else f"a number {above} and up to {most:g}", parse
    )


NAME = Value("a name", as_written(str, re.compile(".+", re.DOTALL)))
TEXT = Value("a text", str)
NUMBER = Value("a number", _decimal)
INT = Value("a whole number", _int)
WITH_VERSION = {"version": Value("a version 1.x", as_written(str, _VERSION))}
"""The attributes of the element in an annotation of fmimaster."""
BOOLEAN = Value(
    "true or false",
    lambda text: {"true": True, "1": True, "false": False, "0": False}[text.strip(_BLANKS)],
)


def one_of(*choices: str) -> Value:
    """One of some words."""
    return one_named({choice: choice for choice in choices})


def one_named(choices: Mapping[str, Any]) -> Value:
    """What one of some words names."""
    return Value(" or ".join(choices), choices.__getitem__)


class Occurrence(NamedTuple):
    """How often an element may occur at its place."""

    least: int = 0
    most: float = inf


ANY, AT_MOST_ONE, AT_LEAST_ONE = Occurrence(), Occurrence(0, 1), Occurrence(1)


@dataclass(frozen=True, slots=True)
class Form:
    """Permitted content of an element."""

    needed: Mapping[str, Value] = field(default_factory=dict)
    """Attributes."""
    optional: Mapping[str, Value] = field(default_factory=dict)
    inside: Mapping[str, Occurrence] = field(default_factory=dict)
    """Elements directly below, in this order."""
    extensible: bool = True
    """Whether there may be attributes of other namespaces, and elements of them after all others."""
    mixed: bool = False
    """Whether arbitrary content is allowed, as in an Annotation."""

    def values(self, element: Element) -> dict[str, Any]:
        """The values of the known attributes of an element without faults."""
        known = {**self.needed, **self.optional}
        return {name: known[name].parse(text) for name, text in element.items() if name in known}


ANNOTATIONS: dict[str, Form] = {
    "Annotations": Form(inside={"Annotation": AT_LEAST_ONE}, extensible=False),
    "Annotation": Form(needed={"type": TEXT}, extensible=False, mixed=True),
}
"""As in the schema fmi3Annotation.xsd of FMI 3.0."""


class Fault(NamedTuple):
    """A violation of the form of an element."""

    element: Element
    text: str
    unknown: bool
    """Whether it is an element or attribute that a later version may have added."""


def faults(element: Element, forms: Mapping[str, Form], namespace: str = "") -> Iterator[Fault]:
    """All violations of the form of an element and of those below it.

    Parameters
    ----------
    forms
        Of each element by its name, which is the same at every place.
    namespace
        Of these elements; empty for none.
    """
    form = forms[local_name(element)]
    prefix = f"{{{namespace}}}" if namespace else ""
    yield from _attributes(element, form)
    if form.mixed:
        return
    for text in (element.text, *(below.tail for below in element)):
        if text and text.strip(_BLANKS):
            yield Fault(
                element,
                f"{label(element)} holds the text {shown(text.strip())}. Expected elements only; remove it",
                False,
            )
    yield from _elements(element, form, prefix)
    for below in element:
        if below.tag.removeprefix(prefix) in form.inside and below.tag.startswith(prefix):
            yield from faults(below, forms, namespace)


def _attributes(element: Element, form: Form) -> Iterator[Fault]:
    known = {**form.needed, **form.optional}
    for name in form.needed:
        if element.get(name) is None:
            yield Fault(element, f"attribute '{name}' of {label(element)} is missing", False)
    for name, text in element.attrib.items():
        if name.startswith("{") and (form.extensible or name.startswith(_INSTANCE)):
            continue
        value = known.get(name)
        if value is None:
            near = did_you_mean(name, sorted(known))
            expected = ", ".join(sorted(known)) or "none"
            yield Fault(
                element,
                f"attribute '{name}' of {local_name(element)} is not known.{near} Expected {expected}",
                True,
            )
        elif not value.fits(text):
            state = f"is {shown(text)}, expected {value.words}" if text else "is empty"
            yield Fault(element, f"attribute '{name}' of {label(element)} {state}", False)


def _elements(element: Element, form: Form, prefix: str) -> Iterator[Fault]:
    order, last, counts = list(form.inside), 0, dict.fromkeys(form.inside, 0)
    words = ", ".join(order) or "none"
    for below in element:
        name = below.tag.removeprefix(prefix)
        if name not in counts or not below.tag.startswith(prefix):
            if name.startswith("{") and form.extensible:  # those are at the end
                last = len(order)
            else:
                yield Fault(
                    below,
                    f"element {name} is not known.{did_you_mean(name, order)} Expected {words}",
                    True,
                )
            continue
        if order.index(name) < last:
            yield Fault(
                below,
                f"{label(below)} is not at its place in {label(element)}. Expected the order {words}, elements of other "
                "namespaces last",
                False,
            )
        last = max(last, order.index(name))
        counts[name] += 1
        if counts[name] == form.inside[name].most + 1:
            yield Fault(below, f"there is a second {name}. Expected one; remove the others", False)
    for name, count in counts.items():
        if count < (least := form.inside[name].least):
            yield Fault(
                element,
                f"{label(element)} has {count or 'no'} {name}. Expected at least {least}",
                False,
            )
