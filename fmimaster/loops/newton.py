"""Newton's method for algebraic loops, with directional derivatives or differences, and a line search.

Source: Nocedal and Wright (2006), Numerical Optimization, 11.1 (Newton's method with a line search), 10.3 (Levenberg and
Marquardt's step where the Jacobian is singular).
"""

from __future__ import annotations

from collections.abc import Generator
from math import inf, sqrt

import numpy as np

from fmimaster.loops.search import SINGULAR, Attempts, Matrix, Solution, Sweep, Trial, Vector
from fmimaster.numerics.anderson import norm

STATIONARY = 1e-6
"""A gradient below this fraction of the residual counts as 0."""

NEARLY_STATIONARY = 1e-4
"""The same where no step along Newton's direction makes the residual smaller."""

DAMPING = 1e-3
"""Damping of the step where the Jacobian is singular, relative to the square of its largest singular value."""

DECREASE = 1e-4
"""The residual must decrease by this fraction, times the length of the step."""

MOST_HALVINGS = 12
"""Largest number of halvings of a step that does not make the residual smaller."""

STILL_GOOD = 1e-2
"""If a step reduces the residual to this fraction, the same Jacobian is used again."""


def newton(
    attempts: Attempts, start: Vector, most_steps: int, limit: int
) -> Generator[Trial, Sweep, Solution | None]:
    """Newton's method with a line search; None if it has not converged from here.

    Parameters
    ----------
    most_steps : int
    limit : int
        Of all sweeps of the search.
    """
    problem = attempts.problem
    with_derivatives = problem.has_derivatives
    means = "directional derivatives" if with_derivatives else "differences"
    attempts.methods[f"Newton's method with {means}"] = None
    u, residual, given = yield from attempts.sweep(start, derive=True)
    is_needed = problem.is_first or not problem.is_solved(u, residual)
    if with_derivatives and given is None and is_needed:
        # this sweep was started before derivatives could be requested
        u, residual, given = yield from attempts.sweep(start, derive=True)
    jacobian = given if with_derivatives else problem.jacobian
    scales = problem.scales(jacobian)
    before: Vector | None = None
    for _ in range(most_steps):
        if problem.is_solved(u, residual / scales):
            return Solution(smallest_singular_value(jacobian, scales), jacobian)
        if not np.isfinite(residual).all() or attempts.count >= limit:
            return None
        if jacobian is None:
            jacobian = yield from differences(attempts, u, residual, before)
        if not np.isfinite(jacobian).all():
            return None
        scales = problem.scales(jacobian)
        scaled = residual / scales
        step = newton_step(attempts, jacobian / scales[:, None], scaled)
        is_solved = problem.is_solved(u, scaled)  # also where the Jacobian is singular
        if not is_solved and (step is None or not np.isfinite(step).all()):
            return None
        if is_solved or (step is not None and problem.is_within_rounding(u, scaled, step)):
            yield from attempts.sweep(u)  # other values have been tried since then
            return Solution(smallest_singular_value(jacobian, scales), jacobian)
        assert step is not None
        size, length = norm((residual / scales).tolist(), 0, len(residual)), 1.0
        for _ in range(MOST_HALVINGS + 1):
            moved = u + length * step * problem.nominal
            answer = yield from attempts.sweep(moved, derive=True)
            size_there = norm((answer.residual / scales).tolist(), 0, len(residual))
            if size_there < (1.0 - DECREASE * length) * size or attempts.count >= limit:
                break
            length /= 2.0
        else:
            if not with_derivatives and jacobian is problem.jacobian:  # it may be too old
                jacobian = None
                continue
            if _is_stationary(jacobian / scales[:, None], residual / scales, NEARLY_STATIONARY):
                attempts.was_singular = True
            return None
        before, u, residual = u, answer.u, answer.residual
        if with_derivatives:
            jacobian = answer.jacobian
        elif not (length == 1.0 and size_there <= STILL_GOOD * size):
            jacobian = None
    return None


def newton_step(attempts: Attempts, jacobian: Matrix, residual: Vector) -> Vector | None:
    """The step relative to nominal values: Newton's, or where the Jacobian is singular that of Levenberg and Marquardt.

    None at a stationary point of the residual.
    """
    values = np.linalg.svd(jacobian, compute_uv=False)
    largest, smallest = float(values[0]), float(values[-1])
    if smallest >= SINGULAR * max(1.0, largest):
        attempts.was_regular = True
        return np.asarray(-np.linalg.solve(jacobian, residual), np.float64)
    if _is_stationary(jacobian, residual, STATIONARY):
        attempts.was_singular = True
        return None
    damping = DAMPING * largest**2 * np.eye(len(residual))
    gradient = jacobian.T @ residual
    return np.asarray(-np.linalg.solve(jacobian.T @ jacobian + damping, gradient), np.float64)


def _is_stationary(jacobian: Matrix, residual: Vector, tolerance: float) -> bool:
    largest = float(np.linalg.norm(jacobian, 2))
    gradient = float(np.linalg.norm(jacobian.T @ residual))
    return gradient <= tolerance * float(np.linalg.norm(residual)) * max(1.0, largest)


def differences(
    attempts: Attempts, u: Vector, residual: Vector, before: Vector | None
) -> Generator[Trial, Sweep, Matrix]:
    """The Jacobian by forward differences: one sweep for each unknown.

    A constraint is mostly linear in its unknown, as a force: then a large difference is exact. If it is not, the
    difference is as large as the last step, from the values ``before``.
    """
    problem, n = attempts.problem, len(u)
    jacobian = np.empty((n, n))
    for k in range(n):
        size = max(abs(float(u[k])), float(problem.nominal[k]))
        least = sqrt(problem.precision) * size
        moved = u.copy()
        if k not in problem.constrained:
            moved[k] += least
        elif before is None:
            moved[k] += size
        else:
            moved[k] += min(max(abs(float(u[k] - before[k])), least), size)
        answer = yield from attempts.sweep(moved)
        change = (answer.u[k] - u[k]) / problem.nominal[k]
        jacobian[:, k] = (answer.residual - residual) / change
    return jacobian


def smallest_singular_value(jacobian: Matrix | None, scales: Vector) -> float:
    """Smallest singular value of a Jacobian whose rows are divided by the scales; inf if it is not known."""
    if jacobian is None or not np.isfinite(jacobian).all():
        return inf
    return float(np.linalg.svd(jacobian / scales[:, None], compute_uv=False)[-1])
