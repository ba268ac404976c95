"""Sums of squares: the norms of loops, of estimators, and of power bonds, added in order."""

from __future__ import annotations

from math import isnan, sqrt

from fmimaster.numerics.kinds import Doubles, Ints


def dot(a: Doubles, first: int, b: Doubles, n: int) -> float:
    """Scalar product of the n numbers from a[first] on with b."""
    total = 0.0
    for i in range(n):
        total += a[first + i] * b[i]
    return total


def norm(values: Doubles, first: int, n: int) -> float:
    """Euclidean norm of the n numbers from values[first] on."""
    total = 0.0
    for i in range(n):
        total += values[first + i] * values[first + i]
    return sqrt(total)


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
