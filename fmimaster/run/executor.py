"""The interface of executors of programs for the loop over time, the result of an execution, and the first value store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.fmu.instance import Instance
from fmimaster.instants.instant import Times
from fmimaster.plan.layout import Group
from fmimaster.plan.links import is_held
from fmimaster.plan.plan import InstancePlan, Plan
from fmimaster.program.hook import RuleTwin, Twin
from fmimaster.program.instructions.base import Program
from fmimaster.program.store import ValueStore
from fmimaster.run.log import Stretch
from fmimaster.run.rows import Registers, RowBlock
from fmimaster.system.conversions import parse_value
from fmimaster.system.model import DataType
from fmimaster.system.states import State


class Backend(Enum):
    """Executor of the programs of a run; all give the same bits."""

    FASTEST = "fastest"
    """The kernel in C if it is available and supports the system, otherwise the interpreter in Python."""
    NATIVE = "native"
    """The kernel in C."""
    REFERENCE = "reference"
    """The interpreter in Python: the specification, for debugging."""


class Reason(Enum):
    """Reason why an execution stopped before its end."""

    DISCARDED = "the FMU discarded the step"
    EARLY = "the FMU returned early at a time outside of the step"
    ENDED = "the FMU ended the run at a time outside of the step"
    NOT_CONVERGED = "an iteration did not converge"


@dataclass(frozen=True, slots=True)
class Halt:
    """An execution that stopped before its end: the reason, the instruction, and the time of the instance."""

    reason: Reason
    instance: int
    """Index of the instance; -1 if no single instance is the cause."""
    instruction: int
    """Index in the program; -1 for reasons found at its end."""
    time: float
    """Time in s that the instance had reached."""
    change: float = 0.0
    """For NOT_CONVERGED: the largest relative change of an output in the last pass."""
    messages: tuple[str, ...] = ()
    """For DISCARDED: the last messages that the FMU has logged, oldest first."""


class Outcome(NamedTuple):
    """Result of one execution of a program."""

    end: float
    """Time in s that all instances have reached."""
    terminate: bool = False
    """Whether an FMU requested the end of the simulation."""
    stopped: Halt | None = None
    event_requests: tuple[int, ...] = ()
    """Instances that request an event at the end."""


@dataclass(frozen=True, slots=True)
class InitialTimes:
    """Times in s that all FMUs are passed when they enter Initialization Mode; the tolerance of each is in the plan."""

    start: float
    stop: float | None = None


def entering(
    instance: Instance, state: State, times: InitialTimes, tolerance: float | None
) -> Callable[[], None]:
    """The FMI calls that bring an instance to a state."""
    initialize = partial(instance.enter_initialization_mode, times.start, times.stop, tolerance)
    calls: dict[State, Callable[[], None]] = {
        State.CONFIGURATION_MODE: instance.enter_configuration_mode,
        State.INSTANTIATED: instance.exit_configuration_mode,
        State.INITIALIZATION_MODE: initialize,
        State.STEP_MODE: instance.enter_step_mode,
        State.EVENT_MODE: instance.enter_event_mode,
        State.TERMINATED: instance.terminate,
    }
    return calls[state]


@dataclass(frozen=True, slots=True)
class EventsAhead:
    """The events at the ends of steps that are known ahead."""

    numbers: NDArray[np.int32]
    """Per step: the number of the program of the event after it; -1 for none."""
    programs: Sequence[Program]
    after: Program | None
    """The attempt of the first step after an event; None for the usual one."""
    last: float
    """In s: an event of its own that an FMU announces before it is an outcome."""


class Repeated(NamedTuple):
    """What :meth:`Executor.repeat` has done."""

    done: int
    """Number of committed intervals."""
    outcome: Outcome
    """Of the attempt of the interval after them, which is not yet committed; or of the event after the last one."""
    rows: int | None = None
    """Of that event; None if the outcome is that of an attempt."""


class Executor(Protocol):
    """Executes programs on the instances of a plan."""

    store: ValueStore
    registers: Registers
    next_events: NDArray[np.float64]
    """Time in s of the next event that each instance has announced; inf for none."""
    calls: NDArray[np.int64]
    """Number of calls per kind of call and instance: see :class:`fmimaster.run.rows.Counted`."""

    @property
    def rows(self) -> RowBlock:
        """The rows that are not passed on yet."""
        ...

    is_estimating: bool
    """Whether :attr:`seconds` is estimated from some of the steps."""

    @property
    def seconds(self) -> Sequence[float]:
        """Wall time per instance spent in DoStep, in s."""
        ...

    def begin_anew(self) -> None:
        """Forget what an earlier run has left behind, besides the store, the registers, the rows and the FMUs."""
        ...

    def run(self, program: Program, begin: float, end: float) -> Outcome:
        """Execute a program over the interval from ``begin`` to ``end``, in s."""
        ...

    def stepping(self, attempt: Program, commit: Program) -> Callable[[float, float], Any]:
        """Attempts an interval from begin to end, in s, and commits it if nothing happened: then it returns 0 or None. Else
        it returns what :meth:`outcome` takes, and the interval is not yet committed."""
        ...

    def outcome(self, happened: Any) -> Outcome:
        """What has happened in such an interval."""
        ...

    def ask(self) -> None:
        """Return from repeat after the present step; called from another thread."""

    @property
    def reached(self) -> float:
        """Start in s of the present or last interval; for any thread."""
        ...

    def present_call(self) -> tuple[int, str] | None:
        """Number of the instance that is being called, and the function, if that is known; for any thread."""

    def repeat(
        self,
        attempts: Sequence[Program],
        commit: Program,
        times: Times,
        watches: Any = None,
        events: EventsAhead | None = None,
    ) -> Repeated:
        """Attempt and commit interval after interval while nothing happens.

        Parameters
        ----------
        attempts : at least one
            A pattern: the k-th interval is attempted by ``attempts[k % len(attempts)]``, counted anew in each call.
        times : at least two, increasing, in s
        watches
            From :meth:`watches`: what ends it early besides; None for nothing.
        events
            Events that are known ahead: each is executed behind the commit of its step.

        Returns
        -------
        It returns at the last interval, when the next row is the last that has room, when it is asked to, at an attempt
        that a watch does not let pass, or when one did not simply succeed; and after an event at which FMUs have answered
        more than that all is done: they are terminated, have announced an event of their own or changed the interval of a
        clock, or the event did not end.
        """
        ...

    def watches(self, twins: Sequence[Twin]) -> Any:
        """What ends :meth:`repeat` early, by its names and data in C; None if Python looks at each step in any case. Called
        once, at the start of a run."""
        ...

    def controlled(
        self, twin: RuleTwin[Any], watches: Any = None, first_code: int = 0
    ) -> ControlledSteps | None:
        """Steps of the sizes that the twin of a rule chooses, without Python in between, up to one that a watch of
        :meth:`watches` does not let pass; None if the rule is asked in Python in any case. Called once, at the start of a
        run. Codes of the causes of the rule begin with ``first_code``; those before are of events that are predicted."""


class ControlledSteps(Protocol):
    """Attempts and commits steps of the sizes that the twin of a rule chooses, while nothing happens."""

    def __call__(
        self, attempt: Program, commit: Program, stretch: Stretch, last: float
    ) -> tuple[int, Outcome | None]:
        """Do at most the steps of an empty stretch, whose ends and causes are noted there; the first end may be given.

        Parameters
        ----------
        last
            In s. No step ends behind it, or so near before it that another would be a sliver.

        Returns
        -------
        Number of committed steps, and the outcome of the one after them, which is not yet committed; None if none was
        attempted, since it comes too near to ``last``, or Python must find its end. It returns as
        :meth:`Executor.repeat` does, and at a step on which the rule must be asked in Python.
        """
        ...


def make_store(plan: Plan, n_buffers: int, history: int = 0) -> ValueStore:
    """A value store with the start values of the plan in it."""
    store = ValueStore(
        plan.layout,
        len(plan.instances),
        n_buffers,
        history=history,
        n_triggers=len(plan.triggers),
        partials={i: c.shape for i, c in plan.corrections.items() if c.is_measured},
    )
    given = {Group.STRUCTURAL, Group.START, Group.INITIAL}
    for (i, group, name), (kind, slot) in plan.layout.slots.items():
        if group in given:
            store.values[kind][slot] = plan.instances[i].start_values[name]
        elif group is Group.OUTPUTS:
            _set_unread(store.values[kind][slot], plan.instances[i], name)
        elif group is Group.CLOCKED:
            set_start(store.values[kind][slot], plan.instances[i], name)
    _set_held(plan, store)
    for trigger in plan.triggers:
        if trigger.counter is not None:  # it is counted up from the value that the FMU has seen
            count = store.values[DataType.INT32][trigger.counter : trigger.counter + 1]
            set_start(count, plan.instances[trigger.instance], trigger.name)
    return store


def _set_unread(values: NDArray[Any], planned: InstancePlan, name: str) -> None:
    """A variable that cannot be read in Initialization Mode has its start value for connected inputs until it is
    read."""
    variable = planned.model.variable(name)
    assert variable is not None
    if not variable.get_in_initialization:
        set_start(values, planned, name)


def _set_held(plan: Plan, store: ValueStore) -> None:
    """Before the first tick of a clocked output without start value, inputs that hold it have a start value of theirs: a
    given one, else a declared one."""
    held = [
        (link.input.name in plan.instances[i].start_values, i, route)
        for (i, _), routes in plan.routes.items()
        for route in routes
        if is_held(link := route.link) and link.output.start is None
    ]
    for _, i, route in sorted(held, key=itemgetter(0)):
        kind, link = route.source_type, route.link
        if kind is route.target_type and link.transformation.is_identity:
            set_start(store.values[kind][route.source], plan.instances[i], link.input.name)


def set_start(values: NDArray[Any], planned: InstancePlan, name: str) -> None:
    """Values of a variable ← its start value: a given one, else a declared one, if there is any."""
    variable = planned.model.variable(name)
    assert variable is not None
    start = planned.start_values.get(name, variable.start)
    if start is not None:
        values[:] = parse_value(variable, start, f"Start value of '{planned.name}.{name}'")
