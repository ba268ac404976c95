"""Units that a model description or a system description defines: both write them in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite

from fmimaster.base.errors import FileError
from fmimaster.system.model import BASE_UNITS, Unit
from fmimaster.system.xml import Element, child, shown, value_of

_GREATEST_POWER = 100
"""Largest exponent of a base unit; no unit has a tenth of it."""


def read_units(
    elements: Iterable[Element], note: Callable[[Element, str, str], None]
) -> dict[str, Unit]:
    """Name → unit. A unit with an invalid definition has only a name, and is not converted.

    Parameters
    ----------
    elements
        Elements with the name ``Unit``.
    note
        Called for an ignored definition, with the element, the reason, and the name of the unit.
    """
    found: dict[str, Unit] = {}
    for element in elements:
        name = element.get("name") or ""
        base = child(element, "BaseUnit")
        try:
            unit = Unit(name) if base is None else _unit(name, base)
        except (FileError, ValueError):
            what = "a unit has an invalid definition and is not converted"
            note(element, what, shown(name))
            unit = Unit(name)
        if found.setdefault(name, unit) != unit:
            what = "a unit has two different definitions; the first one is used"
            note(element, what, shown(name))
    return found


def _unit(name: str, base: Element) -> Unit:
    exponents = tuple(value_of(base, b, int, 0) for b in BASE_UNITS)
    factor, offset = value_of(base, "factor", float, 1.0), value_of(base, "offset", float, 0.0)
    if not (isfinite(factor) and isfinite(offset) and factor):
        raise ValueError
    if any(abs(e) > _GREATEST_POWER for e in exponents):
        raise ValueError
    return Unit(name, exponents, factor, offset)
