"""Measures of a deviation in time: samples outside of the band of the FMI cross-check, and times of jumps."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fmimaster.base.data import dataclass

Array = NDArray[np.float64]

SAMPLES = 1000
"""Points in time of the band, at equal distances."""
WIDTH = 21
"""Samples over which the band takes the smallest and the largest value of the reference: late events stay inside."""
HEIGHT = 0.1
"""Distance of the band from these values, relative to the range of the reference."""
HEIGHT_AT_ZERO = 0.5
"""The distance, in the unit of the signal, if the reference is constantly 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The smallest and the largest permitted value of a signal, over time.

    Attributes
    ----------
    time, lower, upper : shape (SAMPLES,)
        In s, and in the unit of the signal; linear between the points.
    """

    time: Array
    lower: Array
    upper: Array

    def outside(self, time: Array, values: Array) -> float:
        """The share of samples outside the band, 0 to 1; NaN is inside only where the reference is NaN.

        Samples before the start and after the end of the band count as inside, as in FMPy.
        """
        lower = np.interp(time, self.time, self.lower)
        upper = np.interp(time, self.time, self.upper)
        is_inside = (values >= lower) & (values <= upper) | (np.isnan(values) & np.isnan(lower))
        is_covered = (time >= self.time[0]) & (time <= self.time[-1])
        return float(np.mean(is_covered & ~is_inside)) if len(time) else 0.0


def band(time: Array, values: Array, start: float, stop: float) -> Band:
    """The band around a reference between two times.

    Parameters
    ----------
    time, values : shape (n,)
        The reference. It is linear between its rows. Of several rows at one time the first is used.

    Source: ``validate_signal`` of ``fmpy.cross_check`` 0.3, which has decided the results in modelica/fmi-cross-check.
    """
    is_first = np.concatenate(([True], np.diff(time) > 0.0))
    samples = np.linspace(start, stop, SAMPLES)
    with np.errstate(invalid="ignore"):  # infinite values
        there = np.interp(samples, time[is_first], values[is_first])
        low, high = float(np.nanmin(there)), float(np.nanmax(there))
        constant = HEIGHT_AT_ZERO if low == 0.0 else abs(low) * HEIGHT
        height = constant if low == high else (high - low) * HEIGHT
        # at both ends the window is cut: a repeated end is in it anyway
        around = sliding_window_view(np.pad(there, WIDTH // 2, mode="edge"), WIDTH)
        return Band(samples, around.min(axis=1) - height, around.max(axis=1) + height)


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


def jump_times(found: Array, known: Array) -> JumpTimes:
    """The jumps of a column beside those of the reference, both as :func:`fmimaster.results.comparison.jumps` returns
    them."""
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
