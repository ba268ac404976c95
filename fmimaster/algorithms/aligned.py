"""Aligned: any algorithm, safe against FMUs that end a step early at an event of their own."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.algorithms.wrapper import Wrapper
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Aligned(Wrapper):
    """Let the base algorithm step, then bring the instances that stepped past the earliest early return back to it.

    Only instances that can be past it are saved: those that are stepped before another one that may return early, and
    those that discard a step at an event. They must be able to get and set their FMU state.

    Parameters
    ----------
    base : Algorithm
        What steps.

    Source: fmimaster; the grid of steps is not moved by an early return.
    """

    @property
    def handles_early_returns(self) -> bool:
        """They are handled here."""
        return True

    def restart(self) -> Aligned:
        """Itself: a base with a first step of its own stands around it."""
        return self

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(self.goes_back(plan))
        self.base.emit(plan, p)
        # an instance that is brought back may stop still earlier, so that all are looked at again
        for _ in places:
            for instance, place in places.items():
                p.align(instance, place)
