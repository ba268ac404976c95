"""Polynomials of inputs: Hermite's form, Horner's rule, the mean, and what adaptive and compensated inputs compute."""

from __future__ import annotations

from math import isfinite, isnan, nan

from fmimaster.numerics import Doubles, Number

NEAREST = 0.02
"""Smallest distance of two points, in intervals, for a polynomial through both."""

FADING = 0.9
"""Factor by which a measured error is reduced at each further point. With STEADY, the best of nine settings on the two
masses."""

STEADY = 0.8
"""Smallest ratio of two intervals that are treated as equally long; the largest is the inverse. Errors measured over
another length are not used."""

EQUAL_ERRORS = 1e-13
"""Measured errors below this fraction of the largest value at the points are equal: a polynomial through two points has
an error of about a hundred units in the last place."""


def hermite(
    nodes: Doubles, samples: Doubles, n: int, centre: float, work: Doubles, coefficients: Doubles
) -> None:
    """Coefficients of the Hermite polynomial of one signal about a centre, by Newton's form with confluent differences.

    `nodes` are its n times, each as often as it has samples; samples[i] at the first of them is the value, and the
    derivatives follow. `work` has room for 3 n.

    Source: e.g. Stoer and Bulirsch, Numerische Mathematik 1, 2.1.5.
    """
    for i in range(n):
        work[i] = samples[i]
        work[2 * n + i] = i  # the first node of its time
        if i > 0 and nodes[i] == nodes[i - 1]:
            work[i] = work[i - 1]
            work[2 * n + i] = work[2 * n + i - 1]
    work[n] = work[0]
    factorial = 1.0
    for m in range(1, n):
        factorial *= m
        for i in range(n - m):
            if nodes[i + m] == nodes[i]:
                work[i] = samples[int(work[2 * n + i]) + m] / factorial
            else:
                work[i] = (work[i + 1] - work[i]) / (nodes[i + m] - nodes[i])
        work[n + m] = work[0]
    for i in range(n):
        coefficients[i] = 0.0
    for m in range(n - 1, -1, -1):
        shift = centre - nodes[m]
        for i in range(n - 1 - m, 0, -1):  # those of higher powers are still 0
            coefficients[i] = coefficients[i] * shift + coefficients[i - 1]
        coefficients[0] = coefficients[0] * shift + work[n + m]


def horner(coefficients: Doubles, stride: int, degree: int, s: float) -> Number:
    """Value of a polynomial at distance s from its centre. Coefficients are a stride apart."""
    value = 0.0
    for p in range(degree, -1, -1):
        value = value * s + coefficients[p * stride]
    return value


def next_weights(weights: Doubles, degree: int, order: int) -> None:
    """Weights of the coefficients in the derivative of this order, from those in the one before; of order 0 they are 1."""
    for p in range(order, degree + 1):
        weights[p] *= p - (order - 1)


def derivative_at(
    coefficients: Doubles, weights: Doubles, stride: int, degree: int, order: int, s: float
) -> Number:
    """Derivative of a polynomial at distance s from its centre. Coefficients are a stride apart, their weights are not."""
    value = 0.0
    for p in range(degree, order - 1, -1):
        value = value * s + weights[p] * coefficients[p * stride]
    return value


def mean(coefficients: Doubles, stride: int, degree: int, length: float) -> Number:
    """Mean of a polynomial from its centre over a length in s. Coefficients are a stride apart."""
    value = 0.0
    for p in range(degree, -1, -1):
        value = value * length + coefficients[p * stride] / (p + 1.0)
    return value


def half_mean(coefficients: Doubles, stride: int, degree: int, length: float, half: int) -> Number:
    """Value for one half of an interval, number 1 or 2: both have the mean and the first moment of the polynomial.

    That of the first half has the weight 3 - 4 s in the mean, that of the second one 4 s - 1, with s from 0 to 1.
    The polynomial is centred at the start of its half, which has this length in s. Coefficients are a stride apart.
    """
    whole = 2.0 * length if half == 1 else length
    value = 0.0
    for p in range(degree, -1, -1):
        if half == 1:
            weight = 3.0 / (p + 1.0) - 4.0 / (p + 2.0)
        elif p - 2 * int(p / 2.0) == 0:
            weight = 1.0 / (p + 1.0)
        else:
            weight = 2.0 / (p + 2.0)
        value = value * whole + coefficients[p * stride] * weight
    return value


def faded(known: float, error: float) -> float:
    """The error of a candidate of an adaptive polynomial, with a new one measured; NaN: none is known yet."""
    return FADING * known if FADING * known > error else error


def best_candidate(errors: Doubles, n: int, largest: float, last: float, length: float) -> int:
    """The candidate with the smallest error: the first one if errors are not known for this length of an interval.

    `largest` is the largest value at the points, `last` the interval over which errors were measured, in s.
    """
    if isnan(errors[0]) or not (STEADY * last <= length and length <= last / STEADY):
        return 0
    best = 0
    for c in range(1, n):
        error = errors[c] if errors[c] > EQUAL_ERRORS * largest else EQUAL_ERRORS * largest
        if error < errors[best]:
            best = c
    return best


def compensated(
    value: float,
    half: float,
    compensation: float,
    now: float,
    length: float,
    are_several: bool,
    lacking: Doubles,
    given_from: Doubles,
    n: int,
) -> float:
    """A held value, and what the input lacked over the last interval in addition; what is given is remembered.

    `half` is half of the output now. `lacking` has half of each earlier output less the value that was given, `given_from`
    from which times in s on; NaN for none. Those after now belong to a step that was undone.
    """
    place = 0
    last = -1
    for k in range(n):
        if given_from[k] >= now:
            given_from[k] = nan
        elif not isnan(given_from[k]) and (last < 0 or given_from[k] > given_from[last]):
            last = k
    for k in range(n):
        if isnan(given_from[k]):
            place = k
            break
        if given_from[k] < given_from[place]:
            place = k
    if last >= 0 and are_several:
        lacked = half + lacking[last]
        if isfinite(lacked):
            value = value + compensation * lacked * (now - given_from[last]) / length
    lacking[place] = half - value
    given_from[place] = now
    return value


def newton(differences: Doubles, times: Doubles, n: int, time: float, found: Doubles) -> None:
    """Value, slope and last term at a time of the polynomial through n values at times, by Newton's form.

    `differences` are the values at first, and are overwritten.
    """
    total = differences[0]
    rate = 0.0
    last = 0.0
    product = 1.0
    slope_of_product = 0.0
    for k in range(1, n):
        for i in range(n - k):
            differences[i] = (differences[i + 1] - differences[i]) / (times[i + k] - times[i])
        distance = time - times[k - 1]
        slope_of_product = slope_of_product * distance + product
        product *= distance
        last = differences[0] * product
        total += last
        rate += differences[0] * slope_of_product
    found[0] = total
    found[1] = rate
    found[2] = last
