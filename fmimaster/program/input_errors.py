"""How far inputs that follow polynomials are from their sources at the end of a step: whether steps are short enough.

Event clocks rely on inputs that are predicted. Where steps are too long for that, runs have wrong events. The prediction is
checked at each communication point, by what is known there in any case: the polynomial, and the output that it stood for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import floor, inf, log10
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.numerics.polynomials import horner
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Fit
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

LARGEST = 1e-3
"""A prediction is wrong if it differs from the output by this part of the range that the output has had so far. With fewer
than 9 steps in the period of the fastest mode (0.7 rad in a step), right runs of the two masses have at most 4e-4, and all
runs with wrong events have more than 1.5e-3."""

AGAIN = 0.1
"""A step that was undone is tried again with steps whose differences are at most this part of the limit."""

FEW_UNDONE, MOST_UNDONE = 5, 0.2
"""More undone steps than this number, and than this part of the others, show that steps are too long. Right runs with less
than 0.7 rad in a step have undone at most 2 %, and runs with wrong events, all with more than 1 rad, at least 40 %."""

ROUNDING = 1e-9
"""Differences below this part of the largest value are rounding: a body at rest has a range that consists of it."""


@dataclass(frozen=True, slots=True)
class _Followed:
    """An input that follows a polynomial, and its source: instances, and indices."""

    name: str
    instance: int
    column: int
    source: int
    slot: int
    factor: float
    offset: float
    taken: int
    """Number of derivatives that the FMU takes."""
    degree: int
    """Of the polynomial."""
    is_halved: bool
    """Whether the input is held over each half of a step, at values that the polynomial gives."""
    is_slope: bool
    """Whether it is the derivative of another input: it is foreseen by one degree less, which is no sign of its own."""


def input_errors(plan: Plan, attempts: Iterable[Program], step: float) -> InputErrors | None:
    """The hook that checks the inputs that follow polynomials in all these programs; None if there are none.

    Parameters
    ----------
    step : float
        Length in s of a usual step.
    """
    degrees: dict[tuple[int, int], int] = {}
    halved = set()
    for program in attempts:
        for fit in program.instructions:
            if isinstance(fit, Fit):
                for k in range(len(plan.routes[fit.instance, Group.CONTINUOUS])):
                    fitted = fit.of_route(k)
                    key = fit.instance, k
                    if fitted.half:
                        halved.add(key)
                        changes = fitted.derivatives > 0
                    else:
                        changes = not fitted.is_constant and fitted.late is None
                    degree = fitted.size - 1 if changes else 0
                    degrees[key] = min(degree, degrees.get(key, degree))
    followed = tuple(
        one
        for (i, k), degree in sorted(degrees.items())
        if degree
        for one in _of(plan, i, k, degree, is_halved=(i, k) in halved)
    )
    return InputErrors(followed, step) if followed else None


def _of(plan: Plan, instance: int, k: int, degree: int, *, is_halved: bool) -> Iterable[_Followed]:
    """The elements of the k-th input of an instance."""
    every = plan.routes[instance, Group.CONTINUOUS]
    route, planned = every[k], plan.instances[instance]
    if route.source_type is not DataType.FLOAT64 or not route.transformation.factor:
        return
    column = sum(before.size for before in every[:k])
    taken = degree if planned.model.highest_order is None else planned.model.highest_order
    for element in range(route.size):
        yield _Followed(
            f"{planned.name}.{_name(route, element)}",
            instance,
            column + element,
            route.link.source,
            route.source.start + element,
            route.transformation.factor,
            route.transformation.offset,
            taken,
            degree,
            is_halved,
            _is_slope(plan, instance, k),
        )


def _is_slope(plan: Plan, instance: int, k: int) -> bool:
    """Whether the k-th input of an instance is the derivative of another one: it is foreseen by one degree less."""
    every = plan.routes[instance, Group.CONTINUOUS]
    of, source = every[k].link.output.derivative_of, every[k].link.source
    return any(r.link.source == source and r.link.output.name == of for r in every)


def _name(route: Route, element: int) -> str:
    return route.link.input.name if route.size == 1 else f"{route.link.input.name}[{element + 1}]"


@dataclass(frozen=True, slots=True, eq=False)
class InputErrors(Hook):
    """The largest differences between inputs that follow polynomials and their sources, at the ends of accepted steps.

    A difference at the end of a shorter step than usual counts less, as its effect lasts shorter. It is relative to the
    range of the source so far.

    Attributes
    ----------
    found : shape (5, inputs)
        The largest difference so far, its time in s, the least and the largest value of each source, and the largest
        difference in a step that was undone, relative to the range at that time.
    steps : shape (2,)
        Numbers of accepted steps, and of those that were undone because of a difference.
    """

    followed: tuple[_Followed, ...]
    step: float
    found: NDArray[np.float64] = field(init=False)
    steps: NDArray[np.float64] = field(init=False)
    name: ClassVar[str] = "errors of inputs"  # type: ignore[misc]

    def __post_init__(self) -> None:
        n = len(self.followed)
        found = np.array([[0.0] * n, [0.0] * n, [inf] * n, [-inf] * n, [0.0] * n])
        object.__setattr__(self, "found", found)
        object.__setattr__(self, "steps", np.zeros(2))

    def __call__(self, store: ValueStore) -> bool:
        """Take up the step that is being accepted; its start is the newest point of the history."""
        values = store.outputs[DataType.FLOAT64]
        before, read = store.history[0][0][DataType.FLOAT64], store.history[0][1]
        errors, times, low, high, _ = self.found
        self.steps[0] += 1.0
        for k, one in enumerate(self.followed):
            for y in (before.item(one.slot), values.item(one.slot)):
                low[k], high[k] = min(low.item(k), y), max(high.item(k), y)
            error = self._error(one, store, read.item(one.instance))
            if error > errors.item(k):
                errors[k], times[k] = error, store.read.item(one.instance)
        return False

    def are_large(self, store: ValueStore, begin: float, is_again: bool) -> bool:
        """Whether a step since a time in s, which is not accepted yet, ends with an input that is far from its source.

        Parameters
        ----------
        is_again
            Whether a longer one was undone for this reason: then less is accepted, as long rows of steps that are just
            good enough are not.
        """
        values, before = store.outputs[DataType.FLOAT64], store.history[0][0][DataType.FLOAT64]
        _, _, lows, highs, undone = self.found
        part, is_large, is_counted = AGAIN if is_again else 1.0, False, False
        for k, one in enumerate(self.followed):
            now, then = values.item(one.slot), before.item(one.slot)
            low, high = min(lows.item(k), then, now), max(highs.item(k), then, now)
            error = self._error(one, store, begin)
            if error > part * _bound(low, high):
                is_large, is_counted = True, is_counted or not one.is_slope
                undone[k] = max(undone.item(k), error / (high - low) if high > low else 0.0)
        self.steps[1] += is_counted
        return is_large

    def _error(self, one: _Followed, store: ValueStore, begin: float) -> float:
        """The difference at the end of a step since a time, in the unit of the source; 0 if both are at different times."""
        i, courses = one.instance, store.courses
        time, degree = store.read.item(i), courses.degree.item(i)
        if (degree < 0 and not one.is_halved) or time != store.read.item(one.source):
            return 0.0
        given: float
        if one.is_halved:
            given = courses.foreseen[i].item(one.column)
        else:
            coefficients = courses.coefficients[i][:, one.column].tolist()
            s = time - courses.centre.item(i)
            given = horner(coefficients, 1, min(degree, one.taken), s)
        actual = one.factor * store.outputs[DataType.FLOAT64].item(one.slot) + one.offset
        part = min((time - begin) / self.step, 1.0)
        return float(abs((given - actual) / one.factor) * part)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What shows that steps were too long, for the input with the largest relative difference."""
        errors, times, low, high, undone = self.found
        bounds = [_bound(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]
        done, again = self.steps.tolist()
        if (large := errors > bounds).any():
            relative = np.where(large, errors / np.maximum(high - low, 1e-300), 0.0)
            k = int(relative.argmax())
            when = f"at t = {times.item(k):.6g} s the input '{self.followed[k].name}' differed"
        elif again > FEW_UNDONE + MOST_UNDONE * done:
            relative, k = undone, int(undone.argmax())
            when = f"{again:.0f} steps were undone, in which '{self.followed[k].name}' differed"
        else:
            return ()
        worst, order = relative.item(k), self.followed[k].degree + 2
        better = self.step * (LARGEST / max(worst, LARGEST)) ** (1 / order)
        return (
            f"Steps are too long for the prediction of inputs: {when} from its source by {100 * worst:.2g} % of its range "
            f"(limit: {100 * LARGEST:g} %). Events may be missing, wrong or late. Take steps of about "
            f"{_rounded_down(better):g} s.",
        )

    def remembered(self) -> tuple[float, ...]:
        """What was found so far."""
        return (*self.steps.tolist(), *self.found.ravel().tolist())

    def remember(self, numbers: tuple[float, ...]) -> None:
        """Continue with the result of :meth:`remembered`."""
        self.steps[:], self.found.ravel()[:] = numbers[:2], numbers[2:]

    def twin(self, store: ValueStore) -> Twin:
        """The same in C."""
        del store
        every = self.followed
        errors, times, low, high, _ = self.found
        indices: Mapping[str, NDArray[np.int64]] = {
            "instances": np.array([one.instance for one in every], np.int64),
            "columns": np.array([one.column for one in every], np.int64),
            "sources": np.array([one.source for one in every], np.int64),
            "slots": np.array([one.slot for one in every], np.int64),
            "taken": np.array([one.taken for one in every], np.int64),
            "halved": np.array([one.is_halved for one in every], np.int64),
        }
        return Twin(
            self.name,
            numbers={
                "n": len(every),
                "step": self.step,
                "largest": LARGEST,
                "rounding": ROUNDING,
            },
            arrays={
                **indices,
                "factors": np.array([one.factor for one in every], np.float64),
                "offsets": np.array([one.offset for one in every], np.float64),
                "errors": errors,
                "times": times,
                "low": low,
                "high": high,
                "steps": self.steps,
            },
        )


def _bound(low: float, high: float) -> float:
    """The largest difference that is accepted for a source with this range."""
    return max(LARGEST * (high - low), ROUNDING * max(abs(low), abs(high)))


def _rounded_down(size: float) -> float:
    """A number with two digits, no larger than a positive one."""
    digit = 10.0 ** (floor(log10(size)) - 1)
    return floor(size / digit) * digit
