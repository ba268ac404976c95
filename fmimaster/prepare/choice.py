"""What is chosen for a given accuracy, as a value: the controller, its tolerances, the inputs, and the reason."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.steps.doubling_errors import PowerResidual
from fmimaster.steps.pid import PID
from fmimaster.steps.prediction_errors import EmbeddedOrders
from fmimaster.steps.schedule import Schedule
from fmimaster.steps.step_rule import FixedStep, StepRule

BOND_TOLERANCE = 1e-2
"""Relative tolerance of power bonds in the first run, as a fraction of the accuracy: this run must be cheap, not
accurate."""

MORE = 10
"""Default ratio of the largest step to the usual step size; the controller finds suitable steps."""

LEAST_STEPS = 50
"""Default limit of the largest step, as a fraction of the run."""

REJECTED = 2.0
"""An error of extrapolation that is larger by this factor than tolerated undoes the step, where all FMUs can."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A step-size rule with its inputs, and the reason for it.

    Its steps can be shortened by a factor: the tolerances are reduced until the controller proposes steps shorter by
    that factor, if its error grows with the assumed power of the step size.
    """

    accuracy: float
    algorithm: Jacobi | None
    """None if the user gave one, or if steps are fixed."""
    estimator: PowerResidual | EmbeddedOrders | None
    """None for a fixed step."""
    degree: int
    """Degree of the extrapolation of inputs that all FMUs accept."""
    rejects: bool
    reason: str
    own_steps: tuple[str, ...] = ()
    """About FMUs that declare fixed steps of their own, as sentences."""

    def __str__(self) -> str:
        return f"accuracy {self.accuracy:g}: {self.reason}"

    def largest(self, schedule: Schedule) -> Fraction:
        """The largest step size of the first run in s, if the user gives none: more than the usual one if steps vary."""
        size = schedule.rule.exact_size
        if self.estimator is None:
            return size
        return max(size, min(MORE * size, (schedule.stop - schedule.start) / LEAST_STEPS))

    def changes(self, size: Fraction, factor: float = 1.0) -> dict[str, Any]:
        """The settings of a run with this choice, as far as they differ from those that the user gave.

        Parameters
        ----------
        size : Fraction
            Largest step size of the first run in s.
        factor : float, at most 1
            Ratio of the steps to those of the first run.
        """
        found: dict[str, Any] = {"accuracy": None, "step_size": self._rule(size, factor)}
        if self.algorithm is not None:
            found["algorithm"] = self.algorithm
        if isinstance(self.estimator, PowerResidual):
            tolerance = BOND_TOLERANCE * self.accuracy * self._shrunk(self.estimator, factor)
            found["bond_tolerance"] = tolerance
        return found

    def _rule(self, size: Fraction, factor: float) -> StepRule[Any]:
        if self.estimator is None:
            # a few digits: sums of steps must reach the stop time exactly
            return FixedStep(size / max(1, round(1.0 / factor)))
        estimator: PowerResidual | EmbeddedOrders = self.estimator
        if isinstance(estimator, EmbeddedOrders):
            tolerance = self.accuracy * self._shrunk(estimator, factor)
            estimator = replace(estimator, tolerance=tolerance)
        return PID(
            f"{float(size) * factor:.6g}",
            estimators=(estimator,),
            reject_above=REJECTED if self.rejects else None,
        )

    def _shrunk(self, estimator: PowerResidual | EmbeddedOrders, factor: float) -> float:
        """Factor of a tolerance for steps that are shorter by a factor."""
        return float(factor ** estimator.order(self.degree))
