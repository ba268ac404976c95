"""The interpreter of programs in Python.

Each instruction is turned once into a function without arguments, by the function of its name; running a program is
calling these functions in order. So a breakpoint in Python sees each FMI call, and little time is spent beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fmimaster.fmu.instance import Instance
from fmimaster.fmu.kernel_entry import PartitionCallbacks, UpdateCallback
from fmimaster.instants.instant import Times
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook, RuleTwin, Twin
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.program.instructions.steps import Repeat, Until, closings
from fmimaster.run.executor import (
    EventsAhead,
    Halt,
    InitialTimes,
    Outcome,
    Reason,
    Repeated,
    make_store,
)
from fmimaster.run.reference import inputs, outputs, steps
from fmimaster.run.reference.machine import Action, EndedByFmu, Machine, Stopped
from fmimaster.run.rows import Registers
from fmimaster.system.clocks import Qualifier


class ReferenceExecutor:
    """Executes programs by FMI calls from Python; see :class:`fmimaster.run.executor.Executor`.

    Parameters
    ----------
    plan : Plan
    instances : one for each of the plan, in state Instantiated
    experiment : Experiment
    n_threads : int
        Has no effect: all is done in one thread.
    n_places, n_buffers, history : int
        How many places, buffers and points of the history the programs use.
    hooks : list of Hook
        What CALL calls.
    """

    def __init__(
        self,
        plan: Plan,
        instances: Sequence[Instance],
        experiment: InitialTimes,
        *,
        n_threads: int = 1,
        n_places: int = 0,
        n_buffers: int = 0,
        history: int = 0,
        hooks: Sequence[Hook] = (),
    ) -> None:
        del n_threads
        self.store = make_store(plan, n_buffers, history)
        self.registers = Registers(len(instances), n_places, n_buffers, experiment.start)
        for i, instance in enumerate(instances):
            instance.clock = partial(self.registers.at.item, i)
            instance.kept_from = partial(self.registers.kept_from.item, i)
        self._machine = Machine(plan, instances, experiment, self.store, self.registers, hooks)
        self.rows = self._machine.rows
        self.seconds = self._machine.seconds
        self.next_events, self.calls = self.registers.next_events, self.registers.calls
        self._actions: dict[int, tuple[Program, list[Action]]] = {}
        self._asked = False

    def run(self, program: Program, begin: float, end: float) -> Outcome:
        """Execute a program over the interval from begin to end, in s."""
        _, actions = self._actions.get(id(program)) or self._translated(program)
        m = self._machine
        m.begin_execution(begin, end)
        try:
            for act in actions:
                act()
        except EndedByFmu:
            pass
        except Stopped as stopped:
            return Outcome(stopped.stop.time, m.terminate, stopped.stop)
        if m.limit != end and not m.terminate and (i := self._past(m.limit)) is not None:
            return Outcome(m.limit, False, Halt(Reason.EARLY, i, -1, m.limit))
        requests = tuple(sorted(m.requests))
        if m.terminate:
            return Outcome(min(m.at), True, event_requests=requests)
        return Outcome(m.limit, event_requests=requests)

    def _past(self, limit: float) -> int | None:
        """The first instance past an early return at this time in s that does not stay there; None if there is none."""
        m = self._machine
        planned = m.plan.instances
        past = (i for i, at in enumerate(m.at) if at > limit and not planned[i].stays_ahead)
        return next(past, None)

    def stepping(
        self, attempt: Program, commit: Program
    ) -> Callable[[float, float], Outcome | None]:
        """Attempts an interval, and commits it if nothing happened; see :class:`Executor`."""

        def step(begin: float, end: float) -> Outcome | None:
            outcome = self.run(attempt, begin, end)
            if not _has_succeeded(outcome, end):
                return outcome
            self.run(commit, end, end)
            return None

        return step

    @staticmethod
    def outcome(happened: Outcome) -> Outcome:
        """The outcome itself."""
        return happened

    def ask(self) -> None:
        """Return from repeat after the present step; called from another thread."""
        self._asked = True

    is_estimating = False

    def begin_anew(self) -> None:
        """As :meth:`Executor.begin_anew`."""
        self._machine.begin_anew()
        self._asked = False

    @staticmethod
    def update_callback() -> UpdateCallback | None:
        """None: intermediate updates are done in Python."""
        return None

    @staticmethod
    def partition_callbacks() -> PartitionCallbacks | None:
        """None: ``ClockUpdate`` is done in Python."""
        return None

    @property
    def reached(self) -> float:
        """Start in s of the interval on which it works, or has worked last."""
        return self._machine.begin

    def present_call(self) -> tuple[int, str] | None:
        """Number of the instance that is being called, and the function, if the instruction names one."""
        return self._machine.present

    def repeat(
        self,
        attempts: Sequence[Program],
        commit: Program,
        times: Times,
        watches: None = None,
        events: EventsAhead | None = None,
    ) -> Repeated:
        """Attempt and commit interval after interval while nothing happens; see :class:`Executor`."""
        del watches
        self._asked = False
        points = np.asarray(times).tolist()
        k, after = 0, None
        while True:
            end = points[k + 1]
            outcome = self.run(after or attempts[k % len(attempts)], points[k], end)
            if (
                k + 2 == len(points)
                or not _has_succeeded(outcome, end)
                or self.rows.room <= 1
                or self._asked
            ):
                return Repeated(k, outcome)
            self.run(commit, end, end)
            after = None
            if events is not None and (number := events.numbers[k]) >= 0:
                rows, after = self.rows.count, events.after
                outcome = self.run(events.programs[number], end, end)
                if not _has_succeeded(outcome, end) or self._is_answered(events):
                    return Repeated(k + 1, outcome, self.rows.count - rows)
            k += 1

    def _is_answered(self, events: EventsAhead) -> bool:
        """Whether FMUs have answered at an event what the loop must look at: see ``is_answered`` of the kernel."""
        if not (self.next_events >= events.last).all():  # NaN, too
            return True
        told = self.store.intervals.values()
        return any((answers.qualifier == Qualifier.CHANGED).any() for answers in told)

    def watches(self, twins: Sequence[Twin]) -> None:
        """Python looks at each step itself."""

    def controlled(self, twin: RuleTwin[Any], watches: None = None, first_code: int = 0) -> None:
        """The rule itself is asked."""

    def _translated(self, program: Program) -> tuple[Program, list[Action]]:
        """The program as functions; kept together with it, since it is known by its identity."""
        instructions, m = program.instructions, self._machine
        ends = closings(instructions)

        def translated(first: int, last: int) -> list[Action]:
            actions, k = list[Action](), first
            while k < last:
                match instructions[k], instructions[ends.get(k, k)]:
                    case Repeat() as repeat, Until() as until:
                        body = translated(k + 1, ends[k])
                        k = ends[k]
                        actions.append(steps.repeat(m, repeat, body, until, k))
                    case instruction, _:
                        actions.append(_ACTIONS[type(instruction)](m, instruction, k))
                k += 1
            return actions

        self._actions[id(program)] = program, translated(0, len(instructions))
        return self._actions[id(program)]


def _has_succeeded(outcome: Outcome, end: float) -> bool:
    """Whether a program has reached its end, and nothing else has happened."""
    stopped_or_asked = outcome.stopped or outcome.terminate or outcome.event_requests
    return not stopped_or_asked and outcome.end == end


_ACTIONS: dict[type[Instruction], Callable[..., Action]] = {
    **inputs.ACTIONS,
    **outputs.ACTIONS,
    **steps.ACTIONS,
}
