"""Points and derivatives of the polynomials that an instance is given, by its routes and what its FMU takes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fmimaster.errors import OptionError
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.polynomial import MOST_COEFFICIENTS, Polynomial

Points = tuple[int, int]
"""Numbers of points, and of derivatives at each."""

HELD: Points = (1, 0)
"""The newest value."""

LINE: Points = (2, 0)
"""The straight line through two values."""


def points_of(plan: Plan, instance: int, of: Callable[[Route], Points]) -> list[Points]:
    """The points for each route to an instance.

    What a solver finds for a constraint holds over the whole step: it goes through no value of the past.
    """
    return [
        HELD
        if route.link.output.name in plan.instances[route.link.source].model.residuals
        else of(route)
        for route in plan.routes[instance, Group.CONTINUOUS]
    ]


def one_or_each(numbers: tuple[int, ...]) -> int | tuple[int, ...]:
    """One number, if it is the same for all routes."""
    return numbers[0] if len(set(numbers)) == 1 else numbers


def wanted_derivatives(plan: Plan, polynomial_inputs: Collection[int]) -> dict[int, int]:
    """Instance → derivatives that are known of those inputs that it takes as coefficients, if any was fitted.

    Parameters
    ----------
    polynomial_inputs
        Instances that are given polynomials.
    """
    found = {}
    for i in sorted(polynomial_inputs):
        taken = {p.input: p for p in plan.instances[i].model.input_polynomials}
        known = [
            min(len(route.derivatives), most_coefficients(plan, i) - 1)
            for route in plan.routes[i, Group.CONTINUOUS]
            if route.link.input.name in taken
        ]
        if known:
            found[i] = min(known)
    return found


def most_coefficients(plan: Plan, instance: int) -> int:
    """How many coefficients an instance takes, if it takes polynomials in that way."""
    model = plan.instances[instance].model
    sizes = [
        sum(v.size for name in p.coefficients if (v := model.variable(name)) is not None)
        for p in model.input_polynomials
    ]
    return min(sizes, default=MOST_COEFFICIENTS)


def refuse_too_many_coefficients(plan: Plan, instance: int, polynomial: Polynomial) -> None:
    """Raise if an instance does not take so many coefficients."""
    most = most_coefficients(plan, instance)
    if polynomial.degree >= most and not polynomial.is_constant:
        raise OptionError(
            f"'{plan.instances[instance].name}' takes polynomials with {most} coefficients, but "
            f"Polynomial({polynomial.points}, {polynomial.derivatives}) has {polynomial.degree + 1}. Take "
            "fewer points or derivatives."
        )
