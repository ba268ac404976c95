"""The data of the actions of a program, and the exception with which an action stops a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.instance import Instance, Signal, Transfer
from fmimaster.plan.layout import Segment
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.run.executor import Halt, InitialTimes
from fmimaster.run.rows import Registers, RowBlock
from fmimaster.system.model import Variable

Action = Callable[[], None]
"""An instruction, ready to be executed."""


class Machine:
    """The value store, the registers, and the execution under way.

    Attributes
    ----------
    begin, end : float
        Interval of the execution, in s.
    limit : float
        Time in s of the earliest early return or pending event; ``end`` while there is none.
    requests : set of int
        Instances that request an event.
    wants_another : bool
        Whether an instance or a hook requires another pass of the innermost REPEAT.
    terminate : bool
        Whether an FMU has asked to end the run.
    initialized : shape (n_instances,)
        Whether each instance has left Initialization Mode, and is not terminated.
    has_saved : bool
        Whether a state has been saved in this execution, or in one before.
    """

    def __init__(
        self,
        plan: Plan,
        instances: Sequence[Instance],
        experiment: InitialTimes,
        store: ValueStore,
        registers: Registers,
        hooks: Sequence[Hook],
    ) -> None:
        self.plan = plan
        self.instances = instances
        self.experiment = experiment
        self.store = store
        self.registers = registers
        self.hooks = hooks
        self.rows = RowBlock(plan, store)
        self.nominals = plan.nominals()
        self.seconds = [0.0] * len(instances)
        self.at = view(registers.at)
        self.stepped = view(registers.stepped)
        self.pending = view(registers.pending)
        self.follows_polynomials = view(registers.follows_polynomials)
        self.steps, self.restores, self.events = map(view, registers.calls)
        self.polynomial_setters: dict[int, Callable[[float, Signal], None]] = {}
        """Of the instances that have been given a polynomial."""
        self.begin = self.end = self.limit = experiment.start
        self.requests: set[int] = set()
        self.initialized = registers.initialized
        self.present: tuple[int, str] | None = None
        """The instance that is called now, and the function; None if it is not known."""
        self.wants_another = self.terminate = self.has_saved = False

    def begin_anew(self) -> None:
        """Forget an earlier run."""
        self.begin = self.end = self.limit = self.experiment.start
        self.requests.clear()
        self.seconds[:] = [0.0] * len(self.seconds)
        self.wants_another = self.terminate = self.has_saved = False

    def begin_execution(self, begin: float, end: float) -> None:
        """Start a program over an interval: no instance has returned early or requests anything."""
        self.begin, self.end, self.limit = begin, end, end
        self.requests, self.wants_another, self.terminate = set(), False, False
        self.store.interval = begin, end
        if self.has_saved:
            self.registers.kept_from[:] = inf
            self.has_saved = False

    def part(self, segment: Segment) -> NDArray[Any]:
        """The part of the store that a segment is."""
        return self.store.values[segment.type][segment.start : segment.stop]

    def getters(self, i: int, segments: Iterable[Segment]) -> list[Transfer]:
        """What reads these segments of an instance into the store."""
        make = self.instances[i].getter
        return [make(s.type, s.value_references, self.part(s)) for s in segments]

    def setters(self, i: int, segments: Iterable[Segment]) -> list[Transfer]:
        """What sets these segments of an instance from the store."""
        make = self.instances[i].setter
        return [make(s.type, s.value_references, self.part(s)) for s in segments]

    def derivative(
        self,
        i: int,
        outputs: Sequence[Variable],
        inputs: Sequence[Variable],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        """What computes a directional derivative of outputs by inputs of an instance."""
        unknowns, knowns = ([v.value_reference for v in some] for some in (outputs, inputs))
        make = self.instances[i].directional_derivative
        return make(unknowns, knowns, seed, sensitivity)


def view(array: NDArray[Any]) -> Any:
    """The array with elements that are numbers of Python: NumPy is slow element by element."""
    return memoryview(array)  # type: ignore[arg-type]


class Stopped(Exception):
    """Leaves a program before its end."""

    def __init__(self, stop: Halt) -> None:
        super().__init__(stop)
        self.stop = stop


class EndedByFmu(Exception):
    """Leaves a program because an FMU ends the run in Event Mode or in a part of a step: only Terminate may follow."""


def in_turn(actions: Sequence[Action]) -> Action:
    """One action that does these one after the other."""
    if len(actions) == 1:
        return actions[0]

    def act() -> None:
        for step in actions:
            step()

    return act
