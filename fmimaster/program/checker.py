"""What instructions require at their place in a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fmimaster.base.errors import ProgramError
from fmimaster.plan.layout import Group
from fmimaster.program.knowledge import Knowledge
from fmimaster.system.states import FmiCall, State, after, states_that_allow

if TYPE_CHECKING:
    from fmimaster.plan.plan import Plan

MOVED = (Group.CONTINUOUS, Group.DISCRETE, Group.PARAMETERS)
"""Groups that MOVE writes, besides triggers."""


class Checker:
    """Refuses the present instruction of a program.

    Parameters
    ----------
    program : str
        Its name.
    instructions : sequence of Instruction
        Of the program.
    knowledge : Knowledge
    history : bool
        Whether there is a history.

    Attributes
    ----------
    line : int
        Index of the present instruction.
    """

    def __init__(
        self, program: str, instructions: Sequence[object], knowledge: Knowledge, history: bool
    ) -> None:
        self._program = program
        self.instructions = instructions
        self.plan: Plan = knowledge.plan
        self.knowledge = knowledge
        self.instances = knowledge.instances
        self._history = history
        self.line = 0

    def fail(self, message: str) -> None:
        """Refuse the program at this instruction."""
        raise ProgramError(f"Program '{self._program}', instruction {self.line}: {message}")

    def name(self, instance: int) -> str:
        """Name of an instance, for messages."""
        return f"'{self.plan.instances[instance].name}'"

    def has_instance(self, i: int) -> None:
        """There is the instance that an instruction works on."""
        if not 0 <= i < len(self.plan.instances):
            self.fail(f"there is no instance {i}")

    def call(self, instance: int, call: FmiCall) -> None:
        """FMI allows the call in the present state of the instance."""
        state = self.instances[instance].state
        if after(state, call) is None:
            allowed = " or ".join(s.value for s in states_that_allow(call))
            self.fail(
                f"{call.value} is not allowed for {self.name(instance)} in {state.value}, only in {allowed}"
            )

    def has_inputs(self, i: int, group: Group) -> None:
        """The instance has connected inputs of a group."""
        if group not in MOVED:
            self.fail(f"{group.name.lower()} of {self.name(i)} is not a group of inputs")
        if (i, group) not in self.plan.routes:
            self.fail(f"{self.name(i)} has no connected {group.name.lower()} inputs")

    def has_triggers(self, i: int) -> None:
        """The instance has triggers."""
        if not self.plan.triggers_of(i):
            self.fail(f"{self.name(i)} has no triggers")

    def may_be_read(self, i: int, group: Group) -> None:
        """No variable of a group is one that FMI 2.0 does not allow to read in Initialization Mode."""
        for segment in self.plan.layout.segments(i, group):
            for v in segment.variables:
                if not v.get_in_initialization:
                    self.fail(
                        f"'{v.name}' of {self.name(i)} is read in Initialization Mode; FMI 2.0 forbids that"
                    )

    def has_states(self, instance: int, what: str) -> None:
        """The FMU has states that can be saved and restored."""
        if not self.plan.instances[instance].model.capabilities.can_get_and_set_fmu_state:
            self.fail(
                f"{self.name(instance)} is {what}, but it cannot get and set its FMU state "
                "(canGetAndSetFMUState is false)"
            )

    def was_saved(self, i: int, place: int) -> None:
        """The instance can be restored from a place."""
        self.has_states(i, "restored")
        self.call(i, FmiCall.SET_FMU_STATE)
        places = self.knowledge.places
        if place not in places or places[place][0] != i:
            self.fail(f"{self.name(i)} is restored from place {place}, where it was never saved")

    def was_kept(self, buffer: int, what: str) -> None:
        """There are outputs in a buffer."""
        if buffer not in self.knowledge.kept:
            self.fail(f"{what}, but nothing has been kept in it")

    def has_history(self) -> None:
        """There is a history."""
        if not self._history:
            self.fail("there is no history")

    def all_read(self, what: str) -> None:
        """The outputs of all instances in the store are those of their present states."""
        for i in self.knowledge.concerned():
            if not self.instances[i].is_read and self.plan.layout.segments(i, Group.OUTPUTS):
                self.fail(f"{what}, but the outputs of {self.name(i)} have not been read")

    def finish(self, end: State) -> None:
        """The end of the program, where all instances must be in a state."""
        self.line = len(self.instructions)
        every = range(len(self.plan.instances))
        for i in self.knowledge.concerned() if end is State.STEP_MODE else every:
            instance = self.instances[i]
            if (state := instance.state) is not end:
                self.fail(f"at the end {self.name(i)} is in {state.value}, not in {end.value}")
            if instance.at != (goal := self.knowledge.end_of(i)):
                self.fail(f"at the end {self.name(i)} stands at {instance.at:g}, not at {goal:g}")
            if (early := self.knowledge.ahead_of(i)) >= 0:
                self.fail(
                    f"{self.name(early)} may stop at an event, but {self.name(i)} has been stepped and is never "
                    "aligned"
                )
        if end is State.STEP_MODE:
            self.all_read("the program ends")
