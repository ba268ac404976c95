"""Polynomials of single inputs over a step, given by the user by names of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Set
from fnmatch import fnmatchcase

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.text import listed
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan


def check_given_inputs(inputs: object) -> None:
    """Raise if this is no mapping from names of inputs to polynomials.

    Raises
    ------
    OptionError
    """
    if not isinstance(inputs, Mapping) or not all(isinstance(name, str) for name in inputs):
        raise OptionError(
            f"inputs: {inputs!r}, expected a mapping of inputs ('component.input', or a glob) to polynomials. One "
            "polynomial for all inputs is a setting of the algorithm: algorithm='Jacobi:inputs=linear'. Values of open "
            "inputs are another setting: input."
        )
    for name, polynomial in inputs.items():
        if not isinstance(polynomial, Polynomial):
            raise OptionError(
                f"inputs: {polynomial!r} for '{name}' is not a polynomial. Give an object such as LINEAR, or its name, "
                "such as 'linear'. Values of open inputs are another setting: input."
            )
        if polynomial.points > 1 and not polynomial.history:
            raise OptionError(
                f"inputs: the polynomial for '{name}' has history=False. An input of a single connection is "
                "extrapolated, which needs the history. Leave history=False out."
            )


def given_inputs(plan: Plan, inputs: Mapping[str, Polynomial]) -> dict[tuple[int, str], Polynomial]:
    """(Instance, name of an input) → its polynomial, for the connected continuous inputs that are named.

    A name takes precedence over a glob.

    Raises
    ------
    OptionError
        If a name or a glob fits no connected continuous input, or two globs with different polynomials fit the same one.
    """
    connected, others = _connected(plan)
    found: dict[str, tuple[str, Polynomial]] = {}
    for pattern, polynomial in sorted(
        inputs.items(), key=lambda pair: (pair[0] in connected, pair[0])
    ):
        fitting = [pattern] if pattern in connected else _fitting(pattern, connected)
        if not fitting:
            raise OptionError(_nothing_fits(pattern, connected, others))
        for name in fitting:
            before = found.get(name)
            if before is not None and pattern not in connected and before[1] != polynomial:
                raise OptionError(
                    f"inputs: '{before[0]}' and '{pattern}' both fit '{name}', with different polynomials. Give '{name}' "
                    "by its name."
                )
            found[name] = pattern, polynomial
    return {connected[name]: polynomial for name, (_, polynomial) in sorted(found.items())}


def extrapolation_degree(
    plan: Plan, otherwise: Polynomial, inputs: Mapping[str, Polynomial]
) -> int:
    """Degree of the polynomials by which inputs are extrapolated: the lowest of all connections.

    Parameters
    ----------
    otherwise : Polynomial
        Of the connections for which ``inputs`` has none.
    """
    given = given_inputs(plan, inputs)
    degrees = [
        given.get((i, route.link.input.name), otherwise).of(len(route.derivatives)).followed_degree
        if plan.instances[i].model.takes_polynomial_of(route.link.input)
        else 0
        for (i, group), routes in plan.routes.items()
        for route in routes
        if group is Group.CONTINUOUS and not route.has_discrete_source
    ]
    return min(degrees, default=0)


def fitting_inputs(plan: Plan, inputs: Mapping[str, Polynomial]) -> dict[str, Polynomial]:
    """Those of the names and globs that fit a connected continuous input: in one of several structures of a system."""
    connected, _ = _connected(plan)
    return {p: kind for p, kind in inputs.items() if p in connected or _fitting(p, connected)}


def _connected(plan: Plan) -> tuple[dict[str, tuple[int, str]], dict[str, str]]:
    """Connected inputs that are extrapolated: full name → (instance, name); and others: full name → why they are not."""
    connected: dict[str, tuple[int, str]] = {}
    others: dict[str, str] = {}
    for (i, group), routes in plan.routes.items():
        for route in routes:
            name = f"{plan.instances[i].name}.{route.link.input.name}"
            if group is Group.CONTINUOUS and not route.has_discrete_source:
                connected[name] = i, route.link.input.name
            else:
                source = f"{plan.instances[route.link.source].name}.{route.link.output.name}"
                others[name] = (
                    "it is discrete" if group is not Group.CONTINUOUS else f"'{source}' is discrete"
                )
    return connected, others


def unused_inputs(
    plan: Plan, given: Mapping[tuple[int, str], Polynomial], used: Set[tuple[int, str]]
) -> tuple[str, ...]:
    """A sentence about the inputs whose polynomials have no effect, if there are any."""
    names = sorted(f"'{plan.instances[i].name}.{name}'" for i, name in given.keys() - used)
    if not names:
        return ()
    return (
        f"The polynomials given for {listed(names)} have no effect: the inputs are interpolated or held at the end of the "
        "step, because their source has stepped before, or because an algebraic loop is solved.",
    )


def _fitting(pattern: str, names: Mapping[str, object]) -> list[str]:
    return [name for name in sorted(names) if fnmatchcase(name, pattern)]


def _nothing_fits(pattern: str, connected: Mapping[str, object], others: Mapping[str, str]) -> str:
    held = _fitting(pattern, others)
    if held:
        return (
            f"inputs: '{pattern}' fits '{held[0]}', which is held in any case, because {others[held[0]]}. Only continuous "
            "Float64 inputs with continuous sources are extrapolated. Leave it out."
        )
    return (
        f"inputs: '{pattern}' fits no connected continuous input.{did_you_mean(pattern, connected)} "
        "Expected 'component.input', or a glob such as 'component.*'."
    )
