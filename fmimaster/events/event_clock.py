"""Base of the event clocks, and the event clocks that need no prediction.

Event clocks read indicators and their derivatives from the outputs and the history in the value store. They have no
memory: a prediction is a pure function of the contents of the store.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.instants.instant import Goal, Instant
from fmimaster.numerics.polynomials import NEAREST
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import Policy
from fmimaster.program.hook import Twin
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.program.indicators import HELD, NONE, Indicators
from fmimaster.program.scales import REST
from fmimaster.record.causes import Cause, Kind
from fmimaster.steps.step_rule import FixedStep, StepRule, Time
from fmimaster.system.declarations import Scope

INTERRUPTION = Cause(Kind.INTERRUPTION)


class Retry(NamedTuple):
    """How a rolled-back step is repeated."""

    length: float
    """[s]"""
    cause: Cause
    """Cause of the end of the repeated step."""


class Foresight(NamedTuple):
    """Parameters of the prediction of :class:`LookAhead`."""

    forecast: float
    shortest: float
    """Part of a usual step."""
    in_fmu: bool


class Towards(NamedTuple):
    """Parameters of steps towards an event that :class:`Predictive` foresees."""

    approach: float
    """Part of the time until a distant event."""
    close: float
    """A step ends at an event that is no farther away than this part of a usual step."""
    now: float
    """An event that is no farther away than this part happens now."""


class Watch(NamedTuple):
    """The conditions that an event clock checks at communication points. The kernel can tell where none of them is
    met."""

    detects: bool = False
    """Events that are on, as found by :meth:`Indicators.at`."""
    predicts: bool = False
    """Events before the end of the next step, by the extrapolation of :class:`Predictive`."""
    locates: bool = False
    """Events that the last step has passed, by the interpolation of :class:`Predictive`."""
    foresight: Foresight | None = None
    """Events before the end of the next step, by :class:`LookAhead`."""
    towards: Towards | None = None
    """How a step ends before an event that is predicted, so that the kernel can do it; None if it cannot."""


class EventClock(TypedArguments, ABC):
    """Base of all event clocks: they determine when to stop for a state event, and which events happen.

    A new event clock is a subclass with ``clip``, ``detect`` or both.
    """

    history: ClassVar[int] = 0
    """Number of accepted points that it reads, including the present one."""
    policy: ClassVar[Policy] = Policy.EXECUTE
    """Behaviour of FMUs at their own events, if the importer can choose it."""
    fires: ClassVar[bool] = False
    """Whether it fires events; otherwise FMUs execute their events themselves."""
    in_halves: bool = False
    """Whether FMUs that hold their inputs do each step in two halves, if they can."""
    checks_held: ClassVar[bool] = False
    """Whether runs warn of inputs that are held over steps, if these are too long for that."""
    requests: ClassVar[bool] = False
    """Whether it requests early returns inside of steps, in Intermediate Update Mode."""
    silences: ClassVar[bool] = False
    """Whether FMUs of contacts at rest are set to ignore their own events, which are then predicted."""
    is_none: ClassVar[bool] = False
    """Whether it stands for a run without an event clock."""
    for_others: ClassVar[bool] = False
    """Whether it is for algorithms in which one FMU finds events for the others (``finds_events_for_others``)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # an inherited watch describes the methods of the base class, not those of the subclass
        if "watch" not in vars(cls) and not vars(cls).keys().isdisjoint(_WATCHED):
            cls.watch = EventClock.watch  # type: ignore[method-assign]

    def usual_rule(self, size: Time | None) -> StepRule[Any]:
        """The step-size rule for a step size given as a number with this clock."""
        return FixedStep(size)

    def usual_rule_with_history(self, size: Time | None) -> StepRule[Any]:
        """The same, where inputs are extrapolated from points before a step: after an event there are none."""
        return self.usual_rule(size)

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """An earlier end of the step, and its cause; or events that happen at the present time.

        Parameters
        ----------
        goal
            The end of the step without the event clock.
        fired
            Events that have already happened at this time.
        """
        del now, indicators, fired
        return goal

    def detect(self, indicators: Indicators) -> frozenset[int]:
        """Events that are on at this communication point."""
        del indicators
        return NONE

    def undoes(self, plan: Plan) -> bool:
        """Whether it may roll back steps of the system. All FMUs must then be able to get and set their state."""
        del plan
        return False

    def passed(self, indicators: Indicators, begin: float, end: float, tries: int) -> Retry | None:
        """An event that lies inside the tried step, which is then rolled back; None accepts the step.

        Called only if the clock rolls back steps of the system. After an event, no prediction knows the curvature of a
        single indicator: without going back, the energy of short bounces grew up to 69-fold.

        Parameters
        ----------
        begin, end
            Start and end of the step, in s.
        tries
            How often the step was rolled back already.
        """
        del indicators, begin, end, tries
        return None

    def watch(self, plan: Plan) -> Watch | None:
        """The conditions of the clock, checked by the kernel: the clock is called only where one is met. With None, it
        is called at each communication point.

        A subclass that overrides ``clip``, ``detect``, ``undoes`` or ``passed`` gets None, unless it overrides this
        method as well.
        """
        del plan
        return None


_WATCHED = {"clip", "detect", "undoes", "passed"}
"""Methods that a watch replaces where no condition is met."""


@dataclass(frozen=True, slots=True)
class NoEventClock(EventClock):
    """No event clock, explicitly: FMUs execute their events themselves, and steps do not end for them.

    Without it, a run chooses the event clock that the FMUs allow.
    """

    is_none: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class EarlyReturn(EventClock):
    """FMUs return early at their own events and announce them; the importer fires them in all members at once.

    For an algorithm that rolls back the other instances to the event: ``Aligned`` or ``Waveform``, "E1" and "E2" in
    docs/events.md.
    """

    history: ClassVar[int] = 2
    policy: ClassVar[Policy] = Policy.ANNOUNCE
    fires: ClassVar[bool] = True
    silences: ClassVar[bool] = True

    def usual_rule(self, size: Time | None) -> StepRule[Any]:
        """Free steps: the step after an event has the full size, with held inputs and with those that sweeps correct."""
        from fmimaster.steps.ramp import FreeStep  # most runs have another rule

        return FreeStep(size)

    def usual_rule_with_history(self, size: Time | None) -> StepRule[Any]:
        """Short steps after each event, where an extrapolation has one point only."""
        from fmimaster.steps.ramp import Ramp  # most runs have another rule

        return Ramp(size)

    def detect(self, indicators: Indicators) -> frozenset[int]:
        """Active events at which no FMU has stopped: at the end of a step, after a jump of an input, or in two FMUs at
        once."""
        return indicators.at()

    def watch(self, plan: Plan) -> Watch:
        """For events that are on."""
        del plan
        return Watch(detects=True)


@dataclass(frozen=True, slots=True)
class Check(EventClock):
    """Do a short step after each event, and fire events that are active at synchronous points (Dejaco's steps III to V).

    For the algorithms ``Sequential`` and ``AutomaticSequence``, whose first instance stops at its own events. The
    inputs of that instance are extrapolated; therefore the other members decide on shared events.

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
        """Active events, judged by members whose inputs belong to this communication point."""
        events, first = indicators.plan.events, indicators.first
        return frozenset(
            s.event
            for s in indicators.sets
            if (s.instance != first or events[s.event].scope is not Scope.SHARED)
            and indicators.is_on(s)
        )

    def watch(self, plan: Plan) -> Watch:
        """For events that are on for any member."""
        del plan
        return Watch(detects=True)


def watch_data(clock: EventClock, indicators: Indicators) -> Twin | None:
    """Data that the kernel checks after each step instead of an event clock; None if the clock is always called.

    The kernel keeps the largest values up to date, as :meth:`Indicators.present` does.
    """
    watch = clock.watch(indicators.plan)
    if watch is None:
        return None
    sets, foresight = indicators.sets, watch.foresight or Foresight(0.0, 0.0, False)
    pairs = [pair for s in sets for pair in s.pairs]
    sources = [indicators.scales.sources(z) for z, _ in pairs]

    def flags(of: Callable[[IndicatorSet], bool]) -> NDArray[np.uint8]:
        return np.array([of(s) for s in sets], np.uint8)

    by_fmus = indicators.predicted_by_fmus(foresight.in_fmu)
    ahead = [slot for i, slot in indicators.look_ahead if i in by_fmus]
    return Twin(
        "event clock",
        {
            "locates": int(watch.locates),
            "detects": int(watch.detects),
            "checks": int(not clock.fires),
            "predicts": int(watch.predicts),
            "foresees": int(watch.foresight is not None),
            "n": len(sets),
            "member": indicators.member,
            "distance": indicators.distance,
            "lacks_slopes": int(indicators.lacks_slopes),
            "step": indicators.step,
            "near": NEAREST,
            **(watch.towards or Towards(0.0, 0.0, 0.0))._asdict(),
            "rest": REST,
            "held": HELD,
            "forecast": foresight.forecast,
            "shortest": foresight.shortest * indicators.step,
            "n_ahead": len(ahead),
        },
        {
            "first": _firsts(len(s.pairs) for s in sets),
            "instances": np.array([s.instance for s in sets], np.int64),
            "events": np.array([s.event for s in sets], np.int64),
            "is_plain": flags(lambda s: s.is_triggered and s.active < 0),
            "is_located": flags(lambda s: not (s.is_inside or s.stops)),
            "is_inside": flags(lambda s: s.is_inside),
            "is_own": flags(lambda s: not s.is_triggered),
            "indicators": np.array([z for z, _ in pairs], np.int64),
            "slopes": np.array([dz for _, dz in pairs], np.int64),
            "tolerances": np.array([t for s in sets for t in s.tolerances]),
            "first_source": _firsts(map(len, sources)),
            "sources": np.array([k for found in sources for k, _ in found], np.int64),
            "factors": np.array([factor for found in sources for _, factor in found], np.float64),
            "ahead": np.array(ahead, np.int64),
            "is_foreseen": flags(lambda s: s.instance not in by_fmus),
            "largest": indicators.store.largest,
        },
    )


def _firsts(counts: Iterable[int]) -> NDArray[np.int64]:
    """Index of the first entry of each group in a joined list, and the end of the last group."""
    return np.cumsum([0, *counts], dtype=np.int64)
