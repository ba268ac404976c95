"""What the solver of a loop keeps from sweep to sweep, shared by the hooks in Python and their twins in C."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from fmimaster.loops.search import Vector

MOST_REMEMBERED = 16
"""Differences of sweeps for which the kernel has room."""


class At(IntEnum):
    """Numbers that the hooks and their twins count: indices into :attr:`LoopState.counts`."""

    SWEEPS = 0
    """Of the present solution."""
    KEPT = 1
    """Differences that the twin remembers."""
    STAGE = 2
    """0: Anderson acceleration in C; 1: it has given up; 2: the search continues in Python; 3: the start values are a
    solution, of which nothing else is known."""
    TOTAL = 3
    """Sweeps of all solutions."""
    SOLUTIONS = 4
    MOST = 5
    """Largest number of sweeps of a solution."""
    OVERFLOWED = 6
    """Whether a residual of the present solution has diverged."""


_OF_RUN = At.SOLUTIONS, At.TOTAL, At.MOST


@dataclass(frozen=True, eq=False)
class LoopState:
    """The arrays of a loop of n unknowns, with the names that they have in the kernel."""

    counts: NDArray[np.int64]
    """By :class:`At`."""
    sizes: Vector
    """Of residuals, the first and the smallest one; and the smallest slope of a residual."""
    relative: Vector
    """Relative tolerance of each unknown."""
    x: Vector
    """The values that are tried."""
    u0: Vector
    """Those with which the present solution began."""
    best_u: Vector
    best_residual: Vector
    work: Vector

    @classmethod
    def of(cls, n: int, depth: int, relative: float) -> LoopState:
        """That of a loop of n unknowns, with room for so many differences."""
        x, u0, best_u, best_residual = np.zeros((4, n))
        return cls(
            counts=np.zeros(len(At), np.int64),
            sizes=np.full(3, np.inf),
            relative=np.full(n, relative),
            x=x,
            u0=u0,
            best_u=best_u,
            best_residual=best_residual,
            work=np.zeros((5 + 3 * depth) * n),
        )

    def begin(self, values: Vector) -> None:
        """A new solution begins with these values."""
        self.u0[:] = self.x[:] = values
        self.counts[[At.SWEEPS, At.KEPT, At.STAGE, At.OVERFLOWED]] = 0

    def note_solution(self) -> None:
        """One more is found."""
        self.counts[At.SOLUTIONS] += 1
        self.counts[At.MOST] = max(self.counts[At.MOST], self.counts[At.SWEEPS])

    @property
    def of_run(self) -> tuple[int, int, int]:
        """Numbers of solutions and sweeps so far, and the largest number of sweeps of a solution."""
        solutions, sweeps, most = self.counts[[*_OF_RUN]].tolist()
        return solutions, sweeps, most

    def go_on(self, numbers: tuple[float, ...]) -> None:
        """Continue with such numbers of a run."""
        self.counts[[*_OF_RUN]] = numbers
