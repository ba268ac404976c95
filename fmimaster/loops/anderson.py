"""Anderson acceleration: the next iterate of a fixed-point iteration from the last ones.

The kernel does the same operations in the same order (``kernel/loop.c``), so that both give the same bits. Therefore
sums are written out, without NumPy and BLAS.

Source: Anderson (1965), Iterative procedures for nonlinear integral equations; in the form of Walker and Ni (2011),
Anderson acceleration for fixed-point iterations, section 2, with the QR factorization by modified Gram-Schmidt.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from math import inf, isfinite

import numpy as np

from fmimaster.loops.newton import differences, smallest_singular_value
from fmimaster.loops.search import Attempts, Solution, Sweep, Trial, Vector, norm

ANDERSON = "Anderson acceleration"

DEPENDENT = 1e-12
"""A difference of residuals is left out if its part independent of the newer ones is relatively smaller than this."""


class Anderson:
    """The differences between the last iterates and between their residuals, newest first.

    Parameters
    ----------
    depth : int
        Largest number of differences that are kept.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._steps: list[list[float]] = []
        self._changes: list[list[float]] = []
        self._before: tuple[Sequence[float], Sequence[float]] | None = None

    def next(self, s: Sequence[float], r: Sequence[float]) -> list[float]:
        """The next iterate.

        Parameters
        ----------
        s, r : the iterate and its residual, both relative to the nominal values
        """
        if self._before is not None:
            s_before, r_before = self._before
            self._steps.insert(0, [a - b for a, b in zip(s, s_before, strict=True)])
            self._changes.insert(0, [a - b for a, b in zip(r, r_before, strict=True)])
            del self._steps[self._depth :], self._changes[self._depth :]
        self._before = list(s), list(r)
        chosen, gamma = least_squares(self._changes, r)
        found = [a + b for a, b in zip(s, r, strict=True)]
        for factor, k in zip(gamma, chosen, strict=True):
            step, change = self._steps[k], self._changes[k]
            for i in range(len(found)):
                found[i] -= (step[i] + change[i]) * factor
        return found

    def slope(self, s: Sequence[float], r: Sequence[float]) -> float:
        """The change of the residual from the last iterate to this one, relative to the change of the iterate.

        It is an upper bound of the smallest singular value of the Jacobian; inf if nothing is known.
        """
        if self._before is None:
            return inf
        s_before, r_before = self._before
        step = norm([a - b for a, b in zip(s, s_before, strict=True)])
        change = norm([a - b for a, b in zip(r, r_before, strict=True)])
        return change / step if step > LEAST_STEP * (1.0 + norm(s)) else inf


def least_squares(
    columns: Sequence[Sequence[float]], right: Sequence[float]
) -> tuple[list[int], list[float]]:
    """The factors of the columns whose sum is nearest to the right side, without columns that depend on earlier ones.

    Returns
    -------
    Indices of the columns that count, and their factors.
    """
    n = len(right)
    basis: list[list[float]] = []
    upper: list[list[float]] = []  # column by column
    chosen: list[int] = []
    gamma: list[float] = []
    left = list(right)
    for k, column in enumerate(columns):
        q, products = list(column), []
        for p in basis:
            product = 0.0
            for i in range(n):
                product += p[i] * q[i]
            for i in range(n):
                q[i] -= product * p[i]
            products.append(product)
        length, rest = norm(column), norm(q)
        if not rest > DEPENDENT * length:
            continue
        for i in range(n):
            q[i] /= rest
        dot = 0.0
        for i in range(n):
            dot += q[i] * left[i]
        for i in range(n):
            left[i] -= dot * q[i]
        basis.append(q)
        upper.append([*products, rest])
        chosen.append(k)
        gamma.append(dot)
    for row in range(len(gamma) - 1, -1, -1):
        for later in range(row + 1, len(gamma)):
            gamma[row] -= upper[later][row] * gamma[later]
        gamma[row] /= upper[row][row]
    return chosen, gamma


LEAST_STEP = 1e-8
"""Relative change of the iterate below which rounding decides how the residual changes."""


BLOWN_UP = 1e8
"""Anderson acceleration is abandoned at a residual of this many times the first one."""


def anderson(
    attempts: Attempts, *, depth: int, most: int, bounded: bool
) -> Generator[Trial, Sweep, Solution | None]:
    """Anderson acceleration from the start values; None if it has not converged. The kernel has the same in C.

    Parameters
    ----------
    depth : int
        Differences of sweeps that are remembered.
    most : int
        Sweeps.
    bounded : bool
        Whether the last of them counts as the solution.
    """
    problem = attempts.problem
    attempts.methods[ANDERSON] = None
    nominal, u = problem.nominal.tolist(), problem.u
    history, first = Anderson(depth), inf
    for k in range(most):
        u, residual, _ = yield from attempts.sweep(u)
        r = residual.tolist()
        if problem.is_solved(u, residual):
            if k == 0 and problem.is_measured and not bounded:
                return (yield from measured(attempts, u, residual))
            scaled = [x / m for x, m in zip(u.tolist(), nominal, strict=True)]
            return Solution(history.slope(scaled, r), None)
        size = norm(r)
        first = size if k == 0 else first
        if k + 1 == most:
            return Solution(inf, None) if bounded and isfinite(size) else None
        if not isfinite(size) or size > BLOWN_UP * (1.0 + first):
            attempts.has_overflowed = True
            return None
        if k <= problem.plain:
            history = Anderson(depth)
        scaled = history.next([x / m for x, m in zip(u.tolist(), nominal, strict=True)], r)
        u = np.array([s * m for s, m in zip(scaled, nominal, strict=True)])
    return None


def measured(attempts: Attempts, u: Vector, residual: Vector) -> Generator[Trial, Sweep, Solution]:
    """The solution that the start values are, with the singular value of a Jacobian by differences.

    With a loop gain near 1, every value has a small residual: without this measurement it would be taken.
    """
    jacobian = yield from differences(attempts, u, residual, None)
    yield from attempts.sweep(u)
    return Solution(smallest_singular_value(jacobian, np.ones(len(u))), None)
