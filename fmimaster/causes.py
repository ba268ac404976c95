"""Why steps end and events happen: the loop makes these values, and the results hold them unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple


class Kind(Enum):
    """Kinds of causes. The value is the text for a reader, with ``{}`` for the names."""

    # of the end of a step
    GRID = "grid"
    STEP_SIZE = "step size"
    RAMP = "ramp"
    STOP_TIME = "stop time"
    IMPOSED_POINT = "imposed point"
    LOOK_AHEAD = "look-ahead to {}"
    INTERRUPTION = "interruption"
    OUTDATED_OUTPUTS = "outputs of {} after an event"
    ERROR = "error"
    """A step that was undone, because its error was too large, or because it failed."""
    CONTROLLED = "{}"
    """By step-size control: the error estimate that has limited the step, and where it was largest."""
    ENDED = "{} ended the run"

    # of the end of a step, and of an event
    PREDICTED = "{} predicted"
    LOCATED = "{} located"
    EARLY_RETURN = "early return of {}"
    TIME_EVENT = "time event of {}"

    # of an event
    DETECTED = "{} detected"
    EXECUTED = "executed by {}"
    REQUESTED = "requested by {}"
    CHANGED_INPUT = "changed input of {}"


class Cause(NamedTuple):
    """Why a step has ended, or an event has happened.

    Examples
    --------
    >>> str(Cause(Kind.EARLY_RETURN, ("upper", "lower")))
    'early return of upper and lower'
    """

    kind: Kind
    """What kind of cause."""
    who: tuple[str, ...] = ()
    """Names of instances; of an event for PREDICTED and LOOK_AHEAD; of an error estimate for CONTROLLED. Empty where the
    kind needs none."""

    def __str__(self) -> str:
        return self.kind.value.format(" and ".join(self.who)).strip()


GRID, STEP_SIZE, RAMP, STOP_TIME = map(
    Cause, (Kind.GRID, Kind.STEP_SIZE, Kind.RAMP, Kind.STOP_TIME)
)
"""Causes without names, made once."""

NEED_NO_WORDS = frozenset({Kind.GRID, Kind.STOP_TIME})
"""A run in which all steps end for these causes, and without events, needs no explanation."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event that has happened.

    Examples
    --------
    >>> from fmimaster import Predictive, reference_path, simulate
    >>> system = reference_path("systems/two-mass-b1-fmi3.ssp")
    >>> event = simulate(system, step_size=0.1, event_clock=Predictive(), stop_time=1).events[0]
    >>> event.name, event.shared, event.components
    ('collision', True, ('upper', 'lower'))
    >>> event.left["lower.v"] > 0 > event.right["lower.v"]
    True
    """

    time: float
    """[s] Of EXECUTED the communication point after it: it lies inside the step before."""
    index: int
    """Superdense index of its right limit: the row at this time that shows the values after it."""
    name: str
    """Of the event in its FMU, or of the shared event in the system."""
    shared: bool
    """Whether it happens in several components at once; else it is private to one."""
    components: tuple[str, ...]
    """Those in which it has happened; of EXECUTED those that have executed it in this step."""
    cause: Cause
    """How it was found; of the kinds PREDICTED, DETECTED, EXECUTED, EARLY_RETURN, TIME_EVENT, REQUESTED, CHANGED_INPUT,
    LOCATED."""
    left: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Recorded variables of its components before the event; arrays as lists. Empty for LOCATED and EXECUTED:
    they lie inside a step."""
    right: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The same after it."""

    @property
    def scope(self) -> str:
        """``"shared"`` or ``"private"``."""
        return "shared" if self.shared else "private"

    def __str__(self) -> str:
        return f"{self.name} ({self.scope}) at t = {self.time:.12g} s in {' and '.join(self.components)}, {self.cause}"


@dataclass(frozen=True, slots=True)
class Steps:
    """Communication steps that follow each other, of the same cause and the same size."""

    begin: float
    """[s]"""
    end: float
    """[s]"""
    cause: Cause
    """Why each of them ended where it did."""
    count: int = 1
    """Number of steps."""

    @property
    def size(self) -> float:
        """The step size in s; of several steps, the mean."""
        return (self.end - self.begin) / self.count


def needs_explanation(events: Sequence[Event], steps: Iterable[Steps]) -> bool:
    """Whether there is an event, or a step that does not end on the grid."""
    return bool(events) or any(s.cause.kind not in NEED_NO_WORDS for s in steps)
