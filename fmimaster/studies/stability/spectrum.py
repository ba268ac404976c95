"""The eigenvalues of one step of a coupled system, and stability properties from them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, pi

import numpy as np
from numpy.typing import NDArray

FREE = 1e-11
"""An eigenvalue that equals 1 within this tolerance belongs to a free position, without a restoring or driving
force."""

GROWTH = 1e-7
"""Largest growth per step due to rounding: a double eigenvalue 1 of a free body is split by the square root of the
rounding error."""


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
        """The spectrum of the matrix of a step."""
        found: NDArray[np.complex128] = np.asarray(np.linalg.eigvals(matrix), np.complex128)
        found = found[np.abs(found - 1.0) > FREE]
        order = np.lexsort((found.imag, -np.abs(found)))
        return cls(size, found[order])

    @property
    def radius(self) -> float:
        """The spectral radius: the growth factor per step of the largest change; 0 if no components are coupled."""
        return float(np.abs(self.eigenvalues[0])) if len(self.eigenvalues) else 0.0

    @property
    def growth(self) -> float:
        """Growth of the largest change per step beyond rounding; negative if it decays."""
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
