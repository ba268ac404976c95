"""Attributes of a clock, from its element in a model description."""

from __future__ import annotations

from fractions import Fraction

from fmimaster.fmu.description.findings import Findings, labelled, problem, whole_number
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.xml import Element, value_of

_LONGEST = 10**100
"""Largest time in s; it can be converted into a double."""


def read_clock(element: Element, findings: Findings) -> ClockAttributes:
    """When a clock ticks.

    Raises
    ------
    FileError, ModelError
        If a number cannot be read or has no meaning, or the variability of the interval is not known.
    """
    variability = findings.one_of(element, "intervalVariability", IntervalVariability)
    resolution = _count(element, "resolution", 1)
    interval = _exact(element, "interval", resolution)
    shift = _exact(element, "shift", resolution) or Fraction(0)
    if not 0 <= shift < _LONGEST or (interval is not None and not 0 < interval < _LONGEST):
        what = f"{labelled(element)} has an interval that is not above 0 s and finite, or a shift below 0 s."
        raise problem(
            element, f"{what} Expected an interval above 0 s, and a shift of 0 s or more."
        )
    return ClockAttributes(
        interval_variability=variability or IntervalVariability.TRIGGERED,
        interval=interval,
        shift=shift,
        resolution=resolution,
        supports_fraction=findings.truth(element, "supportsFraction"),
        priority=_count(element, "priority", 0),
        can_be_deactivated=findings.truth(element, "canBeDeactivated"),
    )


def _exact(element: Element, what: str, resolution: int | None) -> Fraction | None:
    """A time in s from its counter if there is one, otherwise from its decimal number."""
    counter = _count(element, f"{what}Counter", 0)
    if counter is not None and resolution:
        return Fraction(counter, resolution)
    return value_of(element, f"{what}Decimal", Fraction, None)


def _count(element: Element, name: str, least: int) -> int | None:
    if element.get(name) is None:
        return None
    return whole_number(element, name, least, 2**64 - 1)
