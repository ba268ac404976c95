"""Errors of a step by the distance of outputs from their prediction: the error of extrapolated inputs."""

from __future__ import annotations

from math import isnan, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.numerics.polynomials import newton
from fmimaster.numerics.step_sizes import add_part, distance
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import ValueStore
from fmimaster.steps.estimator import Estimator
from fmimaster.system.model import DataType, Variability

MOST_DEGREE = 3
"""Highest degree of a polynomial that predicts outputs; the kernel has the same number."""


class Judged(NamedTuple):
    """An output of type Float64 from which the error of a step is computed, or an element of one."""

    name: str
    instance: int
    slot: int
    nominal: float


def judged_outputs(plan: Plan) -> tuple[Judged, ...]:
    """The outputs of the power bonds; if there are none, all continuous outputs that feed others; in the order of names."""
    ends = {(p.instance, p.output) for bond in plan.power_bonds for p in bond.ports}
    ends = ends or {
        (link.source, link.output.name)
        for link in plan.links
        if link.output.variability is Variability.CONTINUOUS
    }
    found = []
    for i, name in ends:
        kind, slot = plan.layout.slots[i, Group.OUTPUTS, name]
        variable = plan.instances[i].model.variable(name)
        assert variable is not None
        if kind is DataType.FLOAT64:
            full = f"{plan.instances[i].name}.{name}"
            for k in range(slot.start, slot.stop):
                found.append(Judged(full, i, k, abs(variable.nominal or 1.0)))
    return tuple(sorted(found))


class OfOutputs(Estimator):
    """Base of the estimators that compute the error of a step from outputs."""

    __slots__ = ()

    def sources(self, plan: Plan) -> tuple[str, ...]:
        """The outputs."""
        return tuple(output.name for output in judged_outputs(plan))

    def refuse(self, plan: Plan) -> None:
        """Raise if there are no such outputs.

        Raises
        ------
        OptionError
            If no continuous output feeds another component.
        """
        if not judged_outputs(plan):
            raise OptionError(
                "The step-size controller judges steps by continuous outputs that feed others, and the system has none. "
                "Use a fixed step."
            )


@dataclass(frozen=True, slots=True, eq=False)
class PredictionError(Hook):
    """Weighted distances of outputs from a polynomial through the accepted points before → two signals.

    For each output ``|y - yp| / (absolute nominal + relative max(|y|, |yp|))``; their maximum, or their root mean square.

    Parameters
    ----------
    name : str
        Listings show it.
    outputs : tuple of Judged
    degree : int, at most :data:`MOST_DEGREE`
        Of the polynomial, through the newest accepted points; lower while there are fewer.
    least : int, at least 1
        How many accepted points must be known; the error is 1 while there are fewer.
    is_maximum : bool
        Whether the error is the maximum, not the root mean square.
    error, worst : int
        Indices into the Float64 outputs: of the error, and of the number of the output with the largest part.
    """

    name: str
    outputs: tuple[Judged, ...]
    degree: int
    least: int
    is_maximum: bool
    absolute: float
    relative: float
    error: int
    worst: int

    def __call__(self, store: ValueStore) -> bool:
        """Write both signals."""
        now = store.outputs[DataType.FLOAT64]
        history = [(values[DataType.FLOAT64], read) for values, read in store.history]
        sums, worst, found, known = [0.0, 0.0], [0], [0.0] * 3, True
        for k, output in enumerate(self.outputs):
            i, slot = output.instance, output.slot
            ys = _known(history, i, slot)
            if len(ys) < self.least:
                known = False
                break
            values, times = zip(*ys[: self.degree + 1], strict=True)
            newton([*values], times, len(times), store.read.item(i), found)
            part = distance(now.item(slot), found[0], self.absolute * output.nominal, self.relative)
            add_part(part, part, k, sums, worst)
        error = sums[1] if self.is_maximum else sqrt(sums[0] / len(self.outputs))
        now[self.error] = error if known else 1.0
        now[self.worst] = float(worst[0]) if known else 0.0
        return False

    def twin(self, store: ValueStore) -> Twin:
        """The same in C."""
        del store
        return Twin(
            "prediction error",
            numbers={
                "n": len(self.outputs),
                "degree": self.degree,
                "least": self.least,
                "is_maximum": int(self.is_maximum),
                "absolute": self.absolute,
                "relative": self.relative,
                "error": self.error,
                "worst": self.worst,
            },
            arrays={
                "instances": np.array([o.instance for o in self.outputs], np.int64),
                "slots": np.array([o.slot for o in self.outputs], np.int64),
                "nominals": np.array([o.nominal for o in self.outputs]),
            },
        )


def _known(
    history: list[tuple[NDArray[np.float64], NDArray[np.float64]]], instance: int, slot: int
) -> list[tuple[float, float]]:
    """The known points (value, time) of an output, newest first; one of those between which its instance stood still."""
    found: list[tuple[float, float]] = []
    for values, read in history:
        time = read.item(instance)
        if not isnan(time) and not (found and found[-1][1] == time):
            found.append((values.item(slot), time))
    return found


@dataclass(frozen=True, slots=True)
class OfPredictions(OfOutputs):
    """Base of the estimators that measure the distance of outputs from their prediction."""

    tolerance: float = 1e-3
    relative: float = 1.0

    def __post_init__(self) -> None:
        if not (self.tolerance > 0 and self.relative >= 0):
            raise OptionError(f"{self}: expected tolerance > 0 and relative >= 0.")

    def error_of(
        self, what: str, plan: Plan, degree: int, *, least: int, is_maximum: bool
    ) -> PredictionError:
        """The hook that computes the error."""
        signals = plan.layout.signals
        return PredictionError(
            what,
            judged_outputs(plan),
            degree,
            least,
            is_maximum,
            absolute=self.tolerance,
            relative=self.tolerance * self.relative,
            error=signals[self.name][1],
            worst=signals[self.worst][1],
        )


@dataclass(frozen=True, slots=True)
class EmbeddedOrders(OfPredictions):
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

    name: ClassVar[str] = "extrapolation_error"

    def order(self, degree: int) -> int:
        """One more than the degree of extrapolation."""
        return min(degree, MOST_DEGREE) + 1

    def history(self, degree: int) -> int:
        """The points of the polynomial."""
        return min(degree, MOST_DEGREE) + 1

    def hook(self, plan: Plan, degree: int) -> PredictionError:
        """The hook that computes the error."""
        degree = min(degree, MOST_DEGREE)
        return self.error_of("error of extrapolation", plan, degree, least=1, is_maximum=False)


@dataclass(frozen=True, slots=True)
class PredictorCorrector(OfPredictions):
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

    relative: float = 1e-4
    name: ClassVar[str] = "prediction_error"

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
        return self.error_of("distance from a prediction", plan, 1, least=3, is_maximum=True)
