"""MOVE, FIT, SET: inputs of an instance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.inputs.polynomial import MOST_COEFFICIENTS, MOST_POINTS
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.checker import MOVED, Checker
from fmimaster.program.instructions.base import Instruction, some, variables_of
from fmimaster.program.knowledge import Effects, Fitted
from fmimaster.system.states import FmiCall, State


@dataclass(frozen=True, slots=True)
class Move(Instruction):
    """Inputs in the store ← the outputs they are connected to, transformed; they are held over the interval.

    For the group TRIGGERS: a trigger becomes active if one of its connected output clocks is active, and the payload of
    active triggers is moved.
    """

    instance: int
    group: Group

    def words(self, plan: Plan) -> tuple[str, str]:
        """Its operand, and what is moved."""
        if self.group is Group.TRIGGERS:
            fed = [_fed(k, plan) for k in plan.triggers_of(self.instance)]
            return self.group.name.lower(), some([text for text in fed if text], "; ")
        return self.group.name.lower(), _moves(self.instance, self.group, plan)

    def check(self, checker: Checker) -> None:
        """There are such inputs."""
        if self.group is Group.TRIGGERS:
            checker.has_triggers(self.instance)
        else:
            checker.has_inputs(self.instance, self.group)

    def effect(self, on: Effects) -> None:
        """Inputs are moved; triggers are no inputs."""
        if self.group is not Group.TRIGGERS:
            on.move(self.instance, self.group)


@dataclass(frozen=True, slots=True)
class Fit(Instruction):
    """Polynomials of the continuous inputs, centred at fraction ``at`` of the interval.

    Each goes through the source's output as it is in the store, then through the first of the buffers in which that
    source was read at another time, then with ``history`` through the first points of the history likewise, until there
    are ``points`` of them; at each point it takes as many derivatives of the output as the source publishes, at most
    ``derivatives``. An input whose source publishes too few is held at its present value. Each operand but the buffers is
    the same for all routes to the instance, or a tuple with one value for each.

    If the source is discontinuous at known times, and the output in the store is from after ``at``, its left limit is
    taken: the line goes to the value before a discontinuity at its end.

    If a copy of the outputs is nearer to the newest point than 1/50 of the interval, it gives one more derivative there
    instead of a point, by the difference of the highest derivatives, because a polynomial through both would be
    ill-conditioned. A copy that is as near to another point is ignored.

    With ``held`` an input is constant over the interval, at the value that its polynomial has at that fraction of it; with
    ``mean`` at its mean from ``at`` to that fraction. If all inputs are constant, their values are in the store, as
    after a MOVE.

    With ``adaptive`` each extrapolated input uses one point or one derivative less, or both, if this has the smaller
    *measured error*: the difference at the newest point from the prediction by the points before it, or 0.9 of the
    measured error at the point before, whichever is more. Without an older point nothing is measured. The largest
    polynomial is taken until its error is measured, and if this interval is shorter than 0.8 or longer than 1.25 of the
    last one.

    With ``compensation`` an extrapolated input that is held at a mean is corrected by a part of its error over the last
    interval: ``compensation * (m - g) * h / H`` is added, where h and H are the lengths of the last interval and of the
    present one, g is the value given over the last one, and m is the mean of the outputs at its two ends. The last
    interval began when a value was given before. Without an older point that is 0, or if an output is not finite.

    With ``half`` an input that is held at a mean is constant over each half of a step, 1 or 2, which is from ``at`` to
    ``mean``. Both values together have the mean and the first moment of the polynomial over the step.

    With ``late`` the newest point is treated as a point at that fraction, and the one before as a point at ``at``.
    """

    instance: int
    at: float
    points: int | tuple[int, ...]
    derivatives: int | tuple[int, ...]
    buffers: tuple[int, ...]
    history: bool | tuple[bool, ...] = False
    held: float | tuple[float | None, ...] | None = None
    mean: float | tuple[float | None, ...] | None = None
    adaptive: bool | tuple[bool, ...] = False
    compensation: float | tuple[float, ...] = 0.0
    late: float | tuple[float | None, ...] | None = None
    half: int | tuple[int, ...] = 0

    @property
    def is_constant(self) -> bool:
        """Whether the inputs are constant over the interval."""
        return all(fitted.is_constant for fitted in self._routes)

    def of_route(self, k: int) -> Fitted:
        """The operands for the k-th route to the instance."""
        return Fitted(*(v[k] if isinstance(v, tuple) else v for v in self._operands))

    @property
    def rows(self) -> int:
        """Coefficients of the largest of the polynomials."""
        return max(fitted.size for fitted in self._routes)

    @property
    def lengths(self) -> set[int]:
        """For how many routes there are operands of their own."""
        return {len(v) for v in self._operands if isinstance(v, tuple)}

    @property
    def _operands(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in Fitted._fields)

    @property
    def _routes(self) -> list[Fitted]:
        """Operands of which all routes have one or the other."""
        return [self.of_route(k) for k in range(min(self.lengths, default=1))]

    def words(self, plan: Plan) -> tuple[str, str]:
        """Its operand, what is moved, and by which polynomials."""
        points = _count(self.points, "point")
        derivatives = _count(self.derivatives, "derivative")
        earlier = [f"buffer {b}" for b in self.buffers]
        earlier += [_each(self.history, "the history")] if _any(self.history) else []
        through = f"at {self.at:g} through {points} with {derivatives}"
        through += f", from the outputs and {', '.join(earlier)}" if earlier else ""
        for value, words in (
            (self.held, "held as at"),
            (self.mean, "held at the mean to"),
            (self.compensation or None, "compensated by"),
            (self.late, "late, to"),
            (self.half or None, "with its moment, half"),
        ):
            through += f", {words} {_each(value)}" if _any(value) else ""
        if _any(self.adaptive):
            through += f", {_each(self.adaptive, 'or fewer by the measured error')}"
        group = Group.CONTINUOUS
        return group.name.lower(), f"{_moves(self.instance, group, plan)} ({through})"

    def check(self, checker: Checker) -> None:
        """Each route can be fitted, by what has been kept, and the instance takes the result."""
        i = self.instance
        checker.has_inputs(i, Group.CONTINUOUS)
        routes = checker.plan.routes[i, Group.CONTINUOUS]
        for length in self.lengths - {len(routes)}:
            checker.fail(
                f"operands for {length} connected inputs of {checker.name(i)}, which has {len(routes)}"
            )
        every = {self.of_route(k) for k in range(len(routes))}
        for fitted in every:
            self._check_route(fitted, checker)
        if not (checker.plan.instances[i].model.takes_polynomials or self.is_constant):
            checker.fail(
                f"{checker.name(i)} cannot take polynomials (canInterpolateInputs and providesIntermediateUpdate are false)"
            )
        for buffer in self.buffers:
            checker.was_kept(buffer, f"buffer {buffer} is used")
        if any(fitted.history for fitted in every):
            checker.has_history()

    def _check_route(self, fitted: Fitted, checker: Checker) -> None:
        if not 1 <= fitted.points <= MOST_POINTS or not 1 <= fitted.size <= MOST_COEFFICIENTS:
            checker.fail(
                f"no polynomial can be fitted through {fitted.points} points with {fitted.derivatives} derivatives"
            )
        if fitted.held is not None and not 0.0 <= fitted.held <= 1.0:
            checker.fail(f"held at {fitted.held:g}: expected a fraction of the interval")
        for word, end in (("mean", fitted.mean), ("late", fitted.late)):
            if end is not None and not self.at < end <= 1.0:
                checker.fail(
                    f"{word} to {end:g}: expected a fraction of the interval after {self.at:g}"
                )
        if fitted.adaptive and (self.buffers or not fitted.history):
            checker.fail("an adaptive polynomial goes through the history, and no buffers")
        if fitted.compensation and (fitted.mean is None or not fitted.history):
            checker.fail("a compensated input is held at a mean, with the history")
        if fitted.half and (fitted.mean is None or fitted.half not in (1, 2)):
            checker.fail(
                f"half {fitted.half} of a step: expected 1 or 2, and an input held at a mean"
            )
        if fitted.late is not None and (fitted.points, fitted.derivatives) != (2, 0):
            checker.fail("a late input goes through 2 points with 0 derivatives")

    def effect(self, on: Effects) -> None:
        """Continuous inputs are moved."""
        on.move(self.instance, Group.CONTINUOUS, self.of_route)


_CALLS = {
    Group.STRUCTURAL: FmiCall.SET_STRUCTURAL,
    Group.START: FmiCall.SET_START,
    Group.INITIAL: FmiCall.SET_START,
    Group.CONTINUOUS: FmiCall.SET_INPUT,
    Group.DISCRETE: FmiCall.SET_INPUT,
    Group.PARAMETERS: FmiCall.SET_START,
    Group.FORCES: FmiCall.SET_INPUT,
    Group.INTERVALS: FmiCall.SET_INTERVAL,
}
"""The calls that set a group in every state; those of triggers and settings depend on it."""


@dataclass(frozen=True, slots=True)
class Set(Instruction):
    """Group in the store → FMU. Continuous inputs get the value of their polynomial at the time of the instance; the
    FMU gets the other coefficients in the form that it accepts.

    An instance that is at the limit or beyond it is not set: it does no step there, and FMI forbids to read outputs
    between setting inputs and stepping.

    For the group TRIGGERS: active triggers with their payload; a counter is incremented. No trigger is active
    afterwards. For each clock among the INPUT_CLOCKS the store then shows whether it was set. For the group INTERVALS, in
    Initialization Mode: intervals and shifts of clocks that the importer decides.
    """

    instance: int
    group: Group

    def words(self, plan: Plan) -> tuple[str, str]:
        """Its operand, and the variables."""
        return self.group.name.lower(), variables_of(self.instance, self.group, plan)

    def check(self, checker: Checker) -> None:
        """FMI allows it in this state, and the values in the store are up to date."""
        i, group = self.instance, self.group
        if group is Group.TRIGGERS:
            checker.has_triggers(i)
        call = self._call(checker)
        if call is None:
            checker.fail(f"{group.name.lower()} of {checker.name(i)} cannot be set")
        else:
            checker.call(i, call)
        known, planned = checker.instances[i], checker.plan.instances[i]
        if group in MOVED and group not in known.moved:
            checker.fail(
                f"{group.name.lower()} inputs of {checker.name(i)} are set, but were not moved before: "
                "the values in the store are outdated"
            )
        if (
            group is Group.DISCRETE
            and planned.event_mode
            and not planned.model.followed
            and known.state not in (State.INITIALIZATION_MODE, State.EVENT_MODE)
        ):
            checker.fail(
                f"discrete inputs of {checker.name(i)} are set outside of Event Mode, which it uses"
            )

    def _call(self, checker: Checker) -> FmiCall | None:
        """The call of FMI; None for a group that cannot be set."""
        has_event_mode = checker.plan.instances[self.instance].event_mode
        if self.group is Group.TRIGGERS:
            return FmiCall.SET_TRIGGER if has_event_mode else FmiCall.SET_INPUT
        if self.group is Group.SETTINGS:
            state = checker.instances[self.instance].state
            if state in (State.INSTANTIATED, State.INITIALIZATION_MODE):
                return FmiCall.SET_START
            return FmiCall.SET_TUNABLE if has_event_mode else FmiCall.SET_INPUT
        return _CALLS.get(self.group)

    def effect(self, on: Effects) -> None:
        """The group is set."""
        on.set(self.instance, self.group)


def moved(route: Route, plan: Plan) -> str:
    """One input and its source: ``"u <- 0.001 * motor.w + 2"``."""
    source = f"{plan.instances[route.link.source].name}.{route.link.output.name}"
    factor, offset = route.transformation.factor, route.transformation.offset
    scaled = f"{factor:.12g} * {source}" if factor != 1.0 else source
    sign = "+" if offset > 0 else "-"
    shifted = f"{scaled} {sign} {abs(offset):.12g}" if offset else scaled
    return f"{route.link.input.name} <- {shifted}"


def _moves(i: int, group: Group, plan: Plan) -> str:
    routes: Iterable[Route] = plan.routes.get((i, group), ())
    return some([moved(route, plan) for route in routes], "; ")


def _fed(trigger: int, plan: Plan) -> str:
    """A trigger with the clocks that make it active and its payload; empty if it is not connected."""
    planned = plan.triggers[trigger]
    clocks = [f"{plan.instances[i].name}.{name}" for i, name in planned.clocks]
    by_clocks = f"{planned.name} <- {' or '.join(clocks)}" if clocks else ""
    along = ", ".join(moved(route, plan) for route in planned.payload)
    if not along:
        return by_clocks
    return f"{by_clocks or planned.name}, with {along}"


def _any(operand: object) -> bool:
    """Whether an operand of FIT differs from its default for at least one route."""
    return (
        any(operand) if isinstance(operand, tuple) else operand is not None and operand is not False
    )


def _each(operand: object, words: str = "") -> str:
    """An operand of FIT, or these words where it is true; one for each route where they differ."""
    if isinstance(operand, tuple):
        return ", ".join(_each(part, words) for part in operand)
    if isinstance(operand, bool):
        return words if operand else "-"
    return "-" if operand is None else f"{operand:g}"


def _count(number: int | tuple[int, ...], noun: str) -> str:
    if isinstance(number, tuple):  # one for each input
        return f"{', '.join(map(str, number))} {noun}s"
    return f"{number} {noun}{'s' if number != 1 else ''}"
