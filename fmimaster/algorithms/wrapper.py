"""The base class of algorithms that wrap another one, and Aligned, which makes any algorithm safe against early returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import update_wrapper
from operator import attrgetter
from typing import Any

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.plan.plan import Plan
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


def _of_base(name: str) -> Any:
    """A property, or a method, of the base."""
    member = vars(Algorithm)[name]
    if isinstance(member, property):
        return property(attrgetter(f"base.{name}"), doc=member.__doc__)

    def call(self: Wrapper, *arguments: Any, **named: Any) -> Any:
        return getattr(self.base, name)(*arguments, **named)

    return update_wrapper(call, member)


_OWN = {
    "choose",
    "emit",
    "event_hook",
    "finds_events_for_others",
    "pattern",
    "policies",
    "under_way",
    "variants",
    "why_it_goes_back",
}
"""What a wrapper does not take from its base."""

for _name in {n for n in vars(Algorithm) if not n.startswith("_")} - vars(Wrapper).keys() - _OWN:
    setattr(Wrapper, _name, _of_base(_name))


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

    def undoes(self, plan: Plan) -> bool:
        """Whether the base undoes attempts, or an instance may stop with inputs that are held over the step, and not those
        of the instant. Shorter steps then have better ones; so they are undone, if all can go back."""
        able = self.base.can_go_back and self.base.course.uses_history and plan.can_go_back
        return self.base.undoes(plan) or (
            able
            and any(
                plan.instances[i].may_return_early
                and plan.has_inputs(i)
                and not plan.instances[i].model.takes_polynomials
                for i in plan.members
            )
        )

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(self.goes_back(plan))
        self.base.emit(plan, p)
        # a repeated step of an instance may stop even earlier, so all instances are checked again
        for _ in places:
            for instance, place in places.items():
                p.align(instance, place)
