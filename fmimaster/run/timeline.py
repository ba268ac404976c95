"""The calendar of a run: instants at which a communication point is required."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fmimaster.instants.instant import NEVER, Instant


@dataclass
class Timeline:
    """Required points of the user or of an input table, in the order of time."""

    points: list[Instant] = field(default_factory=list)
    jumps: Mapping[Instant, frozenset[int]] = field(default_factory=dict)
    """Those of the points at which a continuous input jumps → the instances for which that is an event."""

    @classmethod
    def of(
        cls, points: Iterable[Instant], jumps: Mapping[Instant, frozenset[int]] | None = None
    ) -> Timeline:
        """A calendar with these points, and those of the jumps."""
        jumps = jumps or {}
        return cls(sorted({*points, *jumps}), jumps)

    def after(self, now: Instant) -> Instant:
        """The first point after an instant; NEVER if there is none."""
        k = bisect_right(self.points, now)
        return self.points[k] if k < len(self.points) else NEVER
