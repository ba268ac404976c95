"""Aligned: makes any algorithm safe against FMUs that end a step early at their own event."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.algorithms.wrapper import Wrapper
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Aligned(Wrapper):
    """Step by the base algorithm, then roll back to the earliest early return the instances that stepped past it.

    Only instances that can step past it are saved: those that step before another one that may return early, and those
    that discard a step at an event. An instance that cannot get and set its FMU state stays ahead: it has the event at
    its own time, and the run reports how late that is. Members of shared events, and instances that discard a step at an
    event, must be able to go back.

    Parameters
    ----------
    base : Algorithm
        What steps.

    Source: fmimaster. An early return does not shift the grid of steps.
    """

    @property
    def handles_early_returns(self) -> bool:
        """Always True."""
        return True

    def restart(self) -> Aligned:
        """Itself: a base with a special first step is wrapped around it."""
        return self

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(self.goes_back(plan))
        self.base.emit(plan, p)
        # a repeated step of an instance may stop even earlier, so all instances are checked again
        for _ in places:
            for instance, place in places.items():
                p.align(instance, place)
