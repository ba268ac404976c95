"""Event clocks as text: ``"look-ahead"``, ``"predictive:near=1e-4"``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from fmimaster.base.errors import OptionError
from fmimaster.configure.named.step_rules import STEP_RULES
from fmimaster.configure.named.text import among, defaults_of, option_name, plain_name, settings_of

if TYPE_CHECKING:
    from fmimaster.events.event_clock import EventClock

EVENT_CLOCKS: Mapping[str, tuple[str, str]] = {
    option_name(kind): (module, kind)
    for kind, module in (
        ("LookAhead", "look_ahead"),
        ("Predictive", "predictive"),
        ("Intermediate", "intermediate"),
        ("EarlyReturn", "event_clock"),
        ("Check", "event_clock"),
    )
}
"""Name → its module in ``fmimaster.steps`` and its class."""


def event_clock(text: str, where: str = "event_clock") -> EventClock:
    """The event clock of that name. Settings are its fields.

    Raises
    ------
    OptionError
    """
    name, _, settings = text.partition(":")
    if plain_name(name) in map(plain_name, STEP_RULES):
        option = "--step-rule" if where.startswith("--") else "step_size"
        raise OptionError(
            f"There is no event clock '{name}'. '{name}' is a step rule: {option} {name}. There are "
            f"{', '.join(EVENT_CLOCKS)}."
        )
    module, class_name = EVENT_CLOCKS[among("event clock", name, EVENT_CLOCKS)]
    kind: type[EventClock] = getattr(import_module(f"fmimaster.steps.{module}"), class_name)
    return kind(**settings_of(where, name, defaults_of(kind), settings))
