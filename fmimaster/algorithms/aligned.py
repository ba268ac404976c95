"""Aligned: any algorithm, safe against FMUs that end a step early at an event of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.polynomial import Polynomial


@dataclass(frozen=True, slots=True)
class Aligned(Algorithm):
    """Let the base algorithm step, then bring the instances that stepped past the earliest early return back to it.

    Only instances that can be past it are saved: those that are stepped before another one that may return early, and
    those that discard a step at an event. They must be able to get and set their FMU state.

    Source: fmimaster; the grid of steps is not moved by an early return.
    """

    base: Algorithm

    @property
    def order(self) -> int:
        """That of the base."""
        return self.base.order

    @property
    def handles_early_returns(self) -> bool:
        """They are handled here."""
        return True

    @property
    def can_go_back(self) -> bool:
        """Whether the base can."""
        return self.base.can_go_back

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """Those of the base."""
        return self.base.goes_back(plan)

    def repeats(self, plan: Plan) -> Sequence[int]:
        """Those of the base."""
        return self.base.repeats(plan)

    def undoes(self, plan: Plan) -> bool:
        """Whether the base does."""
        return self.base.undoes(plan)

    @property
    def measures_itself(self) -> bool:
        """Whether the base does."""
        return self.base.measures_itself

    @property
    def is_parallel(self) -> bool:
        """Whether the base is."""
        return self.base.is_parallel

    @property
    def course(self) -> Polynomial:
        """That of the base."""
        return self.base.course

    def with_loops(self, solved: Callable[[Algorithm], Algorithm]) -> Aligned:
        """The base with its loops solved."""
        return replace(self, base=self.base.with_loops(solved))

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.notes(plan, before)

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.accuracy_warnings(plan, before)

    def signals(self) -> tuple[Signal, ...]:
        """Those of the base."""
        return self.base.signals()

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(self.goes_back(plan))
        self.base.emit(plan, p)
        # an instance that is brought back may stop still earlier, so that all are looked at again
        for _ in places:
            for instance, place in places.items():
                p.align(instance, place)
