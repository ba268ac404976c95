"""What a co-simulation algorithm is."""

from __future__ import annotations

from typing import Protocol

from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter


class Algorithm(Protocol):
    """A co-simulation algorithm: writes the program of one attempt at one step.

    It may have more, of which :func:`fmimaster.algorithms.assemble` makes use:

    ``restart() -> Algorithm``
        Another algorithm for steps without history, at the start and after events.
    ``aligns : bool``
        Whether it handles early returns; else it is put into :class:`Aligned`.
    ``goes_back(plan) -> list of instances``
        Who may have to go back at an early return, if it handles them in its own way.
    ``policies(plan) -> instance → Policy``
        What each FMU shall do at its own events, if they do not all do the same.
    ``event_hook(plan, begin) -> function of the value store``
        What works on triggers and payload at an event that was found by an early return; ``begin`` is the buffer of the
        outputs at the begin of the step.
    """

    @property
    def order(self) -> int:
        """Order of the error over an interval of fixed length, for smooth systems."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write how all instances get from the begin of the interval to its end."""
