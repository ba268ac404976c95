"""Solved: the interval again until the instances of an algebraic loop agree at its end."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.modes import takes_lines
from fmimaster.algorithms.waveform import Waveform
from fmimaster.control.loop_solver import LoopSolver
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.polynomial import HOLD, Polynomial


@dataclass(frozen=True, slots=True)
class Sweep(Algorithm):
    """One sweep over a loop: Gauss-Seidel with inputs that are right at the end of the interval.

    Inputs are held over the whole interval at their newest value, not at a mean: at the end of the interval outputs must
    belong to the inputs there, or they would not solve the loop.

    Parameters
    ----------
    inputs : Polynomial
        For FMUs that take polynomials for all of their inputs. ``HOLD`` is the safe choice: FMUs are in use that accept
        derivatives of inputs and ignore them, so that they see the values of the start of the interval only.
    """

    inputs: Polynomial = HOLD

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        course = HOLD if self.inputs.is_constant else self.inputs
        for i in plan.trigger_sequence:
            p.inputs(i, course if takes_lines(plan, i) else HOLD)
            p.step(i)
            p.get(i)


def solved(inputs: Polynomial, solver: LoopSolver) -> Waveform:
    """The algorithm for the instances of an algebraic loop in Step Mode.

    All of them go back and step again until the outputs that were assumed are those that come out. Nothing is read
    between setting and stepping, which FMI forbids in Step Mode.

    Source: Gomes et al. (2017), Co-simulation: state of the art, sections 4.3.1 and 4.3.2; docs/loops.md.
    """
    return Waveform(Sweep(inputs), sweeps=1, solver=solver)
