"""Whether an event was executed inside a step, by its indicators at both ends of the step and before.

Indicators are continuous between events. If the extrapolation of all of them is at or below 0 at the end of the step,
and one has jumped up instead, the event has happened and was executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from fmimaster.events.indicator_cubics import lowest
from fmimaster.numerics.indicators import by_slopes, by_values, through_slopes
from fmimaster.program.indicator_set import IndicatorSet

CERTAIN_JUMP = 0.5
"""An indicator below 0, or the slope of one that falls, that jumps up by this part of its value shows an event. Inputs that
are held from step to step let it jump by less."""

LEAST_JUMP = 0.05
"""The same where another member has shown the event: a heavy body changes its velocity little."""

Point = tuple[Sequence[float], float]
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
    earlier: Sequence[Point],
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
        expected = extrapolate(start, end, h, earlier, z, dz)
        was_due = was_due and expected.value - expected.error <= near * abs(expected.slope)
        if dz < 0 or start[z] <= 0.0:
            before, jump, doubt = expected.value, end[z] - expected.value, expected.doubt
        else:
            before, jump, doubt = expected.slope, end[dz] - expected.slope, expected.slope_doubt
        if before < 0.0 and jump > doubt:
            largest = max(largest, jump / -before)
    return Course(was_due, largest)


def extrapolate(
    start: Sequence[float],
    end: Sequence[float],
    h: float,
    earlier: Sequence[Point],
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
