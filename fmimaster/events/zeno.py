"""Events that accumulate: an infinite number of them before a finite time (Zeno)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from fmimaster.instants.grid import same

GAPS = 8
"""Number of successive gaps between events that must have become shorter."""

LARGEST_RATIO = 0.95
"""Largest ratio of a gap to the gap before."""

SHORT, SHORT_AT = 1e-6, 1e-9
"""[s], and as a fraction of the time: gaps longer than both are no accumulation (hybrid.md 5)."""

LEAST, MOST = 1e-5, 1e-4
"""Bounds of that length as fractions of a usual step: a system with fast events has short steps."""

FEW = 8
"""The last events at one time, or event iterations, by which those that do not end are described."""

MOST_MICROSTEPS = 1000
"""With more event iterations in an event, more events at one time, or more early returns without an event, the sequence is
assumed not to end: the system is illegitimate."""


MOST_IN_A_STEP = 3000
"""With more events of one instance within a usual step, or more steps towards events, time hardly advances: the system has
much faster events than steps, or they are its own reaction to the one before. A ball with flights of a thirtieth of a step
has thirty."""


STEPS = "steps towards events"
"""Kind of what is counted between events."""


class Span(NamedTuple):
    """What has happened within a usual step."""

    begin: float
    """[s]"""
    end: float
    """[s]"""
    number: int
    step: float
    """Length in s of a usual step."""


def accumulation(times: Sequence[float], step: float) -> float | None:
    """Time in s at which events accumulate, None if they do not.

    They do if each of the last 8 gaps is shorter than 0.95 of the gap before, and the last is below 1 us or 1e-9 of the
    time, or in the range of rounding. In runs with steps below 10 ms it must be below 1e-4 of a usual step; in runs with
    steps above 0.1 s, below 1e-5 of a usual step is enough.

    Parameters
    ----------
    times : in s, of one kind of event, in their order
    step : length in s of a usual step

    Notes
    -----
    The gaps are treated as a geometric series; the limit is Aitken's extrapolation from the last two gaps.
    """
    if len(times) <= GAPS:
        return None
    newest, gap = times[-1], times[-1] - times[-2]
    short = min(max(SHORT, SHORT_AT * abs(newest)), MOST * step)
    if gap <= 0 or gap >= max(short, LEAST * step, same(newest, step)):
        return None
    last = list(times)[-GAPS - 1 :]
    gaps = [b - a for a, b in pairwise(last)]
    ratios = [b / a for a, b in pairwise(gaps)]
    if max(ratios) >= LARGEST_RATIO:
        return None
    return newest + gap * ratios[-1] / (1 - ratios[-1])


class EventHistory:
    """Times of the last events, by a key for each kind of event."""

    def __init__(self) -> None:
        self._times: dict[object, deque[float]] = {}
        self._at = 0.0
        self._count = 0
        self._causes: deque[frozenset[int]] = deque(maxlen=FEW)
        self._within: dict[object, tuple[float, int]] = {}
        """For each kind: the first time in s within a usual step, and how many there were since then."""

    def too_dense(self, kind: object, time: float, step: float) -> Span | None:
        """Count one of a kind. Returns what there was since the first of them within a usual step of ``step`` s, if that is
        too much."""
        begin, count = self._within.get(kind, (time, 0))
        if not begin <= time < begin + step:
            begin, count = time, 0
        self._within[kind] = begin, count + 1
        return Span(begin, time, count + 1, step) if count >= MOST_IN_A_STEP else None

    def add(self, kind: object, time: float, step: float) -> float | None:
        """Add an event of a run with usual steps of ``step`` s. Returns the time in s at which such events accumulate,
        or None."""
        times = self._times.setdefault(kind, deque(maxlen=GAPS + 1))
        if times and time == times[-1]:  # it happened again because of another event
            return None
        times.append(time)
        return accumulation(times, step)

    def would_accumulate(self, kind: object, time: float, step: float) -> bool:
        """Whether an event at a time in s would be one of those that accumulate, see :meth:`add`."""
        times = self._times.get(kind, ())
        return bool(times) and accumulation([*times, time], step) is not None

    def forget(self, kind: object) -> None:
        """Forget the events of a kind: they cannot accumulate any more."""
        self._times.pop(kind, None)

    def restart(self, kind: object) -> None:
        """Count a kind anew."""
        self._within.pop(kind, None)

    @property
    def causes(self) -> frozenset[int]:
        """The instances that have caused the last events."""
        return frozenset[int]().union(*self._causes)

    def too_many_at(self, time: float, near: float, causes: frozenset[int] = frozenset()) -> bool:
        """Count an instant with events that these instances have caused, or an early return without one. Returns whether
        there were too many at one time.

        Times with an average distance below ``near``, in s, count as one time.
        """
        self._causes.append(causes)
        if not self._at <= time <= self._at + MOST_MICROSTEPS * near:
            self._at, self._count = time, 0
        self._count += 1
        return self._count > MOST_MICROSTEPS
