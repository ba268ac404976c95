"""Constraints as components: a position or velocity of two elements that must be equal, and the force that makes it so.

A constraint has inputs for the compared variables, and outputs for the force and for the differences. The solver of
algebraic loops finds the force for which a difference is 0 at the end of a step. As a component it needs no special case
in units, connections, results and listings. In an SSD it is an annotation: all components of SSP are FMUs or systems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path

from fmimaster.base.errors import DescriptionError
from fmimaster.system.declarations import Capabilities, Version
from fmimaster.system.description import (
    Component,
    Connection,
    Constraint,
    ConstraintEnd,
    Endpoint,
    Level,
    SystemDescription,
)
from fmimaster.system.model import (
    Causality,
    DataType,
    Initial,
    Model,
    Residual,
    Source,
    Transformation,
    Unit,
    Variability,
    Variable,
)
from fmimaster.system.wiring import Wiring

FORCE, GAP, SLIP = "force", "gap", "der(gap)"
"""Outputs of a constraint: the force at the first end, and the differences of positions and of velocities."""
SLOPE = "slope"
"""Local variable of a constraint: by how much a difference changes with the force, over the last step."""
INPUTS = {GAP: ("x1", "x2"), SLIP: ("v1", "v2")}
"""Each difference → the compared inputs, of the first and of the second end."""

_NO_FILE = Source(Path("(constraint)"), is_file=False)


def constraint_component(
    name: str, constraint: Constraint
) -> tuple[Component, tuple[Connection, ...]]:
    """The component of a constraint, and its connections.

    Raises
    ------
    DescriptionError
        If an end lacks a variable that is compared.
    """
    for level, pair in _compared(constraint).items():
        if bool(pair[0]) != bool(pair[1]):
            raise DescriptionError(
                f"Constraint '{name}': one end has a {level.value}, the other one has none. Name one of each, or none."
            )
    if not all(_compared(constraint)[constraint.level]):
        raise DescriptionError(
            f"Constraint '{name}' is on the level of {constraint.level.value}, but names none. Name an output of each end."
        )
    for end in constraint.ends:
        if not end.factor or not isfinite(end.factor):
            raise DescriptionError(
                f"Constraint '{name}': the force is multiplied by {end.factor:g}. Expected another factor."
            )
    if not constraint.tolerance > 0.0:
        raise DescriptionError(
            f"Constraint '{name}': the tolerance is {constraint.tolerance:g}. It must be positive."
        )
    into = [
        Connection(Endpoint(end.element, output), Endpoint(name, target))
        for level, outputs in _compared(constraint).items()
        for end, output, target in zip(
            constraint.ends, outputs, INPUTS[_DIFFERENCES[level]], strict=True
        )
        if output
    ]
    out_of = [
        Connection(
            Endpoint(name, FORCE),
            Endpoint(end.element, end.force),
            Transformation(sign * end.factor),
        )
        for end, sign in zip(constraint.ends, (1.0, -1.0), strict=True)
    ]
    return Component(name, _NO_FILE, constraint=constraint), (*into, *out_of)


def usual_level(first: ConstraintEnd, second: ConstraintEnd) -> Level:
    """The level of velocities if both ends have one: a force acts on velocities sooner, so it varies less from step to
    step."""
    return Level.VELOCITY if first.velocity and second.velocity else Level.POSITION


_DIFFERENCES = {Level.POSITION: GAP, Level.VELOCITY: SLIP}


def _compared(constraint: Constraint) -> Mapping[Level, tuple[str, str]]:
    """The outputs of both ends at each level; empty names for what is not known."""
    first, second = constraint.ends
    return {
        Level.POSITION: (first.position, second.position),
        Level.VELOCITY: (first.velocity, second.velocity),
    }


def constraint_model(constraint: Constraint) -> Model:
    """The model of a constraint. The force does not change within a step."""
    known = [level for level, outputs in _compared(constraint).items() if all(outputs)]
    inputs = [n for level in known for n in INPUTS[_DIFFERENCES[level]]]
    differences = {_DIFFERENCES[level]: frozenset(INPUTS[_DIFFERENCES[level]]) for level in known}
    variables = [_variable(n, k, Causality.INPUT, start=0.0) for k, n in enumerate(inputs)]
    force = _variable(FORCE, len(variables), Causality.OUTPUT, start=0.0)
    variables.append(replace(force, initial=Initial.EXACT))
    for difference in differences:
        made = _variable(difference, len(variables), Causality.OUTPUT)
        of = GAP if difference == SLIP and GAP in differences else None
        variables.append(replace(made, initial=Initial.CALCULATED, derivative_of=of))
    variables.append(_variable(SLOPE, len(variables), Causality.LOCAL, start=0.0))
    dependencies = {FORCE: frozenset[str](), **differences}
    return Model(
        name="constraint",
        fmi_version=Version("none (a constraint)"),
        variables=tuple(variables),
        dependencies=dependencies,
        initial_dependencies=dependencies,
        capabilities=Capabilities(
            can_get_and_set_fmu_state=True,
            can_serialize_fmu_state=True,
            can_handle_variable_communication_step_size=True,
        ),
        residuals={FORCE: Residual(_DIFFERENCES[constraint.level], SLOPE)},
    )


def _variable(
    name: str, reference: int, causality: Causality, start: float | None = None
) -> Variable:
    return Variable(
        name=name,
        value_reference=reference,
        type=DataType.FLOAT64,
        causality=causality,
        variability=Variability.CONTINUOUS,
        start=None if start is None else (start,),
    )


def with_units_of_ends(
    description: SystemDescription,
    models: Mapping[str, Model],
    wiring: Wiring,
    unit: Callable[[Endpoint], Unit | None],
) -> dict[str, Model]:
    """The models; those of constraints with the units of their first ends, to which the others are converted.

    An end can be a connector of a nested system: positions and velocities have the unit of the output that feeds it.

    Parameters
    ----------
    unit
        The unit of a variable or of a connector that takes values.
    """
    found = dict(models)
    for name, component in description.components():
        if component.constraint is None:
            continue
        units: dict[str, Unit | None] = {}
        for difference, (compared, other) in INPUTS.items():
            of_output = unit(wiring.into(Endpoint(name, compared)).start)
            units |= dict.fromkeys((compared, other, difference), of_output)
        first, outer = component.constraint.ends[0], name[: len(name) - len(component.name)]
        units[FORCE] = unit(Endpoint(outer + first.element, first.force))
        variables = (replace(v, unit=units.get(v.name)) for v in models[name].variables)
        found[name] = replace(models[name], variables=tuple(variables))
    return found
