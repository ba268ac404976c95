"""What the loop over time is given, and what it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fmimaster.control.event_clock import Indicators
from fmimaster.control.instant import Instant
from fmimaster.program.instructions import Program
from fmimaster.run.log import EventLog, StepLog
from fmimaster.run.timeline import Timeline


class EventProgram(Protocol):
    """Instances, triggers, and whether an early return is the cause → the program of their event."""

    def __call__(
        self, instances: tuple[int, ...], fired: tuple[int, ...], early: bool
    ) -> Program: ...


class StepWay(Protocol):
    """One way to step."""

    @property
    def attempt(self) -> Program: ...
    @property
    def rollback(self) -> Program: ...
    @property
    def tell(self) -> Program: ...
    @property
    def event(self) -> EventProgram: ...
    @property
    def first(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class StepPrograms:
    """The programs that the loop runs."""

    ways: Sequence[StepWay]
    commit: Program
    restart: StepWay | None = None
    """The way to do a step without history, if that is another one."""
    renew: Program | None = None
    """Forgets the history but for the present point."""
    choose: Callable[[Indicators, float, int], int] | None = None
    """(indicators, length of a whole step in s, present way) → the way that the next step takes."""


@dataclass
class RunState:
    """All that changes in Python during a run."""

    time: Instant
    timeline: Timeline
    attempts: int = 0
    steps: int = 0
    way: int = 0
    """In which of the ways it is stepped."""
    previous: float = 0.0
    """Length of the last step in s; 0 at the start and after an event."""
    fired: frozenset[int] = frozenset()
    """Events that have happened at the present time."""
    outdated: frozenset[int] = frozenset()
    """Instances whose outputs depend on inputs that have jumped, and that cannot tell before their next step."""
    bracket: tuple[float, float] | None = None
    """While a change is located: step lengths in s without it and with it."""
    step_log: StepLog = field(default_factory=StepLog)
    event_log: EventLog = field(default_factory=EventLog)
