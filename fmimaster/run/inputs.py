"""Transfer of output values to inputs: element by element, or as polynomials over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import SimulationError
from fmimaster.inputs.polynomial import (
    Polynomials,
    candidates,
    evaluate,
    hermite,
    mean,
)
from fmimaster.numerics.polynomials import NEAREST, best_candidate, compensated, faded
from fmimaster.plan.layout import Route
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions.inputs import Fit
from fmimaster.program.knowledge import Fitted
from fmimaster.program.store import Courses, OutputCopy, ValueStore
from fmimaster.system.model import DataType


def moves(route: Route, store: ValueStore, plan: Plan) -> list[tuple[Any, int, Any, int, Any]]:
    """(target, index, source, index, conversion) of each element; memory views, since they are fast one by one."""
    source, target = store.values[route.source_type], store.values[route.target_type]
    convert = _conversion(route, plan)
    return [
        (_view(target), t, _view(source), s, convert)
        for t, s in zip(
            range(route.target.start, route.target.stop),
            range(route.source.start, route.source.stop),
            strict=True,
        )
    ]


def _view(values: NDArray[Any]) -> Any:
    return values if values.dtype == object else memoryview(values)  # type: ignore[arg-type]


def _conversion(route: Route, plan: Plan) -> Callable[[Any], Any] | None:
    factor, offset = route.transformation.factor, route.transformation.offset
    if not route.transformation.is_identity:
        return lambda value: factor * value + offset
    if route.target_type.is_integer and not np.can_cast(
        route.source_type.dtype, route.target_type.dtype
    ):
        return _narrowing(route, plan)
    if route.target_type is DataType.BOOLEAN and route.source_type is not DataType.BOOLEAN:
        return bool
    return None


def _narrowing(route: Route, plan: Plan) -> Callable[[Any], int]:
    """Conversion to an integer type that cannot hold every value of the source."""
    limits = np.iinfo(route.target_type.dtype)
    names = plan.instances[route.link.source].name, plan.instances[route.link.target].name

    def convert(value: Any) -> int:
        if limits.min - 1 < value < limits.max + 1:  # false for NaN
            return int(value)
        raise SimulationError(
            f"Connection '{names[0]}.{route.link.output.name} -> {names[1]}.{route.link.input.name}': {value} does not "
            f"fit into {route.target_type.value}, expected {limits.min} to {limits.max}. Connect an input of a wider type."
        )

    return convert


def fitted(
    routes: Sequence[Route], store: ValueStore, begin: float, end: float, fit: Fit
) -> Polynomials:
    """Polynomials of all routes of an instance over an interval; those of one source go through the same points."""
    length = end - begin
    centre = begin + fit.at * length
    coefficients = np.zeros((fit.rows, sum(w.target.stop - w.target.start for w in routes)))
    buffers, courses, at = [store.buffers[b] for b in fit.buffers], store.courses, 0
    for k, route in enumerate(routes):
        n, wanted = route.target.stop - route.target.start, fit.of_route(k)
        points = _Points(
            route,
            store,
            buffers + (store.history if wanted.history else []),
            wanted,
            NEAREST * length,
            centre,
        )
        if wanted.adaptive and not points.is_ahead:
            errors, measured = courses.errors[fit.instance], courses.measured[fit.instance]
            parts = []
            for e in range(n):
                chosen = _measured_best(
                    points,
                    wanted[:2],
                    e,
                    errors[at + e],
                    length if wanted.half else end - centre,
                    measured,
                    at + e,
                )
                parts.append(hermite(*points.through(*chosen, slice(e, e + 1)), centre))
        else:
            times, samples = points.through(*wanted[:2], slice(0, n))
            if wanted.late is not None and len(times) > 1:
                times = [begin + wanted.late * length, centre]
            parts = [hermite(times, samples, centre)]
        first = at
        for part in parts:
            part *= route.transformation.factor
            part[0] += route.transformation.offset
            if wanted.held is not None:
                part = evaluate(part, (begin + wanted.held * length) - centre)[np.newaxis]
            elif wanted.mean is not None:
                until_end = (begin + wanted.mean * length) - centre
                if wanted.half == 2:
                    foreseen = courses.foreseen[fit.instance]
                    foreseen[at : at + part.shape[1]] = evaluate(part, until_end)
                part = mean(part, until_end, wanted.half)[np.newaxis]
            width = part.shape[1]
            coefficients[: len(part), at : at + width] = part
            at += width
        if wanted.compensation and wanted.mean is not None and not points.is_ahead:
            last = (begin + wanted.mean * length) - centre
            _compensate(
                coefficients, first, at, points, wanted.compensation, last, fit.instance, courses
            )
    return Polynomials(coefficients[:1] if fit.is_constant else coefficients, centre)


def _compensate(
    coefficients: NDArray[np.float64],
    first: int,
    end: int,
    points: _Points,
    compensation: float,
    last: float,
    instance: int,
    courses: Courses,
) -> None:
    """Add what held values lacked in the steps before to the columns of a route, from the first one to the end."""
    for w in range(first, end):
        lacking = courses.lacking[instance][w]
        coefficients[0, w] = compensated(
            coefficients.item(0, w),
            points.transformed(w - first) / 2.0,
            compensation,
            points.newest,
            last,
            points.are_several,
            lacking,
            courses.given_from[instance][w],
            len(lacking),
        )


class _Points:
    """The possible points of a polynomial of one route.

    Parameters
    ----------
    earlier
        Copies of the outputs, beside those in the store.
    fitted : Fitted
        Numbers of points and of derivatives. An adaptive polynomial needs one more point, by which errors are measured, a
        compensation that before the newest one.
    nearest
        Points with a smaller distance in s are treated as one.
    centre
        Time in s: at a newest point after it a source that is discontinuous there has its left limit.

    Attributes
    ----------
    times : of the points, in s; the first one is the newest
    is_ahead : whether the newest is after the centre
    near : time and outputs of the first copy that is too near to the newest point
        A polynomial through both would be ill-conditioned. Their difference gives one more derivative instead: so the
        short step after an event serves the next extrapolation (8.4e-5 instead of 2.2e-3 on the two masses).
    """

    def __init__(
        self,
        route: Route,
        store: ValueStore,
        earlier: Sequence[OutputCopy],
        fitted: Fitted,
        nearest: float,
        centre: float,
    ) -> None:
        j, self._wanted, self.route = route.link.source, fitted[:2], route
        most = max(fitted.points + fitted.adaptive, 2 if fitted.compensation else 1)
        if fitted.late is not None:
            nearest = 0.0  # its points are stored elsewhere
        points = [(store.read.item(j), store.outputs)]
        near: list[tuple[float, Any]] = []
        for values, read in earlier:
            if len(points) + len(near) == most or not np.isfinite(read[j]):
                continue
            distances = [abs(read[j] - t) for t, _ in points]
            if min(distances) > nearest:
                points.append((read.item(j), values))
            elif len(points) == 1 and distances[0] > 0.0:
                near = near or [(read.item(j), values)]
        self.times, self.near = [t for t, _ in points], near
        self.is_ahead = self.newest > centre
        self._outputs = [values for _, values in points]
        self._slots = [route.source, *route.derivatives]
        self._types = [route.source_type] + [DataType.FLOAT64] * len(route.derivatives)

    @property
    def newest(self) -> float:
        """Time of the newest point in s."""
        return float(self.times[0])

    @property
    def are_several(self) -> bool:
        """Whether there is a second point, at any distance from the newest."""
        return len(self.times) + len(self.near) > 1

    def transformed(self, element: int) -> float:
        """What an element of the newest output gives the input."""
        transformation = self.route.transformation
        output = self.sample(0, 0, slice(element, element + 1)).item()
        return transformation.factor * output + transformation.offset

    def sample(self, point: int, derivative: int, elements: slice) -> NDArray[np.float64]:
        """A derivative of the output at a point; order 0 is the value."""
        left = self.route.left
        if left is not None and self.is_ahead and not (point or derivative):
            values: NDArray[np.float64] = self._outputs[0][DataType.FLOAT64][left][elements]
            return values
        return self._sample(self._outputs[point], derivative, elements)

    def _sample(
        self, outputs: Mapping[DataType, NDArray[Any]], derivative: int, elements: slice
    ) -> NDArray[np.float64]:
        slot = self._slots[derivative]
        return outputs[self._types[derivative]][slot][elements].astype(float)

    def through(
        self, points: int, derivatives: int, elements: slice, first: int = 0
    ) -> tuple[list[float], list[list[NDArray[np.float64]]]]:
        """Times of so many points from the first on, and value and derivatives of these elements at each."""
        is_whole = first == 0 and points > 1 and (points, derivatives) == self._wanted
        near = self.near if is_whole else []
        points -= bool(near)
        if len(self._slots) <= derivatives:
            points, near, derivatives = 1, [], 0
        chosen = range(first, min(first + points, len(self.times)))
        samples = [[self.sample(k, d, elements) for d in range(derivatives + 1)] for k in chosen]
        for time, outputs in near:
            before = self._sample(outputs, derivatives, elements)
            samples[0].append((samples[0][-1] - before) / (self.times[0] - time))
        return [self.times[k] for k in chosen], samples


def _measured_best(
    points: _Points,
    wanted: tuple[int, int],
    element: int,
    errors: NDArray[np.float64],
    length: float,
    measured: NDArray[np.float64],
    input_: int,
) -> tuple[int, int]:
    """Points and derivatives of the candidate that would have predicted the newest point best, see FIT.

    Parameters
    ----------
    errors : shape (MOST_CANDIDATES,)
        Measured errors of the candidates; NaN while they are not known.
    length : float
        Of the interval in s.
    measured : shape (inputs,)
        Times in s of the points at which errors were measured last.
    """
    tried = candidates(*wanted)
    older = len(points.times) - 1
    if older == 0:
        errors[:] = np.nan
        measured[input_] = np.nan
        return tried[0]
    e, now = slice(element, element + 1), points.newest
    last = now - points.times[1]
    actual = points.sample(0, 0, e).item()
    largest = max(abs(points.sample(k, 0, e).item()) for k in range(older + 1))
    if measured[input_] != now:
        for c, (n, derivatives) in enumerate(tried):
            if n <= older:
                times, samples = points.through(n, derivatives, e, first=1)
                predicted = evaluate(hermite(times, samples, now), 0.0).item()
                errors[c] = faded(errors.item(c), abs(predicted - actual))
        measured[input_] = now
    best = best_candidate(errors.tolist(), len(tried), largest, last, length)
    return tried[best]
