"""Attributes of a clock, from its element in a model description."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from fmimaster.fmu.description.findings import Findings, labelled, problem, whole_number
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.xml import Element, value_of

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
