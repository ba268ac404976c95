"""Event clocks and step rules on the command line, by name."""

from __future__ import annotations

import re
from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fmimaster.algorithms import Algorithm, Jacobi
from fmimaster.commands.parser import group
from fmimaster.commands.step_rules import STEP_RULES
from fmimaster.control.loops.solver import LoopSolver
from fmimaster.errors import OptionError, did_you_mean
from fmimaster.program.polynomial import ADAPTIVE

if TYPE_CHECKING:
    from fmimaster.control.event_clock import EventClock

EVENT_CLOCKS: Mapping[str, str] = {
    "LookAhead": "look_ahead",
    "Predictive": "predictive",
    "EarlyReturn": "event_clock",
    "Check": "event_clock",
}
"""Class → the module of ``fmimaster.control`` that is imported for it."""


def add_arguments(parser: ArgumentParser) -> None:
    """The options for events."""
    add = group(parser, "Events").add_argument
    clocks = f"how events are found: {', '.join(map(option_name, EVENT_CLOCKS))}; with settings: predictive:near=1e-4"
    add("--event-clock", metavar="NAME", help=clocks)
    mode = (
        "use Event Mode of FMI 3.0, or do not (default: as the system and the event clock need it)"
    )
    add("--event-mode", action=BooleanOptionalAction, help=mode)
    spelled = "--event-mode-used"  # as the standard does
    add(spelled, dest="event_mode", action=BooleanOptionalAction, default=None, help=SUPPRESS)


def event_clock(arguments: Namespace) -> EventClock | None:
    """The event clock of that name; case and hyphens do not count. Its settings are its fields."""
    if arguments.event_clock is None:
        return None
    name, _, settings = arguments.event_clock.partition(":")
    known = {plain_name(c): c for c in EVENT_CLOCKS}
    found = known.get(plain_name(name))
    if found is None:
        names = list(map(option_name, EVENT_CLOCKS))
        rule = f" '{name}' is a step rule: --step-rule {name}." if name in STEP_RULES else ""
        raise OptionError(
            f"There is no event clock '{name}'.{rule or did_you_mean(name, names)} There are {', '.join(names)}."
        )
    kind: type[EventClock] = getattr(
        import_module(f"fmimaster.control.{EVENT_CLOCKS[found]}"), found
    )
    return kind(**settings_of("--event-clock", name, defaults_of(kind), settings))


def divided(algorithm: Algorithm | None, sub_steps: Sequence[tuple[str, str]]) -> Algorithm | None:
    """The algorithm, with several steps of some components; None if it is left to the settings."""
    if not sub_steps:
        return algorithm
    from fmimaster.algorithms import SubSteps  # imported when it is requested, as those below

    for name, count in sub_steps:
        if not count.isdecimal() or int(count) < 1:
            raise OptionError(f"--sub-steps {name} {count}: expected a whole number, 1 or more.")
    counts = {name: int(count) for name, count in sub_steps}
    return SubSteps(counts=counts) if algorithm is None else SubSteps(algorithm, counts)


def swept(algorithm: Algorithm | None, sweeps: str | None) -> Algorithm | None:
    """The algorithm, repeated over each step if sweeps are requested; None if it is left to the settings."""
    if sweeps is None:
        return algorithm
    from fmimaster.algorithms import Aligned, Waveform

    base, (count, _, settings) = Aligned(algorithm or Jacobi(ADAPTIVE)), sweeps.partition(":")
    if count == "solver":
        chosen = _numbers(sweeps, settings, {"relative": float, "absolute": float, "bounded": int})
        return Waveform(base, solver=LoopSolver(**chosen))
    if not count.isdecimal() or int(count) < 1:
        raise OptionError(f"--sweeps {sweeps}: expected 1 or more, or solver; 2 is usual.")
    return Waveform(
        base,
        sweeps=int(count),
        **_numbers(sweeps, settings, {"tolerance": float, "corrections": int}),
    )


def _numbers(
    sweeps: str, settings: str, kinds: Mapping[str, type[float] | type[int]]
) -> dict[str, Any]:
    """Settings of sweeps, ``KEY=NUMBER`` between commas."""
    found: dict[str, Any] = {}
    for pair in filter(None, settings.split(",")):
        key, _, value = (part.strip() for part in pair.partition("="))
        if key not in kinds:
            raise OptionError(
                f"--sweeps {sweeps}: there is no setting '{key}'.{did_you_mean(key, kinds)} Its settings are "
                f"{', '.join(kinds)}."
            )
        try:
            found[key] = kinds[key](value)
        except ValueError:
            raise OptionError(
                f"--sweeps {sweeps}: {key} is '{value}', expected a number."
            ) from None
    return found


def option_name(kind: str) -> str:
    """``LookAhead`` → ``look-ahead``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind).lower()


def plain_name(name: str) -> str:
    """A name without what does not count in names."""
    return name.lower().replace("-", "").replace("_", "")


def defaults_of(kind: type) -> dict[str, Any]:
    """The settings of a kind of objects with their defaults: its fields, but for the step size, which is an option."""
    return {f.name: f.default for f in fields(kind) if f.name != "size"}


def settings_of(option: str, name: str, defaults: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Settings ``KEY=VALUE`` between commas, of what has these settings with these defaults."""
    found: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        field = key.strip().replace("-", "_")
        if field not in defaults:
            raise OptionError(
                f"{option} {name} has no setting '{key}'.{did_you_mean(field, defaults)} "
                + (f"Its settings are {', '.join(defaults)}." if defaults else "It has none.")
            )
        found[field] = _value(f"{option} {name}:{key}", value.strip(), defaults[field])
    return found


def _value(what: str, text: str, default: object) -> float | bool | str:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise OptionError(f"{what}={text}: expected true or false.")
        return text.lower() == "true"
    if isinstance(default, int):
        if not text.isdecimal():
            raise OptionError(f"{what}={text}: expected a whole number, such as {default}.")
        return int(text)
    if default is not None and not isinstance(default, float):
        return text
    try:
        return float(text)
    except ValueError:
        example = "" if default is None else f", such as {default:g}"
        raise OptionError(f"{what}={text}: expected a number{example}.") from None
