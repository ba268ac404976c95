"""Anderson acceleration: the next iterate of a fixed-point iteration from the last ones.

Differences of iterates and of residuals are the rows of matrices, n numbers each, the newest first.

Source: Anderson (1965), Iterative procedures for nonlinear integral equations; in the form of Walker and Ni (2011),
Anderson acceleration for fixed-point iterations, section 2, with the QR factorization by modified Gram-Schmidt.
"""

from __future__ import annotations

from math import inf, sqrt

from fmimaster.numerics import Doubles, Ints

DEPENDENT = 1e-12
"""A difference of residuals is left out if its part independent of the newer ones is relatively smaller than this."""

LEAST_STEP = 1e-8
"""Relative change of the iterate below which rounding decides how the residual changes."""

BLOWN_UP = 1e8
"""Anderson acceleration is abandoned at a residual of this many times the first one."""


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


def keep_difference(now: Doubles, before: Doubles, n: int, older: int, rows: Doubles) -> None:
    """The difference of two vectors becomes the first row, before so many older ones."""
    for i in range(older * n - 1, -1, -1):
        rows[n + i] = rows[i]
    for i in range(n):
        rows[i] = now[i] - before[i]


def least_squares(
    rows: Doubles,
    kept: int,
    right: Doubles,
    n: int,
    basis: Doubles,
    upper: Doubles,
    chosen: Ints,
    factors: Doubles,
) -> int:
    """How many rows count: the sum of them with these factors is nearest to the right side.

    Rows that depend on earlier ones do not count. `right` is overwritten; there is room for `kept` rows in `basis`, for
    their triangle, row by row, in `upper`, and for their numbers in `chosen`.
    """
    used = 0
    for k in range(kept):
        own = used * n
        for i in range(n):
            basis[own + i] = rows[k * n + i]
        for p in range(used):
            product = 0.0
            for i in range(n):
                product += basis[p * n + i] * basis[own + i]
            for i in range(n):
                basis[own + i] -= product * basis[p * n + i]
            upper[p * kept + used] = product
        rest = norm(basis, own, n)
        if not rest > DEPENDENT * norm(rows, k * n, n):
            continue
        for i in range(n):
            basis[own + i] /= rest
        factor = dot(basis, own, right, n)
        for i in range(n):
            right[i] -= factor * basis[own + i]
        upper[used * kept + used] = rest
        chosen[used] = k
        factors[used] = factor
        used += 1
    for p in range(used - 1, -1, -1):
        for k in range(p + 1, used):
            factors[p] -= upper[p * kept + k] * factors[k]
        factors[p] /= upper[p * kept + p]
    return used


def next_iterate(
    s: Doubles,
    r: Doubles,
    n: int,
    steps: Doubles,
    changes: Doubles,
    chosen: Ints,
    factors: Doubles,
    used: int,
    found: Doubles,
) -> None:
    """The next iterate from this one and its residual, by the differences of both that count."""
    for i in range(n):
        following = s[i] + r[i]
        for p in range(used):
            k = chosen[p] * n + i
            following -= (steps[k] + changes[k]) * factors[p]
        found[i] = following


def slope(s: Doubles, r: Doubles, s_before: Doubles, r_before: Doubles, n: int) -> float:
    """The change of the residual from the last iterate to this one, relative to the change of the iterate.

    It is an upper bound of the smallest singular value of the Jacobian; inf if rounding decides.
    """
    length = 0.0
    step = 0.0
    change = 0.0
    for i in range(n):
        length += s[i] * s[i]
        step += (s[i] - s_before[i]) * (s[i] - s_before[i])
        change += (r[i] - r_before[i]) * (r[i] - r_before[i])
    if sqrt(step) > LEAST_STEP * (1.0 + sqrt(length)):
        return sqrt(change) / sqrt(step)
    return inf
