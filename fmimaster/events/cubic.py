"""Cubics through event indicators, and the first time at which none of them is above 0."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import copysign, inf, sqrt
from sys import float_info
from typing import Any

from fmimaster.numerics.indicators import cubic

Cubic = list[float]
"""Coefficients, lowest power first, of the time in s since the start of an interval."""

ROUNDING = 1e-12
"""A cubic is 0 if it is smaller than this factor times the sum of its terms over the horizon: thousands of
roundings."""


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
    reached = [(p, ROUNDING * _terms(p, horizon)) for p in cubics]
    candidates = [0.0, *(r for p in cubics for r in falling_roots(p, horizon))]
    for s in sorted(candidates):
        if s > after and all(cubic(p, s) <= zero for p, zero in reached):
            return s
    return inf


def falling_roots(p: Cubic, horizon: float) -> list[float]:
    """Times at which a cubic falls to 0 within the horizon: at most one in each piece between its extrema."""
    points = [0.0, *sorted(t for t in _extrema(p) if 0.0 < t < horizon), horizon]
    return [
        max(_root(p, low, high), float_info.min)  # it is above 0 before
        for low, high in pairwise(points)
        if cubic(p, low) > 0.0 >= cubic(p, high)
    ]


def lowest(p: Cubic, horizon: float) -> float:
    """The lowest value from the start to the horizon in s."""
    inside = (t for t in _extrema(p) if 0.0 < t < horizon)
    return float(min(cubic(p, s) for s in (0.0, horizon, *inside)))


def _terms(p: Cubic, s: float) -> float:
    return abs(p[0]) + s * (abs(p[1]) + s * (abs(p[2]) + s * abs(p[3])))


def _root(p: Cubic, low: float, high: float) -> float:
    """Time at which a cubic is 0, between two times at which its signs differ."""
    # at module level it would take a third of `import fmimaster`; event clocks import it when they are created
    from scipy.optimize import brentq

    find: Any = brentq  # it has no types, and pyright takes its default values for types
    return float(find(lambda s: cubic(p, s), low, high, xtol=1e-15 * high, rtol=1e-15))


def _extrema(p: Cubic) -> list[float]:
    a, b, c = 3 * p[3], p[2], p[1]  # a t**2 + 2 b t + c = 0
    discriminant = b * b - a * c
    if discriminant < 0.0:
        return []
    q = -b - copysign(sqrt(discriminant), b)
    found = [q / a] if a else []
    return [*found, c / q] if q else found
