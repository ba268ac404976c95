"""Inputs over a step as text: ``"linear"``, ``"linear:sub_steps=4"``, ``"2,1"``."""

from __future__ import annotations

from dataclasses import replace

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.configure.named.text import plain_name, settings_of
from fmimaster.inputs.polynomial import KINDS, Polynomial

_SETTINGS = ("held", "mean", "compensation", "sub_steps")
"""Settings of a polynomial that can be given as text."""


def polynomial(text: str, where: str = "inputs") -> Polynomial:
    """The polynomial of that name, or with these numbers of points and derivatives.

    Parameters
    ----------
    where
        The option or setting, for messages.

    Raises
    ------
    OptionError

    Examples
    --------
    >>> polynomial("2,1") == Polynomial(2, 1)
    True
    """
    name, _, settings = text.partition(":")
    points, _, derivatives = name.partition(",")
    known = {plain_name(k): kind for k, kind in KINDS.items()}
    if points.strip().isdecimal() and derivatives.strip().isdecimal():
        kind = Polynomial(int(points), int(derivatives))
    elif plain_name(name) in known:
        kind = known[plain_name(name)]
    else:
        raise OptionError(
            f"{where} {text}: expected {', '.join(KINDS)}, or POINTS,DERIVATIVES as in 2,1.{did_you_mean(name, KINDS)}"
        )
    defaults = {key: getattr(kind, key) for key in _SETTINGS}
    return replace(kind, **settings_of(where, name, defaults, settings))


def polynomial_text(kind: Polynomial) -> str:
    """A polynomial as a text."""
    named = (name for name, known in KINDS.items() if known == kind)
    plain = Polynomial(*kind.numbers)
    given = ((key, getattr(kind, key)) for key in _SETTINGS)
    changed = [f"{k}={str(v).lower()}" for k, v in given if v != getattr(plain, k)]
    numbers = f"{kind.points},{kind.derivatives}"
    return next(named, ":".join([numbers, *([",".join(changed)] if changed else [])]))
