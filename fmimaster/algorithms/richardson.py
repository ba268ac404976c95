"""Richardson: each step is repeated in two halves, which are kept; the difference is an estimate of the error."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.wrapper import Wrapper
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.text import listed
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook

Comparison = Callable[[Plan, int], Hook]
"""Creates a hook that is called at the end of the halves and writes an error. Arguments: the plan, and the buffer of
the outputs and signals at the end of the whole step."""


@dataclass(frozen=True, slots=True)
class Richardson(Wrapper):
    """Step doubling: the base does the step as a whole, goes back, and does it in two halves, which are kept.

    All instances must be able to get and set their FMU state. Polynomials go through the point between the halves, also
    in later steps. Each FMU does three steps for one communication step.

    Parameters
    ----------
    base : Algorithm
        Any algorithm that can go back, including one that solves algebraic loops or repeats the step.
    comparisons : of Comparison
        Functions that compute errors from the difference, for the estimators of the step-size rule.

    Source: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.4 (Richardson
    extrapolation); for co-simulation Arnold, Clauss and Schierz (2014), Error analysis and error estimates for
    co-simulation in FMI for model exchange and co-simulation V2.0.
    """

    comparisons: tuple[Comparison, ...] = ()

    @property
    def why_it_goes_back(self) -> tuple[str, str]:
        """Because each step is done twice."""
        return (
            "each step is done as a whole and in two halves (step doubling)",
            "an error estimator that repeats no step (PredictorCorrector, EmbeddedOrders, PowerResidual)",
        )

    @property
    def measures_itself(self) -> bool:
        """True: it measures after each half."""
        return True

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """All members."""
        return plan.members

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        self._refuse(plan)
        places, start = p.save(plan.members), p.keep()
        self._step(plan, p)
        whole = p.keep()
        p.restore(places)
        p.recall(start)
        with p.over(0.0, 0.5):
            self._step(plan, p)
        p.keep_between()
        with p.over(0.5, 1.0):
            self._step(plan, p)
        for difference in self.comparisons:
            p.call(difference(plan, whole))

    def _step(self, plan: Plan, p: Emitter) -> None:
        self.base.emit(plan, p)
        if not self.base.measures_itself:
            p.measure()
        p.correct_means()

    def _refuse(self, plan: Plan) -> None:
        name = type(self.base).__name__
        if len(self.base.variants(plan)) > 1:
            raise OptionError(
                f"Step doubling is not possible with {name}, because it changes its method from step to step. Use "
                "Jacobi or GaussSeidel."
            )
        if not self.base.can_go_back:
            raise OptionError(
                "Step doubling is not possible with GaussSeidel in the mode 'sub', which cannot go back. Use the mode "
                "'lin'."
            )
        early = [plan.instances[i].name for i in plan.members if plan.instances[i].may_return_early]
        if early and self.base.divides_steps:
            raise OptionError(
                f"Step doubling is not possible with SubSteps where FMUs may return early ({listed(early)}): their halves "
                "would end at different times. Use Jacobi or GaussSeidel, or no Event Mode (--no-event-mode)."
            )


def doubled(algorithm: Algorithm, comparisons: Sequence[Comparison]) -> Algorithm:
    """The algorithm with each step doubled for these comparisons."""
    base = algorithm.base if isinstance(algorithm, Richardson) else algorithm
    return Richardson(base, tuple(comparisons))
