"""The size of each step as a signal of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fmimaster.plan.layout import Group, Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

STEP_SIZE = Signal("step_size", "s")


@dataclass(frozen=True, slots=True, eq=False)
class StepSize(Hook):
    """The length of the step → its signal.

    Parameters
    ----------
    instance : int
        Its outputs have been read at the end of the step, wherever that is; -1 if no outputs are read.
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
