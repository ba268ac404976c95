"""The eigenvalues of one step of a coupled system, and what they tell."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, pi

import numpy as np
from numpy.typing import NDArray

FREE = 1e-11
"""An eigenvalue that is 1 up to this belongs to a free position: nothing drives it back, and nothing drives it away."""

GROWTH = 1e-7
"""Growth per step that cannot be told from rounding: two eigenvalues at 1 that belong to one free body are found apart by
the root of what rounding changes."""


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The eigenvalues of one step.

    Attributes
    ----------
    size : float
        Of the step in s.
    eigenvalues : shape (n,), complex
        The largest first; without those that are exactly 1, which belong to free positions.
    """

    size: float
    eigenvalues: NDArray[np.complex128]

    @classmethod
    def of(cls, matrix: NDArray[np.float64], size: float) -> Spectrum:
        """Of the matrix of a step."""
        found: NDArray[np.complex128] = np.asarray(np.linalg.eigvals(matrix), np.complex128)
        found = found[np.abs(found - 1.0) > FREE]
        order = np.lexsort((found.imag, -np.abs(found)))
        return cls(size, found[order])

    @property
    def radius(self) -> float:
        """The spectral radius: by so much the largest change grows with each step; 0 if nothing is coupled."""
        return float(np.abs(self.eigenvalues[0])) if len(self.eigenvalues) else 0.0

    @property
    def growth(self) -> float:
        """How much more than rounding the largest change grows with each step; negative if it decays."""
        return self.radius - 1.0 - GROWTH

    @property
    def is_stable(self) -> bool:
        """Whether no change grows."""
        return self.growth <= 0.0

    @property
    def tenfold(self) -> float:
        """Time in s in which the largest change grows tenfold, or decays to a tenth if it is stable."""
        rate = abs(log(self.radius)) if self.radius > 0.0 else inf
        return self.size * log(10.0) / rate if rate > 0.0 else inf

    @property
    def period(self) -> float:
        """Period in s with which the largest change oscillates; inf if it keeps its sign."""
        angle = abs(float(np.angle(self.eigenvalues[0]))) if len(self.eigenvalues) else 0.0
        return 2 * pi * self.size / angle if angle > 0.0 else inf
