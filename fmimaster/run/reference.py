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

from fmimaster.fmu.instance import Instance, Signal, StepAnswer
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.instructions import (
    Align,
    Call,
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
    Tick,
    Until,
    Update,
)
from fmimaster.program.outcome import Outcome, Reason, Stop
from fmimaster.run.convergence import largest_change, nominals_of_outputs
from fmimaster.run.executor import Counted, Experiment, RowBlock, make_store
from fmimaster.run.inputs import Polynomials, fitted, moves
from fmimaster.system.model import DataType
from fmimaster.system.states import State

Action = Callable[[], None]

SAME_LIMIT = 1e-9
"""Early returns of two passes that are no farther apart, in s, count as the same."""

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
        hooks: Sequence[Hook] = (),
    ) -> None:
        del (
            n_places,
            n_threads,
        )  # instances keep as many states as they are told to; all is done in one thread
        self.plan = plan
        self.store = make_store(plan, n_buffers, history)
        self.rows = RowBlock(plan, self.store)
        self.seconds = [0.0] * len(instances)
        self._instances = instances
        self._experiment = experiment
        self._at = [experiment.start] * len(instances)
        """Where each instance stands, in s."""
        self._begin = self._end = experiment.start
        self._places: dict[int, float] = {}
        """Where the instance stood when it was saved in a place."""
        self._polynomials: dict[int, Polynomials] = {}
        """Of the instances whose continuous inputs are not held."""
        self._limit = experiment.start
        """Time in s of the earliest early return."""
        self._asking: set[int] = set()
        """Instances that ask for an event."""
        self._wants_update = False
        self._steps = [0] * len(instances)
        """Number of the step that led each instance to its state; goes back with it."""
        self._place_steps: dict[int, int] = {}
        self._hooks = hooks
        self.next_events = np.full(len(instances), np.inf)
        self.calls = np.zeros((len(Counted), len(instances)), np.int64)
        self._interpolators: dict[int, Callable[[float, Signal], None]] = {}
        """Of the instances that were told a polynomial."""
        self._terminate = False
        self._actions: dict[int, tuple[Program, list[Action]]] = {}

    def run(self, program: Program, begin: float, end: float) -> Outcome:
        """Execute a program over the interval from begin to end, in s."""
        _, actions = self._actions.get(id(program)) or self._translated(program)
        self._begin, self._end, self._terminate = begin, end, False
        self._new_pass()
        try:
            for act in actions:
                act()
        except _Stopped as stopped:
            return Outcome(stopped.stop.time, self._terminate, stopped.stop)
        if self._limit != end and max(self._at) > self._limit and not self._terminate:
            i = int(np.argmax(self._at))
            stop = Stop(Reason.EARLY, i, -1, self._limit)
            return Outcome(self._limit, False, stop)
        events = tuple(sorted(self._asking))
        return (
            Outcome(min(self._at), True, event_requests=events)
            if self._terminate
            else Outcome(self._limit, event_requests=events)
        )

    def _new_pass(self) -> None:
        """Nobody has returned early, or asked for anything."""
        self._limit, self._wants_update = self._end, False
        self._asking.clear()

    def step(self, attempt: Program, commit: Program, begin: float, end: float) -> Outcome | None:
        """Attempt one interval, and commit it if nothing happened; see :class:`Executor`."""
        outcome = self.run(attempt, begin, end)
        if outcome.stopped or outcome.terminate or outcome.event_requests or outcome.end != end:
            return outcome
        self.run(commit, end, end)
        return None

    def rest(self) -> None:
        """There are no threads."""

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
                or outcome.event_requests
                or outcome.end != points[k + 1]
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
        if instruction.group is Group.TRIGGERS:
            return self._move_triggers(i)
        elements = [
            element
            for route in self.plan.routes[i, instruction.group]
            for element in moves(route, self.store, self.plan)
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
        routes = self.plan.routes[i, Group.CONTINUOUS]

        def act() -> None:
            self._polynomials[i] = fitted(routes, self.store, self._begin, self._end, instruction)

        return act

    def _move_triggers(self, i: int) -> Action:
        clocks, active = self.store.values.get(DataType.CLOCK), self.store.active
        chosen = []
        for k in self.plan.triggers_of(i):
            routes = self.plan.payload.get(k, ())
            elements = [e for route in routes for e in moves(route, self.store, self.plan)]
            chosen.append((k, self.plan.triggers[k].sources, elements))

        def act() -> None:
            for k, sources, elements in chosen:
                active[k] |= any(clocks[s] for s in sources)  # type: ignore[index]
                if active[k]:
                    for target, t, source, s, convert in elements:
                        target[t] = source[s] if convert is None else convert(source[s])

        return act

    def _set_triggers(self, i: int) -> Action:
        instance, active, values = self._instances[i], self.store.active, self.store.values
        chosen = [
            (
                k,
                trigger.counter,
                [
                    instance.setter(s.type, s.value_references, self._part(s))
                    for s in trigger.segments
                ],
            )
            for k, trigger in enumerate(self.plan.triggers)
            if trigger.instance == i
        ]

        def act() -> None:
            for k, counter, setters in chosen:
                if not active[k]:
                    continue
                if counter is not None:
                    values[DataType.INT32][counter] += 1
                for put in setters:
                    put()
                active[k] = False

        return act

    def _set(self, instruction: Set, _: int) -> Action:
        i, group = instruction.instance, instruction.group
        if group is Group.TRIGGERS:
            return self._set_triggers(i)
        instance, polynomials, at = self._instances[i], self._polynomials, self._at
        segments = self.plan.layout.segments(i, group)
        setters = [instance.setter(s.type, s.value_references, self._part(s)) for s in segments]
        if group is not Group.CONTINUOUS:
            return _in_turn(setters)
        values, interpolators = self._part(segments[0]), self._interpolators

        def act() -> None:
            polynomial = polynomials.get(i)
            if polynomial is None and i not in interpolators:
                setters[0]()
                return
            # an FMU that was told a polynomial once is told each time, also when the value is held again
            if i not in interpolators:
                interpolators[i] = instance.polynomial_setter(segments[0].value_references)
            signal = polynomial or Polynomials(values[np.newaxis].copy(), at[i])
            values[:] = signal(at[i], 0)
            setters[0]()
            interpolators[i](at[i], signal)

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

        if instruction.group is not Group.OUTPUTS:
            return get

        def act() -> None:
            get()
            read[i] = at[i]

        return act

    def _step(self, instruction: Step, line: int) -> Action:
        i, fraction, at, seconds = instruction.instance, instruction.end, self._at, self.seconds
        do_step, stops = self._instances[i].do_step, self.plan.instances[i].may_return_early
        counted = self.calls[Counted.STEPS]

        def act() -> None:
            here = at[i]
            there = (
                self._end if fraction == 1.0 else self._begin + fraction * (self._end - self._begin)
            )
            there = min(there, self._limit)
            if here >= there:
                return
            counted[i] += 1
            self._steps[i] = int(counted[i])
            since = perf_counter()
            answer = do_step(here, there - here)
            seconds[i] += perf_counter() - since
            at[i] = there
            if answer is not None:
                self._answered(i, line, there, answer, here if stops else there)

        return act

    def _answered(self, i: int, line: int, there: float, answer: StepAnswer, least: float) -> None:
        """A step that was not simply done: the run ends, an event, an early return, or a step that cannot be done."""
        reached = answer.last_successful_time
        self._terminate |= answer.terminate
        if answer.terminate:
            self._at[i] = reached
        elif answer.discarded or (answer.early and reached != there):
            if not least < reached < there:
                reason = Reason.DISCARDED if answer.discarded else Reason.EARLY
                raise _Stopped(Stop(reason, i, line, reached, messages=answer.messages))
            self._asking.clear()  # who asked at a later time has not come to it
            self._limit = reached
            if answer.discarded:
                self._asking.add(i)  # it stands beyond the limit until it is aligned
            else:
                self._at[i] = reached
        if answer.event and self.plan.instances[i].event_mode:
            self._asking.add(i)

    def _align(self, instruction: Align, line: int) -> Action:
        i, at = instruction.instance, self._at
        back = [self._restore(Restore(i, instruction.place), line)]
        if self.plan.layout.segments(i, Group.CONTINUOUS):
            back.append(self._set(Set(i, Group.CONTINUOUS), line))
        back.append(self._step(Step(i, 1.0), line))
        if self.plan.layout.segments(i, Group.OUTPUTS):
            back.append(self._get(Get(i, Group.OUTPUTS), line))

        def act() -> None:
            if at[i] > self._limit:
                for step in back:
                    step()
                if at[i] > self._limit:  # it stopped before the same event again
                    raise _Stopped(Stop(Reason.EARLY, i, line, self._limit))

        return act

    def _save(self, instruction: Save, _: int) -> Action:
        i, place = instruction.instance, instruction.place

        def act() -> None:
            self._instances[i].save(place)
            self._places[place] = self._at[i]
            self._place_steps[place] = self._steps[i]

        return act

    def _restore(self, instruction: Restore, _: int) -> Action:
        i, place = instruction.instance, instruction.place

        counted = self.calls[Counted.RESTORES]

        def act() -> None:
            if self._steps[i] == self._place_steps[place]:
                return
            self._instances[i].restore(place)
            counted[i] += 1
            self._at[i] = self._places[place]
            self._steps[i] = self._place_steps[place]

        return act

    def _keep(self, instruction: Keep, _: int) -> Action:
        return lambda: self.store.keep(instruction.buffer)

    def _recall(self, instruction: Recall, _: int) -> Action:
        return lambda: self.store.recall(instruction.buffer)

    def _remember(self, _instruction: Remember, _: int) -> Action:
        return self.store.remember

    def _forget(self, _instruction: Forget, _: int) -> Action:
        return self.store.forget

    def _repeat(self, repeat: Repeat, body: list[Action], until: Until, line: int) -> Action:
        nominal = nominals_of_outputs(self.plan)
        store = self.store

        def act() -> None:
            change, limit, asking = np.inf, self._end, set[int]()
            for count in range(1, repeat.most + 1):
                before, _ = store.copy_of_outputs()
                self._new_pass()
                for step in body:
                    step()
                # the first pass has none to be compared with
                change = largest_change(before, store, nominal) if count > 1 else np.inf
                same = abs(self._limit - limit) <= SAME_LIMIT and self._asking == asking
                if (
                    count >= repeat.least
                    and change <= until.tolerance
                    and same
                    and not self._wants_update
                ):
                    return
                limit, asking = self._limit, set(self._asking)
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
            State.STEP_MODE: instance.enter_step_mode,
            State.EVENT_MODE: instance.enter_event_mode,
            State.TERMINATED: instance.terminate,
        }
        if instruction.state is not State.EVENT_MODE:
            return enter[instruction.state]
        i, events = instruction.instance, self.calls[Counted.EVENTS]

        def act() -> None:
            enter[State.EVENT_MODE]()
            events[i] += 1

        return act

    def _update(self, instruction: Update, _: int) -> Action:
        i, instance = instruction.instance, self._instances[instruction.instance]

        def act() -> None:
            answer = instance.update_discrete_states()
            self._wants_update |= answer.wants_update
            self._terminate |= answer.terminate
            self.next_events[i] = answer.next_event_time

        return act

    def _tick(self, instruction: Tick, _: int) -> Action:
        active, k = self.store.active, instruction.trigger

        def act() -> None:
            active[k] = True

        return act

    def _call(self, instruction: Call, _: int) -> Action:
        hook = self._hooks[instruction.hook]

        def act() -> None:
            hook(self.store)

        return act

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
    Align: ReferenceExecutor._align,
    Save: ReferenceExecutor._save,
    Restore: ReferenceExecutor._restore,
    Keep: ReferenceExecutor._keep,
    Recall: ReferenceExecutor._recall,
    Remember: ReferenceExecutor._remember,
    Forget: ReferenceExecutor._forget,
    Mode: ReferenceExecutor._mode,
    Update: ReferenceExecutor._update,
    Tick: ReferenceExecutor._tick,
    Call: ReferenceExecutor._call,
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
