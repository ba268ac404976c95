"""What happened in a run besides its rows: why each step ended where it did, and the events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class StepStretch(NamedTuple):
    """Steps that follow each other and have ended for the same reason."""

    begin: float
    """[s]"""
    end: float
    """[s]"""
    reason: str
    steps: int


SAME_SIZE = 1e-9
"""Steps whose sizes differ by no more than this part are alike: they are differences of times."""


@dataclass
class StepLog:
    """Each step with its reason; quiet stretches, on the grid or of steps of the same size, are one entry."""

    stretches: list[StepStretch] = field(default_factory=list)

    def add(self, begin: float, end: float, reason: str, count: int = 1) -> None:
        """Note steps from begin to end in s."""
        last = self.stretches[-1] if self.stretches else None
        if last is not None and last.reason == reason and _is_quiet(last, (end - begin) / count):
            self.stretches[-1] = StepStretch(last.begin, end, reason, last.steps + count)
        else:
            self.stretches.append(StepStretch(begin, end, reason, count))


def _is_quiet(last: StepStretch, size: float) -> bool:
    before = (last.end - last.begin) / last.steps
    return last.reason == "grid" or (
        last.reason == "step size" and abs(size - before) <= SAME_SIZE * before
    )


class EventEntry(NamedTuple):
    """An event that has happened."""

    time: float
    """[s]"""
    name: str
    scope: str
    """``"private"`` or ``"shared"``."""
    components: tuple[str, ...]
    how: str
    """How it was found."""


@dataclass
class EventLog:
    """The events of a run in their order."""

    entries: list[EventEntry] = field(default_factory=list)

    def add(
        self, time: float, name: str, scope: str, components: tuple[str, ...], how: str
    ) -> None:
        """Note an event."""
        self.entries.append(EventEntry(time, name, scope, components, how))
