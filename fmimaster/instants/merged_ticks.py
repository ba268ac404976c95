"""The next instants of periodic clocks and of a grid, merged: many at once, for stretches of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_BITS = 62
"""A set of clocks is a row of numbers with one bit for each clock, and one for the grid."""

LARGEST = 2**53
"""Below it, doubles hold all integers, so that a quotient of two is rounded as Python rounds it."""

LEAST = 8
"""So many ticks of each clock on average: what each call costs is in proportion to the clocks, so what each tick costs is
not."""


class Every(NamedTuple):
    """The instants ``first + k * interval``, k = 0, 1, ..., as integers."""

    first: int
    interval: int


def merged(
    grid: Every, clocks: Sequence[Every], stop: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The instants before ``stop``, at most about ``most`` of them or LEAST for each clock, and which clocks tick there.

    Returns
    -------
    instants : shape (n,), increasing
    sets : shape (n, numbers)
        Bit k: the k-th clock ticks; the bit above those of all clocks: a point of the grid. See :func:`ticking`
        and :func:`members`.
    """
    every = [*clocks, grid]
    # clocks of equal intervals and phases tick together: their number makes no more instants
    rhythms = dict.fromkeys((e.interval, e.first % e.interval) for e in every)
    per_tick = sum(1.0 / interval for interval, _ in rhythms)
    ahead = int(max(most, LEAST * len(rhythms)) / per_tick)
    stop = min(stop, LARGEST, min(e.first for e in every) + max(ahead, 1))
    each = [np.arange(e.first, stop, e.interval, dtype=np.int64) for e in every]
    # a stable sort merges what is in order already; np.unique alone would hash
    ticks = np.sort(np.concatenate(each), kind="stable")
    instants = ticks[np.diff(ticks, prepend=ticks[:1] - 1) > 0]
    sets = np.zeros((len(instants), (len(every) - 1) // _BITS + 1), np.int64)
    for k, own in enumerate(each):
        sets[np.searchsorted(instants, own), k // _BITS] |= 1 << k % _BITS
    return instants, sets


def ticking(sets: NDArray[np.int64], clock: int) -> NDArray[np.bool_]:
    """Whether a clock, or the grid behind the last one, is in each of these sets."""
    found: NDArray[np.bool_] = (sets[..., clock // _BITS] >> clock % _BITS & 1).astype(np.bool_)
    return found


def distinct(sets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Each set once, and for each of the sets given its place among these."""
    if sets.shape[1] == 1:  # rows are sorted at a thirtieth of the speed of numbers
        found, of = np.unique(sets[:, 0], return_inverse=True)
        return found[:, None], of
    found, of = np.unique(sets, axis=0, return_inverse=True)
    return found, of.reshape(-1)


def members(sets: NDArray[np.int64], clocks: int) -> NDArray[np.bool_]:
    """Which of all clocks are in each of these sets: shape (n, clocks)."""
    bits = np.unpackbits(sets.astype("<i8").view(np.uint8), axis=1, bitorder="little")
    of_each = bits.reshape(len(sets), -1, 64)[:, :, :_BITS]
    return of_each.reshape(len(sets), -1)[:, :clocks].astype(np.bool_)
