"""The error of extrapolated inputs, as the difference of extrapolation and interpolation at the end of a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fmimaster.base.errors import OptionError
from fmimaster.plan.plan import Plan
from fmimaster.steps.estimators.prediction import (
    MOST_DEGREE,
    OfOutputs,
    PredictionError,
    judged_outputs,
)


@dataclass(frozen=True, slots=True)
class EmbeddedOrders(OfOutputs):
    """Difference at the end of a step between the extrapolated inputs and the outputs that they approximate.

    The polynomial of the inputs, and the polynomial of the next degree through the new outputs, are two orders of one
    method. Their difference is the error of the lower order. It costs no step and needs no capability.

    ``sqrt(mean((|y - yp| / (nominal + relative max(|y|, |yp|)) / tolerance) ** 2))`` over the outputs of the power bonds;
    if there are none, over all continuous outputs that feed others.

    Parameters
    ----------
    tolerance : float
        In multiples of the nominal values of the outputs, and of ``relative`` times their values.
    relative : float

    Source: Gomes et al. (2017), Co-simulation: state of the art, section 4.3.4 (multi-order input extrapolation), with the
    norm of Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, II.4, eq. (4.11).
    """

    tolerance: float = 1e-3
    relative: float = 1.0
    name: ClassVar[str] = "extrapolation_error"

    def __post_init__(self) -> None:
        if not (self.tolerance > 0 and self.relative >= 0):
            raise OptionError(f"{self}: expected tolerance > 0 and relative >= 0.")

    def order(self, degree: int) -> int:
        """One more than the degree of extrapolation."""
        return min(degree, MOST_DEGREE) + 1

    def history(self, degree: int) -> int:
        """The points of the polynomial."""
        return min(degree, MOST_DEGREE) + 1

    def hook(self, plan: Plan, degree: int) -> PredictionError:
        """The hook that computes the error."""
        signals = plan.layout.signals
        return PredictionError(
            "error of extrapolation",
            judged_outputs(plan),
            degree=min(degree, MOST_DEGREE),
            least=1,
            is_maximum=False,
            absolute=self.tolerance,
            relative=self.tolerance * self.relative,
            error=signals[self.name][1],
            worst=signals[self.worst][1],
        )
