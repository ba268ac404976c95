"""Causes of the ends of steps and of events: the loop creates these values, and the results hold them unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

from fmimaster.base.data import dataclass


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
    """A step that was rolled back, because its error was too large or because it failed."""
    CONTROLLED = "{}"
    """Limited by step-size control: the error estimate that limited the step, and its place."""
    ENDED = "{} ended the run"
    AHEAD = "{} ahead"
    """An instance has stepped past an early return and cannot go back: the others step to its time."""

    # of the end of a step, and of an event
    PREDICTED = "{} predicted"
    LOCATED = "{} located"
    EARLY_RETURN = "early return of {}"
    TIME_EVENT = "time event of {}"
    CLOCK = "clock {}"
    STRUCTURE = "change of the structure"

    # of an event
    DETECTED = "{} detected"
    EXECUTED = "executed by {}"
    REQUESTED = "requested by {}"
    CHANGED_INPUT = "changed input of {}"
    RESTS = "at rest"
    """A contact is at rest: a force holds it from now on."""
    OPENS = "opens"
    """A contact that was held opens."""
    SEEN_LATE = "event before, seen late by {}"
    """An instance that stood ahead of an event has it at its own time."""


class Cause(NamedTuple):
    """The cause of the end of a step, or of an event.

    Examples
    --------
    >>> str(Cause(Kind.EARLY_RETURN, ("upper", "lower")))
    'early return of upper and lower'
    """

    kind: Kind
    """The kind of the cause."""
    who: tuple[str, ...] = ()
    """Names of instances; for PREDICTED and LOOK_AHEAD of an event; for CONTROLLED of an error estimate. Empty if the
    kind needs no name."""

    def __str__(self) -> str:
        return self.kind.value.format(" and ".join(self.who)).strip()


GRID, STEP_SIZE, RAMP, STOP_TIME = map(
    Cause, (Kind.GRID, Kind.STEP_SIZE, Kind.RAMP, Kind.STOP_TIME)
)
"""Causes without names."""

NEED_NO_WORDS = frozenset({Kind.GRID, Kind.STOP_TIME})
"""A run in which all steps end for these causes, and without events, needs no explanation."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event that has happened.

    Examples
    --------
    >>> from fmimaster import reference_path, simulate
    >>> from fmimaster.events import Predictive
    >>> system = reference_path("systems/two-mass-b1-fmi3.ssp")
    >>> event = simulate(system, step_size=0.1, event_clock=Predictive(), stop_time=1).events[0]
    >>> event.name, event.shared, event.components
    ('collision', True, ('upper', 'lower'))
    >>> event.left["lower.v"] > 0 > event.right["lower.v"]
    True
    """

    time: float
    """Time in s. For EXECUTED it is the next communication point: the event was inside the step before it."""
    index: int
    """Superdense index of its right limit: the row at this time that has the values after the event."""
    name: str
    """Name of the event in its FMU, or of the shared event in the system."""
    shared: bool
    """Whether it happens in several components at the same time; otherwise it is private to one component."""
    components: tuple[str, ...]
    """Components in which it happened; for EXECUTED those that executed it in this step."""
    cause: Cause
    """How it was found: PREDICTED, DETECTED, EXECUTED, EARLY_RETURN, TIME_EVENT, REQUESTED, CHANGED_INPUT or
    LOCATED."""
    left: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Recorded variables of its components before the event, except clocks and absent values; arrays as lists. Empty for
    LOCATED and EXECUTED, because these events are inside a step."""
    right: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The same variables after the event."""

    @property
    def scope(self) -> str:
        """``"shared"`` or ``"private"``."""
        return "shared" if self.shared else "private"

    def __str__(self) -> str:
        return f"{self.name} ({self.scope}) at t = {self.time:.12g} s in {' and '.join(self.components)}, {self.cause}"


@dataclass(frozen=True, slots=True)
class Steps:
    """Consecutive communication steps with the same cause and the same size."""

    begin: float
    """[s]"""
    end: float
    """[s]"""
    cause: Cause
    """The cause of the end of each of them."""
    count: int = 1
    """Number of steps."""

    @property
    def size(self) -> float:
        """The step size in s; of several steps, the mean."""
        return (self.end - self.begin) / self.count


@dataclass(frozen=True, slots=True)
class Activations:
    """Consecutive activations of a time-based clock at equal distances: of a periodic clock usually all.

    Times are exact: tick k is at ``first + k * interval``, as a product, and the FMUs are passed the nearest double.
    """

    clock: str
    """The clock with its component: ``"controller.tick"``."""
    first: Fraction
    """[s]"""
    last: Fraction
    """[s]"""
    count: int
    """Number of activations."""
    interval: Fraction | None
    """Distance of two of them in s: 0 if there is one, or if all are at one instant, in consecutive iterations. None if
    they are at different distances: a clock has many such stretches, and only these numbers are kept of them."""

    @property
    def times(self) -> tuple[float, ...]:
        """Times of all activations in s, as FMUs are passed them; empty if their distances differ."""
        if self.interval is None:
            return ()
        return tuple(float(self.first + k * self.interval) for k in range(self.count))


def needs_explanation(events: Sequence[Event], steps: Iterable[Steps]) -> bool:
    """Whether there is an event, or a step that does not end on the grid."""
    return bool(events) or any(s.cause.kind not in NEED_NO_WORDS for s in steps)
