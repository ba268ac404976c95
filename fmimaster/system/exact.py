"""Times as exact numbers: what a user means by a number or a text."""

from __future__ import annotations

import reprlib
import sys
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import TypeAlias

from fmimaster.base.errors import OptionError

LARGEST = Fraction(sys.float_info.max)
"""[s] Largest absolute value of a time, and of the difference of two times."""

_MOST_DIGITS = 400
"""Largest exponent of a number given as text; a larger number is refused without computing it."""


Time: TypeAlias = float | int | str | Fraction | Decimal
"""A time in s as a user gives it; see :func:`exact`."""


def exact(value: Time) -> Fraction:
    """The number that a user means: a double is read as the shortest decimal that rounds to it, so 0.1 is 1/10.

    Raises
    ------
    OptionError
        If it is not a finite number, or True or False; a text may be a decimal or a fraction, ``"0.01"`` or ``"1/60"``.
    """
    try:
        number = _exact(value)
        if abs(number) <= LARGEST:
            return number
    except (ValueError, ZeroDivisionError, OverflowError, AttributeError, TypeError):
        pass
    raise OptionError(
        f"{reprlib.repr(value)} is not a time. Expected a finite number in s, such as 0.01 or '1/60'."
    )


def _exact(value: Time) -> Fraction:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | Integral):  # NumPy's integers too
        return Fraction(int(value))
    if isinstance(value, float):
        return Fraction(repr(float(value)))
    text = str(value).strip() if isinstance(value, Decimal) else value.strip()
    if abs(int(text.lower().partition("e")[2] or 0)) > _MOST_DIGITS:
        raise OverflowError
    return Fraction(text)
