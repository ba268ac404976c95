"""Exact times: instants as integer multiples of a resolution, and the doubles passed to FMUs."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm
from numbers import Integral
from typing import NamedTuple

from fmimaster.causes import Cause
from fmimaster.errors import OptionError

LARGEST = Fraction(sys.float_info.max)
"""[s] Largest absolute value of a time, and of the difference of two times."""

_MOST_DIGITS = 400
"""Largest exponent of a number given as text; a larger number is refused without computing it."""


_new = tuple.__new__
"""Makes a named tuple without a call of Python."""


class Instant(NamedTuple):
    """A point in time, ordered exactly by comparing tuples."""

    seconds: float
    """The double passed to FMUs, correctly rounded, in s."""
    ticks: float = -inf
    """An integer multiple of the resolution; -inf for a found time, which is not given by the user."""


class Goal(NamedTuple):
    """The end of the next step, and its cause."""

    end: Instant
    cause: Cause
    fire: frozenset[int] = frozenset()
    """Events that happen there."""


_NO_EVENTS: frozenset[int] = frozenset()


def goal_at(end: Instant, cause: Cause) -> Goal:
    """A goal without events, created in a third less time, because each step needs one."""
    return _new(Goal, (end, cause, _NO_EVENTS))


def exact(value: float | int | str | Fraction) -> Fraction:
    """The number that a user means: a double is read as the shortest decimal that rounds to it, so 0.1 is 1/10.

    Raises
    ------
    OptionError
        If it is not a finite number; a text may be a decimal or a fraction, ``"0.01"`` or ``"1/60"``.
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


def _exact(value: float | int | str | Fraction) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | Integral):  # NumPy's integers too
        return Fraction(int(value))
    if isinstance(value, float):
        return Fraction(repr(float(value)))
    text = value.strip()
    if abs(int(text.lower().partition("e")[2] or 0)) > _MOST_DIGITS:
        raise OverflowError
    return Fraction(text)


@dataclass(frozen=True, slots=True)
class TimeBase:
    """All given times as integers: multiples of ``1 / resolution`` s."""

    resolution: int

    @classmethod
    def of(cls, times: Iterable[Fraction]) -> TimeBase:
        """The coarsest base in which all these times are integers."""
        return cls(lcm(*(t.denominator for t in times)))

    def ticks(self, time: Fraction) -> int:
        """A time of this base as an integer."""
        return int(time * self.resolution)

    def instant(self, ticks: int) -> Instant:
        """The instant at an integer multiple; Python rounds the quotient of integers correctly."""
        return _new(Instant, (ticks / self.resolution, ticks))
