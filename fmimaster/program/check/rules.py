"""The requirements of each instruction, and the known state after it."""

from __future__ import annotations

from fmimaster.base.errors import ProgramError
from fmimaster.inputs.polynomial import MOST_COEFFICIENTS, MOST_POINTS
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.check.knowledge import Knowledge, Known
from fmimaster.program.instructions import (
    Align,
    Correct,
    Derive,
    Fit,
    Fitted,
    Get,
    Instruction,
    Keep,
    Mode,
    Move,
    Parallel,
    Program,
    Recall,
    Remember,
    Restore,
    Revert,
    Save,
    Set,
    Step,
    Tick,
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
    Group.PARAMETERS: Call.SET_START,
}

_INPUTS = (Group.CONTINUOUS, Group.DISCRETE)
_MOVED = (*_INPUTS, Group.PARAMETERS)


class Rules:
    """One method per instruction: it refuses the instruction, or updates the known state.

    Parameters
    ----------
    program : Program
    knowledge : Knowledge
    history : bool
        Whether there is a history.
    """

    def __init__(self, program: Program, knowledge: Knowledge, history: bool) -> None:
        self.program = program
        self.plan: Plan = knowledge.plan
        self.knowledge = knowledge
        self.instances = knowledge.instances
        self.history = history
        self.line = 0
        """Index of the present instruction."""

    def fail(self, message: str) -> None:
        """Refuse the program at this instruction."""
        raise ProgramError(f"Program '{self.program.name}', instruction {self.line}: {message}")

    def name(self, instance: int) -> str:
        """Name of an instance, for messages."""
        return f"'{self.plan.instances[instance].name}'"

    def has_instance(self, instruction: Instruction) -> None:
        """Whether there is the instance that an instruction works on."""
        i = instruction.subject
        if i is not None and not 0 <= i < len(self.instances):
            self.fail(f"there is no instance {i}")

    def move(self, instruction: Move) -> None:
        if instruction.group is Group.TRIGGERS:
            self.has_triggers(instruction.instance)
            return
        self.has_inputs(instruction.instance, instruction.group)
        i = instruction.instance
        self.instances[i] = self.instances[i].with_moved(instruction.group)

    def fit(self, instruction: Fit) -> None:
        i = instruction.instance
        self.has_inputs(i, Group.CONTINUOUS)
        routes = self.plan.routes[i, Group.CONTINUOUS]
        for length in instruction.lengths - {len(routes)}:
            self.fail(
                f"operands for {length} connected inputs of {self.name(i)}, which has {len(routes)}"
            )
        every = {instruction.of_route(k) for k in range(len(routes))}
        for fitted in every:
            self._fitted(fitted, instruction)
        if not (self.plan.instances[i].takes_polynomials or instruction.is_constant):
            self.fail(
                f"{self.name(i)} cannot take polynomials (canInterpolateInputs and providesIntermediateUpdate are false)"
            )
        for buffer in instruction.buffers:
            if buffer not in self.knowledge.kept:
                self.fail(f"buffer {buffer} is used, but nothing has been kept in it")
        if any(fitted.history for fitted in every) and not self.history:
            self.fail("there is no history")
        self.instances[i] = self.instances[i].with_moved(Group.CONTINUOUS)

    def _fitted(self, fitted: Fitted, instruction: Fit) -> None:
        """The operands of FIT for one route."""
        if not 1 <= fitted.points <= MOST_POINTS or not 1 <= fitted.size <= MOST_COEFFICIENTS:
            self.fail(
                f"no polynomial can be fitted through {fitted.points} points with {fitted.derivatives} derivatives"
            )
        if fitted.held is not None and not 0.0 <= fitted.held <= 1.0:
            self.fail(f"held at {fitted.held:g}: expected a fraction of the interval")
        for word, end in (("mean", fitted.mean), ("late", fitted.late)):
            if end is not None and not instruction.at < end <= 1.0:
                self.fail(
                    f"{word} to {end:g}: expected a fraction of the interval after {instruction.at:g}"
                )
        if fitted.adaptive and (instruction.buffers or not fitted.history):
            self.fail("an adaptive polynomial goes through the history, and no buffers")
        if fitted.compensation and (fitted.mean is None or not fitted.history):
            self.fail("a compensated input is held at a mean, with the history")
        if fitted.late is not None and (fitted.points, fitted.derivatives) != (2, 0):
            self.fail("a late input goes through 2 points with 0 derivatives")

    def has_inputs(self, i: int, group: Group) -> None:
        if group not in _MOVED:
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
            self.knowledge.changed(i)
            return
        if group is Group.INTERVALS:
            self.call(i, Call.SET_INTERVAL)
            return
        if group is Group.SETTINGS:
            self.call(i, self.call_of_settings(i))
            if self.instances[i].state is State.INITIALIZATION_MODE:
                self.knowledge.changed(i)
            return
        if group not in _SETS:
            self.fail(f"{group.name.lower()} of {self.name(i)} cannot be set")
        self.call(i, _SETS[group])
        if group in _MOVED and group not in self.instances[i].moved:
            self.fail(
                f"{group.name.lower()} inputs of {self.name(i)} are set, but were not moved before: "
                "the values in the store are outdated"
            )
        if group in _INPUTS:
            self.instances[i] = self.instances[i].with_given(group)
        follows = group in _INPUTS and bool(self.plan.instances[i].model.followed)
        if follows or self.instances[i].state in (State.INITIALIZATION_MODE, State.EVENT_MODE):
            self.knowledge.changed(i)
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
        if instruction.group in (Group.CLOCKS, Group.CLOCKED):
            self.call(i, Call.GET_CLOCK)
            return
        if instruction.group is Group.INTERVALS:
            self.call(i, Call.GET_INTERVAL)
            return
        self.call(i, Call.GET)
        if instruction.group not in (Group.OUTPUTS, Group.SOURCES):
            self.fail(f"{instruction.group.name.lower()} of {self.name(i)} cannot be read")
        if self.instances[i].state is State.INITIALIZATION_MODE:
            self.may_be_read(i, instruction.group)
        follows = self.plan.instances[i].model.followed  # a card has shown that it may be read
        if self.instances[i].state is State.STEP_MODE and self.instances[i].given and not follows:
            self.fail(
                f"outputs of {self.name(i)} are read after its inputs were set and before it is stepped; "
                "FMI forbids that in Step Mode"
            )
        if instruction.group is Group.OUTPUTS:
            self.instances[i] = self.instances[i].with_read(self.instances[i].stamp)

    def correct(self, instruction: Correct) -> None:
        i = instruction.instance
        correction = self.plan.corrections.get(i)
        if correction is None or correction.means is None:
            self.fail(f"no outputs of {self.name(i)} can be corrected")
        self.call(i, Call.GET_DIRECTIONAL_DERIVATIVE)
        if not self.instances[i].is_read:
            self.fail(f"outputs of {self.name(i)} are corrected, but they have not been read")

    def derive(self, instruction: Derive) -> None:
        i = instruction.instance
        self.call(i, Call.GET_DIRECTIONAL_DERIVATIVE)
        if not self.plan.instances[i].model.capabilities.provides_directional_derivatives:
            self.fail(
                f"{self.name(i)} has no directional derivatives (providesDirectionalDerivatives is false)"
            )

    def may_be_read(self, i: int, group: Group) -> None:
        """Refuse variables that FMI 2.0 does not allow to read in Initialization Mode."""
        for segment in self.plan.layout.segments(i, group):
            for v in segment.variables:
                if not v.get_in_initialization:
                    self.fail(
                        f"'{v.name}' of {self.name(i)} is read in Initialization Mode; FMI 2.0 forbids that"
                    )

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
        self.knowledge.stepped(i, end)

    def align(self, instruction: Align) -> None:
        i, place = instruction.instance, instruction.place
        self.saved(i, place)
        self.knowledge.aligned(i)

    def update(self, instruction: Update) -> None:
        self.call(instruction.instance, Call.UPDATE_DISCRETE_STATES)
        self.knowledge.changed(instruction.instance)

    def tick(self, instruction: Tick) -> None:
        if not 0 <= instruction.trigger < len(self.plan.triggers):
            self.fail(f"there is no trigger {instruction.trigger}")

    def call_hook(self, instruction: CallHook) -> None:
        del instruction  # the code of a hook cannot be checked

    def save(self, instruction: Save) -> None:
        i = instruction.instance
        self.able(i, "saved")
        self.call(i, Call.GET_FMU_STATE)
        if self.instances[i].given:
            self.fail(f"{self.name(i)} is saved between setting its inputs and stepping it")
        self.knowledge.places[instruction.place] = (i, self.instances[i])

    def restore(self, instruction: Restore) -> None:
        i = instruction.instance
        self.knowledge.restored(i, self.saved(i, instruction.place))

    def saved(self, i: int, place: int) -> Known:
        """The known state of an instance that is restored from a place."""
        self.able(i, "restored")
        self.call(i, Call.SET_FMU_STATE)
        places = self.knowledge.places
        if place not in places or places[place][0] != i:
            self.fail(f"{self.name(i)} is restored from place {place}, where it was never saved")
        return places[place][1]

    def able(self, instance: int, what: str) -> None:
        if not self.plan.instances[instance].model.capabilities.can_get_and_set_fmu_state:
            self.fail(
                f"{self.name(instance)} is {what}, but it cannot get and set its FMU state "
                "(canGetAndSetFMUState is false)"
            )

    def keep(self, instruction: Keep) -> None:
        self.knowledge.kept[instruction.buffer] = list(self.instances)

    def recall(self, instruction: Recall) -> None:
        if instruction.buffer not in self.knowledge.kept:
            self.fail(f"buffer {instruction.buffer} is recalled, but nothing has been kept in it")
        for i, then in enumerate(self.knowledge.kept[instruction.buffer]):
            planned = self.plan.instances[i]
            stops = planned.may_return_early or planned.may_request_events
            if stops and self.instances[i].at != then.at:
                self.fail(
                    f"buffer {instruction.buffer} is recalled with the limit that was kept, but {self.name(i)}, which may "
                    f"stop at an event, stands at {self.instances[i].at:g} instead of {then.at:g}"
                )
            self.instances[i] = self.instances[i].with_read(then.read)

    def revert(self, instruction: Revert) -> None:
        i, buffer = instruction.instance, instruction.buffer
        if buffer not in self.knowledge.kept:
            self.fail(
                f"{self.name(i)} is reverted to buffer {buffer}, but nothing has been kept in it"
            )
        self.instances[i] = self.instances[i].with_read(self.knowledge.kept[buffer][i].read)

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
            known = self.instances[i]
            self.instances[i] = Known(
                goal, known.at, stamp=known.stamp, read=known.read, since=known.since
            )

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
            if instance.at != self.knowledge.ends[i]:
                self.fail(
                    f"a row is taken for the end of the interval, but {self.name(i)} stands at {instance.at:g}"
                )
        self.all_read("a row is taken")

    def remember(self, instruction: Remember) -> None:
        self.forget(instruction)
        if instruction.buffer is None:
            self.all_read("a point of the history is taken")
        elif instruction.buffer not in self.knowledge.kept:
            self.fail(
                f"buffer {instruction.buffer} becomes a point of the history, but nothing has been kept in it"
            )

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
        """The end of the program, where all instances must be in a state."""
        self.line = len(self.program.instructions)
        for i, instance in enumerate(self.instances):
            if instance.state is not end:
                self.fail(
                    f"at the end {self.name(i)} is in {instance.state.value}, not in {end.value}"
                )
            if instance.at != self.knowledge.ends[i]:
                self.fail(
                    f"at the end {self.name(i)} stands at {instance.at:g}, not at {self.knowledge.ends[i]:g}"
                )
            if (early := self.knowledge.ahead_of(i)) >= 0:
                self.fail(
                    f"{self.name(early)} may stop at an event, but {self.name(i)} has been stepped and is never "
                    "aligned"
                )
        if end is State.STEP_MODE:
            self.all_read("the program ends")
