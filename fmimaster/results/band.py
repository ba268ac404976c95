"""The band of the FMI cross-check: how many samples of a signal are far from a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

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
