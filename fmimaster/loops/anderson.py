"""Anderson acceleration from sweep to sweep; its numbers are those of :mod:`fmimaster.numerics.anderson`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from math import inf, isfinite

import numpy as np

from fmimaster.loops.newton import differences, smallest_singular_value
from fmimaster.loops.search import Attempts, Solution, Sweep, Trial, Vector
from fmimaster.numerics.anderson import (
    BLOWN_UP,
    keep_difference,
    least_squares,
    next_iterate,
    norm,
    slope,
)

ANDERSON = "Anderson acceleration"


class Anderson:
    """The differences between the last iterates and between their residuals, newest first.

    Parameters
    ----------
    depth : int
        Largest number of differences that are kept.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._kept = 0
        self._steps: list[float] = []
        self._changes: list[float] = []
        self._before: tuple[Sequence[float], Sequence[float]] | None = None

    def next(self, s: Sequence[float], r: Sequence[float]) -> list[float]:
        """The next iterate.

        Parameters
        ----------
        s, r : the iterate and its residual, both relative to the nominal values
        """
        n = len(r)
        if self._before is None:
            self._steps, self._changes = [0.0] * (self._depth * n), [0.0] * (self._depth * n)
        elif self._depth:
            older = min(self._kept, self._depth - 1)
            keep_difference(s, self._before[0], n, older, self._steps)
            keep_difference(r, self._before[1], n, older, self._changes)
            self._kept = older + 1
        self._before = list(s), list(r)
        k, found = self._kept, [0.0] * n
        chosen, factors, basis, upper = [0] * k, [0.0] * k, [0.0] * (k * n), [0.0] * (k * k)
        used = least_squares(self._changes, k, list(r), n, basis, upper, chosen, factors)
        next_iterate(s, r, n, self._steps, self._changes, chosen, factors, used, found)
        return found

    def slope(self, s: Sequence[float], r: Sequence[float]) -> float:
        """The change of the residual from the last iterate to this one, relative to the change of the iterate.

        It is an upper bound of the smallest singular value of the Jacobian; inf if nothing is known.
        """
        return inf if self._before is None else slope(s, r, *self._before, len(s))


def anderson(
    attempts: Attempts, *, depth: int, most: int, bounded: bool
) -> Generator[Trial, Sweep, Solution | None]:
    """Anderson acceleration from the start values; None if it has not converged.

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
        size = norm(r, 0, len(r))
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
