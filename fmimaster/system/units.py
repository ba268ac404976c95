"""Conversion between units by their base units, never by their names.

A unit means ``base = factor * value + offset`` in powers of kg, m, s, A, K, mol, cd, rad (FMI 3.0,
2.4.4). Two units have the same dimension if their powers are equal. The power of rad is not compared: an angle has no
dimension, and models differ in whether they write it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from math import isfinite

from fmimaster.base.errors import DescriptionError, FileError
from fmimaster.system.model import BASE_UNITS, Causality, Model, Transformation, Unit
from fmimaster.system.notes import Notes
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


_SECOND = (0, 0, 1, 0, 0, 0, 0, 0)
_IDENTITY = Transformation()
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def convert_units(
    source: Unit | None, target: Unit | None, where: str, *, relative: bool = False
) -> tuple[Transformation, str]:
    """Transformation of a value from the unit of the source to the unit of the target.

    Equal units give exactly the identity. A missing or undefined unit is not guessed: values are passed unchanged, and
    the result has a note about it.

    Parameters
    ----------
    where : str
        What is converted, for the message: ``"Connection 'a.x -> b.u'"``.
    relative : bool
        Whether the values are differences, for which offsets are ignored (``relativeQuantity``).

    Returns
    -------
    The transformation, and a note for the user, which is empty if there is nothing to say.

    Raises
    ------
    DescriptionError
        If the units have different dimensions, or one of them has an impossible factor.
    """
    if source == target:
        return _IDENTITY, ""
    if source and target and source.exponents is not None and target.exponents is not None:
        return _compared(source, target, where, relative)
    if source and target and source.name == target.name:
        return _IDENTITY, ""
    return _IDENTITY, f"{describe(source)} to {describe(target)}, not compared: passed unchanged"


_WATT = (1, 2, -3, 0, 0, 0, 0)
"""Exponents of the base units, without rad: an angle has no dimension."""


def watts(first: Unit, second: Unit) -> float | None:
    """Product of two units in W; None if it is not a power, or a unit has an offset. Both must have base units."""
    assert first.exponents is not None
    assert second.exponents is not None
    product = tuple(a + b for a, b in zip(first.exponents, second.exponents, strict=True))
    if product[:-1] != _WATT or first.offset or second.offset:
        return None
    return first.factor * second.factor


def describe(unit: Unit | None) -> str:
    """A unit in words: its name, and its base units (``m/s (m·s⁻¹)``)."""
    if unit is None:
        return "no unit"
    if unit.exponents is None:
        return f"{unit.name} (unexplained)"
    powers = [
        symbol + (str(power).translate(_SUPERSCRIPTS) if power != 1 else "")
        for symbol, power in zip(BASE_UNITS, unit.exponents, strict=True)
        if power
    ]
    factor = [f"{unit.factor:g}"] if unit.factor != 1 or not powers else []
    offset = f" + {unit.offset:g}" if unit.offset else ""
    return f"{unit.name} ({' '.join([*factor, '·'.join(powers)]).strip()}{offset})"


def _compared(source: Unit, target: Unit, where: str, relative: bool) -> tuple[Transformation, str]:
    assert source.exponents is not None
    assert target.exponents is not None
    if source.exponents[:-1] != target.exponents[:-1]:
        raise DescriptionError(
            f"{where}: {describe(source)} cannot become {describe(target)}, because they are "
            "units of different quantities. Correct a unit, connect another variable, or switch the conversion "
            "off (suppressUnitConversion)."
        )
    for unit in (source, target):
        if unit.factor == 0 or not math.isfinite(unit.factor) or not math.isfinite(unit.offset):
            raise DescriptionError(
                f"{where}: unit {unit.name} has factor {unit.factor:g} and offset {unit.offset:g}, "
                "expected finite numbers and a factor that is not 0. Correct the unit."
            )
    note = f"{describe(source)} to {describe(target)}"
    offset = 0.0 if relative else (source.offset - target.offset) / target.factor
    if relative and source.offset != target.offset:
        note += ", differences, without the offset"
    if source.exponents[-1] != target.exponents[-1]:
        note += ", rad taken as 1"
    elif source.factor == target.factor and (relative or source.offset == target.offset):
        return _IDENTITY, ""
    # base = factor * value + offset on both sides, solved for the target's value
    return Transformation(source.factor / target.factor, offset), note


def check_time_units(models: Mapping[str, Model], notes: Notes) -> None:
    """Refuse components with a unit of time other than s (the unit of the independent variable, FMI 3.0, 2.4.7).

    Raises
    ------
    DescriptionError
        If the FMU defines the unit, and it is not s. A unit without base units is assumed to be s, with a note.
    """
    for name, model in models.items():
        for variable in model.with_causality(Causality.INDEPENDENT):
            unit = variable.unit
            if unit is None or not any(unit.exponents or ()):
                if unit is not None and unit.name != "s":
                    notes.add(
                        "the unit of time has no definition, and s is assumed",
                        f"'{name}.{variable.name}' ({unit.name})",
                    )
            elif (unit.exponents, unit.factor, unit.offset) != (_SECOND, 1.0, 0.0):
                raise DescriptionError(
                    f"Component '{name}': the unit of time, '{variable.name}', is {describe(unit)}. Expected s, because "
                    "all components of a run have the same time. Export the FMU with its time in s."
                )
