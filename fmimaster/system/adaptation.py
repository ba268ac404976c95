"""Elements of semantic adaptation: components that turn signals into events, and events into signals.

They are data of a system, and have models with clocks like FMUs of FMI 3.0.

Source: Gomes et al. (2017), Co-simulation: state of the art, section 6.2 (semantic adaptation).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, replace
from enum import Enum
from fractions import Fraction
from math import isfinite, nan
from numbers import Real
from typing import Any, NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.system.clocks import ClockAttributes, ClockInterval, IntervalVariability, Time, exact
from fmimaster.system.declarations import (
    Capabilities,
    EventDeclaration,
    EventPolicy,
    Indicator,
    Scope,
    Version,
)
from fmimaster.system.model import (
    Causality,
    DataType,
    DependencyKind,
    Initial,
    Model,
    Variability,
    Variable,
)

INPUT, OUTPUT, SAMPLE = "u", "y", "sample"
"""The input, the output that holds its value, and the same value as a clocked output."""
CLOCK, TICK = "clock", "tick"
"""The input clock at which an element acts, and the output clock of its own events."""
COUNT = "count"
"""Output that counts events."""
POLICY = EventPolicy("eventPolicy", execute=0, announce=1, ignore=2)
"""The element finds its events itself, or the importer fires them."""


class Direction(Enum):
    """In which direction an input crosses a level."""

    RISING = "rising"
    FALLING = "falling"
    BOTH = "both"


class Threshold(NamedTuple):
    """An event of an element: its trigger, and the two outputs that are at or below 0 when it occurs."""

    event: str
    sign: int
    """1 if the input reaches it from below, -1 if from above."""

    @property
    def distance(self) -> str:
        """By how much the input is away from the threshold."""
        return f"{self.event}.distance"

    @property
    def passed(self) -> str:
        """1 if the input is beyond the threshold already, so that it cannot reach it; otherwise -1."""
        return f"{self.event}.passed"


class Adaptation(TypedArguments, ABC):
    """Base of the elements of semantic adaptation. One is data; its instance is in ``fmu/adaptation_elements.py``."""

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """Events that occur where the input reaches a value."""
        return ()

    @property
    def words(self) -> str:
        """What it does, for pages: a phrase."""
        given = {f.name: getattr(self, f.name) for f in self._given()}
        return ", ".join(f"{name} {_word(value)}" for name, value in given.items())

    def _given(self) -> Iterator[Field[Any]]:
        """Fields with another value than their default."""
        of_class: Any = self
        return (f for f in fields(of_class) if getattr(self, f.name) != f.default)

    @abstractmethod
    def _variables(self) -> Iterator[Variable]:
        """The variables; value references follow from their order."""

    def model(self) -> Model:
        """The model description."""
        variables = [
            *self._variables(),
            *(v for t in self.thresholds for v in _of_threshold(t)),
        ]
        if self.thresholds:
            variables.append(
                _variable(
                    POLICY.parameter,
                    Causality.PARAMETER,
                    DataType.INT32,
                    Variability.TUNABLE,
                    start=0,
                )
            )
        placed = tuple(replace(v, value_reference=k) for k, v in enumerate(variables))
        outputs = [v for v in placed if v.causality in (Causality.OUTPUT, Causality.LOCAL)]
        distances = [t.distance for t in self.thresholds]
        direct = {
            v.name: frozenset({INPUT} if v.name in distances else ())
            for v in outputs
            if v.type is not DataType.CLOCK
        }
        kind = type(self).__name__
        return Model(
            name=kind,
            fmi_version=Version("none (semantic adaptation)"),
            variables=placed,
            dependencies=direct,
            dependency_kinds={name: {INPUT: DependencyKind.CONSTANT} for name in distances},
            initial_dependencies={
                name: frozenset({INPUT}) if self._follows_input(name) else of
                for name, of in direct.items()
            },
            capabilities=Capabilities(
                can_get_and_set_fmu_state=True,
                can_serialize_fmu_state=True,
                can_handle_variable_communication_step_size=True,
                provides_directional_derivatives=bool(distances),
                has_event_mode=True,
            ),
            events=tuple(
                EventDeclaration(
                    t.event,
                    Scope.PRIVATE,
                    (Indicator(t.distance), Indicator(t.passed)),
                    announce=TICK,
                    trigger=t.event,
                )
                for t in self.thresholds
            ),
            event_policy=POLICY if self.thresholds else None,
            description=(type(self).__doc__ or "").partition("\n")[0],
        )

    def _follows_input(self, name: str) -> bool:
        """Whether an output without direct dependency is computed from the input in Initialization Mode."""
        return any(name == t.passed for t in self.thresholds)

    def _wrong(self, what: str) -> DescriptionError:
        return DescriptionError(f"{type(self).__name__}: {what}")

    def _take_number(self, name: str, least: float, words: str, *, may_be_least: bool) -> None:
        """Check a number, which becomes a float."""
        value = getattr(self, name)
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        number = float(value) if is_number else nan
        if not (isfinite(number) and (number > least or (may_be_least and number == least))):
            raise self._wrong(f"{name}={value!r}, expected {words}.")
        object.__setattr__(self, name, number)


def _word(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Fraction):
        return f"{value} s"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


@dataclass(frozen=True, slots=True)
class _Sampled(Adaptation):
    """Base of the elements that act at ticks of their input clock.

    Parameters
    ----------
    period : float, int, str or Fraction, in s, optional
        Of the clock, such as 0.1 or "1/3"; None for a triggered clock, which is connected to another one.
    shift : the same
        From the start to the first tick.
    clocked : bool
        Whether the input is an event signal, which is present at ticks of the clock only. Otherwise it always has a
        value, and its left limit is read.
    type : DataType
        Of the input and the output.
    start : number
        The output before the first tick.
    """

    period: Time | None = None
    shift: Time = 0
    clocked: bool = False
    type: DataType = DataType.FLOAT64
    start: Any = 0

    def __post_init__(self) -> None:
        if not isinstance(self.type, DataType) or not self.type.is_numeric:
            raise self._wrong(f"type={self.type!r}, expected a numeric DataType.")
        try:
            object.__setattr__(self, "start", self.type.dtype.type(self.start).item())
        except (TypeError, ValueError, OverflowError):
            raise self._wrong(
                f"start={self.start!r}, expected a value of type {self.type.value}."
            ) from None
        if self.period is None:
            if self.shift:
                raise self._wrong(f"shift={self.shift!r} without a period. Give both, or none.")
            return
        try:
            given = ClockInterval(self.period, self.shift)
        except DescriptionError as error:
            raise self._wrong(str(error)) from None
        object.__setattr__(self, "period", given.interval)
        object.__setattr__(self, "shift", given.shift)

    def _variables(self) -> Iterator[Variable]:
        clocks = (CLOCK,) if self.clocked else ()
        is_held = self.clocked or not self.type.is_float
        variability = Variability.DISCRETE if is_held else Variability.CONTINUOUS
        yield _variable(
            INPUT, Causality.INPUT, self.type, variability, start=self.start, clocks=clocks
        )
        period = None if self.period is None else exact(self.period)
        yield _clock(CLOCK, Causality.INPUT, period, exact(self.shift))
        yield _variable(OUTPUT, Causality.OUTPUT, self.type, start=self.start)
        yield _variable(SAMPLE, Causality.OUTPUT, self.type, clocks=(CLOCK,))


@dataclass(frozen=True, slots=True)
class SampleAndHold(_Sampled):
    """The input at each tick of a clock, held until the next one.

    ``y`` holds it, and ``sample`` is the same value as an event signal. With ``clocked`` it holds an event signal:
    ``y`` always has a value.
    """


@dataclass(frozen=True, slots=True)
class UnitDelay(_Sampled):
    """The input of the tick before, held until the next tick; or an event signal, one microstep later.

    Parameters
    ----------
    microstep : bool
        Whether ``u`` is an event signal that is repeated in the next event iteration of the same instant: ``tick`` and
        ``y`` are then an event signal, too.
    """

    microstep: bool = False

    def __post_init__(self) -> None:
        _Sampled.__post_init__(self)
        if self.microstep and self.period is not None:
            raise self._wrong(
                f"period={self.period} and microstep=True. A delay of one microstep has no period: its clock is connected."
            )

    def _variables(self) -> Iterator[Variable]:
        if not self.microstep:
            yield from _Sampled._variables(self)
            return
        yield _variable(INPUT, Causality.INPUT, self.type, start=self.start, clocks=(CLOCK,))
        yield _clock(CLOCK, Causality.INPUT)
        yield _clock(TICK, Causality.OUTPUT)
        yield _variable(OUTPUT, Causality.OUTPUT, self.type, clocks=(TICK,))


@dataclass(frozen=True, slots=True)
class EventCounter(Adaptation):
    """The number of ticks of a clock so far: ``clock`` in, ``count`` out."""

    def _variables(self) -> Iterator[Variable]:
        yield _clock(CLOCK, Causality.INPUT)
        yield _variable(COUNT, Causality.OUTPUT, DataType.INT32, start=0)


@dataclass(frozen=True, slots=True)
class LevelCrossing(Adaptation):
    """An event where the input crosses a level: ``tick`` is active, and ``count`` is one larger.

    An event clock locates it (``Predictive``). Without one, it occurs at the first communication point at which the
    element has the new value.

    Parameters
    ----------
    level : float
        In the unit of the input.
    direction : Direction
    """

    level: float = 0.0
    direction: Direction = Direction.BOTH

    def __post_init__(self) -> None:
        self._take_number("level", float("-inf"), "a finite number", may_be_least=False)

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """One for each direction."""
        both = {Direction.RISING: 1, Direction.FALLING: -1}
        return tuple(
            Threshold(d.value, sign)
            for d, sign in both.items()
            if self.direction in (d, Direction.BOTH)
        )

    def _variables(self) -> Iterator[Variable]:
        yield _variable(INPUT, Causality.INPUT, DataType.FLOAT64, Variability.CONTINUOUS, start=0.0)
        yield _clock(TICK, Causality.OUTPUT)
        yield _variable(COUNT, Causality.OUTPUT, DataType.INT32, start=0)


@dataclass(frozen=True, slots=True)
class Quantizer(Adaptation):
    """The input in whole steps: ``y`` changes, and ``tick`` is active, where the input is too far from it.

    Parameters
    ----------
    step : float
        Distance of two values of the output, in the unit of the input. They are its multiples.
    hysteresis : float
        The output changes where the input is more than ``step / 2 + hysteresis`` away from it.

    Source: Kofman and Junco (2001), Quantized-state systems.
    """

    step: float = 1.0
    hysteresis: float = 0.0

    def __post_init__(self) -> None:
        self._take_number("step", 0.0, "a number above 0", may_be_least=False)
        self._take_number("hysteresis", 0.0, "0 or more", may_be_least=True)

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """One above the output, one below."""
        return (Threshold("up", 1), Threshold("down", -1))

    def _variables(self) -> Iterator[Variable]:
        yield _variable(INPUT, Causality.INPUT, DataType.FLOAT64, Variability.CONTINUOUS, start=0.0)
        yield _clock(TICK, Causality.OUTPUT)
        yield _variable(OUTPUT, Causality.OUTPUT, DataType.FLOAT64)

    def _follows_input(self, name: str) -> bool:
        return name == OUTPUT or Adaptation._follows_input(self, name)


ELEMENTS: Mapping[str, type[Adaptation]] = {
    kind.__name__: kind
    for kind in (SampleAndHold, LevelCrossing, EventCounter, Quantizer, UnitDelay)
}
"""All elements by name."""


def _variable(
    name: str,
    causality: Causality,
    kind: DataType,
    variability: Variability = Variability.DISCRETE,
    start: Any = None,
    clocks: tuple[str, ...] = (),
) -> Variable:
    is_exact = start is not None
    return Variable(
        name,
        0,
        kind,
        causality,
        variability,
        Initial.EXACT if is_exact else Initial.CALCULATED,
        (start,) if is_exact else None,
        clocks=clocks,
    )


def _clock(
    name: str, causality: Causality, period: Fraction | None = None, shift: Fraction = Fraction(0)
) -> Variable:
    kind = IntervalVariability.TRIGGERED if period is None else IntervalVariability.CONSTANT
    attributes = ClockAttributes(kind, period, shift)
    return Variable(name, 0, DataType.CLOCK, causality, Variability.DISCRETE, clock=attributes)


def _of_threshold(threshold: Threshold) -> Iterator[Variable]:
    """Its indicators, and its trigger."""
    for name in (threshold.distance, threshold.passed):
        yield _variable(name, Causality.LOCAL, DataType.FLOAT64, Variability.CONTINUOUS)
    yield _clock(threshold.event, Causality.INPUT)
