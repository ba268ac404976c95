"""Solver of algebraic loops: a generator that yields the values to try next and receives the result of each sweep.

The unknowns of a loop are ``u``, and one *sweep* over its instances is a function of them. The residual ``r(u)`` is the
result of the sweep minus ``u``, or, for a constraint, the value of a variable that must be 0. First comes Anderson
acceleration, then Newton's method, also from other start values; see :meth:`LoopSolver.solve`.

This module does not depend on FMUs or the value store: :mod:`fmimaster.loops.hook` connects it with them.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.typed_arguments import TypedArguments

if TYPE_CHECKING:
    from fmimaster.loops.search import Attempts, Problem, Search, Vector


@dataclass(frozen=True, slots=True)
class LoopSolver(TypedArguments):
    """Tolerances and limits of the solver of algebraic loops.

    Parameters
    ----------
    relative, absolute : float
        A loop is solved when each residual is at most ``absolute * nominal + relative * abs(u)``.
    depth : int
        Number of earlier sweeps that Anderson acceleration uses; 0 for plain fixed-point iteration.
    most_anderson, most_newton : int
        Largest number of sweeps of Anderson acceleration, and of steps of Newton's method from each start value.
    most_sweeps : int
        Largest number of sweeps of one solution, with all restarts; for each unknown beyond the first one,
        ``most_newton`` more.
    bounded : int or None
        If given, only Anderson acceleration is used (for constraints Newton's method). The last of this number of sweeps
        is the solution even if its residual is larger, but not if it is infinite.

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
        """Refuse invalid tolerances and limits."""
        for name, value in (("relative", self.relative), ("absolute", self.absolute)):
            if not (isfinite(value) and value > 0.0):
                raise OptionError(
                    f"LoopSolver({name}={value!r}): expected a number greater than 0."
                )
        for name, number, least in (
            ("depth", self.depth, 0),
            ("most_anderson", self.most_anderson, 1),
            ("most_newton", self.most_newton, 0),
            ("most_sweeps", self.most_sweeps, 1),
            ("bounded", self.bounded, 1),
        ):
            if number is not None and (not isinstance(number, int) or number < least):
                raise OptionError(
                    f"LoopSolver({name}={number!r}): expected an integer of {least} or more."
                )

    def limit(self, n: int) -> int:
        """Largest number of sweeps for a loop of n unknowns."""
        return self.most_sweeps + self.most_newton * (n - 1)

    def most_passes(self, n: int) -> int:
        """More sweeps than any search does: the limit is not checked within a Jacobian and the step after it."""
        return self.limit(n) + n + 2

    def remembered(self, n: int) -> int:
        """Number of differences of sweeps that Anderson acceleration of n unknowns uses."""
        return min(self.depth, n + 1)

    def anderson_limit(self, plain: int) -> int:
        """Largest number of sweeps of Anderson acceleration, including the first plain ones."""
        return (self.most_anderson + plain) if self.bounded is None else self.bounded

    def solve(self, problem: Problem) -> Search:
        """Search for a solution from the start values of a problem.

        Without partial derivatives: Anderson acceleration, then Newton's method with differences, then again from other
        start values. With them, Newton's method comes first, unless there are many unknowns. For constraints, only
        Newton's method is used.
        """
        # here and below: only systems with algebraic loops need them
        from fmimaster.loops.anderson import anderson
        from fmimaster.loops.newton import newton
        from fmimaster.loops.search import Attempts

        attempts = Attempts(problem)
        newton_first = problem.newton_comes_first and self.bounded is None
        if newton_first:
            found = yield from newton(
                attempts, problem.u, self.most_newton, self.limit(len(problem.u))
            )
            if found is not None:
                return found
        if not problem.constrained:
            found = yield from anderson(
                attempts,
                depth=self.remembered(len(problem.u)),
                most=self.anderson_limit(problem.plain),
                bounded=self.bounded is not None,
            )
            if found is not None:
                return found
        return (yield from self.restart(attempts, from_start=not newton_first))

    def go_on(
        self, problem: Problem, count: int, u: Vector, residual: Vector, *, overflowed: bool
    ) -> Search:
        """Continue a search after Anderson acceleration, done elsewhere in ``count`` sweeps, has not converged.

        Parameters
        ----------
        u, residual
            Of the sweep with the smallest residual; the residual relative to the nominal values.
        overflowed : bool
            Whether a residual has diverged.
        """
        from fmimaster.loops.anderson import ANDERSON
        from fmimaster.loops.search import Attempts

        attempts = Attempts(problem)
        attempts.methods[ANDERSON] = None
        attempts.tried(u, residual)
        attempts.count, attempts.has_overflowed = count, overflowed
        return (yield from self.restart(attempts, from_start=True))

    def restart(self, attempts: Attempts, *, from_start: bool) -> Search:
        """Newton's method from the start values, if not yet tried, and from other values; not if ``bounded`` is given."""
        from fmimaster.loops.newton import newton

        problem = attempts.problem
        if self.bounded is not None and not problem.constrained:
            raise attempts.failure()
        limit = self.limit(len(problem.u))
        for shift in (*([0.0] if from_start else []), *RESTARTS):
            if attempts.count >= limit:
                break
            start = problem.u + shift * problem.nominal
            found = yield from newton(attempts, start, self.most_newton, limit)
            if found is not None:
                return found
        raise attempts.failure()


RESTARTS = (1.0, -1.0, 10.0, -10.0)
"""Shifts of all unknowns, in nominal values, from which Newton's method starts again."""
