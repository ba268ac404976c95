"""REPEAT, UNTIL, MODE, UPDATE, TICK, CALL: repetition, and actions at events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf
from typing import ClassVar

from fmimaster.plan.plan import Plan
from fmimaster.program.checker import Checker
from fmimaster.program.effects import Effects
from fmimaster.program.instructions.base import Instruction
from fmimaster.system.states import FmiCall, State, call_between

MOST_NESTED = 4
"""Largest nesting depth of REPEATs in the kernel."""


@dataclass(frozen=True, slots=True)
class Repeat(Instruction):
    """Repeat the instructions down to the matching UNTIL. Repetitions can be nested.

    At least ``least`` passes are done. After ``most`` passes without convergence the program stops; if it is
    ``bounded``, it continues as after convergence. Each pass begins with the limit and the event requests of the
    REPEAT, and without a request for another pass.
    """

    least: int
    most: int
    bounded: bool = False

    def words(self, plan: Plan) -> tuple[str, str]:
        """How often."""
        del plan
        times = f"{self.least} to {self.most} times"
        return times, "then continue, converged or not" if self.bounded else ""

    def check(self, checker: Checker) -> None:
        """The numbers are possible; the walk checks what is repeated."""
        if not 1 <= self.least <= self.most:
            checker.fail(f"REPEAT {self.least} {self.most}: expected 1 <= least <= most")

    def effect(self, on: Effects) -> None:
        """A repetition starts."""
        on.repeat()


@dataclass(frozen=True, slots=True)
class Until(Instruction):
    """End of a REPEAT: leave it if

    * no UPDATE and no hook in this pass has requested another one,
    * the limit differs by at most 1e-9 s from that after the pass before (for the first pass: at the REPEAT), or by
      rounding; the instances that request an event there may differ,
    * no output has changed by more than the tolerance since the pass before.

    The change of a floating point output is relative to the larger of its nominal value and its magnitude; all other
    outputs must be equal. In the first pass all outputs have changed, because there is no pass to compare with. With
    the tolerance ``inf`` outputs are ignored. Requests of an enclosing REPEAT are unchanged by it.
    """

    tolerance: float

    def words(self, plan: Plan) -> tuple[str, str]:
        """Its tolerance."""
        del plan
        if isinf(self.tolerance):
            return "inf", "the least number of times, and until early returns no longer change"
        return f"{self.tolerance:g}", "until the relative change of each output is at most this"

    def check(self, checker: Checker) -> None:
        """The walk passes over one that has a REPEAT."""
        checker.fail("UNTIL without REPEAT")

    def effect(self, on: Effects) -> None:
        """Outputs are those of the last pass."""
        on.change()


@dataclass(frozen=True, slots=True)
class Mode(Instruction):
    """Bring the instance to a state by the FMI calls that enter it or leave the previous one. In Step Mode no clock is
    active."""

    instance: int
    state: State

    operand: ClassVar[str] = "{0.state.value}"

    def check(self, checker: Checker) -> None:
        """FMI has a call that leads there, and Event Mode is entered only if it is used."""
        i, goal = self.instance, self.state
        here = checker.instances[i].state
        call = call_between(here, goal)
        used = checker.plan.instances[i].event_mode
        if here is State.INITIALIZATION_MODE and call and (goal is State.EVENT_MODE) != used:
            checker.fail(
                f"{checker.name(i)} leaves Initialization Mode for {goal.value}, but its Event Mode is "
                f"{'used' if used else 'not used'}"
            )
        if call is FmiCall.ENTER_EVENT_MODE and not used:
            checker.fail(f"{checker.name(i)} enters Event Mode, which it does not use")
        if call is None:
            checker.fail(f"{checker.name(i)} cannot go from {here.value} to {goal.value}")
        else:
            checker.call(i, call)

    def effect(self, on: Effects) -> None:
        """The instance is in the state."""
        on.enter(self.instance, self.state)


@dataclass(frozen=True, slots=True)
class Update(Instruction):
    """``UpdateDiscreteStates``: the instance can request another one, and give the time of its next event.

    It can also end the run. Then nothing of the program follows, because FMI requires ``Terminate``.
    """

    instance: int

    calls: ClassVar[FmiCall | None] = FmiCall.UPDATE_DISCRETE_STATES
    remark: ClassVar[str] = "of its discrete states"

    def effect(self, on: Effects) -> None:
        """The discrete states may be others."""
        on.update(self.instance)


@dataclass(frozen=True, slots=True)
class Tick(Instruction):
    """The trigger of that number becomes active."""

    trigger: int

    def words(self, plan: Plan) -> tuple[str, str]:
        """Its trigger."""
        trigger = plan.triggers[self.trigger]
        name = f"{plan.instances[trigger.instance].name}.{trigger.name}"
        return f"trigger {self.trigger}", f"{name} becomes active"

    def check(self, checker: Checker) -> None:
        """There is such a trigger."""
        if not 0 <= self.trigger < len(checker.plan.triggers):
            checker.fail(f"there is no trigger {self.trigger}")


@dataclass(frozen=True, slots=True)
class Call(Instruction):
    """The hook of that number works on the value store, and can request another pass of the innermost REPEAT.

    See :class:`fmimaster.program.hook.Hook`.
    """

    hook: int

    operand: ClassVar[str] = "hook {0.hook}"
    remark: ClassVar[str] = "of the algorithm"

    def effect(self, on: Effects) -> None:
        """Outputs may change."""
        on.change()


def nesting(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Index of each REPEAT and UNTIL → its nesting depth."""
    depths, outer = dict[int, int](), list[int]()
    for first, last in sorted(closings(instructions).items()):
        outer = [end for end in outer if end > first]
        depths[first] = depths[last] = len(outer)
        outer.append(last)
    return depths


def closings(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Index of each REPEAT → index of its UNTIL; REPEATs without UNTIL are missing."""
    found, open_ = {}, list[int]()
    for k, instruction in enumerate(instructions):
        match instruction:
            case Repeat():
                open_.append(k)
            case Until() if open_:
                found[open_.pop()] = k
    return found
