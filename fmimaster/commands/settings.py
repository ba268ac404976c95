"""The settings of a simulation on the command line, for all commands that take them: options and values from their rows."""

from __future__ import annotations

import re
from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from inspect import cleandoc
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from fmimaster.base.errors import OptionError
from fmimaster.base.public_names import at_place
from fmimaster.commands.parser import group
from fmimaster.configure import named, reading
from fmimaster.configure.named import settings_of
from fmimaster.configure.setting_kinds import Row
from fmimaster.configure.setting_rows import ROWS, TABLE
from fmimaster.configure.settings import Settings

# imports that a help page does not need are made where they are used: they take 0.4 s
if TYPE_CHECKING:
    from fmimaster.algorithms.algorithm import Algorithm
    from fmimaster.front.simulation import Simulation
    from fmimaster.loops.solver import LoopSolver
    from fmimaster.steps.step_rule import StepRule, Time

_ENTRY = re.compile(r"^(\w+) : .*\n((?: +.*\n?)+)", re.MULTILINE)
"""A setting in the docstring of all of them, with its text."""


def add_arguments(
    parser: ArgumentParser, before: Mapping[str, Callable[[ArgumentParser], None]] | None = None
) -> None:
    """The system, and all that :class:`fmimaster.Simulation` takes, in the groups of a help page.

    Parameters
    ----------
    before : name of a setting → function that adds options before it
        Only for the command that does one run: it also has the options that are about one run.
    """
    system = (
        "an FMU (.fmu), an SSP (.ssp), an SSD (.ssd), an OspSystemStructure.xml, or a folder that holds one of them "
        "unpacked"
    )
    parser.add_argument("system", metavar="SYSTEM", help=system)
    for row in TABLE:
        if row.option is None or (row.option.one_run and before is None):
            continue
        if before and row.name in before:
            before[row.name](parser)
        _add_option(parser, row)


def _add_option(parser: ArgumentParser, row: Row) -> None:
    option = row.option
    assert option is not None
    more: dict[str, Any] = {
        "dest": row.name,
        "help": option.help or _first_sentence(row.name) + option.also,
    }
    if option.is_or_not:
        more["action"] = BooleanOptionalAction
    elif not option.metavar:
        more |= {"action": "store_true", "default": None}
    else:
        more["metavar"] = option.metavar
        if option.kind is not None:
            more["type"] = option.kind
        if isinstance(option.metavar, tuple):
            more["nargs"] = len(option.metavar)
        if option.is_repeated or isinstance(option.metavar, tuple):
            more |= {"action": "append", "default": []}
    add = group(parser, option.group).add_argument
    add(row.spelled, **more)
    if option.hidden:
        add(option.hidden, **{**more, "default": SUPPRESS, "help": SUPPRESS})


@cache
def _texts() -> Mapping[str, str]:
    """Setting → its text; empty if Python has removed docstrings (-OO)."""
    entries = _ENTRY.findall(cleandoc(Settings.__doc__ or ""))
    return {name: " ".join(text.split()) for name, text in entries}


def _first_sentence(setting: str) -> str:
    """The first sentence about a setting, as the help of an option: without its point, and with a small letter."""
    sentence = f"{_texts().get(setting, '')} ".partition(". ")[0].rstrip()
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def simulation(arguments: Namespace) -> Simulation:
    """The settings from the arguments: those that are given.

    Raises
    ------
    OptionError
        If one of them has no valid meaning.
    """
    from fmimaster.front.simulation import Simulation

    found: dict[str, Any] = {}
    for name, row in ROWS.items():
        given = getattr(arguments, name, None)
        if name in _COMPOSED:
            found[name] = _COMPOSED[name](arguments)
        elif given is not None and given != []:
            read = _READERS.get(name) or (at_place(row.read) if row.read else None)
            found[name] = given if read is None else read(given, row.spelled)
    return Simulation(**found)


def _step_size(arguments: Namespace) -> StepRule[Any] | Time | None:
    """The step size, with the requested rule."""
    size: str | None = arguments.step_size
    if arguments.component_step_size:
        if arguments.step_rule is not None:
            raise OptionError(
                f"--component-step-size and --step-rule {arguments.step_rule} exclude each other: components with "
                "their own step sizes have fixed steps. Leave one of them out."
            )
        from fmimaster.steps.multi_rate import MultiRate  # few runs need it

        return MultiRate(size, dict(arguments.component_step_size))
    if arguments.step_rule is None:
        return size
    return reading.step_rule(arguments.step_rule, "--step-rule", size=size)


def _isolate(texts: list[str], _: str) -> Any:
    for word, meaning in (("all", True), ("none", False)):
        if word in texts:
            if len(set(texts)) > 1:
                raise OptionError(f"--isolate {word} excludes other values of --isolate.")
            return meaning
    where = {}
    for text in texts:
        name, at, addresses = text.partition("=tcp://")
        where[name] = f"tcp://{addresses}".split(",") if at else True
    return where if any(entry is not True for entry in where.values()) else texts


def memory_in_bytes(size: float | None, _: str = "") -> int | None:
    """A number of bytes that is given like ``2e9``.

    Raises
    ------
    OptionError
    """
    if size is not None and not 1.0 <= size < inf:
        raise OptionError(f"--memory-limit {size:g}: expected a positive number of bytes.")
    return None if size is None else int(size)


def _loop_solver(arguments: Namespace) -> LoopSolver:
    from fmimaster.loops.solver import LoopSolver

    tolerance = arguments.loop_tolerance
    if tolerance is None:
        return LoopSolver()
    if not 0.0 < tolerance < inf:
        raise OptionError(f"--loop-tolerance {tolerance:g}: expected a number greater than 0.")
    return LoopSolver(relative=tolerance)


def _tolerance(text: str, _: str) -> float | Literal["none"]:
    if text == named.NO_TOLERANCE:
        return "none"
    try:
        return float(text)
    except ValueError:
        raise OptionError(
            f"--tolerance {text}: expected a positive number, or {named.NO_TOLERANCE}."
        ) from None


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
    from fmimaster.algorithms.jacobi import Jacobi
    from fmimaster.algorithms.refreshed import Refreshed

    return Refreshed(found or Jacobi(), bool(arguments.refresh_linearized))


def _named(arguments: Namespace) -> Algorithm | None:
    """The algorithm of that name, with the settings that have options of their own."""
    text, settings = arguments.algorithm, _settings(arguments)
    if text is None and not settings:
        return None
    usual = "GaussSeidel" if settings.keys() & _OF_GAUSS_SEIDEL else "Jacobi"
    found = reading.algorithm(usual if text is None else text, "--algorithm")
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
    for_all = [kind for name, kind in reading.inputs_by_name(arguments.inputs) if not name]
    if len(for_all) > 1:
        raise OptionError(
            f"--inputs {for_all[1]}: a kind for all inputs was given already. Give one kind for all, and INPUT=KIND "
            "for single inputs."
        )
    if for_all:
        found["inputs"] = reading.polynomial(for_all[0], "--inputs")
    if arguments.mode is not None:
        found["mode"] = reading.mode(arguments.mode, "--mode")
    if arguments.levels:
        found["levels"] = True
    if arguments.most_levels is not None:
        found["most_levels"] = arguments.most_levels
    return found


def _divided(base: Algorithm | None, sub_steps: Sequence[tuple[str, str]]) -> Algorithm | None:
    """The algorithm with sub-steps of some components; None if it is left to the settings."""
    if not sub_steps:
        return base
    from fmimaster.algorithms.own_steps import SubSteps

    for name, count in sub_steps:
        if not count.isdecimal() or int(count) < 1:
            raise OptionError(f"--sub-steps {name} {count}: expected a whole number, 1 or more.")
    counts = {name: int(count) for name, count in sub_steps}
    return SubSteps(counts=counts) if base is None else SubSteps(base, counts)


def _swept(base: Algorithm | None, sweeps: str | None) -> Algorithm | None:
    """The algorithm, with sweeps if they are requested; None if it is left to the settings."""
    if sweeps is None:
        return base
    from fmimaster.algorithms.jacobi import Jacobi
    from fmimaster.algorithms.waveform import Waveform
    from fmimaster.algorithms.wrapper import Aligned
    from fmimaster.inputs.polynomial import ADAPTIVE
    from fmimaster.loops.solver import LoopSolver

    aligned, (count, _, text) = Aligned(base or Jacobi(ADAPTIVE)), sweeps.partition(":")
    if count == "solver":
        kinds = {"relative": 1e-6, "absolute": 1e-9, "bounded": 3}  # examples for messages
        return Waveform(aligned, solver=LoopSolver(**settings_of("--sweeps", count, kinds, text)))
    if not count.isdecimal() or int(count) < 1:
        raise OptionError(f"--sweeps {sweeps}: expected 1 or more, or solver; 2 is usual.")
    kinds = {"tolerance": 1e-6, "corrections": 3}
    return Waveform(aligned, sweeps=int(count), **settings_of("--sweeps", count, kinds, text))


_COMPOSED: Mapping[str, Callable[[Namespace], Any]] = {
    "algorithm": chosen_algorithm,
    "step_size": _step_size,
    "loop_solver": _loop_solver,
}
"""Setting → the function that makes it of several options."""

_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "inputs": reading.single_inputs,
    "solver": reading.solver_by_component,
    "start_values": lambda pairs, _: dict(pairs),
    "isolate": _isolate,
    "tolerance": _tolerance,
    "memory_limit": memory_in_bytes,
}
"""Setting → the function that reads its option, if the command line has another form than Python."""
