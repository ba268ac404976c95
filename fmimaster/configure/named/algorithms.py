"""Algorithms as text: ``"Jacobi"``, ``"gauss-seidel:mode=lin,levels=true"``."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import fmimaster.algorithms as algorithms  # "from fmimaster" would import all of the API
from fmimaster.algorithms import ALGORITHMS, MODES, Algorithm, Mode
from fmimaster.configure.named.polynomials import polynomial
from fmimaster.configure.named.text import among, defaults_of, settings_of

ALGORITHM_NAMES = (*(a.__name__ for a in ALGORITHMS), "Sequential", "AutomaticSequence")
"""Names of the algorithms; each is imported on first use."""

_NO_SETTINGS = {"stale"}
"""Fields that cannot be given as text."""


def algorithm_kind(name: str) -> type[Algorithm]:
    """The algorithm of that name.

    Raises
    ------
    OptionError
    """
    kind: type[Algorithm] = getattr(algorithms, among("algorithm", name, ALGORITHM_NAMES))
    return kind


def algorithm(text: str, where: str = "algorithm") -> Algorithm:
    """The algorithm of that name. Settings are its fields; inputs and mode are given by name.

    Raises
    ------
    OptionError

    Examples
    --------
    >>> algorithm("GaussSeidel:levels=true").levels
    True
    """
    name, _, settings = text.partition(":")
    kind = algorithm_kind(name)
    kept: dict[str, Any] = {
        f.name: f.default
        for f in fields(kind)  # type: ignore[arg-type]
        if f.name not in _NO_SETTINGS
    }
    if kept.get("most_levels", 0) is None:
        kept["most_levels"] = 1  # a whole number
    parsers = {
        "inputs": polynomial,
        "extrapolation": polynomial,
        "mode": mode,
    }
    return kind(**settings_of(where, name, kept, settings, parsers))


def mode(text: str, where: str = "mode") -> Mode:
    """The mode of Gauss-Seidel of that name. Settings are its fields.

    Raises
    ------
    OptionError
    """
    name, _, settings = text.partition(":")
    kind = type(MODES[among("mode", name, MODES)])
    return kind(**settings_of(where, name, defaults_of(kind), settings))
