"""When columns jump, and how far the times of their jumps are from those of a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JumpTimes:
    """Times of the jumps of a column beside those of the reference.

    Two jumps belong together if each is the nearest one to the other.

    Attributes
    ----------
    known : int
        Jumps of the reference.
    missed : int
        Jumps of the reference that the results do not have.
    added : int
        Jumps of the results that the reference does not have.
    largest : float
        The largest difference in time of two jumps that belong together, in s; 0 if there are none.
    time : float
        Time of that jump in the reference, in s; 0 if there is none.
    """

    known: int
    missed: int
    added: int
    largest: float
    time: float


@dataclass(frozen=True, slots=True)
class PhaseError:
    """A discrete column that changes more or less often than that of the reference.

    From the first change that one of them lacks, the times of the changes belong to different cycles: they cannot be
    compared.

    Attributes
    ----------
    name : str
        Of the column.
    found, known : int
        How often it changes in the results and in the reference, in the time that both cover.
    """

    name: str
    found: int
    known: int

    def __str__(self) -> str:
        return (
            f"phase error: '{self.name}' changes {self.found} times, {self.known} times in the reference: the times of "
            "later changes cannot be compared"
        )


def jumps(time: Array, values: Array, held: bool) -> Array:
    """When a column jumps: between its rows at one time, and if its values are held, at each change.

    Returns
    -------
    shape (n, 2), in s
        Each jump is between these two times. They are equal for rows at one time.
    """
    differs = ~((values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1])))
    here = np.flatnonzero(differs & (held | (time[1:] == time[:-1])))
    return np.unique(np.column_stack((time[here], time[here + 1])), axis=0)


def jump_times(found: Array, known: Array) -> JumpTimes:
    """The jumps of a column beside those of the reference, both as :func:`jumps` returns them."""
    pairs = _pairs(found.mean(axis=1), known.mean(axis=1))
    ours, theirs = found[pairs[:, 0]], known[pairs[:, 1]]
    # two intervals that overlap may be jumps at the same time
    apart = np.maximum(0.0, np.maximum(ours[:, 0] - theirs[:, 1], theirs[:, 0] - ours[:, 1]))
    worst = int(apart.argmax()) if len(pairs) else None
    return JumpTimes(
        known=len(known),
        missed=len(known) - len(pairs),
        added=len(found) - len(pairs),
        largest=0.0 if worst is None else float(apart[worst]),
        time=0.0 if worst is None else float(theirs[worst, 0]),
    )


def _pairs(a: Array, b: Array) -> NDArray[np.intp]:
    """Pairs of places of times, each the nearest to the other one; both ascend."""
    if not len(a) or not len(b):
        return np.empty((0, 2), np.intp)
    to_b = _nearest(a, b)
    is_mutual = _nearest(b, a)[to_b] == np.arange(len(a))
    return np.column_stack((np.flatnonzero(is_mutual), to_b[is_mutual]))


def _nearest(times: Array, among: Array) -> NDArray[np.intp]:
    """Place of the nearest one of ascending times; the earlier of two that are equally near."""
    after = np.clip(np.searchsorted(among, times), 1, max(1, len(among) - 1))
    before = after - 1
    after = np.minimum(after, len(among) - 1)
    return np.where(times - among[before] <= among[after] - times, before, after)
