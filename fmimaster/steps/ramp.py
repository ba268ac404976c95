"""Steps of one size, each from the end of the last one, with or without short steps after events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import Goal, Instant, Instants, PointsAhead, TimeBase, whole
from fmimaster.numerics.step_sizes import SLIVER, has_full_size, longest_step
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import RuleTwin, Twin
from fmimaster.program.store import ValueStore
from fmimaster.record.causes import RAMP, STEP_SIZE, Cause
from fmimaster.steps.estimator import Measured
from fmimaster.steps.step_rule import NextSteps, StepRule


@dataclass(frozen=True, slots=True)
class EvenSteps(PointsAhead):
    """Points at equal distances of one step.

    After a given instant the points are integers, like those of a grid; after a found instant they are sums of doubles.

    Parameters
    ----------
    base : TimeBase
    step : int
        Ticks of the base.
    least : float
        The points end before a step that rounding has made shorter than this, in s.
    """

    base: TimeBase
    step: int
    least: float = 0.0

    cause: ClassVar[Cause] = STEP_SIZE

    def seconds_between(self, first: Instant, last: Instant, most: int) -> NDArray[np.float64]:
        """Points after ``first`` and before ``last`` in s; see :class:`PointsAhead`."""
        points = np.concatenate(
            [[first.seconds], self._seconds_after(first, self._count(first, last, most))]
        )
        begins, ends = points[:-1], points[1:]
        lengths = ends - begins
        fit = (lengths > 0.0) & (lengths >= self.least) & (ends + SLIVER * lengths < last.seconds)
        return ends if fit.all() else ends[: int(fit.argmin())]

    def point_after(self, first: Instant, n: int) -> Instant:
        """The n-th point after an instant, counted from 0."""
        if abs(first.ticks) == inf:
            return Instant(float(self._seconds_after(first, n + 1)[-1]))
        return self.base.instant(whole(first.ticks + (n + 1) * self.step))

    def _count(self, first: Instant, last: Instant, most: int) -> int:
        """Largest number of points before the last one; one point too many does no harm."""
        span = last.seconds - first.seconds
        return max(min(most, int(span / self._size) + 1), 0) if span < inf else most

    @property
    def _size(self) -> float:
        """Length of a step in s."""
        return self.step / self.base.resolution

    def _seconds_after(self, first: Instant, count: int) -> NDArray[np.float64]:
        if abs(first.ticks) == inf:
            sizes = np.full(count + 1, self._size)
            sizes[0] = first.seconds
            return np.add.accumulate(sizes)[1:]
        # the ticks of a clock may be between those of the base
        ticks = Fraction(first.ticks)
        finer = TimeBase(self.base.resolution * ticks.denominator)
        grid = Grid(finer, ticks.numerator, self.step * ticks.denominator)
        return grid.seconds_between(Instant(first.seconds, ticks.numerator), Instant(inf), count)


class Ramped(NamedTuple):
    """Memory of a ramp."""

    base: TimeBase
    step: int
    """Ticks of the largest step."""
    size: float
    """Its length in s."""
    previous: float = 0.0
    """Length of the last step in s; 0 at the start and after an event."""


class RampTwin(RuleTwin[Ramped]):
    """Such steps in C, from times that are no points of a grid: fmimaster/kernel/controller.c."""

    causes = (RAMP, STEP_SIZE)

    def __init__(self, memory: Ramped, first: float, growth: float) -> None:
        self._memory, self._previous = memory, np.zeros(1)
        numbers = {"first": first, "growth": growth, "size": memory.size}
        self.data = Twin("ramp", numbers, {"previous": self._previous})

    def put(self, memory: Ramped) -> None:
        """The steps continue from this memory."""
        self._memory = memory
        self._previous[0] = memory.previous

    def take(self) -> Ramped:
        """The memory after the steps that were done."""
        return self._memory._replace(previous=self._previous.item())


@dataclass(frozen=True, slots=True)
class Ramp(StepRule[Ramped]):
    """Steps of one size, each from the end of the last one, with short first steps at the start and after each event.

    Parameters
    ----------
    size : float, int, str or Fraction
        Largest step size in s, as in :class:`StepRule`.
    first : float
        The first step, and the first after an event, as a fraction of the size.
    growth : float
        Largest ratio of a step to the one before.

    Source: fmimaster, for the event clock Predictive (docs/events.md).
    """

    first: float = 0.125
    growth: float = 2.0

    def __post_init__(self) -> None:
        StepRule.__post_init__(self)
        if not 0 < self.first <= 1 or not self.growth > 1:
            raise OptionError(f"{self}: expected 0 < first <= 1 and growth > 1.")

    def halved(self) -> Ramp:
        """A ramp of the same form to half the size."""
        return replace(self, size=self.exact_size / 2)

    def begin(self, base: TimeBase, start: int) -> Ramped:
        """No step before."""
        del start
        step = base.ticks(self.exact_size)
        return Ramped(base, step, step / base.resolution)

    def propose(self, now: Instant, memory: Ramped) -> Goal:
        """The end of the next step."""
        base, step, size, previous = memory
        longest = longest_step(previous, self.first, self.growth, size)
        if longest < size:
            return Goal(Instant(now.seconds + longest), RAMP)
        if abs(now.ticks) == inf:  # a time that was found
            return Goal(Instant(now.seconds + size), STEP_SIZE)
        return Goal(base.instant(whole(now.ticks + step)), STEP_SIZE)

    def decide(
        self, memory: Ramped, now: Instant, length: float, errors: Sequence[Measured]
    ) -> tuple[Ramped, None]:
        """Store the length; it is not changed if the next step has the full size in any case."""
        del now, errors
        base, step, size, previous = memory
        if has_full_size(previous, length, self.growth, size):
            return memory, None
        return Ramped(base, step, size, length), None

    def ahead(self, memory: Ramped) -> EvenSteps | None:
        """Steps of the full size, if no shorter step remains before the next event."""
        base, step, size, previous = memory
        if not previous or self.growth * previous < size:
            return None
        # a length that rounding has made shorter than this could shorten the next step
        return EvenSteps(base, step, least=(size / self.growth + size) / 2)

    def after_restarts(self, memory: Ramped, begins: Instants) -> Iterator[NextSteps]:
        """Steps that grow, then steps of the full size."""
        base, step, size, _ = memory
        now, longest = begins.seconds, np.full(len(begins.seconds), self.first * size)
        ticks = begins.ticks if self.first * size >= size else None
        step *= begins.resolution // base.resolution
        while True:
            are_short = longest < size
            if ticks is None:
                ends = now + np.where(are_short, longest, size)
            else:
                ticks = ticks + step
                ends = ticks / begins.resolution
            yield NextSteps(ends, are_short, np.full(len(ends), ticks is not None))
            now, longest = ends, self.growth * (ends - now)

    def twin(self, memory: Ramped, plan: Plan, store: ValueStore) -> RampTwin:
        """The same in C."""
        del plan, store
        return RampTwin(memory, self.first, self.growth)

    def restart(self, memory: Ramped) -> Ramped:
        """Short steps again."""
        return memory._replace(previous=0.0)


@dataclass(frozen=True, slots=True)
class FreeStep(Ramp):
    """Steps of one size, each from the end of the last one, without a grid.

    Parameters
    ----------
    size, first, growth
        As in :class:`Ramp`. By default all steps have the full size.
    """

    first: float = 1.0
    growth: float = inf
