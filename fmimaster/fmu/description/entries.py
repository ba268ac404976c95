"""Elements of a model description: what differs between versions of FMI, types, variables with their names and aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.fmu.description.findings import (
    Findings,
    labelled,
    problem,
    quoted,
    whole_number,
)
from fmimaster.system.model import Causality, DataType, Variability, Variable
from fmimaster.system.xml import Element, children, local_name, location, shown


@dataclass(frozen=True)
class Dialect:
    """The XML of one version of FMI, where it differs from the other version."""

    types: Mapping[str, DataType]
    """Name of an element → type."""
    typed: Callable[[Element], Element | None]
    """Element of a variable → the element that is named after its type; None if it has none."""
    type_definition: Callable[[Element], Element | None]
    """Element of a type definition → the element that has its attributes."""
    referred_by: str
    """Attribute by which ModelStructure refers to a variable: its value reference, or its position, counted from 1."""
    outputs: tuple[str, ...]
    initial_unknowns: tuple[str, ...]
    event_indicators: tuple[str, ...]
    state_derivatives: tuple[str, ...]
    """Paths below ModelStructure."""
    token: str
    """Attribute that identifies the model."""
    default_variability: Callable[[DataType, Causality], Variability]
    restricts_initialization: bool
    """Whether inputs have no ``initial``, so that they cannot be set before Initialization Mode, and only outputs,
    continuous states and their derivatives can be read there (FMI 2.0.4, section 4.2.4)."""

    @property
    def by_position(self) -> bool:
        """Whether variables are referred to by their positions."""
        return self.referred_by == "index"


_FMI2_TYPES = {
    "Real": DataType.FLOAT64,
    "Integer": DataType.INT32,
    "Enumeration": DataType.INT32,
    "Boolean": DataType.BOOLEAN,
    "String": DataType.STRING,
}
_FMI3_TYPES = {t.value: t for t in DataType} | {"Enumeration": DataType.INT64}
_PARAMETERS = (
    Causality.PARAMETER,
    Causality.CALCULATED_PARAMETER,
    Causality.STRUCTURAL_PARAMETER,
)


def _inner(element: Element) -> Element | None:
    for child in element:
        if local_name(child) in _FMI2_TYPES:
            return child
    return None


def _itself(element: Element) -> Element | None:
    return element if local_name(element) in _FMI3_TYPES else None


def _fmi2_variability(_: DataType, causality: Causality) -> Variability:
    # "continuous" by the standard, which it does not allow for parameters
    return Variability.FIXED if causality in _PARAMETERS else Variability.CONTINUOUS


def _fmi3_variability(kind: DataType, causality: Causality) -> Variability:
    if causality in _PARAMETERS:
        return Variability.FIXED
    return Variability.CONTINUOUS if kind.is_float else Variability.DISCRETE


FMI2 = Dialect(
    types=_FMI2_TYPES,
    typed=_inner,
    type_definition=_inner,
    referred_by="index",
    outputs=("Outputs", "Unknown"),
    initial_unknowns=("InitialUnknowns", "Unknown"),
    event_indicators=(),
    state_derivatives=("Derivatives", "Unknown"),
    token="guid",
    default_variability=_fmi2_variability,
    restricts_initialization=True,
)
FMI3 = Dialect(
    types=_FMI3_TYPES,
    typed=_itself,
    type_definition=lambda element: element,
    referred_by="valueReference",
    outputs=("Output",),
    initial_unknowns=("InitialUnknown",),
    event_indicators=("EventIndicator",),
    state_derivatives=("ContinuousStateDerivative",),
    token="instantiationToken",
    default_variability=_fmi3_variability,
    restricts_initialization=False,
)


GREATEST_REFERENCE = 2**32 - 1
"""fmi2ValueReference and fmi3ValueReference have 32 bits."""

_SHORT = 9
"""Digits with which a number is certainly smaller."""


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Variables with equal attributes, but for name, value reference, description and start: of many thousands, most.

    A variable with elements inside, such as dimensions or aliases, is like no other.
    """

    type: DataType
    has_elements: bool
    is_output: bool
    derivative: str | None
    """The attribute, without which a variable is no derivative."""


class VariableEntry(NamedTuple):
    """One variable of a model description. Its aliases of FMI 3.0 are below its element."""

    element: Element
    typed: Element
    """The element with the name of its type, which has start, unit and similar attributes; in FMI 3.0 it is the
    variable's element."""
    name: str
    reference: int
    type: DataType
    start: str | None
    description: str
    alike: Alike


def read_entries(root: Element, dialect: Dialect, findings: Findings) -> Sequence[VariableEntry]:
    """All variables, in the order of the model description.

    Raises
    ------
    ModelError
        If one of them has no type, or no value reference.
    """
    known: dict[tuple[object, ...], Alike] = {}
    elements = (e for variables in children(root, "ModelVariables") for e in variables)
    return findings.of_each(lambda element: _entry(element, dialect, known), elements)


def _entry(
    element: Element, dialect: Dialect, known: dict[tuple[object, ...], Alike]
) -> VariableEntry:
    typed = dialect.typed(element)
    if typed is None:
        expected = ", ".join(dialect.types)
        raise problem(element, f"{labelled(element)} has no type, expected one of {expected}.")
    own = dict(element.items())
    inner = own if typed is element else dict(typed.items())
    start, description = inner.pop("start", None), own.pop("description", "")
    name, number = own.pop("name", ""), own.pop("valueReference", "")
    if number.isascii() and number.isdecimal() and len(number) <= _SHORT:
        reference = int(number)
    else:
        reference = whole_number(element, "valueReference", 0, GREATEST_REFERENCE)
    # an attribute is valid only at its place
    key = typed.tag, *own.items(), None, *(() if inner is own else inner.items())
    alike = known.get(key)
    if alike is None or len(typed):
        kind, is_output = dialect.types[local_name(typed)], own.get("causality") == "output"
        alike = Alike(kind, len(typed) > 0, is_output, inner.get("derivative"))
        if not alike.has_elements:
            known[key] = alike
    return VariableEntry(element, typed, name, reference, alike.type, start, description, alike)


class References:
    """Variables by the numbers with which other elements refer to them: value references, or positions from 1."""

    def __init__(
        self, entries: Sequence[VariableEntry], dialect: Dialect, findings: Findings
    ) -> None:
        self._findings = findings
        if dialect.by_position:
            self._entries: Mapping[int, VariableEntry] = dict(enumerate(entries, 1))
        else:
            self._entries = self._by_value_reference(entries)

    def _by_value_reference(self, entries: Sequence[VariableEntry]) -> Mapping[int, VariableEntry]:
        found: dict[int, VariableEntry] = {}
        for entry in entries:
            if (first := found.setdefault(entry.reference, entry)) is not entry:
                what = "two variables have one value reference; references to it mean the first one"
                names = f"{entry.reference} of {shown(first.name)} and {shown(entry.name)}"
                self._findings.note(entry.element, what, names)
        return found

    def find(self, text: str) -> VariableEntry | None:
        """The variable to which a number refers; None if there is none, or it is not a number."""
        try:
            return self._entries.get(int(text))
        except ValueError:
            return None

    def noted(self, element: Element, attribute: str, about: Element) -> VariableEntry | None:
        """The variable to which an attribute refers; None if the attribute is missing, or refers to no variable (with a
        note)."""
        if (text := element.get(attribute)) is None:
            return None
        entry = self.find(text)
        if entry is None:
            what = f"{attribute} refers to a variable that does not exist and is ignored"
            self._findings.note(element, what, quoted(about, text))
        return entry

    def needed(self, element: Element, attribute: str, about: Element) -> Iterator[VariableEntry]:
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


_LEAST_ITEM = -(2**63)
"""Type of an enumeration in FMI 3.0."""


@dataclass(frozen=True, slots=True)
class TypeDefinition:
    """A type to which variables can refer."""

    element: Element
    """Its element, with the attributes that variables inherit."""
    items: Mapping[str, int] | None
    """Items of an enumeration: name → value."""


def read_types(root: Element, dialect: Dialect, findings: Findings) -> dict[str, TypeDefinition]:
    """Name → type."""
    found: dict[str, TypeDefinition] = {}
    for element in children(root, "TypeDefinitions"):
        for definition in element:
            name, inner = definition.get("name") or "", dialect.type_definition(definition)
            if inner is None or not name:
                what = "a type definition without a name or a type is ignored"
                findings.note(definition, what, shown(name))
            elif name in found:
                what = "a type has several definitions; the first one is used"
                findings.note(definition, what, shown(name))
            else:
                found[name] = TypeDefinition(inner, _items(inner, findings))
    return found


def _items(definition: Element, findings: Findings) -> Mapping[str, int] | None:
    found: dict[str, int] = {}
    for item in children(definition, "Item"):
        name, value = item.get("name"), None
        with suppress(ValueError):
            value = int(item.get("value") or "")
        if not name or value is None or not _LEAST_ITEM <= value <= -_LEAST_ITEM - 1:
            what = "an item of an enumeration without a name or a whole number is ignored"
            findings.note(item, what, shown(name))
        elif found.setdefault(name, value) != value:
            what = "an item of an enumeration has several definitions; the first one is used"
            findings.note(item, what, shown(name))
    return found or None


def with_aliases(
    variables: Sequence[Variable], entries: Sequence[VariableEntry], findings: Findings
) -> tuple[tuple[Variable, ...], dict[str, set[str]]]:
    """All variables, each followed by its aliases, each name once; and name of a variable with aliases → all its names.

    Two variables with one name cannot be distinguished in connections and results.

    Raises
    ------
    ModelError
        If an input or an output has the name of another variable. Otherwise the first variable is used, with a note.
    """
    different = {variable.name for variable in variables}
    is_usual = len(different) == len(variables) and "" not in different
    if is_usual and not any(entry.alike.has_elements for entry in entries):
        return tuple(variables), {}
    aliases: list[tuple[Variable, Element]] = []
    names: dict[str, set[str]] = {}
    for variable, entry in zip(variables, entries, strict=True):
        for element in children(entry.typed, "Alias"):
            name = element.get("name") or ""
            description = element.get("description") or variable.description
            # an alias too, because otherwise one variable would be requested twice
            alias = replace(variable, name=name, description=description, intermediate_update=False)
            aliases.append((alias, element))
            names.setdefault(variable.name, {variable.name}).add(name)
    found: dict[str, tuple[Variable, Element]] = {}
    for variable, element in (*zip(variables, (e.element for e in entries), strict=True), *aliases):
        if not variable.name:
            findings.note(element, "a variable without a name is ignored", labelled(element))
        elif variable.name in found:
            _note_double(variable, element, *found[variable.name], findings)
        else:
            found[variable.name] = variable, element
    return tuple(variable for variable, _ in found.values()), names


def _note_double(
    variable: Variable, element: Element, first: Variable, where: Element, findings: Findings
) -> None:
    same = (first.value_reference, first.type) == (variable.value_reference, variable.type)
    ends = (Causality.INPUT, Causality.OUTPUT)
    if not same and (first.causality in ends or variable.causality in ends):
        what = (
            f"{labelled(element)} has the name of another variable ({location(where)}). One of them is an input or an "
            "output, whose name connections and results need. Expected each name once."
        )
        findings.collect(problem(element, what))
    else:
        what = "a variable has the name of another one; the first one is used"
        findings.note(element, what, f"{shown(variable.name)} ({location(where)})")
