"""Which components step in which intervals of a grid, if they have step sizes of their own."""

from __future__ import annotations

from typing import NamedTuple


class RateInterval(NamedTuple):
    """An interval between two communication points."""

    begins: frozenset[str]
    """Components whose step begins at its start."""
    ends: frozenset[str]
    """Components whose step ends at its end."""


class RatePattern(NamedTuple):
    """The intervals of a run."""

    intervals: tuple[RateInterval, ...]
    """They repeat until the end of the run."""
    last: RateInterval
    """The last interval: all components step to its end."""

    @property
    def components(self) -> frozenset[str]:
        """All that have a step size."""
        return self.last.ends
