"""The delay of each connection and its reason, derived from the program of an attempt instead of the algorithm's
name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions import (
    Fit,
    Fitted,
    Get,
    Instruction,
    Keep,
    Move,
    Program,
    Recall,
    Restore,
    Revert,
    Save,
    Step,
    closings,
)

NEWEST = Fitted(1, 0)
"""The newest value, as set by MOVE."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Delay of a value relative to the end of the step that uses it.

    All fractions are of the interval of one attempt, which begins at 0 and ends at 1: 1.0 is one communication step.
    """

    route: Route
    steps: float
    """End of the target's step minus the time of the source when its output was read."""
    read: float
    """Time of the source when its output was read."""
    end: float
    """End of the target's step."""
    taken_at: int
    """Index of the MOVE or FIT that uses the value."""
    source_steps_at: int | None
    """Index of the source's STEP that ends at ``read``; if there is none, of its first STEP; None without a STEP."""
    fitted: Fitted
    """The polynomial of the input over the step."""
    parts: int = 1
    """Number of steps of the target in the attempt that are not undone."""

    @property
    def is_fresh(self) -> bool:
        """Whether the input has the value of the end of the step; otherwise it is stale."""
        return self.steps <= 0

    @property
    def is_newest(self) -> bool:
        """Whether the input keeps the newest value of its source over the step."""
        return self.fitted == NEWEST

    @property
    def is_held(self) -> bool:
        """Whether the input keeps its value over the step."""
        return self.fitted.is_constant or self.fitted.size == 1


def delays(attempt: Program, plan: Plan) -> tuple[Delay, ...]:
    """The delay of each connection, in the order of the targets and their inputs.

    A target may step several times in one attempt, and steps may be undone. The result is the largest delay of the
    steps that are not undone. The body of each REPEAT is evaluated twice: the second pass represents all later ones.
    """
    walk = _Walk(plan)
    for line in _lines(attempt.instructions):
        walk.act(attempt.instructions[line], line)
    steps: dict[int, list[tuple[int, float]]] = {}
    for line, instruction in enumerate(attempt.instructions):
        if isinstance(instruction, Step):
            steps.setdefault(instruction.instance, []).append((line, instruction.end))
    found = []
    for target, group in product(sorted(walk.uses), Group):
        for route in plan.routes.get((target, group), ()):
            name = route.link.input.name
            uses = [(u.end, u.takes[name]) for u in walk.uses[target] if name in u.takes]
            if uses:
                end, take = max(uses, key=lambda use: use[0] - use[1].read)
                of_source = steps.get(route.link.source, [])
                found.append(_delay(route, end, take, of_source, len(uses)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Take:
    """A value used by an input."""

    line: int
    read: float
    fitted: Fitted = NEWEST


@dataclass(frozen=True)
class _Use:
    """One step of a target, with the values that it used: input → value."""

    end: float
    takes: dict[str, _Take]


@dataclass
class _Walk:
    """The state of instances and outputs at one point of the program."""

    plan: Plan
    at: dict[int, float] = field(default_factory=dict)
    """Time of each instance; missing ones are at 0."""
    read: dict[int, float] = field(default_factory=dict)
    """Time of each instance when its outputs in the store were read."""
    takes: dict[int, dict[str, _Take]] = field(default_factory=dict)
    """Instance → input → value."""
    uses: dict[int, list[_Use]] = field(default_factory=dict)
    """Instance → its steps that are not undone."""
    places: dict[int, float] = field(default_factory=dict)
    buffers: dict[int, dict[int, float]] = field(default_factory=dict)

    def act(self, instruction: Instruction, line: int) -> None:
        match instruction:
            case Move(target, group):
                for route in self.plan.routes.get((target, group), ()):
                    take = _Take(line, self.read.get(route.link.source, 0.0))
                    self.takes.setdefault(target, {})[route.link.input.name] = take
            case Fit(target):
                for k, route in enumerate(self.plan.routes.get((target, Group.CONTINUOUS), ())):
                    take = self._fitted(route, k, instruction, line)
                    self.takes.setdefault(target, {})[route.link.input.name] = take
            case Step(target, end):
                self.at[target] = end
                use = _Use(end, dict(self.takes.get(target, {})))
                self.uses.setdefault(target, []).append(use)
            case Get(instance, Group.OUTPUTS):
                self.read[instance] = self.at.get(instance, 0.0)
            case Save(instance, place):
                self.places[place] = self.at.get(instance, 0.0)
            case Restore(instance, place):
                at = self.at[instance] = self.places[place]
                self.uses[instance] = [u for u in self.uses.get(instance, ()) if u.end <= at]
            case Keep(buffer):
                self.buffers[buffer] = dict(self.read)
            case Recall(buffer):
                self.read = dict(self.buffers[buffer])
            case Revert(instance, buffer):
                self.read[instance] = self.buffers[buffer].get(instance, 0.0)

    def _fitted(self, route: Route, k: int, fit: Fit, line: int) -> _Take:
        """The value of the k-th route; it is held if its source publishes too few derivatives."""
        read = self.read.get(route.link.source, 0.0)
        fitted = fit.of_route(k)
        if len(route.derivatives) < fitted.derivatives:
            return _Take(line, read)
        return _Take(line, read, fitted)


def _lines(instructions: tuple[Instruction, ...]) -> Iterator[int]:
    """Indices in the order of execution, the body of each REPEAT twice."""
    ends = closings(instructions)

    def part(first: int, last: int) -> Iterator[int]:
        k = first
        while k < last:
            if k in ends:
                yield from part(k + 1, ends[k])
                yield from part(k + 1, ends[k])
                k = ends[k]
            else:
                yield k
            k += 1

    return part(0, len(instructions))


def _delay(
    route: Route, end: float, take: _Take, of_source: list[tuple[int, float]], parts: int
) -> Delay:
    """The delay of a route; the steps of its source are given by line and end."""
    later = [line for line, reached in of_source if reached > take.read]
    sooner = [line for line, reached in of_source if reached == take.read]
    return Delay(
        route=route,
        steps=end - take.read,
        read=take.read,
        end=end,
        taken_at=take.line,
        source_steps_at=next(iter(sooner or later), None),
        fitted=take.fitted,
        parts=parts,
    )


def reason(delay: Delay, plan: Plan, *, lines: bool = True) -> str:
    """The reason of the delay of a connection, with the numbers of the instructions if these are shown."""
    link = delay.route.link
    source, target = (plan.instances[i].name for i in (link.source, link.target))
    taken = f"'{target}' is set" + (f" ({delay.taken_at})" if lines else "")
    if delay.source_steps_at is None:
        return f"'{source}' never steps"
    stepped = f"'{source}' steps" + (f" ({delay.source_steps_at})" if lines else "")
    if delay.is_fresh:
        return f"{stepped} before {taken}"
    if delay.read == 0.0:
        return f"{taken} before {stepped}: value of the last communication point"
    return (
        f"{taken} to the value at {delay.read:g} of the interval, and uses it until {delay.end:g}"
    )


def in_steps(delay: Delay) -> str:
    """The delay in words: ``"not late"``, ``"1 step late"``, ``"0.5 steps late"``."""
    if delay.is_fresh:
        return "not late"
    return f"{delay.steps:g} step{'s' if delay.steps != 1 else ''} late"


def course(delay: Delay) -> str:
    """The course of the input over the step, in words."""
    fitted, degree = delay.fitted, delay.fitted.size - 1
    points = f"{fitted.points} point{'s' if fitted.points != 1 else ''}"
    polynomial = f"polynomial of degree {degree} through {points}"
    if fitted.compensation:
        added = f"and {fitted.compensation:g} of its mean error over the last step"
        return f"held {added}" if degree == 0 else f"held at the mean of the {polynomial}, {added}"
    if fitted.late:
        late = "from the value before to the newest, late by one more step"
        return f"held at the mean of the line {late}" if fitted.is_constant else f"line {late}"
    if fitted.mean is not None and degree:
        over = f" over each of {delay.parts} sub-steps" if delay.parts > 1 else ""
        return f"held at the mean of the {polynomial}{over}"
    if fitted.held is not None and degree:
        return f"held at the value of the {polynomial} at {fitted.held:g} of the step"
    if delay.is_held:
        return "held"
    if fitted[:2] == (1, 1):
        return "linear, with the derivative of the source"
    return polynomial
