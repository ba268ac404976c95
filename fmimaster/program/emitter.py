"""The pen with which an algorithm writes a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions import (
    Fit,
    Forget,
    Get,
    Instruction,
    Keep,
    Mode,
    Move,
    Parallel,
    Program,
    Recall,
    Remember,
    Repeat,
    Restore,
    Sample,
    Save,
    Set,
    Step,
    Until,
)
from fmimaster.program.polynomial import Polynomial
from fmimaster.system.states import State


class Emitter:
    """Writes instructions, hands out places and buffers, and knows which part of the interval is meant.

    Parameters
    ----------
    plan : Plan
    history : int
        How many accepted points the history holds; they are the first buffers.

    Attributes
    ----------
    wanted_history : int
        How many points the polynomials that were written want.
    """

    def __init__(self, plan: Plan, history: int = 0) -> None:
        self.plan = plan
        self.history = history
        self.wanted_history = 0
        self.n_places = 0
        self.n_buffers = history
        self._instructions: list[Instruction] = []
        self._interval = (0.0, 1.0)

    def program(self, name: str) -> Program:
        """Program of what has been written since the last one."""
        written, self._instructions = tuple(self._instructions), []
        return Program(name, written)

    # The interval

    @contextmanager
    def over(self, begin: float, end: float) -> Iterator[None]:
        """Narrow the interval for what is written inside: fractions of the present one. Nests."""
        outer = self._interval
        length = outer[1] - outer[0]
        self._interval = (outer[0] + begin * length, outer[0] + end * length)
        yield
        self._interval = outer

    # Inputs, steps, outputs

    def inputs(self, instance: int, polynomial: Polynomial) -> None:
        """Give the instance its inputs: continuous ones by the polynomial, if the FMU can take it, all others held."""
        if self._has(instance, Group.CONTINUOUS):
            if self._interpolates(instance, polynomial):
                buffers = self._points_before(polynomial)
                begin, points = self._interval[0], polynomial.points
                self._write(Fit(instance, begin, points, polynomial.derivatives, buffers))
            else:
                self._write(Move(instance, Group.CONTINUOUS))
        if self._has(instance, Group.DISCRETE):
            self._write(Move(instance, Group.DISCRETE))
        self.set_inputs(instance)

    def move(self, instance: int) -> None:
        """Inputs of the instance in the store ← connected outputs, held."""
        for group in (Group.CONTINUOUS, Group.DISCRETE):
            if self._has(instance, group):
                self._write(Move(instance, group))

    def set_inputs(self, instance: int) -> None:
        """Inputs in the store → FMU."""
        self.set(instance, Group.CONTINUOUS)
        self.set(instance, Group.DISCRETE)

    def set(self, instance: int, group: Group) -> None:
        """A group in the store → FMU; nothing if the instance has no such variables."""
        if self._has(instance, group):
            self._write(Set(instance, group))

    def step(self, instance: int) -> None:
        """``DoStep`` to the end of the interval."""
        self._write(Step(instance, self._interval[1]))

    def step_all(self, instances: Iterable[int]) -> None:
        """``DoStep`` of all these instances to the end of the interval, in any order or at the same time."""
        instances = list(instances)
        if len(instances) > 1:
            self._write(Parallel(len(instances)))
        for instance in instances:
            self.step(instance)

    def get(self, instance: int) -> None:
        """Outputs of the FMU → store; nothing if nobody wants any."""
        if self._has(instance, Group.OUTPUTS):
            self._write(Get(instance, Group.OUTPUTS))

    # Going back

    def save(self, instances: Iterable[int]) -> dict[int, int]:
        """Save the FMU states of these instances; returns instance → place, for :meth:`restore`."""
        places = {}
        for instance in instances:
            places[instance] = self.n_places
            self._write(Save(instance, self.n_places))
            self.n_places += 1
        return places

    def restore(self, places: dict[int, int]) -> None:
        """Restore FMU states that :meth:`save` has saved."""
        for instance, place in places.items():
            self._write(Restore(instance, place))

    def keep(self) -> int:
        """Keep all outputs in a buffer, whose number is returned."""
        buffer = self.n_buffers
        self.n_buffers += 1
        self._write(Keep(buffer))
        return buffer

    def recall(self, buffer: int) -> None:
        """All outputs ← buffer."""
        self._write(Recall(buffer))

    # History and results

    def remember(self) -> None:
        """The outputs become the newest point of the history; nothing if no algorithm wants one."""
        if self.history:
            self._write(Remember())

    def forget(self) -> None:
        """No point before this instant counts any more."""
        if self.history:
            self._write(Forget())

    def sample(self) -> None:
        """Record a row."""
        self._write(Sample())

    # Iterating

    @contextmanager
    def repeat(self, *, least: int, most: int, tolerance: float) -> Iterator[None]:
        """Repeat what is written inside until outputs have come to rest; see UNTIL."""
        self._write(Repeat(least, most))
        yield
        self._write(Until(tolerance))

    def mode(self, instance: int, state: State) -> None:
        """Bring the instance to a state."""
        self._write(Mode(instance, state))

    def settle(self, *, most: int, tolerance: float) -> None:
        """Make all outputs agree with the inputs they depend on directly, at one instant.

        Along the visits of the plan, with an iteration around each algebraic loop. Outputs that are needed before their
        instance is reached are read beforehand, so that nothing is computed from values that nobody gave.
        """
        read: set[int] = set()
        for visit in self.plan.visits:
            sources = {k.source for k in self.plan.links if k.target in visit.instances}
            if visit.loop:
                sources |= set(visit.instances)
            for instance in sorted(sources - read - (set() if visit.loop else {*visit.instances})):
                self.get(instance)
            read |= sources | set(visit.instances)
            if visit.loop is None:
                self._exchange(visit.instances[0])
                continue
            with self.repeat(least=2, most=most, tolerance=tolerance):
                for instance in visit.instances:
                    self._exchange(instance)

    def _exchange(self, instance: int) -> None:
        self.move(instance)
        self.set_inputs(instance)
        self.get(instance)

    def _write(self, instruction: Instruction) -> None:
        self._instructions.append(instruction)

    def _has(self, instance: int, group: Group) -> bool:
        return bool(self.plan.layout.segments(instance, group))

    def _points_before(self, polynomial: Polynomial) -> tuple[int, ...]:
        """Buffers through which a polynomial may go: the history, if it wants any."""
        if polynomial.history and polynomial.points > 1:
            # the newest point of the history is the present one until somebody has stepped
            self.wanted_history = max(self.wanted_history, polynomial.points)
        return tuple(range(self.history)) if polynomial.history and polynomial.points > 1 else ()

    def _interpolates(self, instance: int, polynomial: Polynomial) -> bool:
        can = self.plan.instances[instance].model.capabilities
        return polynomial.degree > 0 and (
            can.max_input_derivative_order > 0 or can.provides_intermediate_update
        )
