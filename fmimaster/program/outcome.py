"""What the execution of a program came to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Reason(Enum):
    """Why an execution stopped before its end."""

    DISCARDED = "the FMU discarded the step"
    EARLY = "the FMU returned early at a time outside of the step"
    ENDED = "the FMU ended the run at a time outside of the step"
    NOT_CONVERGED = "an iteration did not converge"


@dataclass(frozen=True, slots=True)
class Stop:
    """An execution that stopped before its end: why, at which instruction, and where the instance stood."""

    reason: Reason
    instance: int
    """Index of the instance; -1 where it is not the fault of one."""
    instruction: int
    """Index in the program; -1 for what is found out at its end."""
    time: float
    """Time in s that the instance had reached."""
    change: float = 0.0
    """For NOT_CONVERGED: the largest relative change of an output in the last pass."""
    messages: tuple[str, ...] = ()
    """For DISCARDED: the last messages that the FMU has logged, oldest first."""


class Outcome(NamedTuple):
    """What one execution of a program came to."""

    end: float
    """Time in s that all instances have reached."""
    terminate: bool = False
    """Whether an FMU asked to end the simulation."""
    stopped: Stop | None = None
    event_requests: tuple[int, ...] = ()
    """Instances that ask for an event at the end."""
