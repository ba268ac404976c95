"""Step-size rules as text: ``"ramp"``, ``"ecco:size=0.01,smallest=1e-4"``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from importlib import import_module
from operator import attrgetter
from typing import Any

from fmimaster.base.errors import OptionError
from fmimaster.configure.named.text import among, settings_of
from fmimaster.steps.step_rule import StepRule

STEP_RULES: Mapping[str, tuple[str, str]] = {
    "grid": ("step_rule", "FixedStep"),
    "free": ("ramp", "FreeStep"),
    "ramp": ("ramp", "Ramp"),
    "locate": ("locate", "Locate"),
    "ecco": ("pid", "PID.ecco"),
    "predictor-corrector": ("pid", "PID.predictor_corrector"),
    "embedded-orders": ("pid", "PID.embedded_orders"),
    "step-doubling": ("pid", "PID.step_doubling"),
}
"""Name → its module in ``fmimaster.steps``, and the function that creates the rule with its defaults."""

_NO_SETTINGS = {"size", "estimators", "degree"}
"""Fields of rules that are determined by the step size, the name of the rule, or the inputs."""
_NUMBER_WORD = re.compile(r"(inf|infinity|nan)", re.IGNORECASE)
"""Words that Python reads as numbers."""


def is_rule(text: str) -> bool:
    """Whether a step size as text names a rule; a number does not begin with a letter."""
    return text[:1].isalpha() and not _NUMBER_WORD.fullmatch(text)


def named(name: str, where: str = "step_size") -> StepRule[Any]:
    """The rule of that name with its defaults.

    Raises
    ------
    OptionError
        If there is none.
    """
    try:
        module, maker = STEP_RULES[among("step rule", name, STEP_RULES)]
    except OptionError as error:
        if where.startswith("--"):
            raise
        raise OptionError(f"'{name}' is not a time in s, such as 0.01 or '1/60'. {error}") from None
    rule: StepRule[Any] = attrgetter(maker)(import_module(f"fmimaster.steps.{module}"))()
    return rule


def step_rule(text: str, where: str = "step_size", *, size: str | None = None) -> StepRule[Any]:
    """The rule of that name. Settings are its fields and those of its estimators.

    Parameters
    ----------
    size : number or fraction as text, in s
        The step size. Default: the setting ``size`` of the text.

    Raises
    ------
    OptionError
    """
    name, _, settings = text.partition(":")
    rule = named(name, where)
    own, defaults = {f.name for f in fields(rule)}, {"size": "", **_defaults(rule)}
    given = settings_of(where, name, defaults, settings)
    if size is not None and "size" in given:
        raise OptionError(
            f"{where} {text}: the step size {size} s is already given. Leave size={given['size']} out."
        )
    estimators = tuple(
        replace(e, **{f.name: given[f.name] for f in fields(e) if f.name in given})  # type: ignore[type-var, arg-type]
        for e in rule.estimators
    )
    found = {"size": size, **{key: value for key, value in given.items() if key in own}}
    found |= {"estimators": estimators} if estimators else {}
    return replace(rule, **found)


def _defaults(rule: StepRule[Any]) -> dict[str, Any]:
    """The settings of a rule with their defaults: its fields, and those of its estimators."""
    return {
        f.name: getattr(of, f.name)
        for of in (rule, *rule.estimators)
        for f in fields(of)  # type: ignore[arg-type]
        if f.name not in _NO_SETTINGS
    }
