"""Points and derivatives of the polynomials that an instance is given, by its routes and what its FMU takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from fmimaster.errors import OptionError
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.polynomial import HOLD, MOST_COEFFICIENTS, Polynomial


def kinds_of(plan: Plan, instance: int, of: Callable[[Route], Polynomial]) -> list[Polynomial]:
    """How each continuous input of an instance goes on.

    What a solver finds for a constraint holds over the whole step: it goes through no value of the past. Neither does an
    output that changes at events only.
    """
    return [
        HOLD
        if route.has_discrete_source
        or route.link.output.name in plan.instances[route.link.source].model.residuals
        else of(route)
        for route in plan.routes.get((instance, Group.CONTINUOUS), ())
    ]


T = TypeVar("T")


def one_or_each(operands: Iterable[T]) -> T | tuple[T, ...]:
    """One operand, if it is the same for all routes."""
    each = tuple(operands)
    return each[0] if len(set(each)) == 1 else each


def sub_steps(plan: Plan, instance: int, kinds: Iterable[Polynomial]) -> int:
    """Into how many parts an instance that takes no polynomials divides its step; 1 if it cannot, or if an input is held
    at a value that belongs to the whole step."""
    if (kinds := [k for k in kinds if not k.is_hold]) and not any(
        k.is_constant or k.late for k in kinds
    ):
        can = plan.instances[instance].model.capabilities
        if can.can_handle_variable_communication_step_size and not any(
            i.may_return_early for i in plan.instances
        ):
            return max(k.sub_steps for k in kinds)
    return 1


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
