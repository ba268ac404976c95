"""Variables as a model description has them: their elements, and how other elements refer to them."""

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
    """The element that is named after its type, and has start, unit and the like; in FMI 3.0 the same."""
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
                what = "a value reference belongs to two variables, references to it mean the first one"
                names = f"{entry.reference} of {shown(first.name)} and {shown(entry.name)}"
                self._findings.note(entry.element, what, names)
        return found

    def find(self, text: str) -> Entry | None:
        """The variable that a number refers to; None if there is none, or it is no number."""
        try:
            return self._entries.get(int(text))
        except ValueError:
            return None

    def noted(self, element: Element, attribute: str, about: Element) -> Entry | None:
        """The variable that an attribute refers to; None if it is not given, or refers to nothing, which is noted."""
        if (text := element.get(attribute)) is None:
            return None
        entry = self.find(text)
        if entry is None:
            what = f"{attribute} refers to a variable that does not exist, it is ignored"
            self._findings.note(element, what, quoted(about, text))
        return entry

    def needed(self, element: Element, attribute: str, about: Element) -> Iterator[Entry]:
        """The variables that an attribute refers to.

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
