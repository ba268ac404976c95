"""The interpreter of programs in Python: the specification of every instruction, by example.

Each instruction is turned once into a function without arguments, by the method of its name; running a program is
calling these functions in order. So a breakpoint in Python sees each FMI call, and little time is spent beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.instance import Instance, Signal
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
from fmimaster.program.outcome import Outcome, Reason, Stop
from fmimaster.run.convergence import largest_change, nominals_of_outputs
from fmimaster.run.executor import Experiment, RowBlock, make_store
from fmimaster.run.inputs import Polynomials, fitted, moves
from fmimaster.system.states import State

Action = Callable[[], None]

REPEAT_SECONDS = 0.1
"""Wall time after which ``repeat`` comes back, so that progress can be shown."""


class ReferenceExecutor:
    """Executes programs by FMI calls from Python.

    Parameters
    ----------
    plan : Plan
    instances : one for each of the plan, in state Instantiated
    experiment : Experiment
    n_buffers, history : int
        As the programs want them.
    """

    def __init__(
        self,
        plan: Plan,
        instances: Sequence[Instance],
        experiment: Experiment,
        *,
        n_threads: int = 1,
        n_places: int = 0,
        n_buffers: int = 0,
        history: int = 0,
    ) -> None:
        del (
            n_places,
            n_threads,
        )  # instances keep as many states as they are told to; all is done in one thread
        self.plan = plan
        self.store = make_store(plan, n_buffers)
        self.rows = RowBlock(plan, self.store)
        self.seconds = [0.0] * len(instances)
        self._instances = instances
        self._experiment = experiment
        self._history = history
        self._at = [experiment.start] * len(instances)
        """Where each instance stands, in s."""
        self._begin = self._end = experiment.start
        self._places: dict[int, float] = {}
        """Where the instance stood when it was saved in a place."""
        self._polynomials: dict[int, Polynomials] = {}
        """Of the instances whose continuous inputs are not held."""
        self._terminate = False
        self._actions: dict[int, tuple[Program, list[Action]]] = {}

    def run(self, program: Program, begin: float, end: float) -> Outcome:
        """Execute a program over the interval from begin to end, in s."""
        _, actions = self._actions.get(id(program)) or self._translated(program)
        self._begin, self._end, self._terminate = begin, end, False
        try:
            for act in actions:
                act()
        except _Stopped as stopped:
            return Outcome(stopped.stop.time, self._terminate, stopped.stop)
        return Outcome(min(self._at), True) if self._terminate else Outcome(end)

    def repeat(
        self,
        attempt: Program,
        commit: Program,
        times: Sequence[float] | NDArray[np.float64],
    ) -> tuple[int, Outcome]:
        """Attempt and commit interval after interval while nothing happens; see :class:`Executor`."""
        until = perf_counter() + REPEAT_SECONDS
        points = np.asarray(times).tolist()
        k = 0
        while True:
            outcome = self.run(attempt, points[k], points[k + 1])
            if (
                k + 2 == len(points)
                or outcome.stopped
                or outcome.terminate
                or self.rows.room == 1
                or perf_counter() > until
            ):
                return k, outcome
            k += 1
            self.run(commit, points[k], points[k])

    def _translated(self, program: Program) -> tuple[Program, list[Action]]:
        """The program as functions; kept together with it, since it is known by its identity."""
        self._actions[id(program)] = program, self._translate(program.instructions, 0)
        return self._actions[id(program)]

    def _translate(self, instructions: Sequence[Instruction], first: int) -> list[Action]:
        actions: list[Action] = []
        k = 0
        while k < len(instructions):
            instruction = instructions[k]
            if isinstance(instruction, Repeat):
                n = next(n for n, i in enumerate(instructions[k:]) if isinstance(i, Until))
                until = instructions[k + n]
                assert isinstance(until, Until)
                body = self._translate(instructions[k + 1 : k + n], first + k + 1)
                actions.append(self._repeat(instruction, body, until, first + k + n))
                k += n
            else:
                actions.append(_CASES[type(instruction)](self, instruction, first + k))
            k += 1
        return actions

    # One method per instruction; what it means stands in the instruction's docstring ----------------------------------

    def _move(self, instruction: Move, _: int) -> Action:
        i = instruction.instance
        elements = [
            element
            for wire in self.plan.wires[i, instruction.group]
            for element in moves(wire, self.store, self.plan)
        ]
        polynomials = self._polynomials

        def act() -> None:
            for target, t, source, s, convert in elements:
                target[t] = source[s] if convert is None else convert(source[s])
            if polynomials:
                polynomials.pop(i, None)

        return act

    def _fit(self, instruction: Fit, _: int) -> Action:
        i = instruction.instance
        wires = self.plan.wires[i, Group.CONTINUOUS]

        def act() -> None:
            centre = self._begin + instruction.at * (self._end - self._begin)
            self._polynomials[i] = fitted(wires, self.store, centre, instruction)

        return act

    def _set(self, instruction: Set, _: int) -> Action:
        i, group = instruction.instance, instruction.group
        instance, polynomials, at = self._instances[i], self._polynomials, self._at
        segments = self.plan.layout.segments(i, group)
        setters = [instance.setter(s.type, s.value_references, self._part(s)) for s in segments]
        if group is not Group.CONTINUOUS:
            return _in_turn(setters)
        values = self._part(segments[0])
        interpolate: Callable[[float, Signal], None] | None = None

        def act() -> None:
            nonlocal interpolate
            polynomial = polynomials.get(i)
            if polynomial is None and interpolate is None:
                setters[0]()
                return
            # an FMU that was told a polynomial once is told each time, also when the value is held again
            interpolate = interpolate or instance.interpolator(segments[0].value_references)
            signal = polynomial or Polynomials(values[np.newaxis].copy(), at[i])
            values[:] = signal(at[i], 0)
            setters[0]()
            interpolate(at[i], signal)

        return act

    def _get(self, instruction: Get, _: int) -> Action:
        i, at, read = instruction.instance, self._at, self.store.read
        instance = self._instances[i]
        get = _in_turn(
            [
                instance.getter(s.type, s.value_references, self._part(s))
                for s in self.plan.layout.segments(i, instruction.group)
            ]
        )

        def act() -> None:
            get()
            read[i] = at[i]

        return act

    def _step(self, instruction: Step, line: int) -> Action:
        i, fraction, at, seconds = instruction.instance, instruction.end, self._at, self.seconds
        do_step = self._instances[i].do_step

        def act() -> None:
            here = at[i]
            there = (
                self._end if fraction == 1.0 else self._begin + fraction * (self._end - self._begin)
            )
            since = perf_counter()
            answer = do_step(here, there - here)
            seconds[i] += perf_counter() - since
            at[i] = there
            if answer is not None:
                at[i] = answer.last_successful_time
                self._terminate |= answer.terminate
                if not answer.terminate and at[i] != there:
                    raise _Stopped(Stop(Reason.DISCARDED, i, line, at[i], messages=answer.messages))

        return act

    def _save(self, instruction: Save, _: int) -> Action:
        i, place = instruction.instance, instruction.place

        def act() -> None:
            self._instances[i].save(place)
            self._places[place] = self._at[i]

        return act

    def _restore(self, instruction: Restore, _: int) -> Action:
        i, place = instruction.instance, instruction.place

        def act() -> None:
            self._instances[i].restore(place)
            self._at[i] = self._places[place]

        return act

    def _keep(self, instruction: Keep, _: int) -> Action:
        return lambda: self.store.keep(instruction.buffer)

    def _recall(self, instruction: Recall, _: int) -> Action:
        return lambda: self.store.recall(instruction.buffer)

    def _remember(self, _instruction: Remember, _: int) -> Action:
        buffers, n = self.store.buffers, self._history

        def act() -> None:
            buffers[:n] = [buffers[n - 1], *buffers[: n - 1]]
            self.store.keep(0)

        return act

    def _forget(self, _instruction: Forget, _: int) -> Action:
        def act() -> None:
            for _, read in self.store.buffers[: self._history]:
                read[:] = np.nan

        return act

    def _repeat(self, repeat: Repeat, body: list[Action], until: Until, line: int) -> Action:
        nominal = nominals_of_outputs(self.plan)
        store = self.store

        def act() -> None:
            change = np.inf
            for count in range(1, repeat.most + 1):
                before, _ = store.copy_of_outputs()
                for step in body:
                    step()
                # the first pass has none to be compared with
                change = largest_change(before, store, nominal) if count > 1 else np.inf
                if count >= repeat.least and change <= until.tolerance:
                    return
            raise _Stopped(Stop(Reason.NOT_CONVERGED, -1, line, self._begin, change))

        return act

    def _mode(self, instruction: Mode, _: int) -> Action:
        instance, experiment = self._instances[instruction.instance], self._experiment
        enter: dict[State, Action] = {
            State.CONFIGURATION_MODE: instance.enter_configuration_mode,
            State.INSTANTIATED: instance.exit_configuration_mode,
            State.INITIALIZATION_MODE: lambda: instance.enter_initialization_mode(
                experiment.start, experiment.stop, experiment.tolerance
            ),
            State.STEP_MODE: instance.exit_initialization_mode,
            State.TERMINATED: instance.terminate,
        }
        return enter[instruction.state]

    def _sample(self, _instruction: Sample, _: int) -> Action:
        return lambda: self.rows.append(self._end)

    def _parallel(self, _instruction: Parallel, _: int) -> Action:
        return lambda: None  # any order is right: here one after the other

    def _part(self, segment: Any) -> NDArray[Any]:
        """The part of the store that a segment is."""
        return self.store.values[segment.type][segment.start : segment.stop]


_CASES: dict[type[Instruction], Callable[..., Action]] = {
    Move: ReferenceExecutor._move,
    Fit: ReferenceExecutor._fit,
    Set: ReferenceExecutor._set,
    Get: ReferenceExecutor._get,
    Step: ReferenceExecutor._step,
    Save: ReferenceExecutor._save,
    Restore: ReferenceExecutor._restore,
    Keep: ReferenceExecutor._keep,
    Recall: ReferenceExecutor._recall,
    Remember: ReferenceExecutor._remember,
    Forget: ReferenceExecutor._forget,
    Mode: ReferenceExecutor._mode,
    Sample: ReferenceExecutor._sample,
    Parallel: ReferenceExecutor._parallel,
}


class _Stopped(Exception):
    """Leaves a program before its end."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop)
        self.stop = stop


def _in_turn(actions: list[Action]) -> Action:
    if len(actions) == 1:
        return actions[0]

    def act() -> None:
        for step in actions:
            step()

    return act
