"""Rejects a program that breaks FMI or forgets something, before any FMU is called.

The program is walked with the plan at hand, as a verifier walks bytecode: what is known of each instance is where it
stands in the interval, in which state it is, and whether its inputs and outputs are up to date. The body of each REPEAT
is walked twice. What a check cannot prove is that iterations converge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from fmimaster.errors import ProgramError
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions import (
    Align,
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
from fmimaster.program.instructions import (
    Call as CallHook,
)
from fmimaster.system.states import Call, State, after, call_between, states_that_allow

_SETS = {
    Group.STRUCTURAL: Call.SET_STRUCTURAL,
    Group.START: Call.SET_START,
    Group.INITIAL: Call.SET_START,
    Group.CONTINUOUS: Call.SET_INPUT,
    Group.DISCRETE: Call.SET_INPUT,
}

_INPUTS = (Group.CONTINUOUS, Group.DISCRETE)


@dataclass
class _Instance:
    """What is known of an instance at one point of the program."""

    state: State
    at: float = 0.0
    moved: set[Group] = field(default_factory=set)
    """Groups of inputs whose values in the store belong to where the instance stands."""
    given: set[Group] = field(default_factory=set)
    """Groups of inputs that the FMU has been given there."""
    ahead_of: int = -1
    """An instance that may have returned early, while this one may stand beyond it; -1 for none."""
    stamp: int = 0
    """Changes with all that can change its outputs; comes back with a state that is restored."""
    read: int = -1
    """Stamp when its outputs in the store were read; -1 if that was never."""

    @property
    def is_read(self) -> bool:
        """Whether the outputs in the store are those of the instance as it is."""
        return self.read == self.stamp

    def known(self) -> tuple[object, ...]:
        """What a second pass of a REPEAT must find as the first did."""
        return self.state, self.at, self.moved, self.given, self.is_read, self.ahead_of


def check(
    program: Program,
    plan: Plan,
    *,
    begin: State,
    end: State,
    who: Mapping[int, float] | None = None,
    history: bool = False,
) -> None:
    """Check a program.

    Parameters
    ----------
    begin, end : State
        States of all instances before and after it.
    who : instance → fraction
        Where the instances must stand at the end of the program, as a fraction of the interval. An instance that is
        missing must stand at 0, where all of them begin; without the argument that are all.
    history : bool
        Whether there is a history.

    Raises
    ------
    ProgramError
        With the number of the instruction, the name of the instance, and what is wrong.
    """
    walk = _Walk(program, plan, begin, {} if who is None else who, history)
    walk.run(0, len(program.instructions))
    walk.finish(end)


class _Walk:
    def __init__(
        self, program: Program, plan: Plan, begin: State, who: Mapping[int, float], history: bool
    ) -> None:
        self.history = history
        self.program = program
        self.plan = plan
        self.ends = [who.get(i, 0.0) for i in range(len(plan.instances))]
        """Where each instance must stand at the end."""
        read = 0 if begin is State.STEP_MODE else -1
        self.instances = [_Instance(begin, read=read) for _ in plan.instances]
        self.stamps = 0
        self.places: dict[int, tuple[int, _Instance]] = {}
        self.kept: dict[int, list[int]] = {}
        """Buffer → stamps of the outputs in it."""
        self.line = 0
        self.cases: dict[type[Instruction], Callable[..., None]] = {
            Move: self.move,
            Fit: self.fit,
            Set: self.set,
            Get: self.get,
            Step: self.step,
            Align: self.align,
            Save: self.save,
            Restore: self.restore,
            Keep: self.keep,
            Recall: self.recall,
            Mode: self.mode,
            Parallel: self.parallel,
            Sample: self.sample,
            Update: self.update,
            Tick: self.tick,
            CallHook: self.call_hook,
            Remember: self.remember,
            Forget: self.forget,
        }

    def fail(self, message: str) -> None:
        raise ProgramError(f"Program '{self.program.name}', instruction {self.line}: {message}")

    def name(self, instance: int) -> str:
        return f"'{self.plan.instances[instance].name}'"

    def run(self, first: int, last: int) -> None:
        """Walk the instructions from first to before last."""
        at = first
        while at < last:
            self.line = at
            instruction = self.program.instructions[at]
            if isinstance(instruction, Repeat):
                close = self.closing(at, last)
                self.repeat(instruction, at, close)
                at = close
            elif isinstance(instruction, Until):
                self.fail("UNTIL without REPEAT")
            else:
                if (i := getattr(instruction, "instance", 0)) >= len(self.instances) or i < 0:
                    self.fail(f"there is no instance {i}")
                self.cases[type(instruction)](instruction)
            at += 1

    def closing(self, at: int, last: int) -> int:
        """Index of the UNTIL that closes the REPEAT at ``at``."""
        for k in range(at + 1, last):
            if isinstance(self.program.instructions[k], Repeat):
                self.line = k
                self.fail("a REPEAT inside a REPEAT")
            if isinstance(self.program.instructions[k], Until):
                return k
        self.fail("REPEAT without UNTIL")
        raise AssertionError

    def repeat(self, instruction: Repeat, at: int, close: int) -> None:
        if not 1 <= instruction.least <= instruction.most:
            self.fail(f"REPEAT {instruction.least} {instruction.most}: expected 1 <= least <= most")
        self.run(at + 1, close)
        once = deepcopy(self.instances)
        self.run(at + 1, close)
        self.line = close
        for i, (first, second) in enumerate(zip(once, self.instances, strict=True)):
            if first.known() != second.known():
                self.fail(
                    f"a second pass leaves {self.name(i)} elsewhere than the first: at "
                    f"{second.at:g} instead of {first.at:g}, or with other inputs or outputs known"
                )

    # The instructions

    def move(self, instruction: Move) -> None:
        if instruction.group is Group.TRIGGERS:
            self.has_triggers(instruction.instance)
            return
        self.has_inputs(instruction.instance, instruction.group)
        self.instances[instruction.instance].moved.add(instruction.group)

    def fit(self, instruction: Fit) -> None:
        i = instruction.instance
        self.has_inputs(i, Group.CONTINUOUS)
        if not self.plan.instances[i].takes_polynomials:
            self.fail(
                f"{self.name(i)} cannot take polynomials (canInterpolateInputs and providesIntermediateUpdate are false)"
            )
        for buffer in instruction.buffers:
            if buffer not in self.kept:
                self.fail(f"buffer {buffer} is used, but nothing has been kept in it")
        if instruction.history and not self.history:
            self.fail("there is no history")
        if instruction.held is not None and not 0.0 <= instruction.held <= 1.0:
            self.fail(f"held at {instruction.held:g}: expected a fraction of the interval")
        self.instances[i].moved.add(Group.CONTINUOUS)

    def has_inputs(self, i: int, group: Group) -> None:
        if group not in _INPUTS:
            self.fail(f"{group.name.lower()} of {self.name(i)} is not a group of inputs")
        if (i, group) not in self.plan.routes:
            self.fail(f"{self.name(i)} has no connected {group.name.lower()} inputs")

    def has_triggers(self, i: int) -> None:
        if not self.plan.triggers_of(i):
            self.fail(f"{self.name(i)} has no triggers")

    def set(self, instruction: Set) -> None:
        i, group = instruction.instance, instruction.group
        if group is Group.TRIGGERS:
            self.has_triggers(i)
            has_event_mode = self.plan.instances[i].event_mode
            self.call(i, Call.SET_TRIGGER if has_event_mode else Call.SET_INPUT)
            self.changed(i)
            return
        if group is Group.SETTINGS:
            self.call(i, self.call_of_settings(i))
            if self.instances[i].state is State.INITIALIZATION_MODE:
                self.changed(i)
            return
        if group not in _SETS:
            self.fail(f"{group.name.lower()} of {self.name(i)} cannot be set")
        self.call(i, _SETS[group])
        if group in _INPUTS:
            if group not in self.instances[i].moved:
                self.fail(
                    f"{group.name.lower()} inputs of {self.name(i)} are set, but were not moved before: "
                    "the values in the store are old"
                )
            self.instances[i].given.add(group)
        if self.instances[i].state in (State.INITIALIZATION_MODE, State.EVENT_MODE):
            self.changed(i)
        elif group is Group.DISCRETE and self.plan.instances[i].event_mode:
            self.fail(
                f"discrete inputs of {self.name(i)} are set outside of Event Mode, which it uses"
            )

    def call_of_settings(self, i: int) -> Call:
        if self.instances[i].state in (State.INSTANTIATED, State.INITIALIZATION_MODE):
            return Call.SET_START
        return Call.SET_TUNABLE if self.plan.instances[i].event_mode else Call.SET_INPUT

    def get(self, instruction: Get) -> None:
        i = instruction.instance
        if instruction.group is Group.CLOCKS:
            self.call(i, Call.GET_CLOCK)
            return
        self.call(i, Call.GET)
        if instruction.group is not Group.OUTPUTS:
            self.fail(f"{instruction.group.name.lower()} of {self.name(i)} cannot be read")
        if self.instances[i].state is State.STEP_MODE and self.instances[i].given:
            self.fail(
                f"outputs of {self.name(i)} are read after its inputs were set and before it is stepped; "
                "FMI forbids that in Step Mode"
            )
        self.instances[i].read = self.instances[i].stamp

    def step(self, instruction: Step) -> None:
        i, end = instruction.instance, instruction.end
        instance = self.instances[i]
        self.call(i, Call.DO_STEP)
        if not instance.at < end <= 1.0:
            self.fail(
                f"{self.name(i)} steps to {end:g} but stands at {instance.at:g}; "
                "a step leads forward and not beyond 1"
            )
        for group in _INPUTS:
            at_events_only = group is Group.DISCRETE and self.plan.instances[i].event_mode
            if at_events_only or not self.plan.layout.segments(i, group):
                continue
            if group not in instance.given:
                self.fail(
                    f"{self.name(i)} is stepped, but its {group.name.lower()} inputs were not set"
                )
        instance.at = end
        instance.moved.clear()
        instance.given.clear()
        self.changed(i)
        if self.plan.instances[i].may_return_early:
            discards = not self.plan.instances[i].event_mode
            for j, other in enumerate(self.instances):
                if other.at > 0.0 and (j != i or discards):
                    other.ahead_of = i

    def align(self, instruction: Align) -> None:
        i, place = instruction.instance, instruction.place
        self.saved(i, place)
        self.instances[i].ahead_of = -1

    def update(self, instruction: Update) -> None:
        self.call(instruction.instance, Call.UPDATE_DISCRETE_STATES)
        self.changed(instruction.instance)

    def tick(self, instruction: Tick) -> None:
        if not 0 <= instruction.trigger < len(self.plan.triggers):
            self.fail(f"there is no trigger {instruction.trigger}")

    def call_hook(self, instruction: CallHook) -> None:
        del instruction  # what a hook does cannot be checked

    def changed(self, i: int) -> None:
        """The instance has other outputs from now on."""
        self.stamps += 1
        self.instances[i].stamp = self.stamps

    def save(self, instruction: Save) -> None:
        i = instruction.instance
        self.able(i, "saved")
        self.call(i, Call.GET_FMU_STATE)
        if self.instances[i].given:
            self.fail(f"{self.name(i)} is saved between setting its inputs and stepping it")
        self.places[instruction.place] = (i, deepcopy(self.instances[i]))

    def restore(self, instruction: Restore) -> None:
        i = instruction.instance
        saved = self.saved(i, instruction.place)
        self.instances[i] = _Instance(
            saved.state, saved.at, stamp=saved.stamp, read=self.instances[i].read
        )

    def saved(self, i: int, place: int) -> _Instance:
        """What is known of an instance that is restored from a place."""
        self.able(i, "restored")
        self.call(i, Call.SET_FMU_STATE)
        if place not in self.places or self.places[place][0] != i:
            self.fail(f"{self.name(i)} is restored from place {place}, where it was never saved")
        return self.places[place][1]

    def able(self, instance: int, what: str) -> None:
        if not self.plan.instances[instance].model.capabilities.can_get_and_set_fmu_state:
            self.fail(
                f"{self.name(instance)} is {what}, but it cannot get and set its FMU state "
                "(canGetAndSetFMUState is false)"
            )

    def keep(self, instruction: Keep) -> None:
        self.kept[instruction.buffer] = [instance.read for instance in self.instances]

    def recall(self, instruction: Recall) -> None:
        if instruction.buffer not in self.kept:
            self.fail(f"buffer {instruction.buffer} is recalled, but nothing has been kept in it")
        for instance, read in zip(self.instances, self.kept[instruction.buffer], strict=True):
            instance.read = read

    def mode(self, instruction: Mode) -> None:
        i, goal = instruction.instance, instruction.state
        here = self.instances[i].state
        call = call_between(here, goal)
        used = self.plan.instances[i].event_mode
        if here is State.INITIALIZATION_MODE and call and (goal is State.EVENT_MODE) != used:
            self.fail(
                f"{self.name(i)} leaves Initialization Mode for {goal.value}, but its Event Mode is "
                f"{'used' if used else 'not used'}"
            )
        if call is Call.ENTER_EVENT_MODE and not used:
            self.fail(f"{self.name(i)} enters Event Mode, which it does not use")
        if call is None:
            self.fail(
                f"{self.name(i)} cannot go from {self.instances[i].state.value} to {goal.value}"
            )
        else:
            self.call(i, call)
            self.instances[i].state = goal
            self.instances[i].given.clear()
            self.instances[i].moved.clear()

    def parallel(self, instruction: Parallel) -> None:
        first = self.line + 1
        beside = self.program.instructions[first : first + instruction.count]
        steps = {i.instance for i in beside if isinstance(i, Step)}
        if instruction.count < 1 or len(steps) != instruction.count:
            self.fail(
                f"PARALLEL {instruction.count} is not followed by {instruction.count} STEPs of different instances"
            )

    def sample(self, _: Instruction) -> None:
        for i, instance in enumerate(self.instances):
            if instance.at != self.ends[i]:
                self.fail(
                    f"a row is taken for the end of the interval, but {self.name(i)} stands at {instance.at:g}"
                )
        self.all_read("a row is taken")

    def remember(self, _: Instruction) -> None:
        self.forget(_)
        self.all_read("a point of the history is taken")

    def forget(self, _: Instruction) -> None:
        if not self.history:
            self.fail("there is no history")

    def all_read(self, what: str) -> None:
        for i, instance in enumerate(self.instances):
            if not instance.is_read and self.plan.layout.segments(i, Group.OUTPUTS):
                self.fail(f"{what}, but the outputs of {self.name(i)} have not been read")

    # The end, and what is common

    def call(self, instance: int, call: Call) -> None:
        state = self.instances[instance].state
        if after(state, call) is None:
            allowed = " or ".join(s.value for s in states_that_allow(call))
            self.fail(
                f"{call.value} is not allowed for {self.name(instance)} in {state.value}, only in {allowed}"
            )

    def finish(self, end: State) -> None:
        self.line = len(self.program.instructions)
        for i, instance in enumerate(self.instances):
            if instance.state is not end:
                self.fail(
                    f"at the end {self.name(i)} is in {instance.state.value}, not in {end.value}"
                )
            if instance.at != self.ends[i]:
                self.fail(
                    f"at the end {self.name(i)} stands at {instance.at:g}, not at {self.ends[i]:g}"
                )
            if instance.ahead_of >= 0:
                self.fail(
                    f"{self.name(instance.ahead_of)} may return early, but {self.name(i)} has been stepped and is never "
                    "aligned"
                )
        if end is State.STEP_MODE:
            self.all_read("the program ends")
