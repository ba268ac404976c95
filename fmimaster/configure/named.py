"""Names of what settings stand for, and ``KEY=VALUE`` settings in a text.

What a name stands for is imported when it is read: help pages need only the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

from fmimaster.base.errors import OptionError, did_you_mean

_Choice = TypeVar("_Choice", bound=Enum)

# Names for help pages, whose modules are slow to import (0.4 s): tests/unit/test_named.py compares them ----------------

BACKENDS = ("fastest", "native", "reference")
"""Values of ``run.executor.Backend``; the first is the default."""
KINDS = (
    "hold",
    "midpoint",
    "nepce",
    "linear",
    "quadratic",
    "interpolated",
    "first-order",
    "hermite",
    "adaptive",
)
"""Names in ``inputs.polynomial.KINDS``."""
METHODS = ("automatic", "count", "nearest-neighbour", "upstream")
"""Names in ``sequences.methods.METHODS``."""
MODES = ("end", "mid", "lin", "held", "sub")
"""Names in ``algorithms.gauss_seidel.MODES``."""
NO_TOLERANCE = "none"
"""``plan.plan.NO_TOLERANCE``."""

# Name → the place of its class, or of the function that creates the object with its defaults ---------------------------

ALGORITHMS: Mapping[str, str] = {
    "Jacobi": "algorithms.jacobi:Jacobi",
    "GaussSeidel": "algorithms.gauss_seidel:GaussSeidel",
    "Sequential": "algorithms.sequential:Sequential",
    "AutomaticSequence": "algorithms.sequential:AutomaticSequence",
}
EVENT_CLOCKS: Mapping[str, str] = {
    "look-ahead": "events.look_ahead:LookAhead",
    "predictive": "events.predictive:Predictive",
    "intermediate": "events.intermediate:Intermediate",
    "early-return": "events.event_clock:EarlyReturn",
    "check": "events.event_clock:Check",
    "none": "events.event_clock:NoEventClock",
}
FAULT_POLICIES: Mapping[str, str] = {
    "stop": "fmu.fault_policy:Stop",
    "restart": "fmu.fault_policy:Restart",
    "drop": "fmu.fault_policy:Drop",
}
SOLVERS: Mapping[str, str] = {
    "dormand-prince": "fmu.model_exchange.one_step:DormandPrince",
    "euler": "fmu.model_exchange.one_step:Euler",
    "cvode": "fmu.model_exchange.cvode:Cvode",
}
STEP_RULES: Mapping[str, str] = {
    "grid": "steps.step_rule:FixedStep",
    "free": "steps.ramp:FreeStep",
    "ramp": "steps.ramp:Ramp",
    "locate": "steps.locate:Locate",
    "ecco": "steps.pid:PID.ecco",
    "predictor-corrector": "steps.pid:PID.predictor_corrector",
    "embedded-orders": "steps.pid:PID.embedded_orders",
    "step-doubling": "steps.pid:PID.step_doubling",
}


def plain_name(name: str) -> str:
    """A name in lower case, without hyphens and underscores."""
    return name.strip().lower().replace("-", "").replace("_", "")


def among(what: str, name: str, known: Iterable[str]) -> str:
    """The known name that matches a given name.

    Raises
    ------
    OptionError
        If there is none; ``what`` is "algorithm" in "There is no algorithm 'Jakobi'".
    """
    names = list(known)
    for one in names:
        if plain_name(one) == plain_name(name):
            return one
    raise OptionError(
        f"There is no {what} '{name}'.{did_you_mean(name, names)} There are {', '.join(names)}."
    )


def choice(kind: type[_Choice], what: str, text: str) -> _Choice:
    """The member of an enumeration that has this value.

    Raises
    ------
    OptionError
    """
    return kind(among(what, text, [member.value for member in kind]))


def defaults_of(kind: type) -> dict[str, Any]:
    """The settings of a kind of objects with their defaults: its fields, except the step size, which is an option."""
    return {f.name: f.default for f in fields(kind) if f.name != "size"}


def settings_of(
    where: str,
    name: str,
    defaults: Mapping[str, Any],
    text: str,
    parsers: Mapping[str, Callable[[str], Any]] | None = None,
) -> dict[str, Any]:
    """Settings ``KEY=VALUE``, separated by commas, of an object with these settings and defaults.

    Parameters
    ----------
    where
        The option or setting, for messages: ``"--event-clock"`` or ``"event_clock"``.
    name
        The object with the settings.
    parsers
        Key → the function that reads its value from a text, for values that are not numbers, Booleans or plain texts.

    Raises
    ------
    OptionError
    """
    found: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        key, equals, value = pair.partition("=")
        field = next((f for f in defaults if plain_name(f) == plain_name(key)), None)
        if field is None:
            near = did_you_mean(key.strip().replace("-", "_"), defaults)
            raise OptionError(
                f"{where} {name} has no setting '{key}'.{near} "
                + (f"Its settings are {', '.join(defaults)}." if defaults else "It has none.")
            )
        if not equals:
            raise OptionError(f"{where} {name}:{key} has no value; expected {key}=VALUE.")
        if field in found:
            raise OptionError(f"{where} {name}: '{field}' is given twice. Leave one out.")
        parse = (parsers or {}).get(field)
        what, value = f"{where} {name}:{key}", value.strip()
        found[field] = parse(value) if parse else _value(what, value, defaults[field])
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
