"""Settings as text: ``"GaussSeidel:mode=lin"``, ``"predictive:near=1e-4"``; the same in Python and on the command line.

A text is a name, or a name with settings: ``NAME:KEY=VALUE,KEY=VALUE``. Case, hyphens and underscores in names and keys
are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.public_names import at_place
from fmimaster.configure.named import (
    ALGORITHMS,
    EVENT_CLOCKS,
    FAULT_POLICIES,
    KINDS,
    METHODS,
    MODES,
    SOLVERS,
    STEP_RULES,
    among,
    choice,
    defaults_of,
    plain_name,
    settings_of,
)

if TYPE_CHECKING:
    from fmimaster.algorithms.algorithm import Algorithm
    from fmimaster.algorithms.modes import InputMode
    from fmimaster.events.event_clock import EventClock
    from fmimaster.fmu.fault_policy import FaultPolicy
    from fmimaster.fmu.model_exchange.cvode import Jacobian
    from fmimaster.fmu.model_exchange.integrator import Integrator
    from fmimaster.inputs.polynomial import Polynomial
    from fmimaster.steps.step_rule import StepRule

_NOT_OF_RULES = {"size", "estimators", "degree"}
"""Fields of rules that are determined by the step size, the name of the rule, or the inputs."""
_OF_POLYNOMIALS = ("held", "mean", "compensation", "sub_steps")
"""Settings of a polynomial that can be given as text."""
_NUMBER_WORD = re.compile(r"(inf|infinity|nan)", re.IGNORECASE)
"""Words that Python reads as numbers."""


# Algorithms and inputs ------------------------------------------------------------------------------------------------


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
    kind: type[Algorithm] = at_place(ALGORITHMS[among("algorithm", name, ALGORITHMS)])
    kept: dict[str, Any] = {f.name: f.default for f in fields(kind) if f.name != "stale"}  # type: ignore[arg-type]
    if kept.get("most_levels", 0) is None:
        kept["most_levels"] = 1  # a whole number
    parsers = {"inputs": polynomial, "extrapolation": polynomial, "mode": mode}
    return kind(**settings_of(where, name, kept, settings, parsers))


def mode(text: str, where: str = "mode") -> InputMode:
    """The mode of Gauss-Seidel of that name. Settings are its fields.

    Raises
    ------
    OptionError
    """
    name, _, settings = text.partition(":")
    kind: type[InputMode] = at_place(MODES[among("mode", name, MODES)])
    return kind(**settings_of(where, name, defaults_of(kind), settings))


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
    >>> from fmimaster.inputs import Polynomial
    >>> polynomial("2,1") == Polynomial(2, 1)
    True
    """
    from fmimaster.inputs import polynomial as known

    name, _, settings = text.partition(":")
    points, _, derivatives = name.partition(",")
    kinds = {plain_name(k): kind for k, kind in known.KINDS.items()}
    if points.strip().isdecimal() and derivatives.strip().isdecimal():
        kind = known.Polynomial(int(points), int(derivatives))
    elif plain_name(name) in kinds:
        kind = kinds[plain_name(name)]
    else:
        raise OptionError(
            f"{where} {text}: expected {', '.join(KINDS)}, or POINTS,DERIVATIVES as in 2,1.{did_you_mean(name, KINDS)}"
        )
    defaults = {key: getattr(kind, key) for key in _OF_POLYNOMIALS}
    return replace(kind, **settings_of(where, name, defaults, settings))


def inputs_by_name(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and kind of each text ``INPUT=KIND`` or ``KIND`` of the command line; the name is empty for all inputs."""
    for text in texts:
        name, equals, kind = text.partition("=")
        # an equals sign after a colon belongs to a setting
        yield (name, kind) if equals and ":" not in name else ("", text)


def single_inputs(texts: Sequence[str], where: str = "--inputs") -> dict[str, Polynomial]:
    """The polynomials of ``INPUT=KIND``, by the name or pattern of the input.

    Raises
    ------
    OptionError
        If one is given twice.
    """
    found: dict[str, Polynomial] = {}
    for name, kind in inputs_by_name(texts):
        if name in found:
            raise OptionError(f"{where} {name}={kind}: '{name}' is given twice. Give it once.")
        if name:
            found[name] = polynomial(kind, where)
    return found


def inputs(given: Any) -> Any:
    """Polynomials instead of their texts."""
    if isinstance(given, Mapping):
        given = {k: polynomial(v) if isinstance(v, str) else v for k, v in given.items()}
    at_place("inputs.given_inputs:check_given_inputs")(given)
    return given


# Step sizes and events ------------------------------------------------------------------------------------------------


def _is_rule(text: str) -> bool:
    """Whether a step size as text names a rule; a number does not begin with a letter."""
    return text[:1].isalpha() and not _NUMBER_WORD.fullmatch(text)


def rule_with_defaults(name: str, where: str = "step_size") -> StepRule[Any]:
    """The rule of that name with its defaults.

    Raises
    ------
    OptionError
        If there is none.
    """
    try:
        place = STEP_RULES[among("step rule", name, STEP_RULES)]
    except OptionError as error:
        if where.startswith("--"):
            raise
        raise OptionError(f"'{name}' is not a time in s, such as 0.01 or '1/60'. {error}") from None
    rule: StepRule[Any] = at_place(place)()
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
    rule = rule_with_defaults(name, where)
    defaults = {
        f.name: getattr(of, f.name)
        for of in (rule, *rule.estimators)
        for f in fields(of)  # type: ignore[arg-type]
        if f.name not in _NOT_OF_RULES
    }
    own = {f.name for f in fields(rule)}
    given = settings_of(where, name, {"size": "", **defaults}, settings)
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


def step_size(given: Any) -> Any:
    """A step-size rule instead of its text."""
    return step_rule(given) if isinstance(given, str) and _is_rule(given) else given


def event_clock(text: str, where: str = "event_clock") -> EventClock:
    """The event clock of that name. Settings are its fields.

    Raises
    ------
    OptionError
    """
    name = text.partition(":")[0]
    if plain_name(name) in map(plain_name, STEP_RULES):
        option = "--step-rule" if where.startswith("--") else "step_size"
        raise OptionError(
            f"There is no event clock '{name}'. '{name}' is a step rule: {option} {name}. There are "
            f"{', '.join(EVENT_CLOCKS)}."
        )
    clock: EventClock = _made("event clock", EVENT_CLOCKS, text, where)
    return clock


# Execution ------------------------------------------------------------------------------------------------------------


def loops(given: Any) -> Any:
    """The loops that are solved; or what a run has measured about them, which its preparation has chosen."""
    from fmimaster.cards.measured import MeasuredAtStart
    from fmimaster.plan.step_groups import Loops

    given = choice(Loops, "choice of loops", given) if isinstance(given, str) else given
    if not isinstance(given, Loops | MeasuredAtStart):
        raise OptionError(f"loops: {given!r}, expected one of {[*Loops]}.")
    return given


def fault_policy(text: str, where: str = "on_fault") -> FaultPolicy:
    """The policy of that name. Settings are its fields.

    Raises
    ------
    OptionError

    Examples
    --------
    >>> fault_policy("restart:tries=5")
    Restart(tries=5)
    """
    policy: FaultPolicy = _made("way to handle a fault", FAULT_POLICIES, text, where)
    return policy


def solver(text: str, where: str = "solver") -> Integrator:
    """The solver of that name. Settings are its fields.

    Raises
    ------
    OptionError

    Examples
    --------
    >>> solver("cvode:relative=1e-8").relative
    1e-08
    """
    made: Integrator = _made("solver", SOLVERS, text, where)
    return made


def solvers(given: object) -> Any:
    """A setting ``solver`` with texts replaced by the solvers that they name.

    Parameters
    ----------
    given : text, Integrator, or mapping of names of components, or globs, to texts or Integrators

    Raises
    ------
    OptionError
    """
    if isinstance(given, str):
        return solver(given)
    if isinstance(given, Mapping):
        return {name: solver(one) if isinstance(one, str) else one for name, one in given.items()}
    return given


def solver_by_component(
    texts: Sequence[str], where: str = "--solver"
) -> Integrator | dict[str, Integrator] | None:
    """The setting ``solver`` from texts ``NAME`` and ``COMPONENT=NAME`` of the command line.

    Raises
    ------
    OptionError
        If a solver is given twice.
    """
    found: dict[str, Integrator] = {}
    for text in texts:
        name, equals, kind = text.partition("=")
        if not equals or ":" in name:  # an equals sign after a colon belongs to a setting
            name, kind = "*", text
        if name in found:
            whose = "for all components" if name == "*" else f"for '{name}'"
            raise OptionError(f"{where} {text}: a solver {whose} was given already. Give it once.")
        found[name] = solver(kind, where)
    return found["*"] if [*found] == ["*"] else found or None


def sequence(text: str, where: str = "sequence") -> str | tuple[str, ...]:
    """The name of a method, or names of components separated by commas.

    Examples
    --------
    >>> sequence("b, a")
    ('b', 'a')
    """
    method = next((name for name in METHODS if plain_name(name) == plain_name(text)), text)
    names = tuple(name.strip() for name in text.split(","))
    return names if len(names) > 1 else method


def _made(what: str, known: Mapping[str, str], text: str, where: str) -> Any:
    """The object that a text names, with its settings: fields of its class."""
    name, _, settings = text.partition(":")
    kind = at_place(known[among(what, name, known)])
    parsers = {"jacobian": _jacobian}
    return kind(**settings_of(where, name, defaults_of(kind), settings, parsers))


def _jacobian(text: str) -> Jacobian:
    from fmimaster.fmu.model_exchange.cvode import Jacobian

    return choice(Jacobian, "Jacobian", text)
