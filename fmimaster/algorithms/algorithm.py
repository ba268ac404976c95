"""The base class of co-simulation algorithms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan, StepOrder
from fmimaster.plan.policy import Policy
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.program.programs import Pattern
from fmimaster.steps.step_rule import StepContext
from fmimaster.system.declarations import Scope

_AT_AN_EVENT = (
    "an FMU stops at an event",
    "an event clock that needs no rollback (LookAhead, Predictive)",
)


class Algorithm(TypedArguments, ABC):
    """Base of all co-simulation algorithms. An algorithm writes the program of one attempt at one step.

    A subclass must define only :meth:`emit`. It uses ``plan.trigger_sequence``, so it also works for a part of a
    system: the plan of a part is ``replace(plan, trigger_sequence=part)``.
    """

    __slots__ = ()

    @abstractmethod
    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write the instructions that step all instances of the trigger sequence from the start of the interval to its
        end."""

    @property
    def order(self) -> int:
        """Order of the error over an interval of fixed length, for smooth systems."""
        return 1

    @property
    def handles_early_returns(self) -> bool:
        """Whether it rolls back instances that stepped past an early return; otherwise ``Aligned`` is wrapped around
        it."""
        return False

    @property
    def solves_constraints(self) -> bool:
        """Whether it solves for the forces of constraints itself; otherwise it needs :meth:`with_loops`."""
        return False

    @property
    def finds_events_for_others(self) -> bool:
        """Whether one instance stops at events and the others ignore theirs. It then has :meth:`policies` and needs the
        event clock ``Check``."""
        return False

    @property
    def measures_itself(self) -> bool:
        """Whether it calls ``p.measure()`` itself, once for each part of the interval whose result is kept. Otherwise
        the call follows its program."""
        return False

    @property
    def divides_steps(self) -> bool:
        """Whether some instances do several steps in one of the others."""
        return False

    @property
    def is_parallel(self) -> bool:
        """Whether no instance uses results of another one from the same step."""
        return False

    @property
    def course(self) -> Polynomial:
        """The polynomial of the inputs over a step."""
        return HOLD

    def given_to_group(self, group: Plan, p: Emitter) -> AbstractContextManager[None]:
        """Context for the program of a group of instances that are solved together: their inputs from other
        instances."""
        del group, p
        return nullcontext()

    def with_loops(self, solved: Callable[[Algorithm], Algorithm]) -> Algorithm:
        """This algorithm with the algebraic loops of Step Mode solved; unchanged if it cannot step a part of a system.

        Parameters
        ----------
        solved
            Returns an algorithm that solves the loops and steps all other instances by the given algorithm.
        """
        return solved(self)

    def aligned(self, align: Callable[[Algorithm], Algorithm]) -> Algorithm:
        """This algorithm, safe against early returns: ``align`` wraps the part that steps."""
        return align(self)

    @property
    def can_go_back(self) -> bool:
        """Whether an attempt can be undone or repeated."""
        return True

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Notes on special treatment of instances because of the capabilities of their FMUs.

        Parameters
        ----------
        before
            Instances that have stepped before those of the plan: in other parts of the system, or all in an earlier
            sweep.
        """
        del plan, before
        return ()

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Warnings about lower accuracy because of the capabilities of an FMU; ``before`` as in :meth:`notes`."""
        del plan, before
        return ()

    def restart(self) -> Algorithm:
        """The algorithm of steps without history: at the start, and after events."""
        return self

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """Instances that may have to go back at an early return of another instance or of themselves: not those that
        stay ahead because they cannot."""
        stopping = [i for i in plan.members if plan.instances[i].may_return_early]
        if not stopping:
            return ()
        only = stopping[0] if len(stopping) == 1 else None
        shared = {i for e in plan.events if e.scope is Scope.SHARED for i in e.instances}
        return [
            i
            for i in plan.members
            if (i != only or not plan.instances[i].event_mode)
            and (i in shared or not plan.instances[i].stays_ahead)
        ]

    @property
    def why_it_goes_back(self) -> tuple[str, str]:
        """The reason why the instances of :meth:`goes_back` may have to go back, and an alternative, for messages."""
        return _AT_AN_EVENT

    @property
    def refreshes(self) -> bool:
        """Whether it reads outputs again with new inputs in Event Mode, which FMUs without events then must use."""
        return False

    def repeats(self, plan: Plan) -> Sequence[int]:
        """Instances that repeat the same interval in an iteration: they must repeat a step exactly."""
        del plan
        return ()

    def undoes(self, plan: Plan) -> bool:
        """Whether an attempt may be undone and repeated with a shorter length: it did not converge, or an instance stopped
        with inputs that are held. All members must then be able to go back."""
        del plan
        return False

    def policies(self, order: StepOrder) -> tuple[Mapping[int, Policy], ...]:
        """For each variant, the policy of the instances at their own events; if empty, that of the event clock."""
        del order
        return ()

    def variants(self, plan: Plan) -> tuple[Algorithm, ...]:
        """The algorithms between which :meth:`choose` chooses; a single one is always used."""
        del plan
        return (self,)

    def choose(self, context: StepContext) -> int:
        """Number of the variant for the next step."""
        return context.variant

    def pattern(self) -> Pattern | None:
        """The order of the variants on the grid of the step-size rule, if :meth:`choose` is not used."""
        return None

    def under_way(self, plan: Plan) -> Sequence[int]:
        """Instances whose step ends in the interval and started before it: their inputs were set at the start of the
        step."""
        del plan
        return ()

    def ends(self, plan: Plan) -> Mapping[int, float]:
        """The time to which :meth:`emit` steps each instance, as a fraction of the interval; missing ones are not
        stepped."""
        return dict.fromkeys(plan.members, 1.0)

    def leader(self, order: StepOrder) -> int | None:
        """The instance whose inputs are extrapolated while those of the others are interpolated; the others then decide
        on shared events. None if there is none."""
        del order
        return None

    def signals(self) -> tuple[Signal, ...]:
        """Values that its hooks write and that can be recorded like outputs."""
        return ()

    def event_hook(self, plan: Plan, begin: int) -> Hook | None:
        """A hook that changes triggers and payload at an event that was found by an early return.

        Parameters
        ----------
        begin : int
            Buffer of the outputs at the start of the step.
        """
        del plan, begin
        return None
