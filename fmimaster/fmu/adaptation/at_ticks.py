"""Elements that act at the ticks of an input clock."""

from __future__ import annotations

from collections.abc import Iterator

from fmimaster.fmu.adaptation.instance import AdaptationInstance, State
from fmimaster.system.adaptation import (
    CLOCK,
    COUNT,
    INPUT,
    OUTPUT,
    SAMPLE,
    EventCounter,
    SampleAndHold,
    UnitDelay,
)

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

    def _states(self) -> Iterator[State]:
        yield State(BEFORE, self.element.type, self.element.start)

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
