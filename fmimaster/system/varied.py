"""Start values that change from one run of a system to the next."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from fmimaster.base.errors import DescriptionError
from fmimaster.system.conversions import Conversions, outside_range
from fmimaster.system.description import Parameter, SystemDescription
from fmimaster.system.model import Causality, Model, Variable
from fmimaster.system.resolved import Varied
from fmimaster.system.start_values import OUTSIDE, ends_of, settable, values_of
from fmimaster.system.wiring import Wiring


def values_in_a_run(varied: Varied, value: Any) -> NDArray[Any]:
    """What a variable gets in a run, shape (size,).

    Raises
    ------
    DescriptionError
        If it cannot have this value.
    """
    return values_of(varied.component, varied.variable, replace(varied.parameter, value=value))


def outside_in_words(varied: Varied, values: NDArray[Any]) -> str:
    """That values are outside of the range that the FMU declares; empty if they are not."""
    found = outside_range(varied.variable, values)
    return f"{OUTSIDE}: '{varied.component}.{varied.variable.name}' ({found})" if found else ""


def varied_values(
    names: Collection[str],
    given: dict[str, dict[str, Parameter]],
    description: SystemDescription,
    models: Mapping[str, Model],
    wiring: Wiring,
    conversions: Conversions,
) -> dict[str, tuple[Varied, ...]]:
    """Name → the variables that it sets, as a start value of this name does; all of them are given from now on.

    Parameters
    ----------
    given
        Component → variable → its start value; those that have none get the one of the modelDescription.

    Raises
    ------
    DescriptionError
        If there is no such variable, or another value of it would need another plan.
    """
    found: dict[str, tuple[Varied, ...]] = {}
    for name in names:
        varied = []
        for component, end in ends_of(name, None, description, models, wiring, conversions):
            variable = settable(component, models[component], end)
            _check_can_vary(component, variable, end, models[component])
            known = given[component].get(end.name)
            if known is None:
                known = given[component][end.name] = Parameter(end.name, _declared(variable, end))
            usual = values_of(component, variable, known)
            varied.append(Varied(component, variable, end, usual))
        found[name] = tuple(varied)
    return found


def _declared(variable: Variable, end: Parameter) -> Any:
    if variable.start is None:
        raise DescriptionError(
            f"{end.where}: '{variable.name}' has no start value that a run without one could take. Give one in "
            "start_values."
        )
    return list(variable.start) if variable.shape else variable.start[0]


def _check_can_vary(component: str, variable: Variable, end: Parameter, model: Model) -> None:
    contacts = (event.contact for event in model.events)
    if variable.causality is Causality.STRUCTURAL_PARAMETER:
        why = "it is a structural parameter: sizes of variables depend on it"
    elif variable.clock is not None:
        why = "it is a clock: its interval is part of the plan"
    elif any(c is not None and c.parameter == variable.name for c in contacts):
        why = "it chooses who computes the forces of contacts"
    elif variable.causality is Causality.OUTPUT:
        why = "it is an output, whose start value is used before it can be read"
    else:
        return
    raise DescriptionError(
        f"{end.where}: '{component}.{variable.name}' cannot vary between repeated runs, because {why}. Make a "
        "simulation for each value."
    )
