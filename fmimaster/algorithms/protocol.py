"""What a co-simulation algorithm is."""

from __future__ import annotations

from typing import Protocol

from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter


class Algorithm(Protocol):
    """A co-simulation algorithm: writes the program of one attempt at one step.

    It may have a method ``restart()`` that returns another algorithm for steps without history, at the start and after
    events, and an attribute ``aligns`` that is true if it handles early returns.
    """

    @property
    def order(self) -> int:
        """Order of the error over an interval of fixed length, for smooth systems."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write how all instances get from the begin of the interval to its end."""
