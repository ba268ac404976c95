"""The next instants of periodic clocks and of a grid, merged: many at once, for stretches of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_CLOCKS = 62
"""A set of clocks is a number with one bit for each, and one for the grid."""

LARGEST = 2**53
"""Below it, doubles hold all integers, so that a quotient of two is rounded as Python rounds it."""


class Every(NamedTuple):
    """The instants ``first + k * interval``, k = 0, 1, ..., as integers."""

    first: int
    interval: int


def merged(
    grid: Every, clocks: Sequence[Every], stop: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The instants before ``stop``, about ``most`` of them, and which clocks tick there.

    Parameters
    ----------
    clocks
        At most MOST_CLOCKS.

    Returns
    -------
    instants : shape (n,), increasing
    sets : shape (n,)
        Bit k: the k-th clock ticks; the bit above those of all clocks: a point of the grid.
    """
    every = [*clocks, grid]
    per_tick = sum(1.0 / e.interval for e in every)
    stop = min(stop, LARGEST, min(e.first for e in every) + max(int(most / per_tick), 1))
    each = [np.arange(e.first, stop, e.interval, dtype=np.int64) for e in every]
    instants, places = np.unique(np.concatenate(each), return_inverse=True)
    sets = np.zeros(len(instants), np.int64)
    at = 0
    for k, own in enumerate(each):
        sets[places[at : at + len(own)]] |= 1 << k  # an instant is there once for each of them
        at += len(own)
    return instants, sets
