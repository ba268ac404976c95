"""Names of what settings stand for, and settings ``KEY=VALUE``: read from a text, and written as one.

What a name stands for is imported when it is read: help pages need only the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from enum import Enum
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.public_names import at_place
from fmimaster.base.text import in_short

if TYPE_CHECKING:
    from fmimaster.steps.step_rule import StepRule

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
NO_TOLERANCE = "none"
"""``plan.plan.NO_TOLERANCE``."""

# Name → the place of its class, or of the function that creates the object with its defaults ---------------------------

ALGORITHMS: Mapping[str, str] = {
    "Jacobi": "algorithms.jacobi:Jacobi",
    "GaussSeidel": "algorithms.gauss_seidel:GaussSeidel",
    "Sequential": "algorithms.sequential:Sequential",
    "AutomaticSequence": "algorithms.sequential:AutomaticSequence",
}
MODES: Mapping[str, str] = {
    "end": "algorithms.modes:AtEnd",
    "mid": "algorithms.modes:AtMiddle",
    "lin": "algorithms.modes:AlongLine",
    "held": "algorithms.modes:Corrected",
    "sub": "algorithms.subsequence:Subsequence",
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
    for pair in _pairs(text, defaults, parsers or {}):
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


def _pairs(text: str, defaults: Mapping[str, Any], parsers: Mapping[str, Any]) -> list[str]:
    """The settings of a text: ``"inputs=2,1"`` and ``"mode=lin:sub_steps=1"``, for example. What follows a value that has
    settings of its own, and is no setting of the object, belongs to this value."""
    keys, found = {*map(plain_name, defaults)}, list[str]()
    for pair in filter(None, text.split(",")):
        key, begun = pair.partition("=")[0], found[-1] if found else ""
        has_more = begun.partition("=")[0].strip() in parsers
        continues = ":" in begun or pair.strip()[:1].isdecimal()
        if has_more and continues and plain_name(key) not in keys:
            found[-1] += f",{pair}"
        else:
            found.append(pair)
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


# Written: the one spelling of a method wherever it is printed or stored ------------------------------------------------

_NAMES = {
    place: name
    for table in (ALGORITHMS, MODES, EVENT_CLOCKS, STEP_RULES, SOLVERS, FAULT_POLICIES)
    for name, place in table.items()
}
"""Place → name."""
_NOT_READ = {"stale", "interpolation", "points", "derivatives", "history", "late", "adaptive"}
"""Settings of algorithms and polynomials that only Python can set."""
_BY_INPUTS = "degree"
"""Setting of a rule that follows from the inputs."""


def setting_text(value: object) -> str:
    """A setting as the text that sets it, in Python and on the command line; what has no such text, as Python writes it.

    Examples
    --------
    >>> from fmimaster.algorithms import AlongLine, GaussSeidel
    >>> from fmimaster.inputs import LINEAR
    >>> setting_text(GaussSeidel(LINEAR, mode=AlongLine()))
    'GaussSeidel:inputs=linear,mode=lin'
    """
    found = _text(value)
    return in_short(value) if found is None else found


def steps_text(rule: StepRule[Any]) -> str:
    """The step sizes of a run: their number, or the text of the rule that determines them."""
    if rule.is_fixed and len(rule.sizes) == 1:
        return f"steps of {float(rule.exact_size):g} s"
    return f"steps by {setting_text(rule)}"


def _text(value: Any) -> str | None:
    """The text; None if there is none."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Fraction):
        decimal = repr(float(value))
        return decimal if Fraction(decimal) == value else str(value)
    if isinstance(value, int | float | str):
        return str(value)
    possible = (
        (name, settings)
        for name, usual in _named(value)
        if (settings := _settings(value, usual)) is not None
    )
    name, settings = min(possible, key=lambda one: len(one[1]), default=("", []))
    return ":".join([name, ",".join(settings)] if settings else [name]) or None


def _named(value: Any) -> Iterator[tuple[str, Any]]:
    """Names that the text may begin with, and what each stands for without settings."""
    kind = f"{type(value).__module__}:{type(value).__qualname__}".removeprefix("fmimaster.")
    if kind == "inputs.polynomial:Polynomial":
        yield from at_place("inputs.polynomial:KINDS").items()
        yield f"{value.points},{value.derivatives}", type(value)(*value.numbers)
    for place, name in _NAMES.items():
        if place == kind or place.startswith(f"{kind}."):
            yield name, at_place(place)()


def _settings(value: Any, usual: Any) -> list[str] | None:
    """``KEY=VALUE`` of all that is not as usual; None if a text cannot set it."""
    found: list[str] = []
    for name in (f.name for f in fields(usual)):
        now, before = getattr(value, name), getattr(usual, name)
        if now == before or name == _BY_INPUTS:
            continue
        if name == "estimators":  # their settings are those of the rule
            if [*map(type, now)] != [*map(type, before)]:
                return None
            inside = [_settings(*pair) for pair in zip(now, before, strict=True)]
            if None in inside:
                return None
            found += [one for settings in inside for one in settings or ()]
            continue
        text = None if name in _NOT_READ else _text(now)
        is_word = before is None and name != "size" and isinstance(now, str | Fraction)
        if text is None or (is_word and not _is_number(text)):
            return None
        found.append(f"{name}={text}")
    return found


def _is_number(text: str) -> bool:
    """Whether it is one: what is None by default is read as a number."""
    try:
        return isfinite(float(text))
    except ValueError:
        return False
