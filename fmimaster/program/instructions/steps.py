"""STEP, ALIGN, SAVE, RESTORE, PARALLEL; REPEAT, UNTIL, MODE, UPDATE, TICK, CALL: steps, repetition, actions at events."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import ClassVar

from fmimaster.base.data import dataclass
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.checker import Checker
from fmimaster.program.instructions.base import Instruction
from fmimaster.program.knowledge import INPUTS, Effects
from fmimaster.system.states import FmiCall, State, call_between


@dataclass(frozen=True, slots=True)
class Step(Instruction):
    """``DoStep`` from the time of the instance to the fraction ``end`` of the interval, but not beyond the limit.

    The limit is the time of the earliest early return or event in this pass; before the first one it is the end of the
    interval. An instance that returns early sets the limit, and so does one that requests an event, since it must not step
    on before Event Mode: the parts of a step end there. An instance at the limit or beyond it is not stepped. An instance
    that *discards* a step at its own event also sets the limit, and is treated as being at the end of the step: ALIGN
    rolls it back.

    If an instance ends the run in a part of a step, nothing of the program follows.

    A time that differs from the start or the end of the step by rounding is the start or the end. An early return at
    the start is an event there. A return at the end is no early return; a step that is discarded at its end is repeated
    up to an earlier time.
    """

    instance: int
    end: float

    calls: ClassVar[FmiCall | None] = FmiCall.DO_STEP

    def words(self, plan: Plan) -> tuple[str, str]:
        """Its end."""
        stops = plan.instances[self.instance].may_return_early
        return f"to {self.end:g}", "or to an event of its own" if stops else ""

    def check(self, checker: Checker) -> None:
        """It leads forward, and its inputs were set."""
        i, end = self.instance, self.end
        known = checker.instances[i]
        checker.call(i, FmiCall.DO_STEP)
        if not known.at < end <= 1.0:
            checker.fail(
                f"{checker.name(i)} steps to {end:g} but stands at {known.at:g}; "
                "a step leads forward and not beyond 1"
            )
        for group in INPUTS:
            at_events_only = group is Group.DISCRETE and checker.plan.instances[i].event_mode
            if at_events_only or not checker.plan.layout.segments(i, group):
                continue
            if group not in known.given:
                checker.fail(
                    f"{checker.name(i)} is stepped, but its {group.name.lower()} inputs were not set"
                )

    def effect(self, on: Effects) -> None:
        """The instance stands at the end."""
        on.step(self.instance, self.end)


@dataclass(frozen=True, slots=True)
class Align(Instruction):
    """If the instance is beyond the limit: RESTORE from place, SET its continuous inputs, STEP to the limit, GET.

    This is repeated if the instance discards that step and stops before the limit, at most 20 times.
    """

    instance: int
    place: int

    operand: ClassVar[str] = "place {0.place}"
    remark: ClassVar[str] = "back from there, if it stands beyond an early return"

    def check(self, checker: Checker) -> None:
        """It was saved there."""
        checker.was_saved(self.instance, self.place)

    def effect(self, on: Effects) -> None:
        """The instance is not past an early return."""
        on.align(self.instance)


@dataclass(frozen=True, slots=True)
class Save(Instruction):
    """FMU state and time of the instance → place."""

    instance: int
    place: int

    calls: ClassVar[FmiCall | None] = FmiCall.GET_FMU_STATE
    operand: ClassVar[str] = "place {0.place}"

    def check(self, checker: Checker) -> None:
        """The FMU can do it, and is not between setting its inputs and stepping."""
        i = self.instance
        checker.has_states(i, "saved")
        checker.call(i, FmiCall.GET_FMU_STATE)
        if checker.instances[i].given:
            checker.fail(f"{checker.name(i)} is saved between setting its inputs and stepping it")

    def effect(self, on: Effects) -> None:
        """The state is saved."""
        on.save(self.instance, self.place)


@dataclass(frozen=True, slots=True)
class Restore(Instruction):
    """FMU state and time of the instance ← place, unless it has not moved since. Outputs in the store are unchanged."""

    instance: int
    place: int

    calls: ClassVar[FmiCall | None] = FmiCall.SET_FMU_STATE
    operand: ClassVar[str] = "place {0.place}"

    def check(self, checker: Checker) -> None:
        """It was saved there."""
        checker.was_saved(self.instance, self.place)

    def effect(self, on: Effects) -> None:
        """The state is restored."""
        on.restore(self.instance, self.place)


@dataclass(frozen=True, slots=True)
class Parallel(Instruction):
    """The next ``count`` instructions are STEPs of different instances: they may be done at the same time."""

    count: int

    operand: ClassVar[str] = "the next {0.count}"
    remark: ClassVar[str] = "in any order, or at the same time"

    def check(self, checker: Checker) -> None:
        """So many STEPs of different instances follow."""
        first = checker.line + 1
        beside = checker.instructions[first : first + self.count]
        steps = {i.instance for i in beside if isinstance(i, Step)}
        if self.count < 1 or len(steps) != self.count:
            checker.fail(
                f"PARALLEL {self.count} is not followed by {self.count} STEPs of different instances"
            )


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
