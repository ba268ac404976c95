"""Variables of a model description, with attributes inherited from types and units."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import field, fields
from fractions import Fraction
from math import isfinite, prod
from typing import Any, NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError
from fmimaster.fmu.description.entries import (
    Alike,
    Dialect,
    References,
    TypeDefinition,
    VariableEntry,
)
from fmimaster.fmu.description.findings import Findings, labelled, problem, quoted, whole_number
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.conversions import outside_range, parse_value
from fmimaster.system.model import (
    MOST_ELEMENTS,
    Causality,
    DataType,
    Initial,
    Unit,
    Variability,
    Variable,
)
from fmimaster.system.xml import Element, child, children, shown, value_of

_LONGEST = 10**100
"""Largest time in s; it can be converted into a double."""

_Source = Callable[[str], Element]
"""Name of an attribute → the element that has it."""


def read_clock(element: Element, declared: Element | None, findings: Findings) -> ClockAttributes:
    """When a clock ticks: by its attributes, and those that it inherits from its type (FMI 3.0, 2.4.6).

    Parameters
    ----------
    declared
        The element of its type; None if it has no type.

    Raises
    ------
    FileError, ModelError
        If a number cannot be read or has no meaning, or the variability of the interval is not known.
    """

    def source(name: str) -> Element:
        inherits = declared is not None and element.get(name) is None
        return declared if inherits and declared is not None else element

    def truth(name: str) -> bool:
        return findings.truth(source(name), name)

    kind = "intervalVariability"
    variability = findings.one_of(source(kind), kind, IntervalVariability)
    resolution = _count(source, "resolution", 1)
    interval = _exact(source, "interval", resolution)
    shift = _exact(source, "shift", resolution) or Fraction(0)
    if not 0 <= shift < _LONGEST or (interval is not None and not 0 < interval < _LONGEST):
        what = f"{labelled(element)} has an interval that is not above 0 s and finite, or a shift below 0 s."
        raise problem(
            element, f"{what} Expected an interval above 0 s, and a shift of 0 s or more."
        )
    variability = variability or IntervalVariability.TRIGGERED
    return ClockAttributes(
        interval_variability=variability,
        interval=None if variability is IntervalVariability.TRIGGERED else interval,
        shift=shift,
        resolution=resolution,
        supports_fraction=truth("supportsFraction"),
        priority=_count(source, "priority", 0),
        can_be_deactivated=truth("canBeDeactivated"),
    )


def _exact(source: _Source, what: str, resolution: int | None) -> Fraction | None:
    """A time in s from its counter if there is one, otherwise from its decimal number."""
    counter = _count(source, f"{what}Counter", 0)
    if counter is not None and resolution:
        return Fraction(counter, resolution)
    decimal = f"{what}Decimal"
    return value_of(source(decimal), decimal, Fraction, None)


def _count(source: _Source, name: str, least: int) -> int | None:
    element = source(name)
    return None if element.get(name) is None else whole_number(element, name, least, 2**64 - 1)


_IS_A_NUMBER: dict[str, Any] = {"valid": lambda n: n == n, "expected": "a number"}
_UNCHANGED = (Variability.FIXED, Variability.TUNABLE)
_CHANGING = (Variability.DISCRETE, Variability.CONTINUOUS)
_INITIAL: Mapping[tuple[Causality, Variability], Initial | None] = {
    **{(Causality.PARAMETER, v): Initial.EXACT for v in _UNCHANGED},
    **{(Causality.STRUCTURAL_PARAMETER, v): Initial.EXACT for v in _UNCHANGED},
    **{(Causality.CALCULATED_PARAMETER, v): Initial.CALCULATED for v in _UNCHANGED},
    **{(Causality.INPUT, v): Initial.EXACT for v in _CHANGING},
    **{(Causality.OUTPUT, v): Initial.CALCULATED for v in _CHANGING},
    **{(Causality.LOCAL, v): Initial.CALCULATED for v in (*_UNCHANGED, *_CHANGING)},
    (Causality.OUTPUT, Variability.CONSTANT): Initial.EXACT,
    (Causality.LOCAL, Variability.CONSTANT): Initial.EXACT,
    (Causality.INDEPENDENT, Variability.CONTINUOUS): None,
}
"""Combinations of causality and variability that FMI allows, with the default of ``initial``.

Source: FMI 3.0, 2.4.7.5.
"""


class _Common(NamedTuple):
    """Common properties of all variables that are alike."""

    example: Variable
    before: tuple[Any, ...]
    """Fields of Variable between its value reference and its start value."""
    after: tuple[Any, ...]
    """Those after its start value, but the last two."""
    is_usual: bool
    """Whether it is a floating point scalar without limits, like most: of its start value, only the number is checked."""


_VARIABLE: Callable[..., Variable] = Variable
"""With arguments by position, which are faster; only their number is not known to a checker of types."""


@dataclass(frozen=True)
class VariableReader:
    """Makes a Variable from an entry; attributes are evaluated once for all variables that are alike."""

    dialect: Dialect
    references: References
    units: Mapping[str, Unit]
    types: Mapping[str, TypeDefinition]
    readable: Container[tuple[DataType, int]] | None
    """Variables that can be read in Initialization Mode; None for all."""
    findings: Findings
    _known: dict[Alike, _Common] = field(default_factory=dict, init=False, repr=False)
    _numbers: dict[str, tuple[str]] = field(default_factory=dict, init=False, repr=False)
    """Start values that are numbers: a text is checked once, and many variables share it."""

    def read(self, entry: VariableEntry) -> Variable:
        """One variable, without its aliases.

        Raises
        ------
        FileError, ModelError
            If it has an invalid attribute without which it cannot be used correctly.
        """
        _, _, name, reference, kind, text, description, alike = entry
        common = self._known.get(alike) or self._common(entry)
        _, before, after, is_usual = common
        known = self._numbers.get(text) if is_usual and text is not None else None
        start = known or self._start(common, entry)
        readable = self.readable is None or alike.is_output or (kind, reference) in self.readable
        return _VARIABLE(name, reference, *before, start, *after, readable, description)

    def _common(self, entry: VariableEntry) -> _Common:
        """The properties that follow from its attributes. They are not shared if there are notes."""
        count = self.findings.count
        common = self._read_common(entry)
        if count == self.findings.count:
            self._known[entry.alike] = common
        return common

    def _read_common(self, entry: VariableEntry) -> _Common:
        element, kind = entry.element, entry.type
        declared = self._declared(entry)
        causality = self.findings.one_of(element, "causality", Causality) or Causality.LOCAL
        variability = self.findings.one_of(element, "variability", Variability)
        variability = variability or self.dialect.default_variability(kind, causality)
        dimensions, shape = self._dimensions(entry)
        previous = self.references.noted(element, "previous", element)
        facts = {
            "type": kind,
            "causality": causality,
            "variability": variability,
            "initial": self._initial(element, causality, variability),
            "dimensions": dimensions,
            "shape": shape,
            "enumeration": declared.items if declared else None,
            "clocks": self._clocks(element),
            "clock": (
                read_clock(element, declared.element if declared else None, self.findings)
                if kind is DataType.CLOCK
                else None
            ),
            "previous": previous.name if previous else None,
            "intermediate_update": self.findings.truth(element, "intermediateUpdate"),
            "can_be_set_repeatedly": self.findings.truth(
                element, "canHandleMultipleSetPerTimeInstant", otherwise=True
            ),
            **{
                limit: self._number(entry, declared, limit, **_IS_A_NUMBER)
                for limit in ("min", "max")
                if kind.is_float or kind.is_integer
            },
            **(self._of_a_float(entry, declared) if kind.is_float else {}),
        }
        example = Variable(name=entry.name, value_reference=entry.reference, **facts)
        names = [field.name for field in fields(example)]
        values, at = [getattr(example, name) for name in names], names.index("start")
        is_limited = example.min is not None or example.max is not None
        is_usual = kind.is_float and not dimensions and not is_limited
        return _Common(example, tuple(values[2:at]), tuple(values[at + 1 : -2]), is_usual)

    def _declared(self, entry: VariableEntry) -> TypeDefinition | None:
        name = entry.typed.get("declaredType")
        if name is None:
            return None
        declared = self.types.get(name)
        if declared is None:
            what = "declaredType is not defined and is ignored"
            self.findings.note(entry.element, what, quoted(entry.element, name))
        return declared

    def _initial(
        self, element: Element, causality: Causality, variability: Variability
    ) -> Initial | None:
        if (causality, variability) not in _INITIAL:
            what = f"causality {causality.value} cannot be combined with variability {variability.value}"
            self.findings.note(element, what, shown(element.get("name")))
        given = self.findings.one_of(element, "initial", Initial)
        if self.dialect.restricts_initialization and causality is Causality.INPUT:
            return None
        if given is not None:
            return given
        settable = (Causality.PARAMETER, Causality.STRUCTURAL_PARAMETER, Causality.INPUT)
        usual = Initial.EXACT if causality in settable else Initial.CALCULATED
        return _INITIAL.get((causality, variability), usual)

    def _clocks(self, element: Element) -> tuple[str, ...]:
        clocks = tuple(self.references.needed(element, "clocks", element))
        for clock in clocks:
            if clock.type is not DataType.CLOCK:
                what = f"clocks of {labelled(element)} names {labelled(clock.element)}, which is not a clock."
                raise problem(element, what)
            if not clock.name:
                what = f"clocks of {labelled(element)} names {labelled(clock.element)}, which has no name."
                raise problem(element, what)
        return tuple(clock.name for clock in clocks)

    def _dimensions(self, entry: VariableEntry) -> tuple[tuple[int | str, ...], tuple[int, ...]]:
        """Each dimension as a number or a name, and all of them as numbers."""
        dimensions: list[int | str] = []
        shape: list[int] = []
        for element in children(entry.typed, "Dimension"):
            holder = None
            if element.get("start") is None:
                holder = next(
                    self.references.needed(element, "valueReference", entry.element), None
                )
            number = _size(entry, element, holder)
            is_changeable = holder is not None and _is_structural(holder)
            dimensions.append(holder.name if holder is not None and is_changeable else number)
            shape.append(number)
        if prod(shape) > MOST_ELEMENTS:
            what = f"{labelled(entry.element)} has more than {MOST_ELEMENTS} elements"
            raise problem(entry.element, f"{what}, shape {shape}. Expected fewer; make it smaller.")
        return tuple(dimensions), tuple(shape)

    def _number(
        self, entry: VariableEntry, declared: TypeDefinition | None, name: str, **checks: Any
    ) -> float | None:
        given = _source(entry, declared, name)
        if given is None:
            return None
        return self.findings.number(entry.element, name, source=given, **checks)

    def _of_a_float(self, entry: VariableEntry, declared: TypeDefinition | None) -> dict[str, Any]:
        """Properties that only floating point variables have, from their element or their type."""

        def text(name: str) -> str | None:
            given = _source(entry, declared, name)
            return None if given is None else given.get(name)

        unit = text("unit")
        nominal = self._number(
            entry,
            declared,
            "nominal",
            valid=lambda n: isfinite(n) and n != 0,
            expected="a finite number other than 0",
        )
        derivative = self.references.noted(entry.typed, "derivative", entry.element)
        return {
            "unit": self.units.get(unit, Unit(unit)) if unit else None,
            "relative_quantity": text("relativeQuantity") in ("true", "1"),
            "nominal": abs(nominal) if nominal else 1.0,
            "has_nominal": bool(nominal),
            "derivative_of": derivative.name if derivative else None,
        }

    def _start(self, common: _Common, entry: VariableEntry) -> tuple[str, ...] | None:
        """The start value as text; there is a note if it has another number of elements, or is out of range.

        Raises
        ------
        ModelError
            If it is not a value of the type.
        """
        text, variable = entry.start, common.example
        if text is None and not entry.alike.has_elements:
            return None
        if text is not None and common.is_usual and _is_number(text):
            return self._numbers.setdefault(text, (text,))
        if text is None:
            texts = [e.get("value") or "" for e in children(entry.typed, "Start")]
        else:
            is_array = variable.dimensions and variable.type is not DataType.STRING
            texts = text.split() if is_array else [text]
        if not texts or (variable.type is DataType.CLOCK):
            return tuple(texts) or None
        if len(texts) not in (1, variable.size):
            what = "start has another number of elements than the variable and is ignored"
            self.findings.note(entry.element, what, quoted(entry.element, " ".join(texts[:9])))
            return None
        try:
            values = parse_value(variable, texts, "")
        except DescriptionError:
            what = f"start of {labelled(entry.element)} is {shown(' '.join(texts[:9]))}"
            kind = variable.type.value
            raise problem(entry.element, f"{what}, expected a value of type {kind}.") from None
        if found := outside_range(variable, values):
            name = shown(entry.element.get("name"))
            self.findings.note(
                entry.element, "start is outside of min and max", f"{name} ({found})"
            )
        return tuple(texts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _source(entry: VariableEntry, declared: TypeDefinition | None, name: str) -> Element | None:
    """The element that has an attribute: that of the variable or that of its type."""
    if entry.typed.get(name) is not None:
        return entry.typed
    of_type = declared is not None and declared.element.get(name) is not None
    return declared.element if declared is not None and of_type else None


def _is_structural(entry: VariableEntry) -> bool:
    return entry.element.get("causality") == Causality.STRUCTURAL_PARAMETER.value


def _size(entry: VariableEntry, element: Element, holder: VariableEntry | None) -> int:
    """A dimension as a number; that of a variable is its start value.

    FMI 3.0, 2.4.7.3: the variable is a structural parameter or a constant.
    """
    text = element.get("start") if holder is None else holder.start
    is_constant = holder is not None and holder.element.get("variability") == "constant"
    if holder is None or (
        holder.type.is_integer
        and (is_constant or _is_structural(holder))
        and child(holder.typed, "Dimension") is None
    ):
        try:
            number = int(text or "")
        except ValueError:
            number = -1
        if 0 <= number < 2**64:
            return number
    words = f" by {labelled(holder.element)}" if holder is not None else ""
    raise problem(
        element,
        f"a dimension of {labelled(entry.element)} is {shown(text)}{words}. Expected a whole number, or a value reference "
        "of a structural parameter or a constant whose start value is one.",
    )


def readable_in_initialization(
    entries: Sequence[VariableEntry], references: References
) -> set[tuple[DataType, int]]:
    """Types and value references of outputs, continuous states and their derivatives; an alias is the same variable."""
    found = set()
    for entry in entries:
        derivative = entry.alike.derivative
        state = None if derivative is None else references.find(derivative)
        if state is not None:
            found.add((state.type, state.reference))
        if state is not None or entry.alike.is_output:
            found.add((entry.type, entry.reference))
    return found
