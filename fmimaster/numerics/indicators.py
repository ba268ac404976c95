"""Event indicators as cubics about the start of an interval, and the times to try when a change of theirs is located.

Coefficients of a cubic: the lowest power first.
"""

from __future__ import annotations

from math import copysign, inf, sqrt

from fmimaster.numerics import Cubics, Doubles, Number
from fmimaster.numerics.polynomials import newton

ROUNDING = 1e-12
"""A value is not above zero if it is no more than this part of the largest one that it has had: a few thousand roundings,
since indicators are differences of larger numbers and come out of solvers."""

OF_INPUTS = 16 * 2.0**-52
"""Rounding of a difference of inputs, as a part of the largest one."""

FAR = 1e-6
"""An indicator without derivative is above zero above this part of its largest value: differences are not taken for it."""

BRACKET = 4 * 2.0**-52
"""Length of the last bracket of a located change, relative to the time."""

MOST_TRIALS = 400
BISECT_EVERY = 4
"""Trials after which a bracket is halved: an indicator that jumps defeats secants."""

LEAST_POINTS = 3
"""Number of values for an extrapolation: the last term of a parabola is its error estimate."""


def cubic(p: Doubles, s: float) -> Number:
    """Value of a cubic at a time in s."""
    return p[0] + s * (p[1] + s * (p[2] + s * p[3]))


def cubic_slope(p: Doubles, s: float) -> Number:
    """Slope of a cubic at a time in s."""
    return p[1] + s * (2.0 * p[2] + s * 3.0 * p[3])


SAME_SLOPE = 1e-9
"""An indicator is the slope of another one if they agree to this fraction: far more than rounding, far less than
chance."""

MOST_TANGENTS = 200
"""Trials for the root of a cubic: tangents need a few, halvings alone about 60."""

SAME_ROOT = 4 * 2.0**-52
"""Two roots are equal if they differ by this part, and a cubic is 0 there if it is this part of its largest terms."""


def falling_root(p: Doubles, low: float, high: float) -> Number:
    """The time in s at which a cubic falls to 0, by tangents: it is above 0 at `low`, and not at `high`."""
    t = low + 0.5 * (high - low)
    change = high - low
    value = cubic(p, t)
    trials = 0
    while (
        trials < MOST_TANGENTS
        and abs(change) > SAME_ROOT * abs(t)
        and abs(value) > SAME_ROOT * max(abs(p[0]), abs(p[1] * t))
    ):
        slope = cubic_slope(p, t)
        if value > 0.0:
            low = t
        else:
            high = t
        following = low + 0.5 * (high - low)
        if slope < 0.0 and low < t - value / slope and t - value / slope < high:
            following = t - value / slope
        change = following - t
        t = following
        value = cubic(p, t)
        trials += 1
    return t


NOTHING = 1e-12
"""A cubic is 0 if it is smaller than this factor times the sum of its terms over the horizon: thousands of roundings."""

EARLIEST = 2.2250738585072014e-308
"""[s] The smallest positive double: where a cubic is above 0 now, it does not fall to 0 now."""


def terms(p: Doubles, s: float) -> Number:
    """The sum of the sizes of the terms of a cubic at a time in s."""
    return abs(p[0]) + s * (abs(p[1]) + s * (abs(p[2]) + s * abs(p[3])))


def next_extremum(p: Doubles, low: float, horizon: float) -> float:
    """The first time in s after `low` at which a cubic has an extremum; the horizon if there is none before."""
    a = 3.0 * p[3]  # a t**2 + 2 b t + c = 0
    b = p[2]
    c = p[1]
    found = horizon
    if not b * b - a * c < 0.0:
        q = -b - copysign(sqrt(b * b - a * c), b)
        if a != 0.0 and low < q / a and q / a < found:
            found = q / a
        if q != 0.0 and low < c / q and c / q < found:
            found = c / q
    return found


def are_all_reached(cubics: Cubics, m: int, s: float, horizon: float) -> bool:
    """Whether none of m cubics is above 0 at a time in s."""
    i = 0
    while i < m and cubic(cubics[i], s) <= NOTHING * terms(cubics[i], horizon):
        i += 1
    return i == m


def first_time_reached(cubics: Cubics, m: int, horizon: float, after: float) -> float:
    """First time in s at which none of m cubics is above 0: the start, or a time at which one falls to 0; inf if there is
    none. Only times after `after` and up to the horizon are considered."""
    if after < 0.0 and are_all_reached(cubics, m, 0.0, horizon):
        return 0.0
    first = inf
    for i in range(m):
        low = 0.0
        while low < horizon:  # it falls to 0 once at most between two extrema
            high = next_extremum(cubics[i], low, horizon)
            if cubic(cubics[i], low) > 0.0 and cubic(cubics[i], high) <= 0.0:
                root = max(falling_root(cubics[i], low, high), EARLIEST)
                if after < root and root < first and are_all_reached(cubics, m, root, horizon):
                    first = root
            low = high
    return first


def is_slope(value: float, slope: float) -> bool:
    """Whether an indicator of this value is the slope of another one, as a relative velocity is that of a distance."""
    return abs(value - slope) <= SAME_SLOPE * max(abs(value), abs(slope))


def line(now: float, slope: float, p: Doubles) -> None:
    """The line through a value with a slope."""
    p[0] = now
    p[1] = slope
    p[2] = 0.0
    p[3] = 0.0


def through_slopes(
    before: float, slope_before: float, after: float, slope_after: float, h: float, p: Doubles
) -> None:
    """The cubic through values and slopes at both ends of an interval of length h in s; h < 0: about its end."""
    chord = (after - before) / h
    b = (slope_after - slope_before) / h
    a = (chord - slope_before) / h
    p[0] = before
    p[1] = slope_before
    p[2] = 3.0 * a - b
    p[3] = (b - 2.0 * a) / h


def parabola(now: float, before: float, h: float, older: float, k: float, p: Doubles) -> None:
    """The parabola through three values, about the first: the second is h in s later, the third k after that; h, k < 0:
    earlier."""
    first = (before - now) / h
    second = (older - before) / k
    p[0] = now
    p[2] = (second - first) / (h + k)
    p[1] = first - p[2] * h
    p[3] = 0.0


def stays_above(p: Doubles, horizon: float) -> bool:
    """Whether a cubic certainly stays above 0: its Bernstein coefficients over the horizon bound it from below."""
    b1 = p[1] * horizon
    b2 = p[2] * horizon * horizon
    is_above: bool = (
        p[0] > 0.0
        and p[0] + b1 / 3.0 > 0.0
        and p[0] + (2.0 * b1 + b2) / 3.0 > 0.0
        and p[0] + b1 + b2 + p[3] * horizon * horizon * horizon > 0.0
    )
    return is_above


def from_before(
    z: int,
    dz: int,
    values: Doubles,
    before: Doubles,
    h: float,
    older: Doubles,
    k: float,
    p: Doubles,
) -> None:
    """The cubic of the indicator z, with the derivative dz or -1, about now, by the outputs h and k in s before.

    k = 0: there is no older point.
    """
    if dz >= 0:
        through_slopes(values[z], values[dz], before[z], before[dz], -h, p)
    elif k != 0.0:
        parabola(values[z], before[z], -h, older[z], h - k, p)
    else:
        line(values[z], (values[z] - before[z]) / h, p)


def from_ends(
    z: int,
    dz: int,
    before: Doubles,
    after: Doubles,
    length: float,
    older: Doubles,
    k: float,
    p: Doubles,
) -> None:
    """The cubic of the indicator z, with the derivative dz or -1, through both ends of a step, about its start.

    `older`: the outputs k in s before the start; k = 0: there are none.
    """
    if dz >= 0:
        through_slopes(before[z], before[dz], after[z], after[dz], length, p)
    elif k != 0.0:
        parabola(before[z], after[z], length, older[z], -k - length, p)
    else:
        line(before[z], (after[z] - before[z]) / length, p)


def stays_above_between(z: int, dz: int, before: Doubles, after: Doubles, length: float) -> bool:
    """The same as `stays_above` of the cubic `from_ends`, with less work, if there is a derivative."""
    third = length / 3.0
    return (
        dz >= 0
        and before[z] > 0.0
        and after[z] > 0.0
        and before[z] + before[dz] * third > 0.0
        and after[z] - after[dz] * third > 0.0
    )


def by_slopes(p: Doubles, s: float, h: float, expected: Doubles) -> None:
    """Value, slope and error bound of a cubic at h in s, where it is not known: the other point is at s < 0."""
    expected[0] = cubic(p, h)
    expected[1] = cubic_slope(p, h)
    expected[2] = abs(p[3]) * h * h * (h - s) + ROUNDING * (abs(p[0]) + abs(p[1] * h))


def by_values(values: Doubles, times: Doubles, n: int, h: float, expected: Doubles) -> None:
    """Value, slope, error bound and last term at h in s of the polynomial through n values, which are overwritten.

    inf: there are too few of them.
    """
    expected[0] = inf
    expected[1] = 0.0
    expected[2] = inf
    expected[3] = inf
    if n >= LEAST_POINTS:
        newton(values, times, n, h, expected)
        expected[3] = abs(expected[2])
        expected[2] = 0.0


def is_located(low: float, high: float) -> bool:
    """Whether a bracket in s is as short as rounding allows."""
    return high - low <= 2.0 * (BRACKET * max(abs(low), abs(high)))


def next_trial(
    low: float,
    high: float,
    low_weight: float,
    high_weight: float,
    domains: Doubles,
    at_low: Doubles,
    at_high: Doubles,
    m: int,
    is_halved: bool,
) -> float:
    """The next time in s to try in a bracket: its middle, or the earliest of the secants of the m indicators that have
    changed their domain.

    `domains`: the indicators after the last event, with whose domains they are compared.
    """
    least = BRACKET * max(abs(low), abs(high))
    middle = high
    for j in range(m):
        if (at_high[j] > 0.0) != (domains[j] > 0.0):
            a = low_weight * at_low[j]
            b = high_weight * at_high[j]
            middle = min(middle, low + (high - low) * (a / (a - b)))
    if is_halved:
        middle = low + 0.5 * (high - low)
    return min(max(middle, low + least), high - least)
