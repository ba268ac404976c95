"""The base class of co-simulation algorithms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from fmimaster.control.step_context import StepContext
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan, StepOrder
from fmimaster.plan.policy import Policy
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.program.polynomial import HOLD, Polynomial
from fmimaster.program.programs import Pattern

_AT_AN_EVENT = (
    "an FMU stops at an event",
    "an event clock that needs no going back (LookAhead, Predictive)",
)


class Algorithm(ABC):
    """A co-simulation algorithm: writes the program of one attempt at one step.

    Only :meth:`emit` must be written. It walks ``plan.trigger_sequence``, so that it also serves a part of a system: the
    plan of a part is ``replace(plan, trigger_sequence=part)``.
    """

    __slots__ = ()

    @abstractmethod
    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write how all instances of the trigger sequence get from the start of the interval to its end."""

    @property
    def order(self) -> int:
        """Order of the error over an interval of fixed length, for smooth systems."""
        return 1

    @property
    def handles_early_returns(self) -> bool:
        """Whether it brings back the instances that stepped past an early return; else it is put into ``Aligned``."""
        return False

    @property
    def solves_constraints(self) -> bool:
        """Whether it finds the forces of constraints itself; else it must be one with :meth:`with_loops`."""
        return False

    @property
    def finds_events_for_others(self) -> bool:
        """Whether one instance stops at events and the others ignore theirs: then it has :meth:`policies`, and needs the
        event clock ``Check``."""
        return False

    @property
    def measures_itself(self) -> bool:
        """Whether it calls ``p.measure()`` itself, once for each part of the interval whose result is kept; else that is
        done after what it writes."""
        return False

    @property
    def is_parallel(self) -> bool:
        """Whether no instance sees what another one computes in the same step."""
        return False

    @property
    def course(self) -> Polynomial:
        """How inputs go on over a step."""
        return HOLD

    def given_to_group(self, group: Plan, p: Emitter) -> AbstractContextManager[None]:
        """Around what is written for a group of instances that are solved together: what they are given of others."""
        del group, p
        return nullcontext()

    def with_loops(self, solved: Callable[[Algorithm], Algorithm]) -> Algorithm:
        """This algorithm, with the algebraic loops of Step Mode solved; itself, if it cannot step a part of a system.

        Parameters
        ----------
        solved
            Makes of an algorithm one that solves the loops, and leaves all other instances to it.
        """
        return solved(self)

    def aligned(self, align: Callable[[Algorithm], Algorithm]) -> Algorithm:
        """This algorithm, made safe against early returns: what steps is put into a wrapper."""
        return align(self)

    @property
    def can_go_back(self) -> bool:
        """Whether an attempt that it has written can be undone or repeated."""
        return True

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """What it does for an instance because of the capabilities of its FMU, in words.

        Parameters
        ----------
        before
            Instances that have stepped before those of the plan: of other parts of the system, or all in an earlier sweep.
        """
        del plan, before
        return ()

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Where it does less than it means to, because of the capabilities of an FMU; ``before`` as for :meth:`notes`."""
        del plan, before
        return ()

    def restart(self) -> Algorithm:
        """The algorithm of steps without history: at the start, and after events."""
        return self

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """Instances that may have to go back at an early return, of another instance or of their own."""
        members = plan.members
        stopping = [i for i in members if plan.instances[i].may_return_early]
        if len(stopping) != 1:
            return members if stopping else ()
        (only,) = stopping
        return [i for i in members if i != only or not plan.instances[i].event_mode]

    @property
    def why_it_goes_back(self) -> tuple[str, str]:
        """Why the instances of :meth:`goes_back` may have to go back, and what can be used instead, for messages."""
        return _AT_AN_EVENT

    @property
    def refreshes(self) -> bool:
        """Whether it reads outputs again with new inputs in Event Mode, which FMUs without events must use for that."""
        return False

    def repeats(self, plan: Plan) -> Sequence[int]:
        """Instances that step again over the same interval until something converges: they must repeat a step exactly."""
        del plan
        return ()

    def undoes(self, plan: Plan) -> bool:
        """Whether an attempt that did not converge is undone, and tried again with half its length: then all members must
        be able to go back."""
        del plan
        return False

    def policies(self, order: StepOrder) -> tuple[Mapping[int, Policy], ...]:
        """For each variant, what the instances do at their own events; none: the policy of the event clock."""
        del order
        return ()

    def variants(self, plan: Plan) -> tuple[Algorithm, ...]:
        """The algorithms between which :meth:`choose` chooses; one alone is always taken."""
        del plan
        return (self,)

    def choose(self, context: StepContext) -> int:
        """Number of the variant that the next step takes."""
        return context.variant

    def pattern(self) -> Pattern | None:
        """In which order the variants are taken on the grid of the step-size rule, if :meth:`choose` does not choose."""
        return None

    def under_way(self, plan: Plan) -> Sequence[int]:
        """Instances whose step ends in the interval and began before it: their inputs were moved there."""
        del plan
        return ()

    def ends(self, plan: Plan) -> Mapping[int, float]:
        """Where :meth:`emit` brings each instance, as a fraction of the interval; one that is missing is not stepped."""
        return dict.fromkeys(plan.members, 1.0)

    def leader(self, order: StepOrder) -> int | None:
        """The instance whose inputs are extrapolated while those of the others are interpolated: then the others decide
        on shared events. None if there is no such instance."""
        del order
        return None

    def signals(self) -> tuple[Signal, ...]:
        """Values that its hooks write, which can be recorded like outputs."""
        return ()

    def event_hook(self, plan: Plan, begin: int) -> Hook | None:
        """What works on triggers and payload at an event that was found by an early return.

        Parameters
        ----------
        begin : int
            Buffer of the outputs at the start of the step.
        """
        del plan, begin
        return None
