"""Data that the parts of the loop over time share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fmimaster.events.event_clock import EventClock
from fmimaster.instants.instant import TimeBase
from fmimaster.plan.plan import Plan
from fmimaster.program.indicators import Indicators
from fmimaster.program.programs import Programs
from fmimaster.run.executor import Executor
from fmimaster.run.state import RunState
from fmimaster.steps.step_rule import StepContext, StepRule

Choose = Callable[[StepContext], int]
"""Chooses the variant of the algorithm for the next step."""


@dataclass(frozen=True)
class Loop:
    """Data of the loop over time: made once for a run.

    Parameters
    ----------
    rule, base : StepRule, TimeBase
        ``state.memory`` holds what the rule remembers at the start.
    clock : EventClock or None
    choose : function or None
        For algorithms with several variants.
    """

    plan: Plan
    programs: Programs
    executor: Executor
    rule: StepRule[Any]
    base: TimeBase
    state: RunState
    clock: EventClock | None = None
    choose: Choose | None = None
    indicators: Indicators = field(init=False)
    names: tuple[str, ...] = field(init=False)
    """Of all instances."""

    def __post_init__(self) -> None:
        step = float(self.rule.exact_size)
        indicators = Indicators(
            self.plan, self.executor.store, self.programs.history, step, self.programs.between
        )
        object.__setattr__(self, "indicators", indicators)
        object.__setattr__(self, "names", tuple(i.name for i in self.plan.instances))


class LoopPart:
    """A part of the loop: it works on the data of the loop, and remembers nothing outside of its state."""

    def __init__(self, loop: Loop) -> None:
        self._plan = loop.plan
        self._programs = loop.programs
        self._executor = loop.executor
        self._rule = loop.rule
        self._base = loop.base
        self._state = loop.state
        self._clock = loop.clock
        self._indicators = loop.indicators
        self._names = loop.names

    def _who(self, instances: Iterable[int]) -> tuple[str, ...]:
        """The names of instances."""
        return tuple(self._names[i] for i in instances)
