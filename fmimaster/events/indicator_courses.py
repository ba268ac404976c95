"""Event indicators over a step: their cubics, when none of them is above 0, and whether the event was executed inside.

Indicators are continuous between events. If the extrapolation of all of them is at or below 0 at the end of the step,
and one has jumped up instead, the event has happened and was executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from fmimaster.numerics.indicators import (
    by_slopes,
    by_values,
    cubic,
    first_time_reached,
    from_before,
    from_ends,
    is_slope,
    next_extremum,
    stays_above,
    stays_above_between,
    through_slopes,
)
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.program.indicators import Indicators

Cubic = list[float]
"""Coefficients, lowest power first, of the time in s since the start of an interval."""


def first_time_all_reached(cubics: Sequence[Cubic], horizon: float, after: float = -inf) -> float:
    """First time in s at which no cubic is above 0: the start, or a time at which one falls to 0; inf if there is none.

    Parameters
    ----------
    cubics : one for each indicator of an event
    horizon : float
        Latest time in s that is considered.
    after : float
        Only later times are considered, in s. With 0 or more, the start is excluded.
    """
    return first_time_reached(cubics, len(cubics), horizon, after)


def lowest(p: Cubic, horizon: float) -> float:
    """The lowest value from the start to the horizon in s."""
    s, found = 0.0, float(cubic(p, 0.0))
    while s < horizon:
        s = next_extremum(p, s, horizon)
        found = min(found, float(cubic(p, s)))
    return found


Pairs = Sequence[tuple[int, int]]
"""Slots of the indicators of an event, each with that of its derivative; -1 if it has none."""


AgedPoints = Sequence[tuple[Sequence[float], float]]
"""Outputs at earlier communication points, the newest first, each with its age in s: how long before now it was."""


def points_before(indicators: Indicators, time: float, nearest: float) -> AgedPoints:
    """The point before a time in s, and the one before that if an indicator has no derivative."""
    newest = indicators.previous(time, nearest)
    if newest is None:
        return []
    found = [(newest[0], time - newest[1])]
    older = indicators.previous(newest[1], nearest) if indicators.lacks_slopes else None
    return found if older is None else [*found, (older[0], time - older[1])]


def through_points(
    pairs: Pairs, values: Sequence[float], points: AgedPoints, horizon: float
) -> list[Cubic]:
    """Cubics through the points before and the present values; none if an indicator stays above 0 up to the horizon."""
    (before, h), *more = points
    older, k = more[0] if more else (values, 0.0)
    cubics = []
    for z, dz in pairs:
        p = [0.0] * 4
        from_before(z, dz, values, before, h, older, k, p)
        if stays_above(p, horizon):
            return []
        cubics.append(p)
    return cubics


def without_history(pairs: Pairs, values: Sequence[float], horizon: float) -> list[Cubic]:
    """Cubics through the present values and slopes, and curvatures where another indicator is the slope."""
    cubics = []
    for z, dz in pairs:
        curvature = _curvature(pairs, values, z, dz) or 0.0
        p = [values[z], values[dz] if dz >= 0 else 0.0, curvature / 2, 0.0]
        if stays_above(p, horizon):
            return []
        cubics.append(p)
    return cubics


def knows_curvature(pairs: Pairs, values: Sequence[float]) -> bool:
    """Whether an indicator of an event is the slope of another one, as a relative velocity is that of a distance."""
    return any(_curvature(pairs, values, z, dz) is not None for z, dz in pairs)


def _curvature(pairs: Pairs, values: Sequence[float], z: int, dz: int) -> float | None:
    """The derivative of another indicator that is the slope of this one; None if there is none."""
    for other, derivative in pairs if dz >= 0 else ():
        if other != z and derivative >= 0 and is_slope(values[other], values[dz]):
            return values[derivative]
    return None


def through_ends(
    pairs: Pairs, before: Sequence[float], after: Sequence[float], length: float, older: AgedPoints
) -> list[Cubic]:
    """Cubics through both ends of a step, about its start; none if an indicator stays above 0 in it."""
    values, k = older[0] if older else (before, 0.0)
    cubics = []
    for z, dz in pairs:
        p = [0.0] * 4
        if stays_above_between(z, dz, before, after, length):
            return []
        from_ends(z, dz, before, after, length, values, k, p)
        if stays_above(p, length):
            return []
        cubics.append(p)
    return cubics


def time_by_tangents(pairs: Pairs, values: Sequence[float]) -> float:
    """Time of the event by the tangents of its indicators, in s from now; inf if it is not active, or if a derivative
    is missing."""
    latest = -inf
    for z, dz in pairs:
        if dz < 0 or values[z] > 0.0:
            return inf
        if values[dz] < 0.0:
            latest = max(latest, -values[z] / values[dz])
    return latest


CERTAIN_JUMP = 0.5
"""An indicator below 0, or the slope of one that falls, that jumps up by this part of its value shows an event. Inputs that
are held from step to step let it jump by less."""

LEAST_JUMP = 0.05
"""The same where another member has shown the event: a heavy body changes its velocity little."""

TimedPoint = tuple[Sequence[float], float]
"""All Float64 outputs at a point before a step, and its time in s from the start of the step, which is negative."""


class Expected(NamedTuple):
    """An indicator at the end of a step, if it goes on as before."""

    value: float
    slope: float
    error: float
    """Error bound of the value."""
    doubt: float
    """Further difference from the value at the end, above which it shows an event."""
    slope_doubt: float
    """Difference of the slope from that at the end, above which it shows an event."""


class Course(NamedTuple):
    """The indicators of an event over a step, for one member."""

    was_due: bool
    """Whether one indicator is above 0 at the start, and all would be at or below 0 at the end if they went on as
    before."""
    jump: float
    """By which part of its value, or of its slope, an indicator has jumped up; 0 if it is within the error."""


def course(
    s: IndicatorSet,
    start: Sequence[float],
    end: Sequence[float],
    h: float,
    earlier: Sequence[TimedPoint],
    near: float,
) -> Course:
    """The indicators of an event over a step, for one member.

    Parameters
    ----------
    start, end
        All Float64 outputs at the start and at the end of the step.
    h
        Its length in s.
    earlier
        Points before the step, newest first; only those after the last event.
    near
        Time in s by which an FMU may miss an event.
    """
    was_due = any(start[z] > 0.0 for z in s.z)
    largest = 0.0
    for z, dz in s.pairs:
        expected = expected_at_end(start, end, h, earlier, z, dz)
        was_due = was_due and expected.value - expected.error <= near * abs(expected.slope)
        if dz < 0 or start[z] <= 0.0:
            before, jump, doubt = expected.value, end[z] - expected.value, expected.doubt
        else:
            before, jump, doubt = expected.slope, end[dz] - expected.slope, expected.slope_doubt
        if before < 0.0 and jump > doubt:
            largest = max(largest, jump / -before)
    return Course(was_due, largest)


def expected_at_end(
    start: Sequence[float],
    end: Sequence[float],
    h: float,
    earlier: Sequence[TimedPoint],
    z: int,
    dz: int,
) -> Expected:
    """The indicator in slot ``z``, whose derivative is in slot ``dz``, or -1, at the end of a step by its course before.

    By the cubic through values and derivatives at two points, or through up to four values; the last term is the
    error. With the derivative at the start alone by a line.
    """
    c0, p, found = start[z], [0.0] * 4, [0.0] * 4
    if dz < 0:
        times = [0.0, *(s for _, s in earlier)]
        by_values([c0, *(values[z] for values, _ in earlier)], times, len(times), h, found)
        return Expected(found[0], found[1], found[2], found[3], inf)
    c1 = start[dz]
    if c1:  # an FMU with its own internal grid may not have stepped; its values then show no trend
        earlier = [(values, s) for values, s in earlier if (values[z], values[dz]) != (c0, c1)]
    if not earlier:
        doubt = max(abs(c1), abs(end[dz]), abs(end[dz] - c1)) * h  # what slopes can do in the step
        through_slopes(c0, c1, end[z], end[dz], h, p)
        turns = lowest(p, h) > 0.0
        return Expected(c0 + c1 * h, c1, 0.0, doubt, inf if turns else 0.0)
    values, s = earlier[0]
    through_slopes(c0, c1, values[z], values[dz], s, p)
    by_slopes(p, s, h, found)
    error = found[2]
    # terms that grow, as behind a very short step, do not show how it goes on: the line may be right
    grows = abs(p[3]) * (h - s) > abs(p[2])
    doubt = error + abs(p[2]) * h * h if grows else error
    slope_error = abs(p[3]) * h * (3 * h - 2 * s)
    return Expected(found[0], found[1], error, doubt, 2 * slope_error)
