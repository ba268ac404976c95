"""States that are steady at the start: their start values are unknown, and their time derivatives are 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.system.model import DataType, Initial, Model
from fmimaster.system.notes import listed
from fmimaster.system.resolved import ResolvedComponent, ResolvedSystem


@dataclass(frozen=True, slots=True)
class SteadyState:
    """A state whose start value is unknown."""

    instance: int
    state: str
    derivative: str
    """Name of its time derivative, which must be 0."""


def steady_states(
    components: Sequence[ResolvedComponent], names: Iterable[str]
) -> tuple[SteadyState, ...]:
    """The states of these names, ``"component.state"``, in the order of their names.

    Raises
    ------
    OptionError
        If a name is not that of a state whose start value can be set, or has no time derivative.
    """
    known = {
        f"{component.name}.{state}": SteadyState(i, state, derivative)
        for i, component in enumerate(components)
        for state, derivative in _derivatives(component.model).items()
    }
    found = []
    for name in sorted(set(names)):
        if name not in known:
            raise OptionError(
                f"steady_states: '{name}' is not a state with a time derivative (type Float64, attribute derivative)."
                f"{did_you_mean(name, known)} Give names of states: component.state."
            )
        steady = known[name]
        model = components[steady.instance].model
        variable = model.variable(steady.state)
        if variable is None or variable.initial is not Initial.EXACT:
            raise OptionError(
                f"steady_states: the start value of '{name}' cannot be set, because its FMU calculates it (initial is not "
                "exact). Leave it out, or set the variables from which it is calculated."
            )
        found.append(steady)
    return tuple(found)


def with_start_values(system: ResolvedSystem, steady: Iterable[SteadyState]) -> ResolvedSystem:
    """The system with a start value for each of these states: its own, otherwise that of the FMU, otherwise 0."""
    added: dict[int, dict[str, NDArray[Any]]] = {}
    for s in steady:
        variable = system.components[s.instance].model.variable(s.state)
        assert variable is not None
        start = np.zeros(variable.size)
        start[:] = 0.0 if variable.start is None else variable.start
        added.setdefault(s.instance, {})[s.state] = start
    components = tuple(
        replace(c, start_values={**added[i], **c.start_values}) if i in added else c
        for i, c in enumerate(system.components)
    )
    return replace(system, components=components)


def steady_notes(
    components: Sequence[ResolvedComponent], steady: Sequence[SteadyState]
) -> Iterator[str]:
    """Notes about the search at the start."""
    if steady:
        names = listed(f"'{components[s.instance].name}.{s.state}'" for s in steady)
        verb = "starts" if len(steady) == 1 else "start"
        yield f"{names} {verb} in a steady state: fmimaster searches the value at which the time derivative is 0"


def _derivatives(model: Model) -> dict[str, str]:
    return {
        v.derivative_of: v.name
        for v in model.variables
        if v.derivative_of is not None
        and v.type is DataType.FLOAT64
        and (state := model.variable(v.derivative_of)) is not None
        and state.type is DataType.FLOAT64
        and state.size == v.size
    }
