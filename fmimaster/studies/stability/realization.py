"""Identifies the equations of a linear system from its responses, with the fewest states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

ROUNDING = 1e-12
"""A singular value below this part of the largest one is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearMap:
    """One step of a linear system: x' = transition x + entry w, and the outputs after the step y = exit x + direct w.

    ``x`` are the states before the step, ``x'`` those after it, and ``w`` is what the inputs do in it.
    """

    transition: Matrix
    entry: Matrix
    exit: Matrix
    direct: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Realization:
    """A linear system identified from responses, with the observability and reachability of its states.

    Attributes
    ----------
    map : LinearMap
    seen : shape (outputs of all observed steps, states)
        Outputs of the next steps without inputs, for each state; each output in units of ``sizes``.
    sizes : shape (outputs,)
        Largest responses.
    reached : shape (states, pulses of all steps)
        The states after a pulse and some steps without inputs.
    """

    map: LinearMap
    seen: Matrix
    sizes: NDArray[np.float64]
    reached: Matrix

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.reached)

    def states_of(self, outputs: Matrix) -> Matrix:
        """The states after which the next steps without inputs give these outputs.

        Parameters
        ----------
        outputs : shape (steps, outputs, columns)

        Returns
        -------
        shape (states, columns)
        """
        steps, n_outputs, columns = outputs.shape
        scaled = (outputs / self.sizes[:, None]).reshape(steps * n_outputs, columns)
        solved, *_ = np.linalg.lstsq(self.seen, scaled)
        return np.asarray(solved, np.float64)


def realize(
    pulses: Matrix, noise: float = 0.0, rounding: NDArray[np.float64] | None = None
) -> Realization:
    """The linear system with the fewest states that has these responses to pulses of its inputs.

    Parameters
    ----------
    pulses : shape (steps, outputs, inputs)
        Outputs after each step if an input is 1 in the first step, and 0 in all others. An odd number of steps.
    noise : float
        Error of the responses, relative to the largest one of the same output. Smaller singular values are no states.
    rounding : shape (outputs,), optional
        Additional errors of the responses, in their units.

    Notes
    -----
    The singular value decomposition of the Hankel matrix of the responses. Source: Juang and Pappa (1985), An eigensystem
    realization algorithm, eqs. (8) to (22).
    """
    steps, n_outputs, n_inputs = pulses.shape
    blocks = (steps - 1) // 2
    sizes = np.max(np.abs(pulses), axis=(0, 2), initial=0.0)
    sizes[sizes == 0.0] = 1.0
    scaled = pulses / sizes[:, None]
    first, second = (
        np.block([[scaled[1 + i + j + shift] for j in range(blocks)] for i in range(blocks)])
        for shift in (0, 1)
    )
    u, s, v = np.linalg.svd(first)
    error = noise if rounding is None else noise + float(np.max(rounding / sizes, initial=0.0))
    # singular values of a matrix of errors: Marchenko and Pastur (1967)
    errors = error * (np.sqrt(len(u)) + np.sqrt(len(v)))
    rank = int(np.sum(s > max(ROUNDING * np.max(s, initial=0.0), errors)))
    root = np.sqrt(s[:rank])
    u, v = u[:, :rank], v[:rank]
    transition = (u.T @ second @ v.T) / root[:, None] / root
    seen, reached = u * root, root[:, None] * v
    exits = seen[:n_outputs] * sizes[:, None]
    one = LinearMap(transition, reached[:, :n_inputs], exits, pulses[0])
    return Realization(one, seen, sizes, reached)
