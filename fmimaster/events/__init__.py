"""Event clocks: when state events happen, and who executes them."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.events.event_clock import Check as Check
    from fmimaster.events.event_clock import EarlyReturn as EarlyReturn
    from fmimaster.events.event_clock import EventClock as EventClock
    from fmimaster.events.event_clock import NoEventClock as NoEventClock
    from fmimaster.events.intermediate import Intermediate as Intermediate
    from fmimaster.events.look_ahead import LookAhead as LookAhead
    from fmimaster.events.predictive import Predictive as Predictive
else:
    __getattr__, __dir__ = public_names(__name__)
