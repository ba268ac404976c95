"""Solved: repeats the interval until the values of an algebraic loop agree at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.modes import takes_lines
from fmimaster.base.errors import OptionError
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter

if TYPE_CHECKING:
    from fmimaster.algorithms.waveform import Waveform


@dataclass(frozen=True, slots=True)
class LoopSweep(Algorithm):
    """One sweep over a loop: Gauss-Seidel with the inputs of the end of the interval.

    Inputs are held over the whole interval at their newest value, not at a mean: at the end of the interval outputs must
    belong to the inputs there; otherwise they would not solve the loop.

    Parameters
    ----------
    inputs : Polynomial
        Polynomial for FMUs that accept polynomials for all of their inputs. ``HOLD`` is the safe choice, because some
        FMUs accept derivatives of inputs and ignore them; these use only the values at the start of the interval.
    """

    inputs: Polynomial = HOLD

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        course = HOLD if self.inputs.is_constant else self.inputs
        for i in plan.trigger_sequence:
            p.inputs(i, course if takes_lines(plan, i) else HOLD, for_all=True)
            p.step(i)
            p.get(i)


def solved(inputs: Polynomial, solver: LoopSolver) -> Waveform:
    """The algorithm for the instances of an algebraic loop in Step Mode.

    All of them go back and repeat the step until the computed outputs equal the assumed ones. No output is read between
    setting inputs and stepping, because FMI forbids this in Step Mode.

    Source: Gomes et al. (2017), Co-simulation: state of the art, sections 4.3.1 and 4.3.2; docs/loops.md.
    """
    from fmimaster.algorithms.waveform import Waveform  # most runs have no loop

    return Waveform(LoopSweep(inputs), sweeps=1, solver=solver)


def with_loops(plan: Plan, algorithm: Algorithm, solver: LoopSolver) -> tuple[Algorithm, str]:
    """The algorithm with the loops of Step Mode solved; or the reason why it solves none, and a remedy.

    Raises
    ------
    OptionError
        If a constraint would not be solved.
    """
    wrapped, hindrance = _wrapped(plan, algorithm, solver)
    constraints = [i.name for i in plan.instances if i.model.residuals]
    if constraints and hindrance and not algorithm.solves_constraints:
        raise OptionError(f"The constraint '{constraints[0]}' cannot be solved: {hindrance}")
    return wrapped, hindrance


def _wrapped(plan: Plan, algorithm: Algorithm, solver: LoopSolver) -> tuple[Algorithm, str]:
    if not (plan.step_groups or plan.settled):
        return algorithm, ""
    from fmimaster.algorithms.parts import Parts  # most runs have no loop
    from fmimaster.algorithms.settled import Settled

    def solving(base: Algorithm) -> Algorithm:
        repeated = Parts(base, solved(base.course, solver)) if plan.step_groups else base
        return Settled(repeated, solver) if plan.settled else repeated

    wrapped = algorithm.with_loops(solving)
    if wrapped is algorithm:
        if algorithm.pattern() is not None:
            return algorithm, (
                "with MultiRate, components end their steps at different times. Use a step size for all of them."
            )
        name = type(algorithm).__name__
        return algorithm, f"{name} steps a whole system only. Use Jacobi or GaussSeidel."
    if stopping := [i.name for i in plan.instances if i.may_return_early]:
        return algorithm, (
            f"'{stopping[0]}' ends steps at its events, but a loop of others would be solved at another time. "
            "Use Waveform(Aligned(GaussSeidel(Polynomial(2, 0))), solver=LoopSolver()), which repeats the whole system."
        )
    return wrapped, ""
