"""Events that accumulate: an infinite number of them before a finite time (Zeno)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from fmimaster.control.grid import same

GAPS = 8
"""So many gaps between events must have shrunk, one after the other."""

LARGEST_RATIO = 0.95
"""Of a gap to the one before."""

SHORT = 1e-5
"""Gaps are long as long as they are more than this part of a usual step: a system with fast events has short steps."""

MOST_AT_ONE_TIME = 1000
"""More events at one time, or early returns without one, have no end."""


def accumulation(times: Sequence[float], step: float) -> float | None:
    """Time in s at which events accumulate, None if they do not.

    They do if the last 8 gaps have shrunk by a ratio below 0.95 each, and the last is below 1e-5 of a usual step, or
    cannot be told from rounding.

    Parameters
    ----------
    times : in s, of one kind of event, in their order
    step : length in s of a usual step

    Notes
    -----
    The limit of the gaps taken as a geometric series, by Aitken's extrapolation from the last two.
    """
    if len(times) <= GAPS:
        return None
    last = list(times)[-GAPS - 1 :]
    gaps = [b - a for a, b in pairwise(last)]
    if gaps[-1] <= 0 or gaps[-1] >= max(SHORT * step, same(last[-1], step)):
        return None
    ratios = [b / a for a, b in pairwise(gaps)]
    if max(ratios) >= LARGEST_RATIO:
        return None
    return last[-1] + gaps[-1] * ratios[-1] / (1 - ratios[-1])


class EventHistory:
    """Times of the last events, by a key for each kind of event."""

    def __init__(self) -> None:
        self._times: dict[object, deque[float]] = {}
        self._at = 0.0
        self._count = 0

    def add(self, kind: object, time: float, step: float) -> float | None:
        """Take an event of a run with usual steps of ``step`` s; the time in s at which its kind accumulates if it does."""
        times = self._times.setdefault(kind, deque(maxlen=GAPS + 1))
        if times and time == times[-1]:  # it has happened again because of another event
            return None
        times.append(time)
        return accumulation(times, step)

    def too_many_at(self, time: float, near: float) -> bool:
        """Count an instant with events, or an early return without one; whether there were too many at one time.

        Times that creep count as one: those that are on average less than ``near``, in s, after the one before.
        """
        if not self._at <= time <= self._at + MOST_AT_ONE_TIME * near:
            self._at, self._count = time, 0
        self._count += 1
        return self._count > MOST_AT_ONE_TIME
