"""Messages on algebraic loops: why a loop was not solved, and why a solution is doubtful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fmimaster.base.errors import LoopError
from fmimaster.loops.newton import SINGULAR
from fmimaster.loops.search import NoSolution, Reasons
from fmimaster.plan.visits import MAY_BE_NONE
from fmimaster.system.notes import listed

NEARLY_SINGULAR = 1e-3
"""Warn below this smallest singular value of the Jacobian: the error of the unknowns can be 1000 times the residual."""


SMALL = 1e-6
"""Up to this residual, relative to the value, the FMUs are probably the reason why a loop is not solved."""


def doubtful(what: str, smallest: float) -> tuple[str, ...]:
    """Warnings about solutions, from the smallest singular value of their Jacobians."""
    loop = what[:1].upper() + what[1:]
    if smallest < SINGULAR:
        return (
            f"{loop}: solution not unique (loop gain 1). The solution found from the start values was taken; give "
            "start values, or check the model",
        )
    if smallest < NEARLY_SINGULAR:
        return (
            f"{loop}: loop gain near 1 (smallest singular value {smallest:.2g}). The error of the solution can be "
            f"{1 / smallest:.0e} times its residual; use a smaller tolerance",
        )
    return ()


def not_solved(
    what: str,
    failure: NoSolution,
    *,
    loop: Sequence[str],
    values: Mapping[str, float],
    residuals: Mapping[str, float],
    sweeps: int,
    time: float,
    assumed: bool,
) -> LoopError:
    """The error for a loop that was not solved; values and residuals are those of the best attempt."""
    best = listed(
        f"{name} = {values[name]:.9g} (residual {residuals[name]:.3g})" for name in values
    )
    about = MAY_BE_NONE if assumed else ""
    return LoopError(
        f"The {what} was not solved at t = {time:.12g} s: {failure.reason}. Method: {failure.method}; {sweeps} sweeps. "
        f"Best attempt: {best}.{about} {_advice(failure.reason, values, residuals)}",
        loop=loop,
        reason=failure.reason,
        method=failure.method,
        sweeps=sweeps,
        values=values,
        residuals=residuals,
        time=time,
    )


def _advice(reason: str, values: Mapping[str, float], residuals: Mapping[str, float]) -> str:
    is_small = all(abs(residuals[name]) <= SMALL * abs(values[name]) for name in values)
    if reason == Reasons.NOT_CONVERGED and is_small:
        return (
            "The residual is small: it cannot become smaller if FMUs do not repeat a step exactly. Give a larger "
            "tolerance (--loop-tolerance), or do not solve the loop (--loops none)."
        )
    if reason == Reasons.SINGULAR:
        return "Check signs, and whether the equations contradict each other or one follows from the others."
    if reason in (Reasons.DIVERGED, Reasons.NOT_CONVERGED):
        return "Give start values nearer to the solution, or break the loop by a component with a delay."
    return "There may be no solution: check parameters, or give other start values."
