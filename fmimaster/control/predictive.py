"""Predictive: stop at predicted events and fire them in all members at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import copysign, inf, sqrt
from typing import Any, ClassVar

from fmimaster.causes import Cause, Kind
from fmimaster.control.event_clock import EventClock
from fmimaster.control.indicators import Indicators
from fmimaster.control.instant import Goal, Instant
from fmimaster.control.ramp import Ramp
from fmimaster.control.step_rule import StepRule, Time
from fmimaster.plan.policy import Policy
from fmimaster.program.polynomial import NEAREST


@dataclass(frozen=True, slots=True)
class Predictive(EventClock):
    """Stop at predicted events and fire them in all members at once; no FMU ever goes back ("PZ" in docs/events.md).

    Each indicator is extrapolated by the cubic through values and derivatives at the last two communication points.

    Parameters
    ----------
    approach : float
        Fraction of the time to an event that is stepped while it is far.
    near : float
        Below this time in s the step goes to the event itself.
    now : float
        Below this time in s the event is fired without a step.
    """

    approach: float = 0.95
    near: float = 1e-3
    now: float = 1e-8
    history: ClassVar[int] = 3
    policy: ClassVar[Policy] = Policy.IGNORE
    fires: ClassVar[bool] = True

    def __post_init__(self) -> None:
        import scipy.optimize  # noqa: F401 (it takes 0.3 s, which no step of a run may wait for)

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """The first event that the extrapolations meet before the goal."""
        time, (end, _) = now.seconds, goal.end
        horizon = end - time
        second, third = horizon * horizon, horizon * horizon * horizon
        values = indicators.present()
        previous = indicators.previous(time, NEAREST * horizon)
        before, h = (previous[0], time - previous[1]) if previous else (values, 0.0)
        earliest, event = inf, -1
        for this, pairs in indicators.pairs:
            if this in fired:
                continue
            polynomials = []
            for z, dz in pairs:
                # this is done at each step for each set: without calls it takes half the time
                c0 = values[z]
                c1, c2, c3 = values[dz] if dz >= 0 else 0.0, 0.0, 0.0
                if h and dz >= 0:
                    b = (before[dz] - c1) / h
                    a = ((before[z] - c0) / h + c1) / h
                    c2, c3 = 3 * a + b, (b + 2 * a) / h
                elif h:
                    c1 = (c0 - before[z]) / h
                if (
                    c0 > 0
                ):  # Bernstein coefficients over the horizon bound the polynomial from below
                    b1, b2 = c1 * horizon, c2 * second
                    if (
                        c0 + b1 / 3 > 0
                        and c0 + (2 * b1 + b2) / 3 > 0
                        and c0 + b1 + b2 + c3 * third > 0
                    ):
                        break
                polynomials.append((c0, c1, c2, c3))
            else:
                tau = _first_time_all_reached(polynomials, horizon)
                if tau < earliest:
                    earliest, event = tau, this
        if event < 0:
            return goal
        name = indicators.plan.events[event].name
        if earliest <= self.now:
            return Goal(now, Cause(Kind.PREDICTED, (name,)), frozenset({event}))
        length = self.approach * earliest if earliest > self.near else earliest
        if length >= horizon:
            return goal
        return Goal(Instant(now.seconds + length), Cause(Kind.PREDICTED, (name,)))

    def usual_rule(self, size: Time | None) -> StepRule[Any]:
        """Short steps after each event, which the prediction needs while it has no history."""
        return Ramp(size)

    def detect(self, indicators: Indicators) -> frozenset[int]:
        """Events that are on."""
        return indicators.at()


Cubic = tuple[float, float, float, float]


def _first_time_all_reached(polynomials: Sequence[Cubic], horizon: float) -> float:
    """First time at which no polynomial is above 0; inf if there is none up to the horizon."""
    candidates = [0.0, *(r for p in polynomials for r in _falling_roots(p, horizon))]
    for s in sorted(candidates):
        if all(_value(p, s) <= 1e-12 * (1 + abs(p[1]) * horizon + abs(p[0])) for p in polynomials):
            return s
    return inf


def _falling_roots(p: Cubic, horizon: float) -> list[float]:
    """Where a polynomial falls to 0 within the horizon: at most once in each piece between its extrema."""
    points = [0.0, *sorted(t for t in _extrema(p) if 0.0 < t < horizon), horizon]
    return [
        _root(p, low, high)
        for low, high in pairwise(points)
        if _value(p, low) > 0.0 >= _value(p, high)
    ]


def _root(p: Cubic, low: float, high: float) -> float:
    """Where a polynomial is 0 between two times at which its signs differ."""
    from scipy.optimize import (
        brentq,
    )  # imported above; with the module, it would take a third of `import fmimaster`

    find: Any = brentq  # it has no types, and default values that pyright takes for types
    return float(find(lambda s: _value(p, s), low, high, xtol=1e-15, rtol=1e-15))


def _extrema(p: Cubic) -> list[float]:
    a, b, c = 3 * p[3], p[2], p[1]  # a t**2 + 2 b t + c = 0
    discriminant = b * b - a * c
    if discriminant < 0.0:
        return []
    q = -b - copysign(sqrt(discriminant), b)
    found = [q / a] if a else []
    return [*found, c / q] if q else found


def _value(p: Cubic, s: float) -> float:
    return p[0] + s * (p[1] + s * (p[2] + s * p[3]))
