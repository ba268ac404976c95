"""The delay of each connection with its reason, and the levels of instances that can step at the same time.

Both are derived from the program of an attempt instead of the algorithm's name. Instances with fresh connections in both
directions, as in an iteration, step *together*: they share a level.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from itertools import product
from typing import NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.plan.graph import Node, components
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.program.instructions.steps import Step, closings
from fmimaster.program.knowledge import Effects, Fitted
from fmimaster.sequences.levels import level_sets
from fmimaster.sequences.structure import topological_order

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
        walk.line = line
        attempt.instructions[line].effect(walk)
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
                later = [line for line, reached in of_source if reached > take.read]
                sooner = [line for line, reached in of_source if reached == take.read]
                first = next(iter(sooner or later), None)
                late = end - take.read
                found.append(
                    Delay(route, late, take.read, end, take.line, first, take.fitted, len(uses))
                )
    return tuple(found)


class _Take(NamedTuple):
    """A value used by an input."""

    line: int
    read: float
    fitted: Fitted


class _Use(NamedTuple):
    """One step of a target, with the values that it used: input → value."""

    end: float
    takes: dict[str, _Take]


@dataclass
class _Walk(Effects):
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

    line: int = 0
    """Index of the present instruction."""

    def move(self, i: int, group: Group, fitted: Callable[[int], Fitted] | None = None) -> None:
        """The inputs take values of their sources as they were read."""
        for k, route in enumerate(self.plan.routes.get((i, group), ())):
            read = self.read.get(route.link.source, 0.0)
            take = _Take(self.line, read, self._of_route(route, k, fitted))
            self.takes.setdefault(i, {})[route.link.input.name] = take

    @staticmethod
    def _of_route(route: Route, k: int, of: Callable[[int], Fitted] | None) -> Fitted:
        """The polynomial of the k-th route; it is held if its source publishes too few derivatives."""
        fitted = NEWEST if of is None else of(k)
        return NEWEST if len(route.derivatives) < fitted.derivatives else fitted

    def step(self, i: int, end: float) -> None:
        """The instance uses the values that its inputs have taken."""
        self.at[i] = end
        self.uses.setdefault(i, []).append(_Use(end, dict(self.takes.get(i, {}))))

    def get(self, i: int, group: Group) -> None:
        """Outputs are those of the time of the instance."""
        if group is Group.OUTPUTS:
            self.read[i] = self.at.get(i, 0.0)

    def save(self, i: int, place: int) -> None:
        """The time of the instance is that of the place."""
        self.places[place] = self.at.get(i, 0.0)

    def restore(self, i: int, place: int) -> None:
        """Steps beyond the time of the place are undone."""
        at = self.at[i] = self.places[place]
        self.uses[i] = [u for u in self.uses.get(i, ()) if u.end <= at]

    def keep(self, buffer: int) -> None:
        """When the outputs in the buffer were read."""
        self.buffers[buffer] = dict(self.read)

    def recall(self, buffer: int) -> None:
        """When the outputs were read that are in the buffer."""
        self.read = dict(self.buffers[buffer])

    def revert(self, i: int, buffer: int) -> None:
        """When the outputs of the instance were read that are in the buffer."""
        self.read[i] = self.buffers[buffer].get(i, 0.0)


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
    if fitted.half and degree:
        return f"held in each half of the step, with mean and moment of the {polynomial}"
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


Levels = tuple[tuple[tuple[int, ...], ...], ...]
"""The levels, lowest first; each has groups of instances that step together, mostly of one. All in the order of the trigger
sequence."""


def levels(sequence: Sequence[int], delays: Collection[Delay]) -> Levels:
    """The levels of a program.

    Parameters
    ----------
    sequence
        The trigger sequence, as indices of instances. A program may step them in another order.
    delays
        Those of all connections.
    """
    arcs: dict[Node, list[Node]] = {(i, ""): [] for i in sequence}
    for delay in delays:
        if delay.is_fresh:
            arcs[delay.route.link.source, ""].append((delay.route.link.target, ""))
    together = [tuple(i for i, _ in part) for part in components(arcs)] if arcs else []
    first = {i: group[0] for group in together for i in group}
    fresh = {
        (first[source], first[target])
        for (source, _), heads in arcs.items()
        for target, _ in heads
        if first[source] != first[target]
    }
    members = {group[0]: group for group in together}
    # the program may step in another order: then its fresh connections decide
    position = {i: k for k, i in enumerate(sequence)}
    fed: dict[int, list[int]] = {position[i]: [] for i in members}
    for source, target in fresh:
        fed[position[source]].append(position[target])
    order = [sequence[k] for k in topological_order(fed)]
    return tuple(
        tuple(members[i] for i in sorted(level, key=position.__getitem__))
        for level in level_sets(order, fresh)
    )


def order_of_steps(
    sequence: Sequence[int], delays: Collection[Delay], found: Levels
) -> tuple[int, ...]:
    """The trigger sequence, if each instance is given new values only of those before it and of those with which it steps
    together; else the instances level by level."""
    position = {i: k for k, i in enumerate(sequence)}
    group_of = {i: group for level in found for group in level for i in group}
    ends = [(d.route.link.source, d.route.link.target) for d in delays if d.is_fresh]
    if all(position[a] < position[b] or group_of[a] == group_of[b] for a, b in ends):
        return tuple(sequence)
    return tuple(i for level in found for group in level for i in group)
