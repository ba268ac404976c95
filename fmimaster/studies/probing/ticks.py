"""The time-based clocks of an FMU alone in this process: when they tick, as exact times."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from math import inf
from typing import NamedTuple

import numpy as np

from fmimaster.base.errors import CallError
from fmimaster.fmu.instance import Instance
from fmimaster.system.clocks import (
    ClockAttributes,
    Intervals,
    IntervalVariability,
    Qualifier,
    exact,
)
from fmimaster.system.model import DataType, Model, Variable

_AT_EVENTS = (IntervalVariability.TUNABLE, IntervalVariability.COUNTDOWN)
"""Clocks whose intervals can change at any event; that of a changing clock only when it ticks."""


class MeasuredTick(NamedTuple):
    """The next tick of a clock, and the interval to the tick after it; None if its FMU tells it."""

    time: Fraction
    interval: Fraction | None


class Ticks:
    """Lets the time-based clocks of one instance tick. Times in s."""

    def __init__(self, instance: Instance, model: Model) -> None:
        self._instance = instance
        self._clocks = time_based(model)
        self.next: dict[int, MeasuredTick] = {}
        """Clock, by its number → its next tick; a clock that is not scheduled is missing."""
        self.count = 0
        """Number of ticks so far."""

    @property
    def first(self) -> float:
        """Time of the earliest tick; infinite if none is scheduled."""
        return float(min(tick.time for tick in self.next.values())) if self.next else inf

    def begin(self, start: float) -> None:
        """Schedule the first ticks: in Initialization Mode, where all intervals are asked."""
        self.next, now = {}, exact(start)
        for k, v in enumerate(self._clocks):
            if (interval := _attributes(v).interval) is not None:
                self.next[k] = MeasuredTick(now + _attributes(v).shift, interval)
        told = [k for k, v in enumerate(self._clocks) if _attributes(v).is_told_by_fmu]
        for k, interval in self._asked(told).items():
            is_open = _attributes(self._clocks[k]).interval is None
            if _attributes(self._clocks[k]).is_periodic and is_open:
                shift = self._instance.shift(self._clocks[k].value_reference)
                self.next[k] = MeasuredTick(now + shift, interval)
            else:
                self._tell(k, now, interval)

    def due(self, now: float) -> list[int]:
        """The clocks that tick now, or should have ticked."""
        return [k for k, tick in self.next.items() if float(tick.time) <= now]

    def activate(self, clocks: Collection[int]) -> None:
        """Make these clocks active, in Event Mode, and schedule their next ticks."""
        active = np.ones(len(clocks), dtype=DataType.CLOCK.dtype)
        references = [self._clocks[k].value_reference for k in clocks]
        self._instance.setter(DataType.CLOCK, references, active)()
        self.count += len(clocks)
        for k in clocks:
            time, interval = self.next.pop(k)
            if interval is not None:
                self.next[k] = MeasuredTick(time + interval, interval)

    def ask(self, now: float, ticked: Collection[int] = ()) -> None:
        """Schedule the clocks whose FMU tells another interval, in Event Mode."""
        kinds = [_attributes(v).interval_variability for v in self._clocks]
        asked = [
            k
            for k, kind in enumerate(kinds)
            if kind in _AT_EVENTS or (kind is IntervalVariability.CHANGING and k in ticked)
        ]
        for k, interval in self._asked(asked).items():
            self._tell(k, exact(now), interval)

    def _tell(self, k: int, now: Fraction, interval: Fraction) -> None:
        kind = _attributes(self._clocks[k]).interval_variability
        if kind is IntervalVariability.COUNTDOWN:
            self.next[k] = MeasuredTick(now + interval, None)
        elif k not in self.next or self.next[k].interval != interval:  # else it is no change
            self.next[k] = MeasuredTick(now + interval, interval)

    def _asked(self, clocks: list[int]) -> dict[int, Fraction]:
        """Clock → the interval that the FMU tells, if it is another one than before."""
        if not clocks:
            return {}
        answers = Intervals.of(len(clocks))
        self._instance.intervals([self._clocks[k].value_reference for k in clocks], answers)()
        return {
            k: self._interval(answers, at, self._clocks[k])
            for at, k in enumerate(clocks)
            if answers.qualifier[at] == Qualifier.CHANGED
        }

    def _interval(self, answers: Intervals, at: int, clock: Variable) -> Fraction:
        resolution, seconds = answers.resolution.item(at), answers.seconds.item(at)
        is_countdown = _attributes(clock).interval_variability is IntervalVariability.COUNTDOWN
        if resolution:
            interval = Fraction(answers.counter.item(at), resolution)
        else:
            interval = exact(seconds) if np.isfinite(seconds) else Fraction(-1)
        if interval < 0 or (interval == 0 and not is_countdown):
            told = float(interval) if resolution else seconds
            raise CallError(
                f"The FMU tells the interval {told:g} s for its clock '{clock.name}'. Expected a finite interval above 0.",
                instance=self._instance.name,
                function="GetInterval",
                status="not allowed",
            )
        return interval


def time_based(model: Model) -> list[Variable]:
    """The clocks that tick at intervals."""
    return [v for v in model.variables if v.clock is not None and v.clock.is_time_based]


def _attributes(clock: Variable) -> ClockAttributes:
    assert clock.clock is not None
    return clock.clock
