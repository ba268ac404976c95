"""Jacobi: all instances step over the same interval, without new outputs of the others."""

from __future__ import annotations

from collections.abc import Collection

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.base.data import dataclass
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.sequences.methods import GIVEN


@dataclass(frozen=True, slots=True)
class Jacobi(Algorithm):
    """Step all instances with the outputs of the last communication point.

    The order of the steps has no influence. Each connection is delayed by one step.

    Parameters
    ----------
    inputs : Polynomial
        Polynomial of the inputs over a step.

    Source: Gomes et al. (2017), Co-simulation: state of the art, section 4.2 (there: parallel, Jacobi).
    """

    inputs: Polynomial = HOLD

    @property
    def is_parallel(self) -> bool:
        """All step from the outputs of the last communication point."""
        return True

    @property
    def course(self) -> Polynomial:
        """The polynomial of the inputs."""
        return self.inputs

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """A note if a sequence is given, because it has no influence."""
        del before
        if plan.sequence_chosen_by not in GIVEN or not plan.links:
            return ()
        return (
            f"The trigger sequence given by {plan.sequence_chosen_by} has no influence on the results: Jacobi steps all "
            "components from the same communication point. Use GaussSeidel (--algorithm gauss-seidel) for a sequence.",
        )

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        for i in plan.members:
            p.inputs(i, self.inputs)
        p.step_all(plan.members)
        for i in plan.members:
            p.get(i)
