"""Sizes of steps: their rounding, the sums of errors by which they are chosen, and the formula of PID controllers."""

from __future__ import annotations

from math import isnan

from fmimaster.numerics import Doubles, Ints

SLIVER = 1e-9
"""No step is shorter than this fraction of a usual step, if that can be avoided."""

ULPS = 4
"""A time ``start + k * step`` that was computed with doubles is wrong by less: by at most 1 for the step, which is a double
near the decimal that was meant, and by at most a half each for the start, the product and the sum."""

SHORTENED = 1e-9
"""A step is shorter than proposed if it is shorter by more than this fraction."""

LEAST_POWER = 1e-300
MOST_POWER = 1e300
"""Powers outside are noted: nearer to the limits of floats, Python raises an exception and C does not."""


def add_part(part: float, size: float, i: int, sums: Doubles, worst: Ints) -> None:
    """Add the part i of an error: sums[0] is the sum of squares, sums[1] the largest size, worst[0] the part that has it.

    A part that is not a number is the largest.
    """
    sums[0] += part * part
    if size > sums[1] or isnan(part):
        sums[1] = size
        worst[0] = i


def distance(a: float, b: float, absolute: float, relative: float) -> float:
    """The distance of two numbers in units of a tolerance, which is relative to the larger one."""
    size = abs(b) if abs(b) > abs(a) else abs(a)
    return abs(a - b) / (absolute + relative * size)


def power(base: float, exponent: float, is_odd: Ints) -> float:
    """A power; is_odd[0] becomes 1 if it is near the limits of floats."""
    found: float = base**exponent
    if not (found > LEAST_POWER and found < MOST_POWER):
        is_odd[0] = 1
    return found


def by_errors(
    safety: float,
    e1: float,
    e2: float,
    e3: float,
    x1: float,
    x2: float,
    x3: float,
    is_odd: Ints,
) -> float:
    """The factor on the step size by the last three errors of an estimator, the newest first, and their exponents."""
    factor = safety * power(e1, x1, is_odd) * power(e2, x2, is_odd)
    if x3 != 0.0:
        factor = factor * power(e3, x3, is_odd)
    return factor


def by_sizes(h: float, h1: float, h2: float, a1: float, a2: float, is_odd: Ints) -> float:
    """The factor by the last three proposed steps in s, the newest first, and the exponents of their quotients."""
    return power(h / h1, a1, is_odd) * power(h1 / h2, a2, is_odd)


def within(value: float, least: float, most: float) -> float:
    """The nearest number within limits."""
    return least if value < least else most if value > most else value


def wanted_size(h: float, length: float, factor: float) -> float:
    """The next step size in s before its limits, after a step of this length for which h was proposed.

    A good step that is short, for example because of an event, is no reason against a longer one.
    """
    if length < h * (1.0 - SHORTENED):
        return h if not factor < 1.0 and h > length * factor else length * factor
    return h * factor


def may_be_repeated(error: float, limit: float, length: float, smallest: float) -> bool:
    """Whether the error of a step is above the limit, and the step longer than the smallest one."""
    return error > limit and length > smallest * (1.0 + SHORTENED)


def longest_step(previous: float, first: float, growth: float, size: float) -> float:
    """The longest step in s after one of a length in s, which is 0 after an event: then this part of the full size."""
    return growth * previous if previous != 0.0 else first * size


def has_full_size(previous: float, length: float, growth: float, size: float) -> bool:
    """Whether the step after one of this length has the full size, as the one after the previous one had."""
    return previous != 0.0 and growth * length >= size and growth * previous >= size
