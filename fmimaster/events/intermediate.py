"""Intermediate: FMUs are requested to end a step before an event that they approach inside of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.events.event_clock import Watch
from fmimaster.events.predictive import Predictive
from fmimaster.instants.instant import Goal, Instant
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import stops_inside
from fmimaster.program.indicators import Indicators
from fmimaster.record.causes import Kind
from fmimaster.steps.ramp import FreeStep
from fmimaster.steps.step_rule import StepRule, Time
from fmimaster.system.model import Variable

AHEAD = 1.5
"""An event is requested if it is expected within so many of the steps that the FMU takes inside: its next step would pass
it."""

APPROACH = 0.95
"""The FMU is requested to stop after this part of the time to the event: tangents may point behind it."""


@dataclass(frozen=True, slots=True)
class Intermediate(Predictive):
    """Watch indicators inside of steps, in Intermediate Update Mode, and request an early return before an event.

    The FMU is requested to return early just before the time at which the tangents of all indicators of an event have
    reached 0. From there on, and for FMUs that cannot do this, it is :class:`Predictive`. So steps may be long, nothing is
    rolled back, and events are found that no extrapolation from communication points shows.

    FMUs need Event Mode, a trigger, ``canReturnEarlyAfterIntermediateUpdate``, and indicators with their derivatives as
    outputs with ``intermediateUpdate``.

    Parameters
    ----------
    within : float
        Events that are predicted at a communication point are approached if they are nearer than this fraction of a usual
        step; others are left to the FMU's intermediate updates.

    Source: fmimaster; FMI 3.0, 4.2.2 (earlyReturnRequested, earlyReturnTime).
    """

    within: float = 0.1
    requests: ClassVar[bool] = True

    def usual_rule(self, size: Time | None) -> StepRule[Any]:
        """Free steps: the step after an event has the full size."""
        return FreeStep(size)

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """A near event that :class:`Predictive` predicts; a distant one only if no FMU can be stopped before it."""
        found = Predictive.clip(self, goal, now, indicators, fired)
        if found is goal or found.fire or found.cause.kind is not Kind.PREDICTED:
            return found if found.fire else goal
        if found.end.seconds - now.seconds <= self.within * indicators.step:
            return found
        plan = indicators.plan
        event = next(e for e in plan.events if e.name in found.cause.who)
        models = ((plan.instances[m.instance].model, m.declaration) for m in event.members)
        return goal if any(stops_inside(*member) for member in models) else found

    def undoes(self, plan: Plan) -> bool:
        """Never: an FMU stops before its event."""
        del plan
        return False

    def watch(self, plan: Plan) -> Watch:
        """For events that are active or predicted."""
        del plan
        return Watch(detects=True, predicts=True)


class InsideWatch:
    """Decides inside of the steps of one FMU whether it is requested to return early.

    Its memory is that of the present step, and which events it has requested without seeing them above 0 again: those do
    not stop the FMU at each update.

    Parameters
    ----------
    sets : for each event, pairs of positions: of an indicator and of its derivative
        In the values of :meth:`__call__`.
    """

    def __init__(self, sets: Sequence[Sequence[tuple[int, int]]]) -> None:
        self._sets = sets
        self._passed = [False] * len(sets)
        self._begin = self._last = nan

    def __call__(self, begin: float, time: float, values: NDArray[np.float64]) -> float:
        """The time in s at which the FMU is requested to return early, or NaN."""
        if begin != self._begin or time < self._last:  # another step, or the same one again
            self._begin = self._last = begin
        length, self._last = time - self._last, time
        wanted = inf
        for k, pairs in enumerate(self._sets):
            until = max(_falls_to_zero(*values[[*pair]].tolist()) for pair in pairs)
            if until > 0.0:
                self._passed[k] = False
            elif self._passed[k]:
                continue
            if until <= AHEAD * length:
                self._passed[k] = until == 0.0
                wanted = min(wanted, time + APPROACH * until)
        return wanted if wanted < inf else nan


def _falls_to_zero(z: float, dz: float) -> float:
    """Time in s after which an indicator is at 0 by its tangent; 0 if it is not above, infinite if it does not fall."""
    if not z > 0.0:
        return 0.0
    return z / -dz if dz < 0.0 else inf


def inside_watch(plan: Plan, instance: int) -> tuple[tuple[Variable, ...], InsideWatch] | None:
    """The variables of an instance that are watched inside of its steps, and the decision about them; None if there are
    none."""
    model = plan.instances[instance].model
    watched: list[Variable] = []
    sets = []
    for event in plan.events:
        for m in event.members:
            if m.instance != instance or not stops_inside(model, m.declaration):
                continue
            pairs = []
            for indicator in m.declaration.indicators:
                z, dz = (model.variable(n) for n in (indicator.name, indicator.derivative or ""))
                assert z is not None
                assert dz is not None
                pairs.append((len(watched), len(watched) + 1))
                watched += [z, dz]
            sets.append(pairs)
    return (tuple(watched), InsideWatch(sets)) if sets else None
