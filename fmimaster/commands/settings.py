"""The settings of a simulation on the command line, for all commands that take them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import fields, replace
from math import inf
from typing import Any, Literal

import fmimaster.algorithms as algorithms  # "from fmimaster" would import all of the API
from fmimaster.algorithms import ALGORITHMS, MODES, Algorithm, GaussSeidel, Jacobi, Mode
from fmimaster.commands import event_settings, step_rules
from fmimaster.commands.event_settings import plain_name
from fmimaster.commands.parser import add_pairs, group
from fmimaster.commands.step_rules import STEP_RULES
from fmimaster.control.loops.solver import LoopSolver
from fmimaster.control.step_rule import StepRule, Time
from fmimaster.errors import OptionError, did_you_mean
from fmimaster.plan.sequence import METHODS
from fmimaster.plan.step_groups import Loops
from fmimaster.plan.tolerance import NO_TOLERANCE
from fmimaster.program.polynomial import KINDS, Polynomial
from fmimaster.run.choice import Backend
from fmimaster.simulation import Simulation

_OFFERED = (*(a.__name__ for a in ALGORITHMS), "Sequential", "AutomaticSequence")
"""Names of algorithms; each is imported when it is requested."""

_INPUT_SETTINGS = ("held", "mean", "compensation", "sub_steps")
"""Settings of a polynomial that --inputs takes behind its name."""


def add_arguments(parser: ArgumentParser) -> None:
    """The system, and all that :class:`fmimaster.Simulation` takes, in the groups of a help page."""
    system = "an FMU (.fmu), an SSP (.ssp), an SSD (.ssd), an OspSystemStructure.xml, or a folder with one of them unpacked"
    parser.add_argument("system", metavar="SYSTEM", help=system)
    _add_times(parser)
    _add_algorithm(parser)
    event_settings.add_arguments(parser)
    _add_loops(parser)
    _add_starts(parser)
    _add_results(parser)
    _add_accuracy(parser)
    _add_execution(parser)


def _add_times(parser: ArgumentParser) -> None:
    times = group(parser, "Times and steps")
    add = times.add_argument
    add("--start-time", metavar="T", help="start time in s")
    add("--stop-time", metavar="T", help="stop time in s")
    add("--step-size", metavar="H", help="communication step size in s: 0.01 or 1/60")
    rules = f"rule by which steps end: {', '.join(STEP_RULES)}; with settings: ecco:smallest=1e-4"
    add("--step-rule", metavar="RULE", help=rules)
    own = "step size in s of a component, on a grid of its own; can be repeated"
    add_pairs(times, "--component-step-size", ("NAME", "H"), own)
    parts = "do N steps of a component in each communication step; can be repeated"
    add_pairs(times, "--sub-steps", ("NAME", "N"), parts)


def _add_algorithm(parser: ArgumentParser) -> None:
    add = group(parser, "Algorithm").add_argument
    names = ", ".join(_OFFERED)
    add("--algorithm", metavar="NAME", help=f"co-simulation algorithm: {names}")
    inputs = (
        f"inputs over a step: {', '.join(KINDS)}, or POINTS,DERIVATIVES; with settings as KIND:KEY=VALUE; for some inputs "
        "only as INPUT=KIND, where INPUT is COMPONENT.NAME or a glob; can be repeated"
    )
    add("--inputs", action="append", default=[], metavar="KIND", help=inputs)
    mode = (
        f"inputs that GaussSeidel sets when their source has stepped: {', '.join(MODES)}; with settings as "
        "NAME:KEY=VALUE"
    )
    add("--mode", metavar="NAME", help=mode)
    order = f"order of stepping: a method ({', '.join(METHODS)}), or the names of all components, as in a,b,c"
    add("--sequence", metavar="ORDER", help=order)
    levels = "step components of GaussSeidel that do not wait for each other at the same time"
    add("--levels", action="store_true", help=levels)
    most = "the same in at most N levels"
    add("--most-levels", type=int, metavar="N", help=most)
    refresh = "at the end of each step, read outputs that depend directly on inputs again, for the new inputs"
    add("--refresh", action="store_true", help=refresh)
    linearized = (
        "the same; outputs that cannot be read again are linearized by directional derivatives"
    )
    add("--refresh-linearized", action="store_true", help=linearized)
    sweeps = (
        "do each step at least K times, with inputs interpolated over the completed step, or as often as a solver needs "
        "(solver); with settings as in K:tolerance=1e-6,corrections=3 or solver:relative=1e-6,bounded=3"
    )
    add("--sweeps", metavar="K", help=sweeps)


def _add_loops(parser: ArgumentParser) -> None:
    add = group(parser, "Algebraic loops").add_argument
    loops = "algebraic loops that are solved in Step Mode: real (the default), all (assumed ones too), none"
    add("--loops", default=Loops.REAL.value, metavar="WHICH", help=loops)
    relative = "relative tolerance of algebraic loops (default: 1e-8)"
    add("--loop-tolerance", type=float, default=LoopSolver().relative, metavar="TOL", help=relative)


def _add_starts(parser: ArgumentParser) -> None:
    starts = group(parser, "Start values and inputs")
    add = starts.add_argument
    value = "start value of a variable; can be repeated; NAME VALUE is the same"
    add_pairs(starts, "--start-value", ("NAME", "VALUE"), value)
    steady = "state whose time derivative is 0 at the start, COMPONENT.STATE; its start value is searched; can be repeated"
    add("--steady-state", action="append", default=[], metavar="NAME", help=steady)
    add("--input-file", metavar="CSV", help="table whose columns are the values of open inputs")
    add(
        "--ignore-further-columns",
        action="store_true",
        help="leave out columns of the input file that are no open input",
    )


def _add_results(parser: ArgumentParser) -> None:
    add = group(parser, "Results").add_argument
    variable = "variables to record; can be repeated (default: all outputs)"
    add("--output-variable", action="append", default=[], metavar="GLOB", help=variable)
    interval = "record a row each S seconds only"
    add("--output-interval", type=float, metavar="S", help=interval)


def _add_accuracy(parser: ArgumentParser) -> None:
    add = group(parser, "Accuracy").add_argument
    accuracy = (
        "error that each output may have, relative to its largest value; the step-size rule and the inputs are chosen, and "
        "the steps are shortened"
    )
    add("--accuracy", type=float, metavar="A", help=accuracy)
    bonds = "relative tolerance of the energy of all power bonds that have an energy scale"
    add("--bond-tolerance", type=float, metavar="TOL", help=bonds)
    tolerance = f"relative tolerance passed to the FMUs; {NO_TOLERANCE} passes none"
    add("--tolerance", metavar="TOL", help=tolerance)
    strict = "treat what makes results less accurate than they should be as an error, not a warning"
    add("--strict", action="store_true", help=strict)


def _add_execution(parser: ArgumentParser) -> None:
    add = group(parser, "Execution").add_argument
    backends = ", ".join(e.value for e in Backend)
    backend = f"executor of the programs: {backends}; all give the same bits"
    add("--backend", default=Backend.FASTEST.value, metavar="NAME", help=backend)
    threads = (
        "threads that step instances at the same time (default: 1; 0: chosen by a measurement)"
    )
    add("--threads", type=int, default=1, metavar="N", help=threads)
    lossy = "let connections convert between types where a value can be lost"
    add("--allow-lossy-conversions", action="store_true", help=lossy)
    add("--allow-nan", action="store_true", help="let outputs be NaN or infinite")
    logging = "switch on all logging of the FMUs, and show it"
    group(parser, "Messages and logs").add_argument(
        "--fmi-logging", action="store_true", help=logging
    )


def simulation(arguments: Namespace) -> Simulation:
    """What the arguments mean.

    Raises
    ------
    OptionError
        If one of them means nothing.
    """
    return Simulation(
        arguments.system,
        algorithm=_refreshed(
            event_settings.swept(
                event_settings.divided(_algorithm(arguments), arguments.sub_steps), arguments.sweeps
            ),
            arguments,
        ),
        inputs=_inputs(arguments.inputs)[1],
        sequence=_sequence(arguments.sequence),
        bond_tolerance=arguments.bond_tolerance,
        accuracy=arguments.accuracy,
        start_time=arguments.start_time,
        stop_time=arguments.stop_time,
        step_size=_step_size(arguments),
        event_clock=event_settings.event_clock(arguments),
        event_mode=arguments.event_mode,
        loops=_loops(arguments.loops),
        loop_solver=_loop_solver(arguments.loop_tolerance),
        strict=arguments.strict,
        start_values=dict(arguments.start_value),
        steady_states=arguments.steady_state,
        input=arguments.input_file,
        ignore_further_columns=arguments.ignore_further_columns,
        output_variables=arguments.output_variable,
        output_interval=arguments.output_interval,
        tolerance=_tolerance(arguments.tolerance),
        allow_lossy_conversions=arguments.allow_lossy_conversions,
        allow_nan=arguments.allow_nan,
        fmi_logging=arguments.fmi_logging,
        backend=_backend(arguments.backend),
        threads=arguments.threads,
    )


def _algorithm(arguments: Namespace) -> Algorithm | None:
    """The algorithm of that name; case and hyphens do not count. Its settings are its fields. None if nothing is said."""
    name = arguments.algorithm
    settings = _algorithm_settings(arguments)
    if name is None and not settings:
        return None
    known = {plain_name(a): a for a in _OFFERED}
    usual = GaussSeidel if settings.keys() & {"mode", "levels", "most_levels"} else Jacobi
    found = usual.__name__ if name is None else known.get(plain_name(name))
    if found is None:
        raise OptionError(
            f"There is no algorithm '{name}'.{did_you_mean(name or '', _OFFERED)} There are {', '.join(_OFFERED)}."
        )
    kind: type[Algorithm] = getattr(algorithms, found)
    taken = {f.name: f.name for f in fields(kind)}  # type: ignore[arg-type]
    if "extrapolation" in taken:
        taken["inputs"] = "extrapolation"
    for setting in settings:
        if setting not in taken:
            raise OptionError(
                f"Algorithm {found} has no setting --{setting.replace('_', '-')}. Leave it out."
            )
    return kind(**{taken[setting]: value for setting, value in settings.items()})


def _refreshed(algorithm: Algorithm | None, arguments: Namespace) -> Algorithm | None:
    """The algorithm, with outputs refreshed if that is requested; None if it is left to the settings."""
    if not (arguments.refresh or arguments.refresh_linearized):
        return algorithm
    from fmimaster.algorithms import Refreshed  # few runs need it

    return Refreshed(algorithm or Jacobi(), arguments.refresh_linearized)


def _algorithm_settings(arguments: Namespace) -> dict[str, Any]:
    """The settings of the algorithm that are given, by the names of their options."""
    found: dict[str, Any] = {}
    for_all, _ = _inputs(arguments.inputs)
    if for_all is not None:
        found["inputs"] = for_all
    if arguments.mode is not None:
        found["mode"] = _mode(arguments.mode)
    if arguments.levels:
        found["levels"] = True
    if arguments.most_levels is not None:
        found["most_levels"] = arguments.most_levels
    return found


def _step_size(arguments: Namespace) -> StepRule[Any] | Time | None:
    """The step size, by the requested rule."""
    size: str | None = arguments.step_size
    if arguments.component_step_size:
        if arguments.step_rule is not None:
            raise OptionError(
                f"--component-step-size and --step-rule {arguments.step_rule} exclude each other: components with step "
                "sizes of their own have fixed steps. Leave one of them out."
            )
        from fmimaster.control.multi_rate import MultiRate  # few runs need it

        return MultiRate(size, dict(arguments.component_step_size))
    if arguments.step_rule is None:
        return size
    name, _, settings = arguments.step_rule.partition(":")
    defaults = step_rules.settings(step_rules.named(name))
    given = event_settings.settings_of("--step-rule", name, defaults, settings)
    return step_rules.made(name, size, given)


def _mode(text: str) -> Mode:
    name, _, settings = text.partition(":")
    if name not in MODES:
        raise OptionError(
            f"There is no mode '{name}'.{did_you_mean(name, MODES)} There are {', '.join(MODES)}."
        )
    kind = type(MODES[name])
    return kind(
        **event_settings.settings_of("--mode", name, event_settings.defaults_of(kind), settings)
    )


def _loop_solver(tolerance: float) -> LoopSolver:
    if not 0.0 < tolerance < inf:
        raise OptionError(f"--loop-tolerance {tolerance:g}: expected a number greater than 0.")
    return LoopSolver(relative=tolerance)


def _sequence(text: str | None) -> str | tuple[str, ...] | None:
    """The name of a method, or names of components between commas."""
    if text is None or text in METHODS:
        return text
    names = tuple(name.strip() for name in text.split(","))
    return names if len(names) > 1 else text


def _inputs(texts: Sequence[str]) -> tuple[Polynomial | None, dict[str, Polynomial]]:
    """The polynomial for all inputs, and those for single ones by name or glob."""
    for_all: list[Polynomial] = []
    single: dict[str, Polynomial] = {}
    for text in texts:
        kind, name = text, ""
        if "=" in text.partition(":")[0]:
            name, _, kind = text.partition("=")
        if not name and for_all:
            raise OptionError(
                f"--inputs {text}: there is one kind for all inputs already. Give one kind, and INPUT=KIND for others."
            )
        if name in single:
            raise OptionError(f"--inputs {text}: '{name}' is given twice. Give it once.")
        if name:
            single[name] = _polynomial(kind)
        else:
            for_all.append(_polynomial(kind))
    return next(iter(for_all), None), single


def _polynomial(text: str) -> Polynomial:
    name, _, settings = text.partition(":")
    points, _, derivatives = name.partition(",")
    if points.strip().isdecimal() and derivatives.strip().isdecimal():
        kind = Polynomial(int(points), int(derivatives))
    elif name in KINDS:
        kind = KINDS[name]
    else:
        raise OptionError(
            f"--inputs {text}: expected {', '.join(KINDS)}, or POINTS,DERIVATIVES as in 2,1.{did_you_mean(name, KINDS)}"
        )
    defaults = {key: getattr(kind, key) for key in _INPUT_SETTINGS}
    return replace(kind, **event_settings.settings_of("--inputs", name, defaults, settings))


def polynomial_words(polynomial: Polynomial) -> str:
    """A polynomial as --inputs takes it."""
    named = (name for name, known in KINDS.items() if known == polynomial)
    plain = Polynomial(*polynomial.numbers)
    given = ((key, getattr(polynomial, key)) for key in _INPUT_SETTINGS)
    changed = [f"{key}={_plain(value)}" for key, value in given if value != getattr(plain, key)]
    numbers = f"{polynomial.points},{polynomial.derivatives}"
    return next(named, ":".join([numbers, *([",".join(changed)] if changed else [])]))


def _plain(value: object) -> str:
    return str(value).lower()


def _tolerance(text: str | None) -> float | Literal["none"] | None:
    if text is None:
        return None
    if text == NO_TOLERANCE:
        return NO_TOLERANCE
    try:
        return float(text)
    except ValueError:
        raise OptionError(
            f"--tolerance {text}: expected a positive number, or {NO_TOLERANCE}."
        ) from None


def _loops(name: str) -> Loops:
    try:
        return Loops(name)
    except ValueError:
        known = [e.value for e in Loops]
        raise OptionError(
            f"--loops {name}: expected {', '.join(known)}.{did_you_mean(name, known)}"
        ) from None


def _backend(name: str) -> Backend:
    try:
        return Backend(name)
    except ValueError:
        known = [e.value for e in Backend]
        raise OptionError(
            f"There is no backend '{name}'.{did_you_mean(name, known)} Expected {', '.join(known)}."
        ) from None
