"""What an event clock is, and those that need no prediction.

Event clocks read indicators, and their derivatives, from the outputs and the history in the value store, and have no memory
of their own: a prediction is a pure function of what is in the store.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from fmimaster.causes import Cause, Kind
from fmimaster.control.indicators import NONE, Indicators
from fmimaster.control.instant import Goal, Instant
from fmimaster.control.ramp import FreeStep
from fmimaster.control.step_rule import FixedStep, StepRule, Time
from fmimaster.errors import OptionError
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import Policy
from fmimaster.system.model import Scope

INTERRUPTION = Cause(Kind.INTERRUPTION)


class Retry(NamedTuple):
    """How a step is tried again that was undone."""

    length: float
    """[s]"""
    cause: Cause
    """Why the next try ends there."""


class Foresight(NamedTuple):
    """How :class:`LookAhead` predicts; see there."""

    forecast: float
    shortest: float
    """[s]"""
    in_fmu: bool


class Watch(NamedTuple):
    """What an event clock looks for at communication points, where the kernel can tell that it finds nothing."""

    detects: bool = False
    """Events that are on, as found by :meth:`Indicators.at`."""
    predicts: bool = False
    """Events before the end of the next step, by the extrapolation of :class:`Predictive`."""
    locates: bool = False
    """Events that the last step has passed, by the interpolation of :class:`Predictive`."""
    foresight: Foresight | None = None
    """Events before the end of the next step, by :class:`LookAhead`."""


class EventClock(ABC):  # noqa: B024 (each method has a default, and none alone makes an event clock)
    """Base of all event clocks: they determine when to stop for a state event, and which events happen.

    A new event clock is a subclass with ``clip``, ``detect`` or both.
    """

    history: ClassVar[int] = 0
    """How many accepted points it reads, the present one among them."""
    policy: ClassVar[Policy] = Policy.EXECUTE
    """What FMUs do at their own events, if the importer can choose."""
    fires: ClassVar[bool] = False
    """Whether it fires events; if not, FMUs execute them themselves."""
    for_others: ClassVar[bool] = False
    """Whether it is for algorithms in which one FMU finds events for the others (``finds_events_for_others``)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # a watch is for these methods: one that is inherited does not know of others
        if "watch" not in vars(cls) and not vars(cls).keys().isdisjoint(_WATCHED):
            cls.watch = EventClock.watch  # type: ignore[method-assign]

    def usual_rule(self, size: Time | None) -> StepRule[Any]:
        """The step-size rule that a number means with this clock."""
        return FixedStep(size)

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """An earlier end of the step, and why; or events that happen right now.

        Parameters
        ----------
        goal
            The end of the step without the event clock.
        fired
            Events that have happened at this very time.
        """
        del now, indicators, fired
        return goal

    def detect(self, indicators: Indicators) -> frozenset[int]:
        """Events that are on at this communication point."""
        del indicators
        return NONE

    def undoes(self, plan: Plan) -> bool:
        """Whether it may undo steps in a system, of which all FMUs must then be able to get and set their state."""
        del plan
        return False

    def passed(self, indicators: Indicators, begin: float, end: float, tries: int) -> Retry | None:
        """An event that was passed in the step that was just tried, which is then undone; None accepts the step.

        Called only if the clock undoes steps of the system.

        Parameters
        ----------
        begin, end
            Of the step, in s.
        tries
            How often it was undone already.
        """
        del indicators, begin, end, tries
        return None

    def watch(self, plan: Plan) -> Watch | None:
        """What the clock looks for, if the kernel can tell where it finds nothing: there it is not called. None: it is
        called at each communication point.

        A subclass with another ``clip``, ``detect``, ``undoes`` or ``passed`` has None, if it does not define this one too.
        """
        del plan
        return None


_WATCHED = {"clip", "detect", "undoes", "passed"}
"""Methods that find nothing where nothing happens."""


@dataclass(frozen=True, slots=True)
class EarlyReturn(EventClock):
    """FMUs return early at their own events and announce them; the importer fires them in all members at once.

    For an algorithm that brings the others back: ``Aligned`` or ``Waveform``, "E1" and "E2" in docs/events.md.
    """

    history: ClassVar[int] = 2
    policy: ClassVar[Policy] = Policy.ANNOUNCE
    fires: ClassVar[bool] = True

    def usual_rule(self, size: Time | None) -> StepRule[Any]:
        """Free steps: the step after an event is as long as any other."""
        return FreeStep(size)

    def detect(self, indicators: Indicators) -> frozenset[int]:
        """Events that are on, though no FMU has stopped: at the end of a step, by an input that jumps, or in two FMUs at
        once."""
        return indicators.at()

    def watch(self, plan: Plan) -> Watch:
        """For events that are on."""
        del plan
        return Watch(detects=True)


@dataclass(frozen=True, slots=True)
class Check(EventClock):
    """Do a short step after each event, and fire events that are active at synchronous points (Dejaco's steps III to V).

    For the algorithms ``Sequential`` and ``AutomaticSequence``, of which the first instance stops at its own events. Its
    inputs are extrapolated, so that shared events are judged by the other members.

    Parameters
    ----------
    interruption : float
        Length in s of the step after an event.

    Source: Dejaco and Benedikt (2017), steps III to V.
    """

    interruption: float = 1e-4
    history: ClassVar[int] = 2
    policy: ClassVar[Policy] = Policy.ANNOUNCE
    fires: ClassVar[bool] = True

    for_others: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.interruption > 0:
            raise OptionError(f"{self}: expected a positive interruption in s, such as 1e-4.")

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """After an event, a short step."""
        del indicators
        end = now.seconds + self.interruption
        return Goal(Instant(end), INTERRUPTION) if fired and end < goal.end.seconds else goal

    def detect(self, indicators: Indicators) -> frozenset[int]:
        """Events that are on, by members whose inputs are those of this very point."""
        events, first = indicators.plan.events, indicators.first
        return frozenset(
            s.event
            for s in indicators.sets
            if (s.instance != first or events[s.event].scope is Scope.PRIVATE)
            and indicators.is_on(s)
        )

    def watch(self, plan: Plan) -> Watch:
        """For events that are on for any member."""
        del plan
        return Watch(detects=True)
