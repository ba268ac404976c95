"""The linear model of one FMU around a point of a run, with the fewest states, measured for each step size."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import SimulationError
from fmimaster.studies.stability.responses import Responses

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


_BLOCKS = (6, 12, 24, 48)
"""Steps in which states are reached and seen: more, while there seem to be as many states as can be seen."""

MOST_STEPS = 2 * _BLOCKS[-1] + 1
"""Steps of the longest experiment."""

_SAME = 1e-9
"""Relative difference below which two step sizes are equal: they are differences of doubles."""


class LinearFmu:
    """Linear model of the states and outputs of one FMU over a step, for any step size.

    The states of an FMU are not observable directly. Those of the model represent the outputs of the next steps of the
    first size with unchanged inputs. They are the same states for all step sizes.

    Parameters
    ----------
    responses : Responses
        Measured responses of the FMU.
    size : float
        First size of the steps in s.

    Attributes
    ----------
    responses : Responses
    deviation : float
        Relative difference between responses that are equal for a linear FMU.

    Raises
    ------
    SimulationError
        If the FMU cannot do such steps.
    """

    def __init__(self, responses: Responses, size: float) -> None:
        self.responses, self._size = responses, size
        self.deviation = 0.0
        self._realization = self._realized()
        self._steps = {size: self._realization.map}

    @property
    def states(self) -> int:
        """Number of states that are reachable from the inputs and observable in the outputs."""
        return self._realization.states

    def step(self, size: float) -> LinearMap:
        """One step of a size in s; the inputs are in units of :attr:`Responses.scale`."""
        for known, step in self._steps.items():
            if abs(known - size) <= _SAME * known:
                return step
        self._steps[size] = step = self._measured(size)
        return step

    @cached_property
    def at_once(self) -> NDArray[np.float64]:
        """Change of the outputs by a change of continuous inputs in Event Mode, shape (outputs, inputs)."""
        return self.responses.at_once()

    def _realized(self) -> Realization:
        n, m = len(self.responses.outputs), self.responses.inputs.size
        if n == 0 or m == 0:
            return realize(np.zeros((3, n, m)))
        for blocks in _BLOCKS:
            pulses = self.responses.pulses([self._size] * (2 * blocks + 1))
            self.responses.compare(pulses, self._size)
            self.deviation = self.responses.noise
            found = realize(pulses, self.responses.noise, self.responses.rounding)
            if found.states < min(n, m) * blocks:
                return found
        raise SimulationError(
            f"The outputs of '{self.responses.name}' depend on more than {found.states} states after steps of "
            f"{self._size:g} s, which is more than can be identified from its inputs and outputs."
        )

    def _measured(self, size: float) -> LinearMap:
        """By pulses over such a step, and such a step from each state that pulses of the first size have reached."""
        known, blocks = (
            self._realization,
            len(self._realization.seen) // max(1, len(self.responses.outputs)),
        )
        rest = [self._size] * blocks
        pulses = self.responses.pulses([size, *rest])
        after, outputs = [], []
        for waited in range(blocks):
            response = self.responses.pulses([self._size, *[self._size] * waited, size, *rest])
            outputs.append(response[waited + 1])
            after.append(known.states_of(response[waited + 2 :]))
        reached = np.linalg.pinv(known.reached)
        return LinearMap(
            np.asarray(np.concatenate(after, axis=1) @ reached, np.float64),
            known.states_of(pulses[1:]),
            np.asarray(np.concatenate(outputs, axis=1) @ reached, np.float64),
            pulses[0],
        )
