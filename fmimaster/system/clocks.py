"""Times as exact numbers; when a clock ticks, as it declares it (FMI 3.0, 2.2.8 and 2.4.7.6) and as a user schedules it.

Also when a component or a connection exists, which is given by such times.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from functools import lru_cache
from math import gcd
from numbers import Integral
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError, OptionError
from fmimaster.base.typed_arguments import TypedArguments

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
        return _exact(value)
    except (ValueError, ZeroDivisionError, OverflowError, AttributeError, TypeError):
        pass
    raise OptionError(
        f"{reprlib.repr(value)} is not a time. Expected a finite number in s, such as 0.01 or '1/60'."
    )


@lru_cache(typed=True)  # a run asks for the same ones many times, and 1 is a time, but True is none
def _exact(value: Time) -> Fraction:
    number = _number(value)
    if abs(number) > LARGEST:
        raise OverflowError
    return number


def _number(value: Time) -> Fraction:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, Fraction):  # a class of the user's
        return Fraction(value)
    if isinstance(value, int | Integral):  # NumPy's integers too
        return Fraction(int(value))
    if isinstance(value, float):
        return Fraction(repr(float(value)))
    text = str(value).strip() if isinstance(value, Decimal) else value.strip()
    if abs(int(text.lower().partition("e")[2] or 0)) > _MOST_DIGITS:
        raise OverflowError
    return Fraction(text)


def common_divisor(a: Fraction, b: Fraction) -> Fraction:
    """The greatest number of which both are multiples."""
    return Fraction(
        gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator
    )


class IntervalVariability(Enum):
    """How the interval between two ticks is known."""

    CONSTANT = "constant"
    FIXED = "fixed"
    TUNABLE = "tunable"
    CHANGING = "changing"
    COUNTDOWN = "countdown"
    TRIGGERED = "triggered"
    """There is no interval: the clock ticks at events."""


_PERIODIC = (IntervalVariability.CONSTANT, IntervalVariability.FIXED, IntervalVariability.TUNABLE)


@dataclass(frozen=True, slots=True)
class ClockAttributes:
    """Attributes of one clock. Times are exact decimal numbers: ``0.1`` is a tenth of a second."""

    interval_variability: IntervalVariability = IntervalVariability.TRIGGERED
    interval: Fraction | None = None
    """Between two ticks, in s; None if it is not declared. A triggered clock has one only if the user schedules it. What a
    user gives (it is a start value) replaces what the FMU declares: plan, calendar and pages look here only."""
    shift: Fraction = Fraction(0)
    """From the start to the first tick, in s."""
    resolution: int | None = None
    """Number of parts of a second, in which the FMU counts intervals as fractions."""
    supports_fraction: bool = False
    """Whether the FMU gives and takes intervals as fractions."""
    priority: int | None = None
    """Priority of the model partition that the clock activates; a smaller number is more urgent."""
    can_be_deactivated: bool = False
    is_given: bool = False
    """Whether the interval is the choice of a user, so that an FMU that declares one must be told it."""

    @property
    def is_time_based(self) -> bool:
        """Whether it ticks at intervals that the importer must know."""
        is_triggered = self.interval_variability is IntervalVariability.TRIGGERED
        return not is_triggered or self.interval is not None

    def scheduled(self, given: ClockInterval) -> ClockAttributes:
        """The same with the interval and the shift that a user gives."""
        shift = self.shift if given.shift is None else exact(given.shift)
        return replace(self, interval=exact(given.interval), shift=shift, is_given=True)

    @property
    def is_periodic(self) -> bool:
        """Whether the FMU declares it as periodic."""
        return self.interval_variability in _PERIODIC

    @property
    def is_told_by_fmu(self) -> bool:
        """Whether the FMU tells its interval during the run (FMI 3.0, 2.2.8.3)."""
        kind = self.interval_variability
        if kind in (IntervalVariability.FIXED, IntervalVariability.TUNABLE):
            return self.interval is None or kind is IntervalVariability.TUNABLE
        return kind in (IntervalVariability.CHANGING, IntervalVariability.COUNTDOWN)

    @property
    def takes_interval(self) -> bool:
        """Whether the importer may choose the interval of this input clock (FMI 3.0, 2.2.8.3)."""
        kind = self.interval_variability
        leaves = (IntervalVariability.FIXED, IntervalVariability.TUNABLE)
        is_open = kind in leaves and self.interval is not None
        return is_open or kind is IntervalVariability.TRIGGERED


@dataclass(frozen=True, slots=True)
class ClockInterval:
    """The interval at which the importer makes an input clock active, chosen by a user.

    Parameters
    ----------
    interval : float, int, str or Fraction, in s
        Above 0. A number is read as a decimal, and a text may be a fraction: 0.1 and ``"1/10"`` are a tenth of a second.
    shift : the same, optional
        From the start to the first tick; None keeps the shift of the FMU, 0 if there is none.

    Raises
    ------
    DescriptionError
        If the interval is not above 0, or the shift is below 0.
    """

    interval: Time
    shift: Time | None = None

    def __post_init__(self) -> None:
        interval = _seconds("interval", self.interval)
        if interval <= 0:
            raise DescriptionError(
                f"The interval of a clock is {self.interval!r} s. Expected a number above 0, such as 0.1."
            )
        object.__setattr__(self, "interval", interval)
        if self.shift is not None:
            shift = _seconds("shift", self.shift)
            if shift < 0:
                raise DescriptionError(
                    f"The shift of a clock is {self.shift!r} s. Expected 0 or more."
                )
            object.__setattr__(self, "shift", shift)

    def __str__(self) -> str:
        shift = f", first after {self.shift} s" if self.shift else ""
        return f"every {self.interval} s{shift}"

    @classmethod
    def of(cls, value: Any, where: str) -> ClockInterval:
        """From what a user gives: an interval, or this object; ``where`` names it in messages."""
        try:
            return value if isinstance(value, cls) else cls(value)
        except DescriptionError as error:
            raise DescriptionError(f"{where}: {error}") from None


def _seconds(what: str, value: Any) -> Fraction:
    try:
        return exact(value)
    except OptionError as error:
        raise DescriptionError(f"The {what} of a clock: {error}") from None


def check_priority(priority: object, where: str) -> None:
    """Refuse a priority of a component that is not a whole number.

    Raises
    ------
    DescriptionError
    """
    is_number = isinstance(priority, int) and not isinstance(priority, bool)
    if priority is not None and not is_number:
        raise DescriptionError(
            f"{where}: priority={priority!r}, expected a whole number, or None for a component that is no discrete-event "
            "unit."
        )


class Qualifier(IntEnum):
    """What an answer about an interval means (FMI 3.0, fmi3IntervalQualifier)."""

    NOT_YET_KNOWN = 0
    UNCHANGED = 1
    CHANGED = 2


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Room for the answers of an instance about the intervals of its clocks; shape (number of clocks,) each."""

    counter: NDArray[np.uint64]
    resolution: NDArray[np.uint64]
    """The interval is ``counter / resolution`` s; 0 where it is given in ``seconds``."""
    seconds: NDArray[np.float64]
    qualifier: NDArray[np.int32]
    """A :class:`Qualifier`; unless it is CHANGED, the interval has no meaning."""

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays, in this order."""
        return self.counter, self.resolution, self.seconds, self.qualifier

    @classmethod
    def of(cls, n: int) -> Intervals:
        """Room for n clocks, without an interval."""
        return cls(
            np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.zeros(n), np.zeros(n, np.int32)
        )


@dataclass(frozen=True, slots=True)
class Lifetime(TypedArguments):
    """When a connection or a component exists.

    Parameters
    ----------
    from_time, until_time : number or text, in s, optional
        It exists from the first time on, and no longer at the second one. A text may be a fraction: ``"1/3"``.
    from_event, until_event : str, optional
        Likewise by the first occurrence of an event: its name in the results, ``"component.event"`` for a private one.

    Raises
    ------
    DescriptionError
        If the times leave no interval, or if a time and an event are given for the same end.
    """

    from_time: Fraction | float | str | None = None
    until_time: Fraction | float | str | None = None
    from_event: str | None = None
    until_event: str | None = None

    def __post_init__(self) -> None:
        for name in ("from_time", "until_time"):
            value: Any = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _time(name, value))
        for end in ("from", "until"):
            if getattr(self, f"{end}_time") is not None and getattr(self, f"{end}_event"):
                raise DescriptionError(
                    f"A lifetime has {end}_time and {end}_event. Give one of them."
                )
        first, last = self.begin, self.end
        if first is not None and last is not None and first >= last:
            raise DescriptionError(
                f"A lifetime from {self.from_time} s until {self.until_time} s is empty. The second time must be later."
            )

    @property
    def begin(self) -> Fraction | None:
        """``from_time`` as an exact number."""
        return cast("Fraction | None", self.from_time)

    @property
    def end(self) -> Fraction | None:
        """``until_time`` as an exact number."""
        return cast("Fraction | None", self.until_time)

    def exists(self, time: Fraction, happened: Collection[str]) -> bool:
        """Whether it exists at a time in s, after the events that have happened; at the time itself, after its change."""
        has_begun = self.begin is None or time >= self.begin
        has_ended = self.end is not None and time >= self.end
        has_begun = has_begun and (self.from_event is None or self.from_event in happened)
        has_ended = has_ended or (self.until_event is not None and self.until_event in happened)
        return has_begun and not has_ended

    @property
    def times(self) -> tuple[Fraction, ...]:
        """Times in s at which it may begin or end."""
        return tuple(t for t in (self.begin, self.end) if t is not None)

    @property
    def events(self) -> tuple[str, ...]:
        """Events at which it may begin or end."""
        return tuple(e for e in (self.from_event, self.until_event) if e is not None)

    def __str__(self) -> str:
        begin = f"from {self.from_time} s" if self.from_time is not None else ""
        begin = f"from '{self.from_event}' on" if self.from_event else begin
        end = f"until {self.until_time} s" if self.until_time is not None else ""
        end = f"until '{self.until_event}'" if self.until_event else end
        return " ".join(part for part in (begin, end) if part) or "always"


ALWAYS = Lifetime()


def _time(name: str, value: Any) -> Fraction:
    try:
        return exact(value)
    except OptionError as error:
        raise DescriptionError(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Structure:
    """The parts of a system that exist at one time, of those that do not always exist."""

    parts: frozenset[int]
    """Their numbers; connections that are equal but for their lifetimes have the same number."""
    absent: frozenset[str] = frozenset()
    """Full names of the components that do not exist then."""
