"""What a search for the solution of an algebraic loop works on: the problem, what is tried, what sweeps gave, the end."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


FEW_UNKNOWNS = 50
"""Up to so many, directional derivatives are asked for in the first sweep already."""

DOUBLE = float(np.finfo(np.float64).eps)
"""Relative rounding error of Float64."""

ROUNDINGS = 4
"""So many rounding errors of the least precise type in a loop are the most accurate that it can be solved."""


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

    @property
    def newton_comes_first(self) -> bool:
        """Whether the search begins with Newton's method."""
        derives = self.has_derivatives and not self.plain and len(self.u) <= FEW_UNKNOWNS
        return derives or bool(self.constrained)

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

    def is_within_rounding(self, u: Vector, residual: Vector, step: Vector) -> bool:
        """Whether Newton's step is lost in the rounding of the unknowns, so that no other values are nearer.

        Where outputs change by much with the unknowns, their residual stays above its tolerance even then. It must be small
        all the same, so that a jump does not pass for a steep function.

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


def norm(values: Sequence[float]) -> float:
    """Euclidean norm, added in order."""
    total = 0.0
    for value in values:
        total += value * value
    return sqrt(total)
