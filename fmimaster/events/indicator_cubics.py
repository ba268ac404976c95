"""Cubics through the indicators of an event: ahead from the last points, and between both ends of a step."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from fmimaster.events.cubic import Cubic
from fmimaster.numerics.indicators import from_before, from_ends, stays_above, stays_above_between
from fmimaster.program.indicators import Indicators

SAME_SLOPE = 1e-9
"""An indicator is the slope of another one if they agree to this fraction: far more than rounding, far less than
chance."""

Pairs = Sequence[tuple[int, int]]
"""Slots of the indicators of an event, each with that of its derivative; -1 if it has none."""


Points = Sequence[tuple[Sequence[float], float]]
"""Outputs at earlier communication points, the newest first, and their times before now in s."""


def points_before(indicators: Indicators, time: float, nearest: float) -> Points:
    """The point before a time in s, and the one before that if an indicator has no derivative."""
    newest = indicators.previous(time, nearest)
    if newest is None:
        return []
    found = [(newest[0], time - newest[1])]
    older = indicators.previous(newest[1], nearest) if indicators.lacks_slopes else None
    return found if older is None else [*found, (older[0], time - older[1])]


def extrapolated(
    pairs: Pairs, values: Sequence[float], points: Points, horizon: float
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
        if other != z and derivative >= 0:
            w, slope = values[other], values[dz]
            if abs(w - slope) <= SAME_SLOPE * max(abs(w), abs(slope)):
                return values[derivative]
    return None


def through_ends(
    pairs: Pairs, before: Sequence[float], after: Sequence[float], length: float, older: Points
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
