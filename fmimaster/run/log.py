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


class StepLog:
    """Each step with its reason; quiet stretches, on the grid or of steps of the same size, are one entry."""

    def __init__(self) -> None:
        self._ended: list[StepStretch] = []
        self._begin = self._end = self._size = 0.0
        self._steps = 0
        self.reason = ""
        """Why the last step has ended."""

    @property
    def stretches(self) -> list[StepStretch]:
        """All of them, in their order."""
        if not self._steps:
            return []
        return [*self._ended, StepStretch(self._begin, self._end, self.reason, self._steps)]

    def add(self, begin: float, end: float, reason: str, count: int = 1) -> None:
        """Note steps from begin to end in s."""
        size = end - begin if count == 1 else (end - begin) / count
        if reason == self.reason and (
            reason == "grid"
            or (reason == "step size" and abs(size - self._size) <= SAME_SIZE * self._size)
        ):
            self._end = end
            self._steps += count
            return
        if self._steps:
            self._ended.append(StepStretch(self._begin, self._end, self.reason, self._steps))
        self._begin, self._end, self._size = begin, end, size
        self.reason, self._steps = reason, count


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
