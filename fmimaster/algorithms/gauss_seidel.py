"""Gauss-Seidel: the instances step one after the other, each with the newest outputs."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.polynomial import HOLD, Polynomial


@dataclass(frozen=True, slots=True)
class GaussSeidel(Algorithm):
    """Step the instances one after the other along the trigger sequence, each with the newest outputs.

    A connection that leads forward in the sequence is not late; one that leads back is late by one step.

    Source: Gomes et al. (2017), Co-simulation: state of the art, section 4.2 (there: sequential, Gauss-Seidel).
    """

    inputs: Polynomial = HOLD

    @property
    def course(self) -> Polynomial:
        """The inputs."""
        return self.inputs

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        for i in plan.trigger_sequence:
            p.inputs(i, self.inputs)
            p.step(i)
            p.get(i)
