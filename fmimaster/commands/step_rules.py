"""Step-size rules on the command line, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from importlib import import_module
from operator import attrgetter
from typing import Any

from fmimaster.control.step_rule import StepRule
from fmimaster.errors import OptionError, did_you_mean

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
"""Name → the module of ``fmimaster.control`` that is imported for it, and what makes the rule with its defaults."""

_NO_SETTINGS = {"size", "estimators", "degree"}
"""Fields of rules that an option of its own, the name of the rule, or the inputs decide."""


def named(name: str) -> StepRule[Any]:
    """The rule of that name with its defaults.

    Raises
    ------
    OptionError
        If there is none.
    """
    if name not in STEP_RULES:
        raise OptionError(
            f"There is no step rule '{name}'.{did_you_mean(name, STEP_RULES)} There are {', '.join(STEP_RULES)}."
        )
    module, maker = STEP_RULES[name]
    rule: StepRule[Any] = attrgetter(maker)(import_module(f"fmimaster.control.{module}"))()
    return rule


def settings(rule: StepRule[Any]) -> dict[str, Any]:
    """The settings of a rule with their defaults: its fields, and those of its estimators."""
    return {
        f.name: getattr(of, f.name)
        for of in (rule, *rule.estimators)
        for f in fields(of)  # type: ignore[arg-type]
        if f.name not in _NO_SETTINGS
    }


def made(name: str, size: str | None, given: Mapping[str, Any]) -> StepRule[Any]:
    """The rule of that name, with this step size and these settings."""
    rule = named(name)
    own = {f.name for f in fields(rule)}
    estimators = tuple(
        replace(e, **{f.name: given[f.name] for f in fields(e) if f.name in given})  # type: ignore[type-var, arg-type]
        for e in rule.estimators
    )
    found = {key: value for key, value in given.items() if key in own}
    found |= {"estimators": estimators} if estimators else {}
    return replace(rule, size=size, **found)
