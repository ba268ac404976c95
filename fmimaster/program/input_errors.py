"""How far inputs are from their sources at the end of a step: whether steps are short enough.

Event clocks rely on inputs that are predicted. Where steps are too long for that, runs have wrong events. The prediction is
checked at each communication point, by what is known there in any case: what the input was, and the output that it stood
for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import IntEnum
from math import floor, inf, log10
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.instants.grid import rounding
from fmimaster.numerics.polynomials import horner
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Fit, Move
from fmimaster.program.knowledge import Fitted
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

LARGEST = 1e-3
"""A prediction is wrong if it differs from the output by this part of the range that the output has had so far. With fewer
than 9 steps in the period of the fastest mode (0.7 rad in a step), right runs of the two masses have at most 4e-4, and all
runs with wrong events have more than 1.5e-3."""

ONE_POINT = 2e-4
"""The same for a polynomial through one point only: it is wrong in the same direction in each step: errors add up."""

LEAST_CURVED = 2
"""The least degree with which the rate of an input is that of its source, if it is through two points: a line has the mean
rate of the step before."""

HELD = 1e-2
"""An input that is held over a step must not change by more than this part of its range: it lags by half a step."""

AGAIN = 0.1
"""A step that was undone is tried again with steps whose differences are at most this part of the limit."""

FEW_UNDONE, MOST_UNDONE = 5, 0.2
"""More undone steps than this number, and than this part of the others, show that steps are too long. Right runs with less
than 0.7 rad in a step have undone at most 2 %, and runs with wrong events, all with more than 1 rad, at least 40 %."""

LEAST_SHARP = 5
"""Degree of a polynomial whose undone steps show that: through values and two derivatives of two points. All of 91 runs
that have undone so many steps with lines, parabolas or cubics were right: the steps in their place were short enough."""

ROUNDING = 1e-8
"""Differences below this part of the largest value are rounding: a body at rest has a range that consists of it, and steps
that grow amplify it to 4e-9 (a stack at rest, H = 0.3 s). It is the part within which Indicators.HELD sees rest, too."""


class _Way(IntEnum):
    """What an input is over a step."""

    POLYNOMIAL = 0
    HALVES = 1
    """Held over each half of it, at values that a polynomial gives."""
    HELD = 2
    """Held at a value of its source."""


@dataclass(frozen=True, slots=True)
class _Given:
    """How an input is given in all steps: the way that is worst, with the lowest degree."""

    way: _Way
    degree: int
    points: int

    @property
    def limit(self) -> float:
        """The largest difference that is accepted, relative to the range of the source."""
        if self.way is _Way.HELD:
            return HELD
        return LARGEST if self.points > 1 else ONE_POINT


@dataclass(frozen=True, slots=True)
class _Followed:
    """An input and its source: instances, and indices."""

    name: str
    instance: int
    column: int
    source: int
    slot: int
    factor: float
    offset: float
    taken: int
    """Number of derivatives that the FMU takes."""
    given: _Given
    is_slope: bool
    """Whether it is the derivative of another input: it is foreseen by one degree less, which is no sign of its own."""


def input_errors(
    plan: Plan,
    attempts: Iterable[Program],
    step: float,
    jumps: Iterable[float] = (),
    *,
    with_held: bool,
) -> InputErrors | None:
    """The hook that checks the inputs of all these programs; None if there are none.

    Parameters
    ----------
    step : float
        Length in s of a usual step.
    jumps
        Times in s at which inputs of the system jump: no prediction is checked there.
    with_held
        Whether inputs that are held at values of their sources are checked, too, if events depend on them.
    """
    worst: dict[tuple[int, int], _Given] = {}
    concerned = _concerned(plan)
    for program in attempts:
        for instruction in program.instructions:
            for key, given in _inputs_of(plan, instruction):
                if given.way is not _Way.HELD or (with_held and key[0] in concerned):
                    other = worst.get(key, given)
                    worst[key] = max(
                        given, other, key=lambda g: (g.limit < LARGEST, g.way, -g.degree)
                    )
    followed = tuple(
        one for (i, k), given in sorted(worst.items()) for one in _of(plan, i, k, given)
    )
    return InputErrors(followed, step, tuple(sorted(jumps))) if followed else None


def _concerned(plan: Plan) -> frozenset[int]:
    """Instances that have events, and those on which these depend."""
    waiting = [i for event in plan.events for i in event.instances]
    waiting += [i for i, planned in enumerate(plan.instances) if planned.may_request_events]
    found = set[int]()
    while waiting:
        i = waiting.pop()
        if i not in found:
            found.add(i)
            waiting += plan.links.sources[i]
    return frozenset(found)


def _inputs_of(plan: Plan, instruction: object) -> Iterable[tuple[tuple[int, int], _Given]]:
    """The continuous inputs that an instruction gives, by instance and number."""
    if isinstance(instruction, Fit):
        i = instruction.instance
        for k in range(len(plan.routes[i, Group.CONTINUOUS])):
            given = _given(instruction.of_route(k))
            if given is not None:
                yield (i, k), given
    elif isinstance(instruction, Move) and instruction.group is Group.CONTINUOUS:
        i = instruction.instance
        for k in range(len(plan.routes[i, Group.CONTINUOUS])):
            yield (i, k), _Given(_Way.HELD, 0, 1)


def _given(fitted: Fitted) -> _Given | None:
    """How an input is given; None at the mean of a polynomial: that error is of second order."""
    degree, points = fitted.size - 1, fitted.points
    if degree == 0 or fitted.held is not None or fitted.late is not None:
        return _Given(_Way.HELD, 0, 1)
    if fitted.half and fitted.derivatives > 0:
        return _Given(_Way.HALVES, degree, points)
    return _Given(_Way.POLYNOMIAL, degree, points) if fitted.mean is None else None


def _of(plan: Plan, instance: int, k: int, given: _Given) -> Iterable[_Followed]:
    """The elements of the k-th input of an instance."""
    every = plan.routes[instance, Group.CONTINUOUS]
    route, planned = every[k], plan.instances[instance]
    if route.source_type is not DataType.FLOAT64 or not route.transformation.factor:
        return
    is_slope = _is_slope(plan, instance, k)
    # the FMU knows it by the polynomial of the other input, or that one shows that it is held
    if given.way is _Way.HELD and (is_slope or _is_held_rightly(plan, route)):
        return
    column = sum(before.size for before in every[:k])
    taken = given.degree if planned.model.highest_order is None else planned.model.highest_order
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
            given,
            is_slope,
        )


def _is_held_rightly(plan: Plan, route: Route) -> bool:
    """Whether an input is right although it is held: its source changes at events only, or solves a constraint, or its
    instance has no states, so that a correction makes its outputs those of the newest inputs."""
    residuals = plan.instances[route.link.source].model.residuals
    has_states = plan.instances[route.link.target].model.state_derivatives
    return not has_states or route.has_discrete_source or route.link.output.name in residuals


def _is_slope(plan: Plan, instance: int, k: int) -> bool:
    """Whether the k-th input of an instance is the derivative of another one: it is foreseen by one degree less."""
    every = plan.routes[instance, Group.CONTINUOUS]
    of, source = every[k].link.output.derivative_of, every[k].link.source
    return any(r.link.source == source and r.link.output.name == of for r in every)


def _name(route: Route, element: int) -> str:
    return route.link.input.name if route.size == 1 else f"{route.link.input.name}[{element + 1}]"


@dataclass(frozen=True, slots=True, eq=False)
class InputErrors(Hook):
    """The largest differences between inputs and their sources, at the ends of accepted steps.

    A difference at the end of a shorter step than usual counts less, as its effect lasts shorter. It is relative to the
    range of the source so far. For an input that is held over a step it is the change of the source in it.

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
    jumps: tuple[float, ...] = ()
    found: NDArray[np.float64] = field(init=False)
    steps: NDArray[np.float64] = field(init=False)
    name: ClassVar[str] = "errors of inputs"  # type: ignore[misc]

    def __post_init__(self) -> None:
        object.__setattr__(self, "found", np.empty((5, len(self.followed))))
        object.__setattr__(self, "steps", np.empty(2))
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing was found."""
        self.found.T[:], self.steps[:] = (0.0, 0.0, inf, -inf, 0.0), 0.0

    def __call__(self, store: ValueStore) -> bool:
        """Take up the step that is being accepted; its start is the newest point of the history."""
        values = store.outputs[DataType.FLOAT64]
        before, read = store.history[0][0][DataType.FLOAT64], store.history[0][1]
        errors, times, low, high, _ = self.found
        self.steps[0] += 1.0
        is_jump = self._is_jump(store)
        for k, one in enumerate(self.followed):
            for y in (before.item(one.slot), values.item(one.slot)):
                low[k], high[k] = min(low.item(k), y), max(high.item(k), y)
            error = 0.0 if is_jump else self._error(one, store, read.item(one.instance))
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
        if self._is_jump(store):
            return False
        values, before = store.outputs[DataType.FLOAT64], store.history[0][0][DataType.FLOAT64]
        _, _, lows, highs, undone = self.found
        part, is_large, is_counted = AGAIN if is_again else 1.0, False, False
        for k, one in enumerate(self.followed):
            if one.given.way is _Way.HELD:
                continue  # half the length is half the error only
            now, then = values.item(one.slot), before.item(one.slot)
            low, high = min(lows.item(k), then, now), max(highs.item(k), then, now)
            error = self._error(one, store, begin)
            if error > part * _bound(one, low, high):
                is_large, is_counted = True, is_counted or not one.is_slope
                undone[k] = max(undone.item(k), error / (high - low) if high > low else 0.0)
        self.steps[1] += is_counted
        return is_large

    def _is_jump(self, store: ValueStore) -> bool:
        """Whether a step ends where an input of the system jumps."""
        now = store.read.item(self.followed[0].source)
        k = bisect_left(self.jumps, now - rounding(now, self.step))
        return k < len(self.jumps) and self.jumps[k] <= now + rounding(now, self.step)

    def _error(self, one: _Followed, store: ValueStore, begin: float) -> float:
        """The difference at the end of a step since a time, in the unit of the source; 0 if both are at different times."""
        i, courses, way = one.instance, store.courses, one.given.way
        time, degree = store.read.item(i), courses.degree.item(i)
        if (way is _Way.POLYNOMIAL and degree < 0) or time != store.read.item(one.source):
            return 0.0
        now, difference = store.outputs[DataType.FLOAT64].item(one.slot), 0.0
        if way is _Way.HELD:
            difference = now - store.history[0][0][DataType.FLOAT64].item(one.slot)
        else:
            if way is _Way.HALVES:
                given = courses.foreseen[i].item(one.column)
            else:
                coefficients = courses.coefficients[i][:, one.column].tolist()
                s = time - courses.centre.item(i)
                given = horner(coefficients, 1, min(degree, one.taken), s)
            difference = (given - (one.factor * now + one.offset)) / one.factor
        return float(abs(difference) * min((time - begin) / self.step, 1.0))

    @property
    def at_other_rates(self) -> frozenset[int]:
        """Instances with an input whose rate is not that of its source: it is held, a line, or through one point."""
        return frozenset(
            one.instance
            for one in self.followed
            if one.given.degree < LEAST_CURVED or one.given.points == 1
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What shows that steps were too long, for the input with the largest difference relative to its limit."""
        errors, times, low, high, undone = self.found
        bounds = [
            _bound(*of) for of in zip(self.followed, low.tolist(), high.tolist(), strict=True)
        ]
        done, again = self.steps.tolist()
        if (large := errors > bounds).any():
            relative = np.where(large, errors / np.maximum(high - low, 1e-300), 0.0)
            k = int((relative / [one.given.limit for one in self.followed]).argmax())
            when = f"at t = {times.item(k):.6g} s the input"
        elif again > FEW_UNDONE + MOST_UNDONE * done:
            relative, k = undone, int(undone.argmax())
            if self.followed[k].given.degree < LEAST_SHARP:
                return ()
            when = f"{again:.0f} steps were undone, in which"
        else:
            return ()
        return (self._warning(self.followed[k], when, relative.item(k)),)

    def _warning(self, one: _Followed, when: str, part: float) -> str:
        given = one.given
        order = 1 if given.way is _Way.HELD else given.degree + 2
        better = self.step * (given.limit / max(part, given.limit)) ** (1 / order)
        cause, remedy = "Steps are too long for the prediction of inputs", "Take"
        if given.degree < LEAST_CURVED:
            remedy = "Use Polynomial(2, 2) (--inputs 2,2), or"
        if given.way is _Way.HELD:
            cause = "Inputs are held over steps"
        return (
            f"{cause}: {when} '{one.name}' differed from its source by {100 * part:.2g} % of its range "
            f"(limit: {100 * given.limit:g} %). Events may be missing, wrong or late. {remedy} steps of about "
            f"{_rounded_down(better):g} s."
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
            "ways": np.array([one.given.way for one in every], np.int64),
        }
        return Twin(
            self.name,
            numbers={
                "n": len(every),
                "n_jumps": len(self.jumps),
                "step": self.step,
                "rounding": ROUNDING,
            },
            arrays={
                **indices,
                "jumps": np.array(self.jumps, np.float64),
                "limits": np.array([one.given.limit for one in every], np.float64),
                "factors": np.array([one.factor for one in every], np.float64),
                "offsets": np.array([one.offset for one in every], np.float64),
                "errors": errors,
                "times": times,
                "low": low,
                "high": high,
                "steps": self.steps,
            },
        )


def _bound(one: _Followed, low: float, high: float) -> float:
    """The largest difference that is accepted for an input whose source has this range."""
    return max(one.given.limit * (high - low), ROUNDING * max(abs(low), abs(high)))


def _rounded_down(size: float) -> float:
    """A number with two digits, no larger than a positive one."""
    digit = 10.0 ** (floor(log10(size)) - 1)
    return floor(size / digit) * digit
