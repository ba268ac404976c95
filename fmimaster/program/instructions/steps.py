"""STEP, ALIGN, SAVE, RESTORE, PARALLEL: instances move in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.checker import Checker
from fmimaster.program.effects import Effects
from fmimaster.program.instructions.base import Instruction
from fmimaster.program.knowledge import INPUTS
from fmimaster.system.states import FmiCall


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
