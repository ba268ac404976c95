"""How the values of outputs become inputs: element by element, or as polynomials over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.errors import SimulationError
from fmimaster.plan.layout import Route
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions import Fit
from fmimaster.program.polynomial import NEAREST, Polynomials, evaluate, hermite
from fmimaster.program.store import OutputCopy, ValueStore
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
    centre = begin + fit.at * (end - begin)
    nearest = NEAREST * (end - begin)
    coefficients = np.zeros((fit.rows, sum(w.target.stop - w.target.start for w in routes)))
    earlier = [store.buffers[b] for b in fit.buffers] + (store.history if fit.history else [])
    at = 0
    for k, route in enumerate(routes):
        n = route.target.stop - route.target.start
        times, samples = _points(route, store, earlier, fit.of_route(k), nearest)
        part = hermite(times, samples, centre)
        part *= route.transformation.factor
        part[0] += route.transformation.offset
        coefficients[: len(part), at : at + n] = part
        at += n
    if fit.held is not None:
        middle = begin + fit.held * (end - begin)
        coefficients = evaluate(coefficients, middle - centre)[np.newaxis]
    return Polynomials(coefficients, centre)


def _points(
    route: Route,
    store: ValueStore,
    earlier: Sequence[OutputCopy],
    wanted: tuple[int, int],
    nearest: float,
) -> tuple[list[float], list[list[NDArray[np.float64]]]]:
    """Times of the points that a polynomial goes through, and value and derivatives of the output at each.

    Parameters
    ----------
    earlier
        Copies of the outputs, beside those in the store.
    wanted
        Numbers of points and of derivatives.
    nearest
        Points that are nearer to each other, in s, are one.
    """
    j, (n_points, n_derivatives) = route.link.source, wanted
    points = [(store.read[j], store.outputs)]
    near: list[tuple[Any, Any]] = []
    for values, read in earlier:
        if len(points) + len(near) == n_points or not np.isfinite(read[j]):
            continue
        distances = [abs(read[j] - t) for t, _ in points]
        if min(distances) > nearest:
            points.append((read[j], values))
        elif len(points) == 1 and distances[0] > 0.0:
            near = near or [(read[j], values)]
    slots = [route.source, *route.derivatives[:n_derivatives]]
    if len(slots) <= n_derivatives:
        points, near, slots = points[:1], [], slots[:1]
    types = [route.source_type] + [DataType.FLOAT64] * (len(slots) - 1)
    samples = [
        [values[kind][slot].astype(float) for kind, slot in zip(types, slots, strict=True)]
        for _, values in points
    ]
    for time, values in near:
        before = values[types[-1]][slots[-1]].astype(float)
        samples[0].append((samples[0][-1] - before) / (points[0][0] - time))
    return [t for t, _ in points], samples
