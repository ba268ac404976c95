"""The time at which an event indicator changes its domain; twin of ``locate`` in ``kernel/exchange.c``.

The domain is compared with that after the last event. Hysteresis is the task of the FMU (FMI 3.0, 3.1.1): an indicator that
is 0 after an event would change again at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.model_exchange.integrator import Vector

_TOLERANCE = 4 * 2.0**-52
"""Length of the last bracket relative to the time."""
_MOST_TRIALS = 400
_BISECT_EVERY = 4
"""Trials after which the bracket is halved: an indicator that jumps defeats secants."""


def locate(
    low: float,
    high: float,
    at_low: Vector,
    at_high: Vector,
    indicators: Callable[[float], Vector],
) -> float:
    """The first time of a bracket of about one rounding error in which an indicator has changed its domain.

    Illinois method on the earliest of the secants of all indicators that have changed; each trial looks at all of them.

    Parameters
    ----------
    low, high : float
        Times in s: at ``low`` none has changed, at ``high`` at least one has. At the returned time one has, too.
    at_low, at_high : shape (m,)
        The indicators there; overwritten.
    indicators : function
        Of a time in s between both: shape (m,), borrowed until the next call.
    """
    domains: NDArray[np.bool_] = at_low > 0.0
    low_weight = high_weight = 1.0
    moved = 0  # the end that was moved last: -1 for the low one
    for trial in range(1, _MOST_TRIALS):
        width, least = high - low, _TOLERANCE * max(abs(low), abs(high))
        if width <= 2.0 * least:
            break
        middle = high
        for j in np.flatnonzero((at_high > 0.0) != domains):
            a, b = low_weight * float(at_low[j]), high_weight * float(at_high[j])
            middle = min(middle, low + width * (a / (a - b)))
        if trial % _BISECT_EVERY == 0:
            middle = low + 0.5 * width
        middle = min(max(middle, low + least), high - least)
        now = indicators(middle)
        if ((now > 0.0) != domains).any():
            high, at_high[:] = middle, now
            low_weight, high_weight = 0.5 * low_weight if moved > 0 else 1.0, 1.0
            moved = 1
        else:
            low, at_low[:] = middle, now
            low_weight, high_weight = 1.0, 0.5 * high_weight if moved < 0 else 1.0
            moved = -1
    return high
