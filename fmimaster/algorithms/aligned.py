"""Aligned: any algorithm, safe against FMUs that end a step early at an event of their own."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.algorithms.protocol import Algorithm
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Aligned:
    """Let the base algorithm step, then bring back to the earliest early return whoever stands beyond it.

    Only instances that can be beyond it are saved: whoever is stepped before another one that may return early, and those
    that discard a step at an event. They must be able to get and set their FMU state.

    Source: fmimaster; the grid of steps is not moved by an early return.
    """

    base: Algorithm
    aligns: bool = True

    @property
    def order(self) -> int:
        """That of the base."""
        return self.base.order

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(go_back(plan))
        self.base.emit(plan, p)
        # whoever is brought back may stop still earlier, so that all are looked at again
        for _ in places:
            for instance, place in places.items():
                p.align(instance, place)


def go_back(plan: Plan) -> list[int]:
    """Instances that may have to go back when another one, or they themselves, stop early."""
    stopping = [i for i, instance in enumerate(plan.instances) if instance.may_return_early]
    return [
        i
        for i, instance in enumerate(plan.instances)
        if any(j != i for j in stopping) or (i in stopping and not instance.event_mode)
    ]
