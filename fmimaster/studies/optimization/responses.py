"""Step responses of the outputs of a component to one input, and the modes in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BLOCKS = 10
"""Rows and columns of blocks of the Hankel matrix: as many states can be seen."""
_RANK = 1e-7
"""A singular value below this part of the largest one is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class StepResponse:
    """The response to a unit step of one input at the first point: shape (points, outputs)."""

    values: NDArray[np.float64]

    @property
    def at_once(self) -> NDArray[np.float64]:
        """D: the immediate part; shape (outputs,)."""
        first: NDArray[np.float64] = self.values[0]
        return first

    @property
    def after_a_step(self) -> NDArray[np.float64]:
        """S: the further change at the end of the first step; shape (outputs,)."""
        difference: NDArray[np.float64] = self.values[1] - self.values[0]
        return difference

    @property
    def pulses(self) -> NDArray[np.float64]:
        """Responses to a pulse over the first step, without D: shape (points - 1, outputs)."""
        return np.diff(self.values, axis=0)


def mean_rate(responses: list[StepResponse]) -> float:
    """Geometric mean of the absolute eigenvalues of a linear component, per step; 0 if one is 0.

    The eigenvalues are those of the discrete system with the fewest states that has these pulse responses, found by the
    singular value decomposition of their Hankel matrix, and then of the continuous one, ``log(mu)``.

    Source: Juang and Pappa (1985), An eigensystem realization algorithm, eqs. (8) to (22).
    """
    if not responses:
        return 0.0
    pulses = np.stack([r.pulses for r in responses], axis=2)  # points, outputs, inputs
    sizes = np.max(np.abs(pulses), axis=(0, 2), initial=0.0)
    if len(pulses) < 2 or not np.any(sizes > 0):
        return 0.0
    n = min(_BLOCKS, len(pulses) // 2)
    pulses = pulses[:, sizes > 0] / sizes[sizes > 0][:, None]
    # a Hankel matrix whose blocks are the responses of all outputs to all inputs
    first, second = (
        np.block([[pulses[i + j + shift] for j in range(n)] for i in range(n)]) for shift in (0, 1)
    )
    u, s, v = np.linalg.svd(first, full_matrices=False)
    rank = int(np.sum(s > _RANK * s[0]))
    root = 1 / np.sqrt(s[:rank])
    step = root[:, None] * (u[:, :rank].T @ second @ v[:rank].T) * root
    mu = np.linalg.eigvals(step).astype(complex)
    rates = np.abs(np.log(mu[mu != 0]))
    if not len(rates) or np.min(rates) == 0:
        return 0.0
    return float(np.exp(np.mean(np.log(rates))))
