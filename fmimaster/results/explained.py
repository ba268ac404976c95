"""What explains a table of results: the events between its rows, and why each step ended where it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ON_GRID = frozenset({"grid", "stop time"})
"""Reasons that need no explanation: a run with no others has nothing to tell."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event that has happened.

    Examples
    --------
    >>> from fmimaster import reference_path, simulate
    >>> from fmimaster.control.event_clock import Predictive
    >>> system = reference_path("systems/two-mass-b1-fmi3.ssp")
    >>> event = simulate(system, step_size=0.1, event_clock=Predictive(), stop_time=1).events[0]
    >>> event.name, event.shared, event.components
    ('collision', True, ('upper', 'lower'))
    >>> event.left["lower.v"] > 0 > event.right["lower.v"]
    True
    """

    time: float
    """[s]"""
    index: int
    """Superdense index of its right limit: the row at this time that shows the values after it."""
    name: str
    shared: bool
    """Whether it happens in several components at once; else it is private to one."""
    components: tuple[str, ...]
    found: str
    """How it was found: ``"predicted"``, ``"detected"``, ``"early return of X"``, ``"time event …"``, ``"located"``."""
    left: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Recorded variables of its components before the event; arrays as lists."""
    right: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The same after it. Both are empty if the row before the event is not known."""

    @property
    def scope(self) -> str:
        """``"shared"`` or ``"private"``."""
        return "shared" if self.shared else "private"

    def __str__(self) -> str:
        return f"{self.name} ({self.scope}) at t = {self.time:.12g} s in {' and '.join(self.components)}, {self.found}"


@dataclass(frozen=True, slots=True)
class Steps:
    """Communication steps that follow each other and have ended for the same reason; those of a quiet grid are one."""

    begin: float
    """[s]"""
    end: float
    """[s]"""
    reason: str
    """Who or what has set the end: ``"grid"``, ``"collision predicted"``, ``"stop time"``, …"""
    count: int = 1

    @property
    def size(self) -> float:
        """The step size in s; of several steps, the mean."""
        return (self.end - self.begin) / self.count


def worth_telling(events: Sequence[Event], steps: Sequence[Steps]) -> bool:
    """Whether there is an event, or a step that does not end on the grid."""
    return bool(events) or any(s.reason not in ON_GRID for s in steps)


def reasons(steps: Iterable[Steps]) -> dict[str, int]:
    """Reason → number of steps, the most frequent first."""
    counts: Counter[str] = Counter()
    for s in steps:
        counts[s.reason] += s.count
    return dict(counts.most_common())
