"""GET, CORRECT, DERIVE, SAMPLE, and the instructions on copies of the outputs."""

from __future__ import annotations

from typing import ClassVar

from fmimaster.base.data import dataclass
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.checker import Checker
from fmimaster.program.instructions.base import Instruction, some, variables_of
from fmimaster.program.knowledge import Effects
from fmimaster.system.states import FmiCall, State

_CALLS = {
    Group.CLOCKS: FmiCall.GET_CLOCK,
    Group.CLOCKED: FmiCall.GET_CLOCK,
    Group.INTERVALS: FmiCall.GET_INTERVAL,
}
"""The calls that read groups of clocks."""


@dataclass(frozen=True, slots=True)
class Get(Instruction):
    """FMU → group in the store. For outputs, the store also gets the time of the instance.

    SOURCES are the outputs that others need at the start. CLOCKS are output clocks at the start of an event iteration,
    where no input clock is active in the store. CLOCKED are output clocks that have become active since, in addition, and
    then the clocked outputs of which a clock is active. INTERVALS are the changed intervals of clocks; a changing clock is
    asked only when it was active or in Initialization Mode, where shifts are read too. They stay in the store until
    somebody takes them.
    """

    instance: int
    group: Group

    def words(self, plan: Plan) -> tuple[str, str]:
        """Its operand, and the variables."""
        return self.group.name.lower(), variables_of(self.instance, self.group, plan)

    def check(self, checker: Checker) -> None:
        """FMI allows it in this state."""
        i, group = self.instance, self.group
        if group in _CALLS:
            checker.call(i, _CALLS[group])
            return
        checker.call(i, FmiCall.GET)
        if group not in (Group.OUTPUTS, Group.SOURCES):
            checker.fail(f"{group.name.lower()} of {checker.name(i)} cannot be read")
        known = checker.instances[i]
        if known.state is State.INITIALIZATION_MODE:
            checker.may_be_read(i, group)
        # a card has shown that it may be read
        follows = checker.plan.instances[i].model.followed
        if known.state is State.STEP_MODE and known.given and not follows:
            checker.fail(
                f"outputs of {checker.name(i)} are read after its inputs were set and before it is stepped; "
                "FMI forbids that in Step Mode"
            )

    def effect(self, on: Effects) -> None:
        """The group is read."""
        on.get(self.instance, self.group)


@dataclass(frozen=True, slots=True)
class Correct(Instruction):
    """Outputs in the store that depend directly on the continuous inputs ← their values with the present inputs.

    FMI forbids reading outputs after setting inputs in Step Mode. Therefore the partial derivatives times the
    difference between the connected outputs, transformed, and the inputs that the instance has are added; its inputs in
    the store ← those outputs, and they are held. The inputs of the instance are those in the store, or the values of
    their polynomials at its time. With unchanged inputs nothing is called. The plan's corrections define the outputs
    and the source of the derivatives. With ``at_left`` a signal that jumps at the end of the step has its left limit.
    """

    instance: int
    at_left: bool = False

    calls: ClassVar[FmiCall | None] = FmiCall.GET_DIRECTIONAL_DERIVATIVE

    def words(self, plan: Plan) -> tuple[str, str]:
        """The outputs."""
        correction = plan.corrections[self.instance]
        return "outputs", some([v.name for v in correction.outputs], ", ")

    def check(self, checker: Checker) -> None:
        """The plan has a correction, FMI allows the call, and the outputs are those of the present state."""
        i = self.instance
        correction = checker.plan.corrections.get(i)
        if correction is None or correction.means is None:
            checker.fail(f"no outputs of {checker.name(i)} can be corrected")
        checker.call(i, FmiCall.GET_DIRECTIONAL_DERIVATIVE)
        if not checker.instances[i].is_read:
            checker.fail(f"outputs of {checker.name(i)} are corrected, but they have not been read")

    def effect(self, on: Effects) -> None:
        """Outputs change."""
        on.change()


@dataclass(frozen=True, slots=True)
class Derive(Instruction):
    """If the hook of that number has requested them: partial derivatives of outputs by inputs of the instance → hook.

    They are directional derivatives of the FMU at its present inputs, one for each input; see
    :class:`fmimaster.program.hook.Partials`. If an output is not finite, all are NaN and the FMU is not called, because
    it may return an error there.
    """

    instance: int
    hook: int

    calls: ClassVar[FmiCall | None] = FmiCall.GET_DIRECTIONAL_DERIVATIVE
    operand: ClassVar[str] = "hook {0.hook}"
    remark: ClassVar[str] = "partial derivatives, if it asks for them"

    def check(self, checker: Checker) -> None:
        """The FMU has directional derivatives, and FMI allows the call."""
        i = self.instance
        checker.call(i, FmiCall.GET_DIRECTIONAL_DERIVATIVE)
        if not checker.plan.instances[i].model.capabilities.provides_directional_derivatives:
            checker.fail(
                f"{checker.name(i)} has no directional derivatives (providesDirectionalDerivatives is false)"
            )


@dataclass(frozen=True, slots=True)
class Keep(Instruction):
    """Outputs of all instances with their read times, the limit and the event requests → buffer."""

    buffer: int

    operand: ClassVar[str] = "buffer {0.buffer}"

    def effect(self, on: Effects) -> None:
        """The outputs are kept."""
        on.keep(self.buffer)


@dataclass(frozen=True, slots=True)
class Recall(Instruction):
    """Outputs of all instances with their read times, the limit and the event requests ← buffer.

    An attempt since the KEEP then has no effect. In a later execution the limit is at most its end.
    """

    buffer: int

    operand: ClassVar[str] = "buffer {0.buffer}"

    def check(self, checker: Checker) -> None:
        """They were kept, and instances that may stop at an event are at the time at which they were then."""
        checker.was_kept(self.buffer, f"buffer {self.buffer} is recalled")
        for i in checker.knowledge.concerned():
            then, _ = checker.knowledge.kept_of(i, self.buffer)
            planned = checker.plan.instances[i]
            stops = planned.may_return_early or planned.may_request_events
            now = checker.instances[i]
            if stops and now.at != then:
                checker.fail(
                    f"buffer {self.buffer} is recalled with the limit that was kept, but {checker.name(i)}, which may "
                    f"stop at an event, stands at {now.at:g} instead of {then:g}"
                )

    def effect(self, on: Effects) -> None:
        """The outputs are those of the buffer."""
        on.recall(self.buffer)


@dataclass(frozen=True, slots=True)
class Revert(Instruction):
    """Outputs of one instance with their read time ← buffer. The limit and the event requests are unchanged."""

    instance: int
    buffer: int

    operand: ClassVar[str] = "buffer {0.buffer}"
    remark: ClassVar[str] = "its outputs as they were kept"

    def check(self, checker: Checker) -> None:
        """They were kept."""
        what = f"{checker.name(self.instance)} is reverted to buffer {self.buffer}"
        checker.was_kept(self.buffer, what)

    def effect(self, on: Effects) -> None:
        """The outputs of the instance are those of the buffer."""
        on.revert(self.instance, self.buffer)


@dataclass(frozen=True, slots=True)
class Remember(Instruction):
    """The outputs, or those of a buffer, become the newest point of the history; the oldest is removed.

    A buffer holds outputs from inside the interval, which an attempt has kept.
    """

    buffer: int | None = None

    def check(self, checker: Checker) -> None:
        """There is a history, and the outputs are up to date."""
        checker.has_history()
        if self.buffer is None:
            checker.all_read("a point of the history is taken")
        else:
            checker.was_kept(self.buffer, f"buffer {self.buffer} becomes a point of the history")


@dataclass(frozen=True, slots=True)
class Forget(Instruction):
    """Clear the history: polynomials no longer use points before this instant."""

    def check(self, checker: Checker) -> None:
        """There is a history."""
        checker.has_history()


@dataclass(frozen=True, slots=True)
class Sample(Instruction):
    """Append time and recorded outputs to the results."""

    def check(self, checker: Checker) -> None:
        """All instances stand at the end, and their outputs are up to date."""
        for i in checker.knowledge.concerned():
            if (at := checker.instances[i].at) != checker.knowledge.end_of(i):
                checker.fail(
                    f"a row is taken for the end of the interval, but {checker.name(i)} stands at {at:g}"
                )
        checker.all_read("a row is taken")
