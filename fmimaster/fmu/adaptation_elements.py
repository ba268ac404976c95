"""Elements of semantic adaptation: those that act at ticks, and those with events where their input reaches a threshold."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from math import floor, isfinite
from typing import Any

from fmimaster.fmu.adaptation_instance import AdaptationInstance, Element, RememberedValue
from fmimaster.fmu.instance import Instance, StepAnswer
from fmimaster.system.adaptation import (
    CLOCK,
    COUNT,
    INPUT,
    OUTPUT,
    POLICY,
    SAMPLE,
    TICK,
    Adaptation,
    EventCounter,
    LevelCrossing,
    Quantizer,
    SampleAndHold,
    Threshold,
    UnitDelay,
)
from fmimaster.system.model import DataType

BEFORE = "before"
"""State of a unit delay: the input at the last tick."""


class SampleAndHoldInstance(AdaptationInstance[SampleAndHold]):
    """The input at each tick, held until the next one."""

    twin = "sample and hold"

    def _evaluate(self) -> None:
        if self.values[CLOCK]:
            self.values[SAMPLE] = self.values[INPUT]

    def _update(self) -> bool:
        if self.values[CLOCK]:
            self.values[OUTPUT] = self.values[INPUT]
        return False


class UnitDelayInstance(AdaptationInstance[UnitDelay]):
    """The input of the tick before, held until the next tick."""

    twin = "unit delay"

    def _states(self) -> Iterator[RememberedValue]:
        yield RememberedValue(BEFORE, self.element.type, self.element.start)

    def _evaluate(self) -> None:
        if self.values[CLOCK]:
            self.values[SAMPLE] = self.values[BEFORE]

    def _update(self) -> bool:
        if self.values[CLOCK]:
            self.values[OUTPUT] = self.values[BEFORE]
            self.values[BEFORE] = self.values[INPUT]
        return False


class MicrostepDelayInstance(AdaptationInstance[UnitDelay]):
    """An event signal, repeated in the next event iteration."""

    twin = "microstep delay"

    def _update(self) -> bool:
        is_active = bool(self.values[CLOCK])
        if is_active:
            self.values[OUTPUT] = self.values[INPUT]
        return is_active


class EventCounterInstance(AdaptationInstance[EventCounter]):
    """The number of ticks so far."""

    twin = "event counter"

    def _update(self) -> bool:
        self.values[COUNT] += self.values[CLOCK]
        return False


IS_STARTED = "is started"
"""State of an element with thresholds: whether its initialization has ended."""

IS_ABOVE = "is above"
"""State of a level crossing: the side of the level on which the input is."""

FARTHEST = "farthest"
"""State of a level crossing: the largest distance of the input from the level so far."""

MULTIPLE = "multiple"
"""State of a quantizer: the output as a number of steps."""

NEAR = 1e-5
"""Part of the usual distance by which an input may be away from a threshold at an event that the importer has located."""


def is_at(threshold: Threshold) -> str:
    """Name of a state: whether the input is at this threshold since the start, or since an event that the importer has
    fired. The event cannot occur before it has moved away."""
    return f"{threshold.event}.is at"


class ThresholdInstance(AdaptationInstance[Element]):
    """An element with events where its input reaches a threshold.

    The importer fires such an event by its trigger, or the element finds it itself: it requests an event at the end of
    a step whose input is beyond the threshold.
    """

    def _states(self) -> Iterator[RememberedValue]:
        yield RememberedValue(IS_STARTED, DataType.BOOLEAN)
        for t in self.element.thresholds:
            yield RememberedValue(is_at(t), DataType.BOOLEAN)

    @abstractmethod
    def _distance(self, threshold: Threshold) -> float:
        """By how much the input is before the threshold; at or below 0 it has reached it."""

    @abstractmethod
    def _has_passed(self, threshold: Threshold) -> bool:
        """Whether the input is beyond the threshold already, so that it cannot reach it."""

    @abstractmethod
    def _is_beyond(self, threshold: Threshold) -> bool:
        """Whether the present input is beyond the threshold. An input that is exactly there is beyond one only of two
        thresholds at one place."""

    @abstractmethod
    def _usual_distance(self) -> float:
        """A usual distance of the input from a threshold."""

    @abstractmethod
    def _start(self) -> None:
        """Set the state by the present input, without an event."""

    @abstractmethod
    def _cross(self, threshold: Threshold, is_located: bool) -> None:
        """The event. ``is_located``: the input is at the threshold, up to rounding."""

    def _return(self) -> None:
        """Note that the input is before a threshold again, which is no event."""

    def _reached(self) -> list[Threshold]:
        """Thresholds that the input has reached, as the element finds it itself."""
        if self.values[POLICY.parameter] != POLICY.execute:
            return []
        return [
            t for t in self.element.thresholds if not self._has_passed(t) and self._is_beyond(t)
        ]

    def _fired(self) -> list[Threshold]:
        return [t for t in self.element.thresholds if self.values[t.event]]

    def _evaluate(self) -> None:
        values, thresholds = self.values, self.element.thresholds
        if not values[IS_STARTED]:
            self._start()
            self._note_where()
        elif not self._fired():
            for t in thresholds:
                values[is_at(t)] = values[is_at(t)] and self._is_near(t)
            self._return()
        for t in thresholds:
            values[t.distance] = self._distance(t)
            values[t.passed] = 1.0 if values[is_at(t)] or self._has_passed(t) else -1.0
        values[TICK] = bool(values[IS_STARTED] and (self._fired() or self._reached()))

    def _is_near(self, threshold: Threshold) -> bool:
        return abs(self._distance(threshold)) <= NEAR * self._usual_distance()

    def _note_where(self) -> None:
        for t in self.element.thresholds:
            self.values[is_at(t)] = self._is_near(t)

    def _update(self) -> bool:
        fired = self._fired()
        for t in fired or self._reached():
            self._cross(t, bool(fired))
        if fired:
            self._note_where()
        return False

    def enter_event_mode(self) -> None:
        """From Initialization Mode or Step Mode: from now on, a threshold that is reached is an event."""
        self._evaluate()
        self.values[IS_STARTED] = True

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Request an event at the end of the step if the input has reached a threshold."""
        self._evaluate()
        return StepAnswer(time + size, event=True) if self._reached() else None


class LevelCrossingInstance(ThresholdInstance[LevelCrossing]):
    """Each threshold is the level, reached from one side."""

    twin = "level crossing"

    def _states(self) -> Iterator[RememberedValue]:
        yield from super()._states()
        yield RememberedValue(IS_ABOVE, DataType.BOOLEAN)
        yield RememberedValue(FARTHEST, DataType.FLOAT64)

    def _evaluate(self) -> None:
        away = abs(self.values[INPUT] - self.element.level)
        self.values[FARTHEST] = max(self.values[FARTHEST], away)
        super()._evaluate()

    def _usual_distance(self) -> float:
        return float(self.values[FARTHEST])

    def _distance(self, threshold: Threshold) -> float:
        return float(threshold.sign * (self.element.level - self.values[INPUT]))

    def _has_passed(self, threshold: Threshold) -> bool:
        return bool(self.values[IS_ABOVE]) == (threshold.sign > 0)

    def _is_beyond(self, threshold: Threshold) -> bool:
        return self._is_input_above() == (threshold.sign > 0)

    def _is_input_above(self) -> bool:
        return bool(self.values[INPUT] >= self.element.level)

    def _start(self) -> None:
        self.values[IS_ABOVE] = self._is_input_above()

    def _return(self) -> None:
        t, *others = self.element.thresholds
        if others:
            return
        if self._has_passed(t) and not self._is_beyond(t) and not self.values[is_at(t)]:
            self.values[IS_ABOVE] = not self.values[IS_ABOVE]

    def _cross(self, threshold: Threshold, is_located: bool) -> None:
        self.values[IS_ABOVE] = threshold.sign > 0
        self.values[COUNT] += 1


class QuantizerInstance(ThresholdInstance[Quantizer]):
    """One threshold is above the output, the other one below."""

    twin = "quantizer"

    def _states(self) -> Iterator[RememberedValue]:
        yield from super()._states()
        yield RememberedValue(MULTIPLE, DataType.FLOAT64)

    def _distance(self, threshold: Threshold) -> float:
        away = threshold.sign * (self.values[INPUT] - self.values[OUTPUT])
        return float(self.element.step / 2 + self.element.hysteresis - away)

    def _has_passed(self, threshold: Threshold) -> bool:
        return False

    def _usual_distance(self) -> float:
        return float(self.element.step)

    def _is_beyond(self, threshold: Threshold) -> bool:
        is_elsewhere = (self._nearest() - self.values[MULTIPLE]) * threshold.sign > 0
        return self._distance(threshold) <= 0.0 and is_elsewhere

    def _start(self) -> None:
        self._set(self._nearest())

    def _nearest(self) -> float:
        steps: float = self.values[INPUT] / self.element.step + 0.5
        return float(floor(steps)) if isfinite(steps) else steps

    def _set(self, multiple: float) -> None:
        self.values[MULTIPLE] = multiple
        self.values[OUTPUT] = multiple * self.element.step

    def _cross(self, threshold: Threshold, is_located: bool) -> None:
        nearest, following = self._nearest(), self.values[MULTIPLE] + threshold.sign
        # an input at the threshold may be before it by rounding; one that jumps passes several at once
        is_farther = (nearest - following) * threshold.sign > 0
        self._set(following if is_located and not is_farther else nearest)


_KINDS: Mapping[type[Adaptation], Callable[[str, Any], Instance]] = {
    SampleAndHold: SampleAndHoldInstance,
    UnitDelay: lambda name, element: (
        MicrostepDelayInstance(name, element)
        if element.microstep
        else UnitDelayInstance(name, element)
    ),
    EventCounter: EventCounterInstance,
    LevelCrossing: LevelCrossingInstance,
    Quantizer: QuantizerInstance,
}


def adaptation_instance(element: Adaptation, name: str) -> Instance:
    """An element as an instance of this name."""
    return _KINDS[type(element)](name, element)
