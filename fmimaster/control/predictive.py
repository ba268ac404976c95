"""Predictive: stop at predicted events and fire them in all members at once."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from fmimaster.causes import RAMP, Cause, Kind
from fmimaster.control.cubic import first_time_all_reached
from fmimaster.control.event_clock import EventClock, Retry
from fmimaster.control.indicator_cubics import (
    between,
    extrapolated,
    knows_curvature,
    points_before,
    time_by_tangents,
    without_history,
)
from fmimaster.control.indicators import LATE, Indicators
from fmimaster.control.instant import Goal, Instant
from fmimaster.control.ramp import Ramp
from fmimaster.control.step_rule import StepRule, Time
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import Policy
from fmimaster.program.polynomial import NEAREST

PROBE = 0.125
"""Part of a step after an event that is stepped where the curvature of an indicator is not known: the next one knows it."""

MOST_TIMES_BACK = 9
"""So often a step goes back for one event: cubics need two or three times, and halving 9 times gains a factor of 500."""


@dataclass(frozen=True, slots=True)
class Predictive(EventClock):
    """Stop at predicted events and fire them in all members at once ("PZ" in docs/events.md).

    Each indicator is extrapolated by the cubic through values and derivatives at the last two communication points. At the
    start and after an event there is one point only: then another indicator of the event that is its slope gives the
    curvature.

    If all FMUs can get and set their state, a step that has passed an event is undone and ends at the event.

    Parameters
    ----------
    approach : float
        Fraction of the time to an event that is stepped while it is far.
    near : float
        Below this part of a usual step the step goes to the event itself.
    now : float
        Below this part of a usual step the event is fired without a step.
    late : float
        A step that has passed an event by more than this part of a usual step is undone.
    go_back : bool
        Whether steps may be undone. Then the FMU states are saved before each step.
    """

    approach: float = 0.95
    near: float = 1e-2
    now: float = 1e-7
    late: float = LATE
    go_back: bool = True
    history: ClassVar[int] = 3
    policy: ClassVar[Policy] = Policy.IGNORE
    fires: ClassVar[bool] = True

    def __post_init__(self) -> None:
        import scipy.optimize  # noqa: F401 (it takes 0.3 s, which no step of a run may wait for)

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """The first event that the extrapolations meet before the goal."""
        time, (end, _) = now.seconds, goal.end
        horizon = end - time
        values = indicators.present()
        points = points_before(indicators, time, NEAREST * horizon)
        least = self.now * indicators.step
        earliest, event = inf, -1
        probes = False
        for this, pairs in indicators.pairs:
            if points:
                cubics = extrapolated(pairs, values, points, horizon)
            else:
                cubics = without_history(pairs, values, horizon)
                probes |= not knows_curvature(pairs, values)
            if cubics:
                # an event that has just happened can happen again later, but not here
                tau = first_time_all_reached(cubics, horizon, least if this in fired else -inf)
                if tau == 0.0 and this not in indicators.at():  # at rest
                    tau = first_time_all_reached(cubics, horizon, 0.0)
                if tau < earliest:
                    earliest, event = tau, this
        if probes and not self.undoes(indicators.plan):
            horizon *= PROBE
            goal = Goal(Instant(time + horizon), RAMP)
        if event < 0:
            return goal
        name = indicators.plan.events[event].name
        if earliest <= least:
            return Goal(now, Cause(Kind.PREDICTED, (name,)), frozenset({event}))
        length = self.approach * earliest if earliest > self.near * indicators.step else earliest
        if length >= horizon:
            return goal
        return Goal(Instant(now.seconds + length), Cause(Kind.PREDICTED, (name,)))

    def usual_rule(self, size: Time | None) -> StepRule[Any]:
        """Short steps after each event, which the prediction needs while it has no history."""
        return Ramp(size)

    def detect(self, indicators: Indicators) -> frozenset[int]:
        """Events that are on."""
        return indicators.at()

    def undoes(self, plan: Plan) -> bool:
        """Whether a step may be undone: if all FMUs can get and set their state."""
        return self.go_back and plan.can_go_back

    def passed(self, indicators: Indicators, begin: float, end: float, tries: int) -> Retry | None:
        """The first event that was passed, by cubics through values and derivatives at both ends of the step."""
        if tries >= MOST_TIMES_BACK:
            return None
        length, least = end - begin, self.now * indicators.step
        before, after = indicators.at_start_of_step(), indicators.present()
        older = (
            points_before(indicators, begin, NEAREST * length) if indicators.lacks_slopes else []
        )
        earliest, event = length - self.late * indicators.step, -1
        for this, pairs in indicators.pairs:
            cubics = between(pairs, before, after, length, older)
            # without a derivative nothing tells when an indicator has come back to the 0 at which it started
            if cubics and all(
                dz < 0 and p[1] < 0.0 and p[0] <= -p[1] * least
                for p, (_, dz) in zip(cubics, pairs, strict=True)
            ):
                tau = length / 2
            elif tries and (since := time_by_tangents(pairs, after)) < inf:
                # inputs at the start were extrapolated: indicators there may be wrong by more than they change in a
                # short step, and the event may be before it
                tau = max(length + since, least)
            else:
                tau = first_time_all_reached(cubics, length, least) if cubics else inf
            if tau < earliest:
                earliest, event = tau, this
        if event < 0:
            return None
        name = indicators.plan.events[event].name
        return Retry(earliest, Cause(Kind.LOCATED, (name,)))
