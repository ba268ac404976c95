"""What a run has done, as it is done: its steps with their causes, and its events."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.causes import GRID, Cause, Event, Steps
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore

SAME_SIZE = 1e-9
"""Steps whose sizes differ by no more than this part are alike: they are differences of times."""


@dataclass
class StepLog:
    """Each step with its cause; steps that follow each other, of the same cause and size, are one entry."""

    ended: list[tuple[float, float, Cause, int]] = field(default_factory=list)
    """Entries but the last one, that were not handed on, as arguments of Steps: with step-size control each step is one,
    and a tuple is made faster."""
    begin: float = 0.0
    end: float = 0.0
    """[s] Of the last entry."""
    size: float = 0.0
    """[s] Of its steps."""
    cause: Cause = GRID
    count: int = 0
    any_size: bool = False
    """Whether steps of different sizes are one entry on the grid: then it is a grid of several rates."""

    @property
    def entries(self) -> tuple[Steps, ...]:
        """All that were not handed on, in their order."""
        if not self.count:
            return ()
        return (
            *itertools.starmap(Steps, self.ended),
            Steps(self.begin, self.end, self.cause, self.count),
        )

    def add(self, begin: float, end: float, cause: Cause, count: int = 1) -> None:
        """Take up steps of one size."""
        size = end - begin if count == 1 else (end - begin) / count
        before = self.count
        if before:
            if cause is self.cause or cause == self.cause:
                margin = SAME_SIZE * size
                if -margin <= size - self.size <= margin or (self.any_size and cause is GRID):
                    self.end = end
                    self.count = before + count
                    return
            self.ended.append((self.begin, self.end, self.cause, before))
        self.begin, self.end, self.size = begin, end, size
        self.cause, self.count = cause, count

    def add_stretch(self, times: NDArray[np.float64], done: int) -> None:
        """Take up the first steps between these times in s, on a grid; after an interruption the very first is shorter."""
        if done:
            self.add(float(times[0]), float(times[1]), GRID)
        if done > 1:
            self.add(float(times[1]), float(times[done]), GRID, done - 1)

    def copy(self) -> StepLog:
        """Another one that is as this one is now."""
        return replace(self, ended=list(self.ended))


def recorded_values(plan: Plan, store: ValueStore, components: Collection[str]) -> dict[str, Any]:
    """Recorded variables of components, as they are in the store; arrays as lists."""
    return {
        c.name: store.values[c.type][c.slot].reshape(c.shape).tolist()
        for c in plan.recorded
        if c.instance is not None and plan.instances[c.instance].name in components
    }


@dataclass
class Late:
    """How often an event was found late, and the first time."""

    times: int
    time: float
    """[s]"""
    indicator: float
    """The largest of its indicators then."""
    excess: int = 0
    """How much more often it was late than in time, since it was last in time more often."""

    def text(self, name: str) -> str:
        """A warning."""
        often = "once" if self.times == 1 else f"{self.times} times"
        return (
            f"the event '{name}' was found late {often}, first at t = {self.time:.12g} s, when the largest of its "
            f"indicators was {self.indicator:.3g} already: take smaller steps, above all after events"
        )


@dataclass
class EventLog:
    """The events of a run in their order, and how often one was late."""

    events: list[Event] = field(default_factory=list)
    """Those that were not handed on."""
    handed_on: int = 0
    """Events before them."""
    late: dict[str, Late] = field(default_factory=dict)
    """By name: those that were found when their indicators were well below 0."""

    @property
    def count(self) -> int:
        """How many events there were."""
        return self.handed_on + len(self.events)
