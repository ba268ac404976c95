"""Elements of semantic adaptation as instances: they act in Event Mode, as FMUs with clocks do."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.instance import Instance, StepAnswer, Transfer, UpdateAnswer
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

Element = TypeVar("Element", bound=Adaptation)


class AdaptationInstance(Instance, Generic[Element]):
    """An element in one run. Its whole state is its values by name.

    Active clocks are the values of clocks. They become inactive in ``UpdateDiscreteStates``.

    Parameters
    ----------
    element : Adaptation
    """

    def __init__(self, name: str, element: Element) -> None:
        super().__init__(name, element.model())
        self.element = element
        self.values: dict[str, Any] = {
            v.name: v.start[0] if v.start else v.type.dtype.type(0).item()
            for v in self.model.variables
        }
        self._names = {v.value_reference: v.name for v in self.model.variables}
        self._clocks = [v.name for v in self.model.variables if v.type is DataType.CLOCK]
        self._places: dict[int, dict[str, Any]] = {}

    # What an element defines

    def _evaluate(self) -> None:
        """Set outputs that depend on the present inputs and on active clocks."""

    @abstractmethod
    def _update(self) -> bool:
        """``UpdateDiscreteStates``: set outputs and states; clocks are still as before. Returns whether there is another
        event in the next iteration."""

    # Values

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these variables."""
        del kind
        names = [self._names[reference] for reference in references]

        def read() -> None:
            self._evaluate()
            for k, name in enumerate(names):
                values[k] = self.values[name]

        return read

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets inputs, and makes input clocks active."""
        del kind
        names = [self._names[reference] for reference in references]

        def write() -> None:
            self.values.update(zip(names, values.tolist(), strict=True))

        return write

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        """A function that computes how distances from thresholds change with the input."""
        signs = {t.distance: t.sign for t in self.element.thresholds}
        factors = [
            [-signs.get(self._names[y], 0) * (self._names[u] == INPUT) for u in knowns]
            for y in unknowns
        ]
        matrix = np.array(factors, dtype=np.float64)

        def compute() -> None:
            sensitivity[:] = matrix @ seed

        return compute

    # Modes and time

    def enter_event_mode(self) -> None:
        """Nothing changes until a clock is active or the input is another one."""

    def update_discrete_states(self) -> UpdateAnswer:
        """The event; after it all clocks are inactive, except those of an event in the next iteration."""
        self._evaluate()
        again = self._update()
        self.values.update(dict.fromkeys(self._clocks, False))
        if again:
            self.values[TICK] = True
        return UpdateAnswer(wants_update=again)

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Nothing changes with time alone."""
        return None

    def save(self, place: int) -> None:
        """Save the values."""
        self._places[place] = dict(self.values)

    def restore(self, place: int) -> None:
        """Restore the values."""
        self.values.update(self._places[place])

    def serialized(self) -> bytes:
        """The values."""
        return json.dumps(self.values).encode()

    def deserialize(self, state: bytes) -> None:
        """Restore the values."""
        self.values.update(json.loads(state))


class _SampleAndHold(AdaptationInstance[SampleAndHold]):
    def _evaluate(self) -> None:
        if self.values[CLOCK]:
            self.values[SAMPLE] = self.values[INPUT]

    def _update(self) -> bool:
        if self.values[CLOCK]:
            self.values[OUTPUT] = self.values[INPUT]
        return False


_BEFORE = "before"
"""The input at the last tick."""


class _UnitDelay(AdaptationInstance[UnitDelay]):
    def __init__(self, name: str, element: UnitDelay) -> None:
        super().__init__(name, element)
        self.values[_BEFORE] = element.start

    def _evaluate(self) -> None:
        if self.values[CLOCK]:
            self.values[SAMPLE] = self.values[_BEFORE]

    def _update(self) -> bool:
        if self.values[CLOCK]:
            self.values.update({OUTPUT: self.values[_BEFORE], _BEFORE: self.values[INPUT]})
        return False


class _MicrostepDelay(AdaptationInstance[UnitDelay]):
    def _update(self) -> bool:
        if self.values[CLOCK]:
            self.values[OUTPUT] = self.values[INPUT]
        return bool(self.values[CLOCK])


class _EventCounter(AdaptationInstance[EventCounter]):
    def _update(self) -> bool:
        self.values[COUNT] += self.values[CLOCK]
        return False


_IS_STARTED = "is started"
"""State of an element with thresholds: whether its initialization has ended."""

_AT = "at"
"""State: events at whose thresholds the input is since the start, or since an event that the importer has fired. They
cannot occur before it has moved away."""

_NEAR = 1e-5
"""Part of the usual distance by which an input may be away from a threshold at an event that the importer has located."""


class _ThresholdInstance(AdaptationInstance[Element]):
    """An element with events where its input reaches a threshold.

    The importer fires such an event by its trigger, or the element finds it itself: it requests an event at the end of
    a step whose input is beyond the threshold.
    """

    def __init__(self, name: str, element: Element) -> None:
        super().__init__(name, element)
        self.values.update({_IS_STARTED: False, _AT: []})

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
        if not self.values[_IS_STARTED]:
            self._start()
            self.values[_AT] = self._near(t.event for t in self.element.thresholds)
        elif not self._fired():
            self.values[_AT] = self._near(self.values[_AT])
            self._return()
        for t in self.element.thresholds:
            is_passed = t.event in self.values[_AT] or self._has_passed(t)
            self.values.update(
                {t.distance: self._distance(t), t.passed: 1.0 if is_passed else -1.0}
            )
        self.values[TICK] = bool(self.values[_IS_STARTED] and (self._fired() or self._reached()))

    def _near(self, events: Iterable[str]) -> list[str]:
        """Those of some events at whose thresholds the input is."""
        distances = {t.event: abs(self._distance(t)) for t in self.element.thresholds}
        return [event for event in events if distances[event] <= _NEAR * self._usual_distance()]

    def _update(self) -> bool:
        fired = self._fired()
        for t in fired or self._reached():
            self._cross(t, bool(fired))
        if fired:
            self.values[_AT] = self._near(t.event for t in self.element.thresholds)
        return False

    def enter_event_mode(self) -> None:
        """From Initialization Mode or Step Mode: from now on, a threshold that is reached is an event."""
        self._evaluate()
        self.values[_IS_STARTED] = True

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Request an event at the end of the step if the input has reached a threshold."""
        self._evaluate()
        return StepAnswer(time + size, event=True) if self._reached() else None


_IS_ABOVE = "is above"
"""State of a level crossing: the side of the level on which the input is."""


_FARTHEST = "farthest"
"""State of a level crossing: the largest distance of the input from the level so far."""


class _LevelCrossing(_ThresholdInstance[LevelCrossing]):
    def __init__(self, name: str, element: LevelCrossing) -> None:
        super().__init__(name, element)
        self.values[_FARTHEST] = 0.0

    def _evaluate(self) -> None:
        away = abs(self.values[INPUT] - self.element.level)
        self.values[_FARTHEST] = max(self.values[_FARTHEST], away)
        super()._evaluate()

    def _usual_distance(self) -> float:
        return float(self.values[_FARTHEST])

    def _distance(self, threshold: Threshold) -> float:
        return float(threshold.sign * (self.element.level - self.values[INPUT]))

    def _has_passed(self, threshold: Threshold) -> bool:
        return bool(self.values[_IS_ABOVE]) == (threshold.sign > 0)

    def _is_beyond(self, threshold: Threshold) -> bool:
        return self._is_input_above() == (threshold.sign > 0)

    def _is_input_above(self) -> bool:
        return bool(self.values[INPUT] >= self.element.level)

    def _start(self) -> None:
        self.values[_IS_ABOVE] = self._is_input_above()

    def _return(self) -> None:
        threshold, *others = self.element.thresholds
        if others:
            return
        is_at = threshold.event in self.values[_AT]
        if self._has_passed(threshold) and not self._is_beyond(threshold) and not is_at:
            self.values[_IS_ABOVE] = not self.values[_IS_ABOVE]

    def _cross(self, threshold: Threshold, is_located: bool) -> None:
        self.values[_IS_ABOVE] = threshold.sign > 0
        self.values[COUNT] += 1


_MULTIPLE = "multiple"
"""State of a quantizer: the output as a number of steps."""


class _Quantizer(_ThresholdInstance[Quantizer]):
    def _distance(self, threshold: Threshold) -> float:
        away = threshold.sign * (self.values[INPUT] - self.values[OUTPUT])
        return float(self.element.step / 2 + self.element.hysteresis - away)

    def _has_passed(self, threshold: Threshold) -> bool:
        return False

    def _usual_distance(self) -> float:
        return float(self.element.step)

    def _is_beyond(self, threshold: Threshold) -> bool:
        is_elsewhere = (self._nearest() - self.values[_MULTIPLE]) * threshold.sign > 0
        return self._distance(threshold) <= 0.0 and is_elsewhere

    def _start(self) -> None:
        self._set(self._nearest())

    def _nearest(self) -> int:
        u: float = self.values[INPUT]
        return floor(u / self.element.step + 0.5)

    def _set(self, multiple: int) -> None:
        self.values.update({_MULTIPLE: multiple, OUTPUT: multiple * self.element.step})

    def _cross(self, threshold: Threshold, is_located: bool) -> None:
        if is_located:
            self._set(self.values[_MULTIPLE] + threshold.sign)
        else:
            self._set(self._nearest())


_KINDS: Mapping[type[Adaptation], Callable[[str, Any], Instance]] = {
    SampleAndHold: _SampleAndHold,
    EventCounter: _EventCounter,
    LevelCrossing: _LevelCrossing,
    Quantizer: _Quantizer,
}


def adaptation_instance(element: Adaptation, name: str) -> Instance:
    """An element as an instance of this name."""
    if isinstance(element, UnitDelay):
        return (_MicrostepDelay if element.microstep else _UnitDelay)(name, element)
    return _KINDS[type(element)](name, element)
