"""The base class of algorithms that wrap another one, and Aligned, which makes any algorithm safe against early returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.base.errors import OptionError
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan, StepOrder
from fmimaster.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Wrapper(Algorithm):
    """An algorithm that wraps a base algorithm. Methods that it does not override return those of the base."""

    base: Algorithm

    def __post_init__(self) -> None:
        if self.base.finds_events_for_others:
            name = type(self.base).__name__
            raise OptionError(
                f"{type(self).__name__}: {name} cannot be its base, because {name} chooses in each step which FMU finds "
                "events for the others. Use Jacobi or GaussSeidel."
            )

    @property
    def order(self) -> int:
        """That of the base."""
        return self.base.order

    @property
    def handles_early_returns(self) -> bool:
        """Whether the base handles them."""
        return self.base.handles_early_returns

    @property
    def solves_constraints(self) -> bool:
        """Whether the base does."""
        return self.base.solves_constraints

    @property
    def refreshes(self) -> bool:
        """Whether the base does."""
        return self.base.refreshes

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

    @property
    def can_go_back(self) -> bool:
        """Whether the base can."""
        return self.base.can_go_back

    def given_to_group(self, group: Plan, p: Emitter) -> AbstractContextManager[None]:
        """That of the base."""
        return self.base.given_to_group(group, p)

    def with_loops(self, solved: Callable[[Algorithm], Algorithm]) -> Wrapper:
        """The base with its loops solved."""
        base = self.base.with_loops(solved)
        return self if base is self.base else replace(self, base=base)

    def aligned(self, align: Callable[[Algorithm], Algorithm]) -> Wrapper:
        """The base made safe against early returns."""
        return replace(self, base=self.base.aligned(align))

    def restart(self) -> Wrapper:
        """The base without history."""
        base = self.base.restart()
        return self if base is self.base else replace(self, base=base)

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.notes(plan, before)

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.accuracy_warnings(plan, before)

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """Those of the base."""
        return self.base.goes_back(plan)

    def repeats(self, plan: Plan) -> Sequence[int]:
        """Those of the base."""
        return self.base.repeats(plan)

    def undoes(self, plan: Plan) -> bool:
        """Whether the base does."""
        return self.base.undoes(plan)

    def ends(self, plan: Plan) -> Mapping[int, float]:
        """Those of the base."""
        return self.base.ends(plan)

    def leader(self, order: StepOrder) -> int | None:
        """That of the base."""
        return self.base.leader(order)

    def signals(self) -> tuple[Signal, ...]:
        """Those of the base."""
        return self.base.signals()


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
