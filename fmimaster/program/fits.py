"""Inputs of an instance over an interval: its FIT, by its routes and the capabilities of its FMU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from fmimaster.base.errors import OptionError
from fmimaster.inputs.polynomial import HOLD, MOST_COEFFICIENTS, Polynomial
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions.inputs import Fit
from fmimaster.program.knowledge import Fitted


def kinds_of(plan: Plan, instance: int, of: Callable[[Route], Polynomial]) -> list[Polynomial]:
    """The polynomial of each continuous input of an instance.

    The solution for a constraint is held over the whole step and uses no values of the past. This is also so for an
    output that changes at events only.
    """
    return [
        HOLD
        if route.has_discrete_source
        or route.link.output.name in plan.instances[route.link.source].model.residuals
        else of(route)
        for route in plan.routes.get((instance, Group.CONTINUOUS), ())
    ]


def may_be_after_jumps(plan: Plan, instance: int, is_ahead: Callable[[int], bool]) -> bool:
    """Whether the newest value of an input may be from after a jump at the end of the step that is known before: then its
    value is that of a FIT, which takes the one before the jump."""
    routes = plan.routes[instance, Group.CONTINUOUS]
    return any(r.left is not None and is_ahead(r.link.source) for r in routes)


def fit_of(
    instance: int,
    kinds: Sequence[Polynomial],
    begin: float,
    end: float,
    buffers: tuple[int, ...],
    half: int = 0,
) -> Fit:
    """The FIT that gives an instance these inputs over an interval: one kind for each route.

    If all are constant, one that keeps its newest value is written like any other, with which its value is the same: so
    operands that are equal for all routes are written once.

    Parameters
    ----------
    begin, end : fractions of the whole interval
    buffers
        With older outputs.
    half : 0, 1 or 2
        The interval is this half of a step; 0: none.
    """
    uses_history = any(kind.uses_history for kind in kinds)
    constants = [k for k in kinds if k.mean or k.compensation or k.held is not None]
    fill = constants[:1] if all(kind.is_constant for kind in kinds) else []

    def fitted(kind: Polynomial) -> Fitted:
        like = fill[0] if kind.is_hold and fill else kind
        return Fitted(
            *kind.numbers,
            history=kind.history if kind.points > 1 else uses_history,
            held=None if like.held is None else begin + like.held * (end - begin),
            mean=end if like.mean or like.compensation else None,
            adaptive=_measures(kind, buffers),
            compensation=kind.compensation,
            late=end if kind.late else None,
            half=half if like.mean else 0,
        )

    operands = zip(*(fitted(kind) for kind in kinds), strict=True)
    points, derivatives, *others = (v[0] if len({*v}) == 1 else v for v in operands)
    return Fit(instance, begin, points, derivatives, buffers, *others)


def points_of_history(kinds: Iterable[Polynomial], buffers: tuple[int, ...]) -> int:
    """Number of points of the history that such a FIT needs.

    The newest one is the present one before the first step; one more is for a short step, and one for measuring the error.
    """
    needed = (k.wanted_points + 1 + _measures(k, buffers) for k in kinds if k.uses_history)
    return max(needed, default=0)


def _measures(kind: Polynomial, buffers: tuple[int, ...]) -> bool:
    """Whether the degree is chosen by the measured error."""
    return kind.adaptive and kind.uses_history and not buffers


def sub_steps(plan: Plan, instance: int, kinds: Iterable[Polynomial]) -> int:
    """Number of parts of an instance's step; 1 if it accepts polynomials or cannot divide its step, or if an input is
    held at a value for the whole step."""
    if not _can_be_divided(plan, instance, kinds := [k for k in kinds if not k.is_hold]):
        return 1
    return max(k.sub_steps for k in kinds)


def can_be_halved(plan: Plan, instance: int, kinds: Iterable[Polynomial]) -> bool:
    """Whether the step of an instance that holds its inputs is done in two halves, if the run does that: an input has
    derivatives, so that the shape of the input causes more of the error than its extrapolation."""
    kinds = [k for k in kinds if not k.is_hold]
    has_grid = plan.instances[instance].model.capabilities.fixed_internal_step_size is not None
    return (
        any(k.derivatives > 0 for k in kinds)
        and all(k.sub_steps == 1 for k in kinds)
        and not has_grid
        and _can_be_divided(plan, instance, kinds)
    )


def _can_be_divided(plan: Plan, instance: int, kinds: Collection[Polynomial]) -> bool:
    """Whether an instance accepts no polynomials, can divide its step, and no input is held at a value for the whole
    step."""
    if not kinds or any(k.is_constant or k.late for k in kinds):
        return False
    can = plan.instances[instance].model.capabilities
    routes = plan.routes[instance, Group.CONTINUOUS]
    if any(plan.instances[instance].model.takes_polynomial_of(r.link.input) for r in routes):
        return False
    # an event between the parts would come before the next part
    has_events = plan.instances[instance].may_request_events
    stops = plan.instances.any_may_return_early or has_events
    return can.can_handle_variable_communication_step_size and not stops


def wanted_derivatives(plan: Plan, polynomial_inputs: Collection[int]) -> dict[int, int]:
    """Instance → derivatives that are known of those inputs that it takes as coefficients, if any was fitted.

    Parameters
    ----------
    polynomial_inputs
        Instances whose inputs are polynomials.
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
    """Largest number of coefficients that an instance accepts, if its polynomials are given as coefficients."""
    model = plan.instances[instance].model
    sizes = [
        sum(v.size for name in p.coefficients if (v := model.variable(name)) is not None)
        for p in model.input_polynomials
    ]
    return min(sizes, default=MOST_COEFFICIENTS)


def refuse_too_many_coefficients(plan: Plan, instance: int, polynomial: Polynomial) -> None:
    """Raise if an instance does not accept all coefficients of a polynomial."""
    most = most_coefficients(plan, instance)
    if polynomial.degree >= most and not polynomial.is_constant:
        raise OptionError(
            f"'{plan.instances[instance].name}' accepts polynomials with {most} coefficients, but "
            f"Polynomial({polynomial.points}, {polynomial.derivatives}) has {polynomial.degree + 1}. Use "
            "fewer points or derivatives."
        )
