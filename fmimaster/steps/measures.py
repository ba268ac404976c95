"""Signals of a run with step-size control: the errors of its estimators and the size of each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from fmimaster.plan.layout import Group, Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import ValueStore
from fmimaster.steps.step_rule import StepRule
from fmimaster.system.model import DataType

STEP_SIZE = Signal("step_size", "s")


def control_signals(rule: StepRule[Any]) -> tuple[Signal, ...]:
    """Signals of the run for a step-size rule: none if it has no estimators."""
    found = tuple(signal for estimator in rule.estimators for signal in estimator.signals())
    return (*found, STEP_SIZE) if rule.estimators else ()


def control_measures(rule: StepRule[Any], plan: Plan, degree: int) -> tuple[Hook, ...]:
    """The hooks that write these signals; inputs are extrapolated by polynomials of this degree."""
    hooks = [estimator.hook(plan, degree) for estimator in rule.estimators]
    found = tuple(hook for hook in hooks if hook is not None)
    return (*found, StepSize.of(plan)) if rule.estimators else ()


def doubling_comparisons(
    rule: StepRule[Any], degree: int
) -> tuple[Callable[[Plan, int], Hook], ...]:
    """For estimators that use step doubling: functions (plan, buffer of the whole step) → hook that compares."""
    if not rule.estimators:
        return ()
    from fmimaster.steps.estimators.step_doubling import Doubling  # few runs need it

    doubling = (e for e in rule.estimators if isinstance(e, Doubling))
    return tuple(partial(estimator.difference, degree) for estimator in doubling)


@dataclass(frozen=True, slots=True, eq=False)
class StepSize(Hook):
    """The length of the step → its signal.

    Parameters
    ----------
    instance : int
        An instance whose outputs have been read at the end of the step; -1 if no outputs are read.
    target : int
        Index of the signal into the Float64 outputs.
    """

    instance: int
    target: int
    name: ClassVar[str] = "step size"  # type: ignore[misc]

    @classmethod
    def of(cls, plan: Plan) -> StepSize:
        """The hook of a plan that has the signal."""
        reads = (i for i in plan.members if plan.layout.segments(i, Group.OUTPUTS))
        return cls(next(reads, -1), plan.layout.signals[STEP_SIZE.name][1])

    def __call__(self, store: ValueStore) -> bool:
        """Write it."""
        begin, end = store.interval
        reached = end if self.instance < 0 else store.read.item(self.instance)
        store.outputs[DataType.FLOAT64][self.target] = reached - begin
        return False

    def twin(self, store: ValueStore) -> Twin:
        """The same in C."""
        del store
        return Twin("step size", numbers={"instance": self.instance, "target": self.target})
