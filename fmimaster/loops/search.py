"""The search for the solution of an algebraic loop: its problem, trials, sweeps, solution or failure, and messages."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import LoopError
from fmimaster.base.text import listed
from fmimaster.numerics.anderson import norm
from fmimaster.plan.visits import MAY_BE_NONE

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Trial(NamedTuple):
    """Values of the unknowns for the next sweep."""

    u: Vector
    derive: bool = False
    """Whether the partial derivatives of the sweep are needed."""


class Sweep(NamedTuple):
    """The result of a sweep."""

    u: Vector
    """The values of the unknowns; those of type Float32 are rounded."""
    residual: Vector
    """Relative to the nominal values."""
    jacobian: Matrix | None = None
    """Partial derivatives of the residual by the unknowns, both relative to nominal values; None if not requested."""


class Solution(NamedTuple):
    """The result of a search that has converged: the last sweep was done with the solution."""

    singular_value: float
    """Smallest singular value of the last Jacobian, relative to nominal values; inf if none is known."""
    jacobian: Matrix | None
    """The last Jacobian that was used."""


Search = Generator[Trial, Sweep, Solution]
"""Yields a trial, receives the sweep, returns the solution; raises :class:`NoSolution`."""


class NoSolution(Exception):
    """No solution of a loop was found.

    Attributes
    ----------
    reason : str
        One of the classes of :class:`Reasons`.
    method : str
    u, residual : shape (n,)
        Unknowns and residual of the sweep with the smallest residual; the residual relative to the nominal values.
    """

    def __init__(self, reason: str, method: str, u: Vector, residual: Vector) -> None:
        super().__init__(reason)
        self.reason, self.method, self.u, self.residual = reason, method, u, residual


class Reasons:
    """Reasons in messages why no solution was found."""

    DIVERGED = "diverged"
    NOT_CONVERGED = "not converged"
    SINGULAR = "singular: loop gain 1 (no or no unique solution)"
    STATIONARY = "no solution found (stationary residual {residual} at {u})"


FEW_UNKNOWNS = 50
"""Up to this number of unknowns, directional derivatives are computed already in the first sweep."""

SINGULAR = 1e-7
"""Singular values below this fraction of the largest one, or of 1, count as 0: differences are accurate to about 1e-8."""

DOUBLE = float(np.finfo(np.float64).eps)
"""Relative rounding error of Float64."""

ROUNDINGS = 4
"""A loop can be solved no more accurately than to this number of rounding errors of its least precise type."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """An algebraic loop to solve: start values, nominal values, tolerances, and what is known of its sweeps.

    Parameters
    ----------
    u : shape (n,)
        Start values.
    nominal, relative : shape (n,)
        Nominal values, and relative tolerances of the unknowns.
    absolute : float
        Tolerance relative to the nominal values.
    has_derivatives : bool
        Whether a sweep can compute its partial derivatives.
    constrained : set of int
        Unknowns of constraints. Their residuals are variables that must be 0, not of the form G(u) - u. Each residual is
        divided by the largest element of its row of the Jacobian. It is then in the unit of the unknown: in its own
        unit it is tiny, because a short step hardly moves a mass.
    jacobian : shape (n, n), or None
        Jacobian of an earlier solution, which is tried first.
    plain : int
        Number of first sweeps without acceleration: n + 1 are enough for a loop that is only assumed.
    is_first : bool
        Whether nothing is known of the gain of the loop: where the start values already solve it, it is measured.
    precision : float
        Relative rounding error of the result of a sweep: that of the least precise type in the loop.
    """

    u: Vector
    nominal: Vector
    relative: Vector
    absolute: float
    has_derivatives: bool = False
    constrained: frozenset[int] = frozenset()
    jacobian: Matrix | None = None
    plain: int = 0
    is_first: bool = False
    precision: float = DOUBLE

    @property
    def newton_comes_first(self) -> bool:
        """Whether the search starts with Newton's method."""
        derives = self.has_derivatives and not self.plain and len(self.u) <= FEW_UNKNOWNS
        return derives or bool(self.constrained)

    @property
    def is_measured(self) -> bool:
        """Whether the gain of the loop is measured if its start values already solve it."""
        return self.is_first and not self.plain and len(self.u) <= FEW_UNKNOWNS

    def is_solved(self, u: Vector, residual: Vector) -> bool:
        """Whether the residual is within its tolerance."""
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

    def is_within_rounding(self, u: Vector, residual: Vector, step: Vector) -> bool:
        """Whether Newton's step is below the rounding error of the unknowns: no other values are nearer to the solution.

        Where outputs change steeply with the unknowns, the residual stays above its tolerance even then. It must be small
        nevertheless. Otherwise a discontinuity would be accepted as a steep function.

        Parameters
        ----------
        residual, step : shape (n,)
            Relative to the nominal values.
        """
        size = np.abs(u)
        is_lost = np.abs(step) * self.nominal <= ROUNDINGS * self.precision * size
        most = sqrt(self.precision) * np.maximum(size, self.nominal)
        return bool((is_lost & (np.abs(residual) * self.nominal <= most)).all())

    def scales(self, jacobian: Matrix | None) -> Vector:
        """Divisors of the residuals; NaN where they are not known without a Jacobian."""
        scales = np.ones(len(self.u))
        for k in self.constrained:
            scales[k] = np.nan if jacobian is None else np.abs(jacobian[k]).max() or 1.0
        return scales


class Attempts:
    """Record of the sweeps of one search: their number, the best one, and whether the Jacobian was singular.

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
        """Record a sweep."""
        self.count += 1
        size = norm(residual.tolist(), 0, len(residual))
        if not isfinite(size):
            self.has_overflowed = True
        elif size < self.size:
            self.size, self.u, self.residual = size, u.copy(), residual.copy()

    def sweep(self, u: Vector, *, derive: bool = False) -> Generator[Trial, Sweep, Sweep]:
        """Do a sweep with these values."""
        answer = yield Trial(u, derive and self.problem.has_derivatives)
        self.tried(answer.u, answer.residual)
        return answer

    def failure(self) -> NoSolution:
        """The error to raise if no solution was found."""
        if self.was_singular:
            residual, u = _text(self.residual * self.problem.nominal), _text(self.u)
            stationary = Reasons.STATIONARY.format(residual=residual, u=u)
            reason = stationary if self.was_regular else Reasons.SINGULAR
        else:
            reason = Reasons.DIVERGED if self.has_overflowed else Reasons.NOT_CONVERGED
        return NoSolution(reason, ", ".join(self.methods), self.u, self.residual)


def _text(values: Vector) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


NEARLY_SINGULAR = 1e-3
"""Warn below this smallest singular value of the Jacobian: the error of the unknowns can be 1000 times the residual."""


SMALL = 1e-6
"""Up to this residual, relative to the value, the FMUs are probably the reason why a loop is not solved."""


def doubtful(what: str, smallest: float) -> tuple[str, ...]:
    """Warnings about solutions, from the smallest singular value of their Jacobians."""
    loop = what[:1].upper() + what[1:]
    if smallest < SINGULAR:
        return (
            f"{loop}: solution not unique (loop gain 1). The solution found from the start values was taken; give "
            "start values, or check the model",
        )
    if smallest < NEARLY_SINGULAR:
        return (
            f"{loop}: loop gain near 1 (smallest singular value {smallest:.2g}). The error of the solution can be "
            f"{1 / smallest:.0e} times its residual; use a smaller tolerance",
        )
    return ()


def not_solved(
    what: str,
    failure: NoSolution,
    *,
    loop: Sequence[str],
    values: Mapping[str, float],
    residuals: Mapping[str, float],
    sweeps: int,
    time: float,
    assumed: bool,
) -> LoopError:
    """The error for a loop that was not solved; values and residuals are those of the best attempt."""
    best = listed(
        f"{name} = {values[name]:.9g} (residual {residuals[name]:.3g})" for name in values
    )
    about = MAY_BE_NONE if assumed else ""
    return LoopError(
        f"The {what} was not solved at t = {time:.12g} s: {failure.reason}. Method: {failure.method}; {sweeps} sweeps. "
        f"Best attempt: {best}.{about} {_advice(failure.reason, values, residuals)}",
        loop=loop,
        reason=failure.reason,
        method=failure.method,
        sweeps=sweeps,
        values=values,
        residuals=residuals,
        time=time,
    )


def _advice(reason: str, values: Mapping[str, float], residuals: Mapping[str, float]) -> str:
    is_small = all(abs(residuals[name]) <= SMALL * abs(values[name]) for name in values)
    if reason == Reasons.NOT_CONVERGED and is_small:
        return (
            "The residual is small: it cannot become smaller if FMUs do not repeat a step exactly. Give a larger "
            "tolerance (--loop-tolerance), or do not solve the loop (--loops none)."
        )
    if reason == Reasons.SINGULAR:
        return "Check signs, and whether the equations contradict each other or one follows from the others."
    if reason in (Reasons.DIVERGED, Reasons.NOT_CONVERGED):
        return "Give start values nearer to the solution, or break the loop by a component with a delay."
    return "There may be no solution: check parameters, or give other start values."
