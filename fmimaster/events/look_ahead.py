"""LookAhead: steps become shorter towards an event that the FMU executes itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.events.event_clock import EventClock, Foresight, Watch
from fmimaster.instants.instant import Goal, Instant
from fmimaster.plan.plan import Plan
from fmimaster.program.indicators import Indicators
from fmimaster.record.causes import Cause, Kind
from fmimaster.steps.ramp import FreeStep
from fmimaster.steps.step_rule import StepRule, Time


@dataclass(frozen=True, slots=True)
class LookAhead(EventClock):
    """Shorten steps towards a predicted event; FMUs execute their events by themselves.

    Parameters
    ----------
    safety : float
        Factor c on the time to the event.
    forecast : float
        Factor d on the last change of an indicator; 1 to 2.
    shortest : float
        Shortest step, as a part of a usual step.
    in_fmu : bool
        Whether the prediction of an FMU that computes it itself is used: the output that its manifest names.

    Source: Tischer et al., LookAhead.
    """

    safety: float = 0.9
    forecast: float = 2.0
    shortest: float = 0.025
    in_fmu: bool = False
    history: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not (0 < self.safety < 1 and 0 < self.shortest < 1 and self.forecast > 0):  # NaN, too
            raise OptionError(
                f"{self}: expected 0 < safety < 1, forecast > 0 and 0 < shortest < 1. The paper has 0.9, 2 and 0.025: "
                "2 ms, with a step size of 0.08 s."
            )

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """The nearest predicted event, if it is before the goal."""
        del fired
        found = self._nearest(now, indicators)
        if found is None or now.seconds + found[0] >= goal.end.seconds:
            return goal
        return Goal(Instant(now.seconds + found[0]), Cause(Kind.LOOK_AHEAD, (found[1],)))

    def usual_rule(self, size: Time | None) -> StepRule[Any]:
        """Free steps: on a grid, the step after an event is short, which makes predictions worse and has no
        advantage."""
        return FreeStep(size)

    def watch(self, plan: Plan) -> Watch:
        """For events before the end of the next step."""
        del plan
        return Watch(foresight=Foresight(self.forecast, self.shortest, self.in_fmu))

    def _nearest(self, now: Instant, indicators: Indicators) -> tuple[float, str] | None:
        values, candidates = indicators.present(), list[tuple[float, str]]()
        least = self.shortest * indicators.step
        computing = indicators.predicted_by_fmus(self.in_fmu)
        for i, slot in indicators.look_ahead:
            if (
                i in computing and values[slot] >= 0
            ):  # 0: the event is now, but a step needs a length
                name = indicators.plan.instances[i].name
                candidates.append((values[slot] or least, f"an event of {name}"))
        previous = indicators.previous(now.seconds, 0.0)
        if previous is not None:
            before, time = previous
            for s in indicators.sets:
                if s.instance not in computing:
                    step = self.time_to_event(
                        [before[k] for k in s.z],
                        [values[k] for k in s.z],
                        now.seconds - time,
                        least,
                    )
                    if step > 0:
                        candidates.append((step, indicators.plan.events[s.event].name))
        return min(candidates, default=None)

    def time_to_event(
        self, before: Sequence[float], now: Sequence[float], dt: float, least: float
    ) -> float:
        """Time in s to the event of one indicator set; -1 if none is predicted.

        Parameters
        ----------
        before, now : values of the indicators at the last two communication points
        dt : time between them in s
        least : shortest step in s
        """
        longest = -1.0
        for z_before, z in zip(before, now, strict=True):
            if z + self.forecast * (z - z_before) >= 0:
                return -1.0
            if z > 0:
                longest = max(longest, self.safety * dt * z / (z_before - z), least)
        return longest if longest >= least else -1.0
