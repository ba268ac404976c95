"""What a step size means that is only a number: the rule that an event clock is usually used with."""

from __future__ import annotations

from collections.abc import Callable

from fmimaster.control.event_clock import EarlyReturn, EventClock, LookAhead, Predictive
from fmimaster.control.schedule import Time
from fmimaster.control.step_size import FixedStep, Ramp, free_step

MakeStep = Callable[[Time], FixedStep | Ramp]

_USUAL: dict[type, MakeStep] = {LookAhead: free_step, EarlyReturn: free_step, Predictive: Ramp}


def usual_step(clock: EventClock | None) -> MakeStep:
    """Step size in s → rule.

    On a grid, an event is followed by a short step to the next grid point, which is bad for predictions and saves nothing:
    LookAhead and EarlyReturn start anew from the event, Predictive with short steps, which it needs while it has no
    history. All others, and runs without an event clock, stay on the grid.
    """
    return _USUAL.get(type(clock), FixedStep)
