"""Solver of algebraic loops: which values to try next, as a generator that is sent what each sweep over the loop gave.

The unknowns of a loop are ``u``, and one *sweep* over its instances is a function of them. The residual ``r(u)`` is what
the sweep gave minus ``u``, or, for a constraint, the value of a variable that must be 0. First comes Anderson acceleration,
then Newton's method, also from other start values; see :meth:`LoopSolver.solve`.

Nothing here knows FMUs or the value store: :mod:`fmimaster.control.loop_hook` brings values and sweeps together.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.control.anderson import Anderson, norm
from fmimaster.errors import OptionError

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Trial(NamedTuple):
    """What to try in the next sweep."""

    u: Vector
    derive: bool = False
    """Whether the partial derivatives of the sweep are needed."""


class Sweep(NamedTuple):
    """What a sweep gave."""

    u: Vector
    """What was tried: an unknown of type Float32 is rounded."""
    residual: Vector
    """Relative to the nominal values."""
    jacobian: Matrix | None = None
    """Partial derivatives of the residual by the unknowns, both relative to nominal values; if they were asked for."""


class Solution(NamedTuple):
    """The end of a search that has converged: the last sweep is that of the solution."""

    singular_value: float
    """Smallest one of the last Jacobian, relative to nominal values; inf if none is known."""
    jacobian: Matrix | None
    """The last one that was used."""


Search = Generator[Trial, Sweep, Solution]
"""Yields what to try, is sent what the sweep gave, returns the solution; raises :class:`NoSolution`."""


class NoSolution(Exception):
    """No solution of a loop was found.

    Attributes
    ----------
    reason : str
        One of the classes of :class:`Reasons`.
    method : str
    u, residual : shape (n,)
        Those of the sweep with the smallest residual; the residual relative to the nominal values.
    """

    def __init__(self, reason: str, method: str, u: Vector, residual: Vector) -> None:
        super().__init__(reason)
        self.reason, self.method, self.u, self.residual = reason, method, u, residual


class Reasons:
    """Why no solution was found, in the words of messages."""

    DIVERGED = "diverged"
    NOT_CONVERGED = "not converged"
    SINGULAR = "singular: loop gain 1 (no or no unique solution)"
    STATIONARY = "no solution found (stationary residual {residual} at {u})"


@dataclass(frozen=True, slots=True)
class LoopSolver:
    """Tolerances and limits of the solver of algebraic loops.

    Parameters
    ----------
    relative, absolute : float
        A loop is solved when each residual is at most ``absolute * nominal + relative * abs(u)``.
    depth : int
        Sweeps that Anderson acceleration remembers; 0 for plain fixed-point iteration.
    most_anderson, most_newton : int
        Sweeps of Anderson acceleration, and steps of Newton's method from each start value.
    most_sweeps : int
        Of one solution, with all restarts; for each unknown beyond the first one, ``most_newton`` more.
    bounded : int or None
        If given, only Anderson acceleration is used, and the last of so many sweeps counts even if its residual is larger.

    Source: fmimaster (docs/loops.md). Anderson acceleration: Walker and Ni (2011). Newton's method with a line search, and
    steps where the Jacobian is singular: Nocedal and Wright (2006), Numerical Optimization, 11.1 and 10.3.
    """

    relative: float = 1e-8
    absolute: float = 1e-10
    depth: int = 5
    most_anderson: int = 12
    most_newton: int = 30
    most_sweeps: int = 200
    bounded: int | None = None

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        for name in ("relative", "absolute"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0.0):
                raise OptionError(
                    f"LoopSolver({name}={value!r}): expected a number greater than 0."
                )
        for name, least in (
            ("depth", 0),
            ("most_anderson", 1),
            ("most_newton", 0),
            ("most_sweeps", 1),
            ("bounded", 1),
        ):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < least):
                raise OptionError(
                    f"LoopSolver({name}={value!r}): expected an integer of {least} or more."
                )

    def limit(self, n: int) -> int:
        """The most sweeps for a loop of n unknowns."""
        return self.most_sweeps + self.most_newton * (n - 1)

    def most_passes(self, n: int) -> int:
        """More sweeps than any search does: the limit is not looked at within a Jacobian and the step after it."""
        return self.limit(n) + n + 2

    def remembered(self, n: int) -> int:
        """How many differences of sweeps serve Anderson acceleration of n unknowns."""
        return min(self.depth, n + 1)

    def anderson_limit(self, plain: int) -> int:
        """The most sweeps of Anderson acceleration, of which the first are plain."""
        return (self.most_anderson + plain) if self.bounded is None else self.bounded

    def solve(self, problem: Problem) -> Search:
        """Search a solution from the start values of a problem.

        Without partial derivatives: Anderson acceleration, then Newton's method with differences, then again from other
        start values. With them Newton's method comes first. A constraint is left to Newton's method.
        """
        attempts = Attempts(problem)
        newton_first = bool(problem.constrained) or (problem.has_derivatives and not problem.plain)
        if newton_first and self.bounded is None:
            found = yield from newton(self, attempts, problem.u)
            if found is not None:
                return found
        if not problem.constrained:
            found = yield from anderson(self, attempts)
            if found is not None:
                return found
        return (yield from self.restart(attempts, from_start=not newton_first))

    def go_on(
        self, problem: Problem, count: int, u: Vector, residual: Vector, *, overflowed: bool
    ) -> Search:
        """Search on where Anderson acceleration has ended without success after so many sweeps, which were done elsewhere.

        Parameters
        ----------
        u, residual
            Those of the sweep with the smallest residual; the residual relative to the nominal values.
        overflowed : bool
            Whether a residual has blown up.
        """
        attempts = Attempts(problem)
        attempts.methods[ANDERSON] = None
        if norm(residual.tolist()) < inf:
            attempts.tried(u, residual)
        attempts.count, attempts.has_overflowed = count, overflowed
        return (yield from self.restart(attempts, from_start=True))

    def restart(self, attempts: Attempts, *, from_start: bool) -> Search:
        """Newton's method from the start values, if it was not tried yet, and from others."""
        for shift in (*([0.0] if from_start else []), *RESTARTS):
            if attempts.count >= self.limit(len(attempts.problem.u)):
                break
            start = attempts.problem.u + shift * attempts.problem.nominal
            found = yield from newton(self, attempts, start)
            if found is not None:
                return found
        raise attempts.failure()


ANDERSON = "Anderson acceleration"

RESTARTS = (1.0, -1.0, 10.0, -10.0)
"""By so many nominal values all unknowns are shifted where Newton's method starts again."""


DOUBLE = float(np.finfo(np.float64).eps)
"""Relative rounding error of Float64."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is to be solved.

    Parameters
    ----------
    u : shape (n,)
        Start values.
    nominal, relative : shape (n,)
        Nominal values, and relative tolerances of the unknowns.
    absolute : float
        Tolerance relative to the nominal values.
    has_derivatives : bool
        Whether a sweep can be asked for its partial derivatives.
    constrained : set of int
        Unknowns of constraints, whose residuals are variables that must be 0, and not of the form G(u) - u. They are
        divided by the largest element of their row of the Jacobian, so that they count in units of the unknown.
    jacobian : shape (n, n), or None
        Of an earlier solution, tried first.
    plain : int
        So many sweeps come first without acceleration: n + 1 are enough for a loop that is only assumed.
    precision : float
        Relative error of what a sweep gives by rounding: that of the least precise type in the loop.
    """

    u: Vector
    nominal: Vector
    relative: Vector
    absolute: float
    has_derivatives: bool = False
    constrained: frozenset[int] = frozenset()
    jacobian: Matrix | None = None
    plain: int = 0
    precision: float = DOUBLE

    def is_solved(self, u: Vector, residual: Vector) -> bool:
        """Whether the residual is as small as it must be."""
        for x, r, nominal, relative in zip(
            u.tolist(),
            residual.tolist(),
            self.nominal.tolist(),
            self.relative.tolist(),
            strict=True,
        ):
            if not abs(r) * nominal <= self.absolute * nominal + relative * abs(x):
                return False
        return True

    def scales(self, jacobian: Matrix | None) -> Vector:
        """What to divide the residuals by; NaN where it is not known without a Jacobian."""
        scales = np.ones(len(self.u))
        for k in self.constrained:
            scales[k] = np.nan if jacobian is None else np.abs(jacobian[k]).max() or 1.0
        return scales


class Attempts:
    """All sweeps of one search: how many there were, the best one, and what was seen of the Jacobian.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.count = 0
        self.size = inf
        self.u = problem.u.copy()
        self.residual = np.full(len(problem.u), np.nan)
        self.methods: dict[str, None] = {}
        """In the order in which they were used."""
        self.was_regular = self.was_singular = False
        """Whether the Jacobian has been regular, and whether a point was stationary where it was singular."""
        self.has_overflowed = False

    def tried(self, u: Vector, residual: Vector) -> None:
        """Note a sweep."""
        self.count += 1
        size = norm(residual.tolist())
        if not isfinite(size):
            self.has_overflowed = True
        elif size < self.size:
            self.size, self.u, self.residual = size, u.copy(), residual.copy()

    def sweep(self, u: Vector, *, derive: bool = False) -> Generator[Trial, Sweep, Sweep]:
        """Try a value."""
        answer = yield Trial(u, derive and self.problem.has_derivatives)
        self.tried(answer.u, answer.residual)
        return answer

    def failure(self) -> NoSolution:
        """What to raise if nothing was found."""
        if self.was_singular:
            residual, u = _text(self.residual * self.problem.nominal), _text(self.u)
            stationary = Reasons.STATIONARY.format(residual=residual, u=u)
            reason = stationary if self.was_regular else Reasons.SINGULAR
        else:
            reason = Reasons.DIVERGED if self.has_overflowed else Reasons.NOT_CONVERGED
        return NoSolution(reason, ", ".join(self.methods), self.u, self.residual)


def _text(values: Vector) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


BLOWN_UP = 1e8
"""A residual so many times the first one is not going to shrink: Anderson acceleration is given up."""


def anderson(solver: LoopSolver, attempts: Attempts) -> Generator[Trial, Sweep, Solution | None]:
    """Anderson acceleration from the start values; None if it has not converged. The kernel has the same in C."""
    problem = attempts.problem
    attempts.methods[ANDERSON] = None
    nominal, u = problem.nominal.tolist(), problem.u
    history = Anderson(solver.remembered(len(u)))
    most, first = solver.anderson_limit(problem.plain), inf
    for k in range(most):
        u, residual, _ = yield from attempts.sweep(u)
        if problem.is_solved(u, residual):
            return Solution(inf, None)
        r = residual.tolist()
        size = norm(r)
        first = size if k == 0 else first
        if k + 1 == most:
            return None if solver.bounded is None else Solution(inf, None)
        if not isfinite(size) or size > BLOWN_UP * (1.0 + first):
            attempts.has_overflowed = True
            return None
        if k <= problem.plain:
            history = Anderson(solver.remembered(len(u)))
        scaled = history.next([x / m for x, m in zip(u.tolist(), nominal, strict=True)], r)
        u = np.array([s * m for s, m in zip(scaled, nominal, strict=True)])
    return None


SINGULAR = 1e-7
"""Singular values below so much of the largest one, or of 1, count as 0: differences know a Jacobian to about 1e-8."""

STATIONARY = 1e-6
"""A gradient below so much of the residual counts as 0."""

NEARLY_STATIONARY = 1e-4
"""The same where no step along Newton's direction makes the residual smaller."""

DAMPING = 1e-3
"""Of the step where the Jacobian is singular, relative to the square of its largest singular value."""

DECREASE = 1e-4
"""The residual must shrink by so much of the step's length."""

MOST_HALVINGS = 12
"""Of a step that does not make the residual smaller."""

STILL_GOOD = 1e-2
"""If a step has made the residual so much smaller, the same Jacobian serves again."""


def newton(
    solver: LoopSolver, attempts: Attempts, start: Vector
) -> Generator[Trial, Sweep, Solution | None]:
    """Newton's method with a line search; None if it has not converged from here."""
    problem = attempts.problem
    with_derivatives = problem.has_derivatives
    means = "directional derivatives" if with_derivatives else "differences"
    attempts.methods[f"Newton's method with {means}"] = None
    limit = solver.limit(len(start))
    u, residual, given = yield from attempts.sweep(start, derive=True)
    if with_derivatives and given is None and not problem.is_solved(u, residual):
        # that sweep was begun before there was somebody to ask for them
        u, residual, given = yield from attempts.sweep(start, derive=True)
    jacobian = given if with_derivatives else problem.jacobian
    scales = problem.scales(jacobian)
    before: Vector | None = None
    for _ in range(solver.most_newton):
        if problem.is_solved(u, residual / scales):
            return Solution(smallest_singular_value(jacobian, scales), jacobian)
        if not np.isfinite(residual).all() or attempts.count >= limit:
            return None
        if jacobian is None:
            jacobian = yield from differences(attempts, u, residual, before)
        if not np.isfinite(jacobian).all():
            return None
        scales = problem.scales(jacobian)
        step = newton_step(attempts, jacobian / scales[:, None], residual / scales)
        if step is None:
            return None
        if problem.is_solved(u, residual / scales):  # but other values have been tried since then
            yield from attempts.sweep(u)
            return Solution(smallest_singular_value(jacobian, scales), jacobian)
        size, length = norm((residual / scales).tolist()), 1.0
        for _ in range(MOST_HALVINGS + 1):
            moved = u + length * step * problem.nominal
            answer = yield from attempts.sweep(moved, derive=True)
            size_there = norm((answer.residual / scales).tolist())
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
    """Of a Jacobian whose rows are divided by these; inf if it is not known."""
    if jacobian is None or not np.isfinite(jacobian).all():
        return inf
    return float(np.linalg.svd(jacobian / scales[:, None], compute_uv=False)[-1])
