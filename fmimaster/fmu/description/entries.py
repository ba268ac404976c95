"""Variables of a model description: their elements, and references of other elements to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fmimaster.fmu.description.dialects import Dialect
from fmimaster.fmu.description.findings import (
    Findings,
    labelled,
    problem,
    quoted,
    whole_number,
)
from fmimaster.system.model import DataType
from fmimaster.system.xml import Element, children, local_name, shown

GREATEST_REFERENCE = 2**32 - 1
"""fmi2ValueReference and fmi3ValueReference have 32 bits."""


class Entry(NamedTuple):
    """One variable of a model description. Its aliases of FMI 3.0 are below its element."""

    element: Element
    typed: Element
    """The element with the name of its type, which has start, unit and similar attributes; in FMI 3.0 it is the
    variable's element."""
    name: str
    reference: int
    type: DataType


def read_entries(root: Element, dialect: Dialect, findings: Findings) -> Sequence[Entry]:
    """All variables, in the order of the model description.

    Raises
    ------
    ModelError
        If one of them has no type, or no value reference.
    """
    found = []
    for variables in children(root, "ModelVariables"):
        for element in variables:
            with findings.collecting():
                found.append(_entry(element, dialect))
    findings.refuse()
    return found


def _entry(element: Element, dialect: Dialect) -> Entry:
    name = element.get("name") or ""
    typed = dialect.typed(element)
    if typed is None:
        expected = ", ".join(dialect.types)
        raise problem(element, f"{labelled(element)} has no type, expected one of {expected}.")
    reference = whole_number(element, "valueReference", 0, GREATEST_REFERENCE)
    return Entry(element, typed, name, reference, dialect.types[local_name(typed)])


class References:
    """Variables by the numbers with which other elements refer to them: value references, or positions from 1."""

    def __init__(self, entries: Sequence[Entry], dialect: Dialect, findings: Findings) -> None:
        self._findings = findings
        if dialect.by_position:
            self._entries: Mapping[int, Entry] = dict(enumerate(entries, 1))
        else:
            self._entries = self._by_value_reference(entries)

    def _by_value_reference(self, entries: Sequence[Entry]) -> Mapping[int, Entry]:
        found: dict[int, Entry] = {}
        for entry in entries:
            if (first := found.setdefault(entry.reference, entry)) is not entry:
                what = "two variables have one value reference; references to it mean the first one"
                names = f"{entry.reference} of {shown(first.name)} and {shown(entry.name)}"
                self._findings.note(entry.element, what, names)
        return found

    def find(self, text: str) -> Entry | None:
        """The variable to which a number refers; None if there is none, or it is not a number."""
        try:
            return self._entries.get(int(text))
        except ValueError:
            return None

    def noted(self, element: Element, attribute: str, about: Element) -> Entry | None:
        """The variable to which an attribute refers; None if the attribute is missing, or refers to no variable (with a
        note)."""
        if (text := element.get(attribute)) is None:
            return None
        entry = self.find(text)
        if entry is None:
            what = f"{attribute} refers to a variable that does not exist and is ignored"
            self._findings.note(element, what, quoted(about, text))
        return entry

    def needed(self, element: Element, attribute: str, about: Element) -> Iterator[Entry]:
        """The variables to which an attribute refers.

        Raises
        ------
        ModelError
            If one of them does not exist.
        """
        for text in (element.get(attribute) or "").split():
            if (entry := self.find(text)) is None:
                raise problem(
                    element,
                    f"{attribute} of {labelled(about)} refers to {shown(text)}, but there is no such variable.",
                )
            yield entry
