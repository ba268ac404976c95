"""Result of the execution of a program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Reason(Enum):
    """Reason why an execution stopped before its end."""

    DISCARDED = "the FMU discarded the step"
    EARLY = "the FMU returned early at a time outside of the step"
    ENDED = "the FMU ended the run at a time outside of the step"
    NOT_CONVERGED = "an iteration did not converge"


@dataclass(frozen=True, slots=True)
class Halt:
    """An execution that stopped before its end: the reason, the instruction, and the time of the instance."""

    reason: Reason
    instance: int
    """Index of the instance; -1 if no single instance is the cause."""
    instruction: int
    """Index in the program; -1 for reasons found at its end."""
    time: float
    """Time in s that the instance had reached."""
    change: float = 0.0
    """For NOT_CONVERGED: the largest relative change of an output in the last pass."""
    messages: tuple[str, ...] = ()
    """For DISCARDED: the last messages that the FMU has logged, oldest first."""


class Outcome(NamedTuple):
    """Result of one execution of a program."""

    end: float
    """Time in s that all instances have reached."""
    terminate: bool = False
    """Whether an FMU requested the end of the simulation."""
    stopped: Halt | None = None
    event_requests: tuple[int, ...] = ()
    """Instances that request an event at the end."""
