"""What a co-simulation algorithm is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fmimaster.control.event_clock import Indicators
from fmimaster.plan.plan import Plan, Policy
from fmimaster.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of several ways to step, between which an algorithm chooses."""

    algorithm: Algorithm
    policies: Mapping[int, Policy]
    """What each FMU does at its own events meanwhile."""
    fitted: frozenset[int]
    """Instances whose inputs come as coefficients."""
    first: int | None = None
    """The instance whose inputs are extrapolated, so that shared events are judged by the others; None if all are."""


@dataclass(frozen=True, slots=True)
class StepContext:
    """What an algorithm is asked before a step, when it has alternatives."""

    indicators: Indicators
    size: float
    """Length in s of a whole step."""
    present: int
    """The alternative of the step before."""


class Algorithm(Protocol):
    """A co-simulation algorithm: writes the program of one attempt at one step.

    It may have more, of which :func:`fmimaster.algorithms.assemble` makes use:

    ``restart() -> Algorithm``
        Another algorithm for steps without history, at the start and after events.
    ``aligns : bool``
        Whether it handles early returns; else it is put into :class:`Aligned`.
    ``goes_back(plan) -> list of instances``
        Who may have to go back at an early return, if it handles them in its own way.
    ``policies(plan) -> instance → Policy``
        What each FMU shall do at its own events, if they do not all do the same.
    ``alternatives(plan) -> tuple of Alternative`` and ``choose(question) -> int``
        Several ways to step, and which of them the next step takes.
    ``event_hook(plan, begin) -> function of the value store``
        What works on triggers and payload at an event that was found by an early return; ``begin`` is the buffer of the
        outputs at the begin of the step.
    """

    @property
    def order(self) -> int:
        """Order of the error over an interval of fixed length, for smooth systems."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write how all instances get from the begin of the interval to its end."""
