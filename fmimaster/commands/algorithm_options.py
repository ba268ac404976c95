"""The algorithm from the options of the command line."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.errors import OptionError
from fmimaster.configure.named import algorithm, inputs_by_name, mode, polynomial
from fmimaster.configure.text import settings_of
from fmimaster.inputs.polynomial import ADAPTIVE
from fmimaster.loops.solver import LoopSolver

_OF_GAUSS_SEIDEL = {"mode", "levels", "most_levels"}
"""Settings that select this algorithm if no algorithm is named."""


def chosen_algorithm(arguments: Namespace) -> Algorithm | None:
    """The algorithm of the options; None if it is left to the settings.

    Raises
    ------
    OptionError
    """
    found = _divided(_named(arguments), arguments.sub_steps)
    found = _swept(found, arguments.sweeps)
    if not (arguments.refresh or arguments.refresh_linearized):
        return found
    from fmimaster.algorithms.refreshed import Refreshed  # few runs need it

    return Refreshed(found or Jacobi(), arguments.refresh_linearized)


def _named(arguments: Namespace) -> Algorithm | None:
    """The algorithm of that name, with the settings that have options of their own."""
    text, settings = arguments.algorithm, _settings(arguments)
    if text is None and not settings:
        return None
    usual = "GaussSeidel" if settings.keys() & _OF_GAUSS_SEIDEL else "Jacobi"
    found = algorithm(usual if text is None else text, "--algorithm")
    taken = {f.name: f.name for f in fields(found)}  # type: ignore[arg-type]
    if "extrapolation" in taken:
        taken["inputs"] = "extrapolation"
    for setting in settings:
        if setting not in taken:
            raise OptionError(
                f"Algorithm {type(found).__name__} has no setting --{setting.replace('_', '-')}. Leave it out."
            )
    new = {taken[setting]: value for setting, value in settings.items()}
    return replace(found, **new)  # type: ignore[type-var]


def _settings(arguments: Namespace) -> dict[str, Any]:
    """The settings of the algorithm that are given, by the names of their options."""
    found: dict[str, Any] = {}
    for_all = [kind for name, kind in inputs_by_name(arguments.inputs) if not name]
    if len(for_all) > 1:
        raise OptionError(
            f"--inputs {for_all[1]}: a kind for all inputs was given already. Give one kind for all, and INPUT=KIND "
            "for single inputs."
        )
    if for_all:
        found["inputs"] = polynomial(for_all[0], "--inputs")
    if arguments.mode is not None:
        found["mode"] = mode(arguments.mode, "--mode")
    if arguments.levels:
        found["levels"] = True
    if arguments.most_levels is not None:
        found["most_levels"] = arguments.most_levels
    return found


def _divided(base: Algorithm | None, sub_steps: Sequence[tuple[str, str]]) -> Algorithm | None:
    """The algorithm with sub-steps of some components; None if it is left to the settings."""
    if not sub_steps:
        return base
    # imported when it is requested, as those below
    from fmimaster.algorithms.sub_steps import SubSteps

    for name, count in sub_steps:
        if not count.isdecimal() or int(count) < 1:
            raise OptionError(f"--sub-steps {name} {count}: expected a whole number, 1 or more.")
    counts = {name: int(count) for name, count in sub_steps}
    return SubSteps(counts=counts) if base is None else SubSteps(base, counts)


def _swept(base: Algorithm | None, sweeps: str | None) -> Algorithm | None:
    """The algorithm, with sweeps if they are requested; None if it is left to the settings."""
    if sweeps is None:
        return base
    from fmimaster.algorithms.aligned import Aligned
    from fmimaster.algorithms.waveform import Waveform

    aligned, (count, _, text) = Aligned(base or Jacobi(ADAPTIVE)), sweeps.partition(":")
    if count == "solver":
        kinds = {"relative": 1e-6, "absolute": 1e-9, "bounded": 3}  # examples for messages
        return Waveform(aligned, solver=LoopSolver(**settings_of("--sweeps", count, kinds, text)))
    if not count.isdecimal() or int(count) < 1:
        raise OptionError(f"--sweeps {sweeps}: expected 1 or more, or solver; 2 is usual.")
    kinds = {"tolerance": 1e-6, "corrections": 3}
    return Waveform(aligned, sweeps=int(count), **settings_of("--sweeps", count, kinds, text))
