"""The distance of outputs from a straight line through the last two, as the error of a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fmimaster.base.errors import OptionError
from fmimaster.plan.plan import Plan
from fmimaster.steps.estimators.prediction import (
    OfOutputs,
    PredictionError,
    judged_outputs,
)


@dataclass(frozen=True, slots=True)
class PredictorCorrector(OfOutputs):
    """Largest distance of an output from the line through its two points before.

    ``max |y - yp| / (nominal + relative max(|y|, |yp|)) / tolerance`` over the outputs of the power bonds; if there are
    none, over all continuous outputs that feed others. The error is 1 in the first two steps, and after events.

    Parameters
    ----------
    tolerance : float
        In multiples of the nominal values of the outputs.
    relative : float
        Weight of the magnitude of an output, in addition to its nominal value.

    Source: Busch (2012), Zur effizienten Kopplung von Simulationsprogrammen, as in Sadjina et al. (2017), eq. (16), (17).
    """

    tolerance: float = 1e-3
    relative: float = 1e-4
    name: ClassVar[str] = "prediction_error"

    def __post_init__(self) -> None:
        if not (self.tolerance > 0 and self.relative >= 0):
            raise OptionError(f"{self}: expected tolerance > 0 and relative >= 0.")

    def order(self, degree: int) -> int:
        """One more than the degree of extrapolation, as in the source."""
        return degree + 1

    def history(self, degree: int) -> int:
        """The two points of the line, and one more: if it exists, neither of the two is the start."""
        del degree
        return 3

    def hook(self, plan: Plan, degree: int) -> PredictionError:
        """The hook that computes the error."""
        del degree
        signals = plan.layout.signals
        return PredictionError(
            "distance from a prediction",
            judged_outputs(plan),
            degree=1,
            least=3,
            is_maximum=True,
            absolute=self.tolerance,
            relative=self.tolerance * self.relative,
            error=signals[self.name][1],
            worst=signals[self.worst][1],
        )
