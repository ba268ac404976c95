"""Step-size rules on the command line, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from fmimaster.control.locate import Locate
from fmimaster.control.pid import PID
from fmimaster.control.ramp import FreeStep, Ramp
from fmimaster.control.step_rule import FixedStep, StepRule
from fmimaster.errors import OptionError, did_you_mean

STEP_RULES: Mapping[str, StepRule[Any]] = {
    "grid": FixedStep(),
    "free": FreeStep(),
    "ramp": Ramp(),
    "locate": Locate(),
    "ecco": PID.ecco(),
    "predictor-corrector": PID.predictor_corrector(),
    "embedded-orders": PID.embedded_orders(),
    "step-doubling": PID.step_doubling(),
}

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
    return STEP_RULES[name]


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
