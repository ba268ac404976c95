"""Predictive: stop at predicted events and fire them in all members at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, inf
from typing import Any, ClassVar, NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.events.event_clock import EventClock, Retry, Towards, Watch
from fmimaster.events.indicator_courses import (
    AgedPoints,
    Pairs,
    first_time_all_reached,
    knows_curvature,
    points_before,
    through_ends,
    through_points,
    time_by_tangents,
    without_history,
)
from fmimaster.instants.grid import rounding
from fmimaster.instants.instant import Goal, Instant
from fmimaster.numerics.indicators import stays_above
from fmimaster.numerics.polynomials import NEAREST
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import Policy
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.program.indicators import LATE, Indicators
from fmimaster.record.causes import RAMP, Cause, Kind
from fmimaster.steps.ramp import Ramp
from fmimaster.steps.step_rule import StepRule, Time

NOW = 1e-7
"""An event within this part of a usual step happens now."""

NEAR, APPROACH = 1e-2, 0.95
"""A step ends at an event that is within the first part of a usual step; otherwise after the second part of the time until
then."""

PROBE = 0.125
"""Fraction of a step that is used after an event if the curvature of an indicator is unknown; then it is known."""

BEHIND = 1e-8
"""An event that an FMU executes inside a step is followed by at least this fraction of a usual step in the same
step."""

LONGER = 2.0
"""Ratio of the step towards an event to the time without change, for an FMU with its own unknown internal grid."""

INTERNAL_STEPS = 10
"""Distance from an event, in internal steps of the FMU, below which a step ends at the first internal step after it."""

SAME_TICK = 1e-6
"""A time is a multiple of an FMU's step if the distance is less than this fraction of the step."""

MOST_TIMES_BACK = 9
"""Largest number of repetitions of a step for one event: cubics need two or three, and 9 halvings are a factor of
500."""


@dataclass(frozen=True, slots=True)
class Predictive(EventClock):
    """Stop at predicted events and fire them in all members at once ("PZ" in docs/events.md).

    Each indicator is extrapolated by the cubic through values and derivatives at the last two communication points. At
    the start and after an event there is only one point. The curvature then comes from another indicator of the event
    that is the slope of this one.

    If all FMUs can get and set their state, a step that contains an event is rolled back and ends at the event.

    Parameters
    ----------
    approach : float
        Fraction of the time to a distant event that the next step covers.
    near : float
        If the time to the event is less than this fraction of a usual step, the step ends at the event.
    now : float
        If the time to the event is less than this fraction of a usual step, the event is fired without a step.
    late : float
        A step that ends later than the event by more than this fraction of a usual step is rolled back.
    go_back : bool
        Whether steps may be rolled back. The FMU states are then saved before each step.
    in_halves : bool
        Whether an FMU that holds its inputs does each step in two halves, if inputs have derivatives and the FMU can do
        that. The two values have the mean and the first moment of the polynomial.
    """

    approach: float = APPROACH
    near: float = NEAR
    now: float = NOW
    late: float = LATE
    go_back: bool = True
    in_halves: bool = True
    history: ClassVar[int] = 3
    policy: ClassVar[Policy] = Policy.IGNORE
    fires: ClassVar[bool] = True
    checks_held: ClassVar[bool] = True

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """The first event that the extrapolations predict before the goal."""
        time, (end, _) = now.seconds, goal.end
        horizon = end - time
        values = indicators.present()
        points = points_before(indicators, time, NEAREST * horizon)
        least = self.now * indicators.step
        earliest, first = inf, None
        probes = False
        for s in indicators.sets:
            if indicators.is_ahead(s, time) or indicators.is_off(s):
                continue  # the step ends where it stands ahead, at the latest
            pairs = s.pairs
            if points and not indicators.was_off(s):
                cubics = through_points(pairs, values, points, horizon)
            else:
                cubics = without_history(pairs, values, horizon)
                probes |= not knows_curvature(pairs, values)
            if cubics and not indicators.rests(s, values):
                # an event that has just happened can happen again later, but not here
                tau = first_time_all_reached(cubics, horizon, least if s.event in fired else -inf)
                if tau == 0.0 and not (s.is_triggered and s.event in indicators.at()):  # at rest
                    tau = first_time_all_reached(cubics, horizon, 0.0)
                if tau < earliest:
                    earliest, first = tau, s
        if probes and not self.undoes(indicators.plan):
            horizon *= PROBE
            goal = Goal(Instant(time + horizon), RAMP)
        if first is None:
            return goal
        cause = Cause(Kind.PREDICTED, (indicators.plan.events[first.event].name,))
        if earliest <= least and first.is_triggered:
            return Goal(now, cause, frozenset({first.event}))
        if first.is_inside and (since := indicators.unmoved_since(first)) < time:
            earliest = max(
                earliest, LONGER * (time - since)
            )  # it has not stepped since: it has its own internal grid
        end = self._towards(first, earliest, time, indicators.step)
        return goal if end >= time + horizon else Goal(Instant(end), cause)

    def _towards(self, s: IndicatorSet, tau: float, time: float, step: float) -> float:
        """The end of a step towards an event ``tau`` after a time; all in s."""
        is_near = tau <= self.near * step
        if s.internal_step:
            return _on_internal_grid(time, tau if is_near else self.approach * tau, s.internal_step)
        if not is_near:
            return time + self.approach * tau
        if s.is_inside:  # the FMU must have executed it
            return time + tau + BEHIND * step
        return time + max(tau, rounding(time, step))

    def usual_rule(self, size: Time | None) -> StepRule[Any]:
        """Short steps after each event, because the prediction has no history there."""
        return Ramp(size)

    def detect(self, indicators: Indicators) -> frozenset[int]:
        """Events that are on."""
        return indicators.at()

    def undoes(self, plan: Plan) -> bool:
        """Whether a step may be rolled back: if all FMUs can get and set their state."""
        return self.go_back and plan.can_go_back

    def passed(self, indicators: Indicators, begin: float, end: float, tries: int) -> Retry | None:
        """The first event inside the step, by cubics through values and derivatives at both ends of the step."""
        if tries >= MOST_TIMES_BACK:
            return None
        length, least = end - begin, self.now * indicators.step
        older = (
            points_before(indicators, begin, NEAREST * length) if indicators.lacks_slopes else []
        )
        step = _Step(
            indicators.at_start_of_step(), indicators.present(), length, older, tries > 0, least
        )
        latest = (
            length - self.late * indicators.step
        )  # of an event for which the step is tried again
        earliest, event = latest, -1
        for s in indicators.sets:
            if s.is_inside or s.stops or indicators.is_off(s) or indicators.began_off(s):
                continue  # an event inside has happened; an FMU that stops at its events has met none
            tau = step.time_passed(s.pairs, length if s.internal_step else latest)
            if s.internal_step and tau < inf:
                tau = _on_internal_grid(begin, tau, s.internal_step) - begin
            if tau < earliest and not indicators.rests(s, step.before):
                earliest, event = tau, s.event
        if event < 0:
            return None
        name = indicators.plan.events[event].name
        return Retry(earliest, Cause(Kind.LOCATED, (name,)))

    def watch(self, plan: Plan) -> Watch:
        """For events that are active, predicted, or inside the step if steps are rolled back."""
        towards = Towards(self.approach, self.near, self.now)
        return Watch(detects=True, predicts=True, locates=self.undoes(plan), towards=towards)


class _Step(NamedTuple):
    """A tried step. Times in s; times of events count from its start."""

    before: Sequence[float]
    """All Float64 outputs at its start."""
    after: Sequence[float]
    """The same at its end."""
    length: float
    older: AgedPoints
    is_again: bool
    """Whether a longer one was tried before."""
    least: float
    """Earliest time of an event."""

    def time_passed(self, pairs: Pairs, latest: float) -> float:
        """Time of the event of these indicators in the step; inf if there is none before the latest time in s."""
        cubics = through_ends(pairs, self.before, self.after, self.length, self.older)
        if not cubics:
            return inf
        # without a derivative it is unknown when an indicator returns to its initial value 0
        if all(
            dz < 0 and p[1] < 0.0 and p[0] <= -p[1] * self.least
            for p, (_, dz) in zip(cubics, pairs, strict=True)
        ):
            return self.length / 2
        if self.is_again and (since := time_by_tangents(pairs, self.after)) < inf:
            # inputs at the start were extrapolated: indicators there may be wrong by more than they change in a short
            # step, and the event may be before it
            return max(self.length + since, self.least)
        if any(stays_above(p, latest) for p in cubics):  # most steps end at their event
            return inf
        return first_time_all_reached(cubics, self.length, self.least)


def _on_internal_grid(time: float, tau: float, step: float) -> float:
    """The end of a step towards an event ``tau`` after a time, for an FMU that steps on multiples of ``step``; all in
    s."""
    ticks = (time + tau) / step
    before, here = floor(ticks), floor(time / step + SAME_TICK)
    is_near = tau <= INTERNAL_STEPS * step
    return max(ceil(ticks - SAME_TICK) if is_near else before, here + 1) * step
