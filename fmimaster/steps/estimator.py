"""The base class of error estimators, and the signals of a run with step-size control: their errors, and the step size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.plan.layout import Group, Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

STEP_SIZE = Signal("step_size", "s")


class Measured(NamedTuple):
    """The error of a step."""

    error: float
    """1 is the tolerance."""
    name: str = ""
    """Name of the estimator, with the bond or output that contributed most: ``"energy_error of suspension"``."""


class Estimator(TypedArguments, ABC):
    """Base of all error estimators: a signal of the run, written in each step before it is accepted or undone.

    Attributes
    ----------
    name : str
        Name of the signal: the error of the last step, where 1 is the tolerance. A second signal ``"<name>.worst"``, which
        is not recorded, is the index in :meth:`sources` of the bond or output that contributed most.
    """

    __slots__ = ()

    name: ClassVar[str]

    @abstractmethod
    def order(self, degree: int) -> int:
        """The power of the step size with which the error grows, if inputs are extrapolated by this degree."""

    def signals(self) -> tuple[Signal, ...]:
        """The signals that its hook writes; none if another part of the run writes them."""
        return Signal(self.name), Signal(self.worst, is_recorded=False)

    @property
    def worst(self) -> str:
        """Name of the signal with the index of the bond or output that contributed most."""
        return f"{self.name}.worst"

    def sources(self, plan: Plan) -> tuple[str, ...]:
        """Names of the bonds or outputs from which the error is computed, in the order of their indices."""
        del plan
        return ("",)

    def names(self, plan: Plan) -> tuple[str, ...]:
        """Names of the error, as :class:`Measured` has them, in the same order."""
        return tuple(f"{self.name} of {s}" if s else self.name for s in self.sources(plan))

    def history(self, degree: int) -> int:
        """How many accepted points its hook needs in the value store, if inputs are extrapolated by this degree."""
        del degree
        return 0

    def hook(self, plan: Plan, degree: int) -> Hook | None:
        """The hook that writes the signals at the end of a step; None if another part of the run writes them."""
        del plan, degree
        return None

    def comparison(self, degree: int) -> Callable[[Plan, int], Hook] | None:
        """For step doubling: (plan, buffer of the whole step) → the hook that writes the signals after the two halves."""
        del degree
        return None

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """Notes on what the error does not include, and why."""
        del plan
        return ()

    def refuse(self, plan: Plan) -> None:
        """Raise if the system has nothing that the estimator can measure.

        Raises
        ------
        OptionError
            If the bonds or outputs that it measures are missing.
        """
        del plan


def control_signals(estimators: Sequence[Estimator]) -> tuple[Signal, ...]:
    """Signals of the run for the estimators of a step-size rule: none if it has none."""
    found = tuple(signal for estimator in estimators for signal in estimator.signals())
    return (*found, STEP_SIZE) if estimators else ()


def control_measures(estimators: Sequence[Estimator], plan: Plan, degree: int) -> tuple[Hook, ...]:
    """The hooks that write these signals; inputs are extrapolated by polynomials of this degree."""
    hooks = [estimator.hook(plan, degree) for estimator in estimators]
    found = tuple(hook for hook in hooks if hook is not None)
    return (*found, StepSize.of(plan)) if estimators else ()


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
