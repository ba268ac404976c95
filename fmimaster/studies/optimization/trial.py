"""A trial: one simulation with a trigger sequence, used to find a better sequence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Arc = tuple[str, str]
"""All connections from one group of components to another one, by the names of the two."""


@dataclass(frozen=True, slots=True)
class SimulationTrial:
    """One simulation. These attributes are its only differences from others."""

    sequence: tuple[str, ...]
    """Names of the groups, in the order in which they are stepped."""
    stale: frozenset[Arc] = frozenset()
    """Arcs whose inputs are extrapolated although their sources have stepped before."""
    halved: bool = False
    """Whether the step size is half the usual one."""


class Trials(Protocol):
    """Makes trials, each once."""

    @abstractmethod
    def __call__(self, trial: SimulationTrial) -> NDArray[np.float64] | None:
        """Outputs at the communication points of the usual step size, shape (points, outputs); None if the run failed."""

    @abstractmethod
    def done(self) -> Iterable[SimulationTrial]:
        """Trials that have rows, in the order in which they were made."""


def stale_arcs(sequence: Sequence[str], arcs: Iterable[Arc]) -> frozenset[Arc]:
    """Arcs whose source steps after its target."""
    position = {name: k for k, name in enumerate(sequence)}
    return frozenset(arc for arc in arcs if position[arc[0]] > position[arc[1]])


def rms(signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root mean square over the points: shape (points, outputs) → (outputs,)."""
    result: NDArray[np.float64] = np.sqrt(np.mean(signals**2, axis=0))
    return result


def relative_error(
    signals: NDArray[np.float64], reference: NDArray[np.float64], scale: NDArray[np.float64]
) -> float:
    """Mean over the outputs of the root mean square of the difference, relative to a scale of each output.

    Outputs whose scale is 0 are ignored.
    """
    counted = scale > 0
    if not counted.any():
        return 0.0
    return float(np.mean(rms(signals - reference)[counted] / scale[counted]))


def is_compared(values: NDArray[np.generic]) -> bool:
    """Whether a column can be used to compare runs: floating-point numbers that exist from the start on."""
    return values.dtype.kind == "f" and is_number(values) and bool(np.isfinite(values[0]))


def is_number(values: NDArray[np.generic]) -> bool:
    """Whether a column has a number or a Boolean in each row."""
    return values.dtype.kind in "fiub" and not np.ma.is_masked(values)
