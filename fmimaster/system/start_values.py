"""Start values from all sources, checked and converted to the types of the variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.base.text import MOST_LISTED
from fmimaster.system.clocks import ClockAttributes, ClockInterval
from fmimaster.system.conversions import Conversions, check_finite, outside_range, parse_value
from fmimaster.system.description import Endpoint, Parameter, System, SystemDescription
from fmimaster.system.model import MOST_ELEMENTS, Causality, Initial, Model, Variability, Variable
from fmimaster.system.notes import Notes, meant
from fmimaster.system.units import convert_units
from fmimaster.system.wiring import Wiring

OUTSIDE = "start values are outside of the range that the FMU declares, where its behaviour is not defined"


def start_values(
    description: SystemDescription,
    models: Mapping[str, Model],
    wiring: Wiring,
    conversions: Conversions,
    given: Mapping[str, Any],
    notes: Notes,
    warnings: Notes,
) -> dict[str, dict[str, Parameter]]:
    """Component → variable → its start value and origin; those of the user override those of the description.

    A name is that of a component's variable, or of a connector of a system: then all variables that the connector feeds
    get the value. If several variables or connectors have the name, all of them get the value (SSP 2.0, 5.2.3).

    Parameters
    ----------
    models
        Full component name → model.
    given
        ``"component.variable"`` → value; in a system of one component the name of the variable is enough.

    Raises
    ------
    DescriptionError
        If a name given by the user is neither. Such a name in the description is ignored, because parameter sets may be
        larger than the system: with a warning if it is probably misspelt, otherwise with a note.
    """
    unknown: list[Parameter] = []
    found: dict[str, dict[str, Parameter]] = {name: {} for name in models}
    for component, start in _of_connectors(description, models, wiring):
        found[component][start.name] = start
    for parameter in described(description.system):
        ends = [*_variables(parameter, models), *_fed(parameter, wiring, conversions)]
        if not ends and parameter.must_fit:
            ends = [_missing(parameter, models, None)]
        elif not ends:
            unknown.append(parameter)
        for component, start in ends:
            found[component][start.name] = start
    _report_unknown(unknown, found, models, notes, warnings)
    for name, value in given.items():
        for component, start in ends_of(name, value, description, models, wiring, conversions):
            found[component][start.name] = start
    return found


def ends_of(
    name: str,
    value: Any,
    description: SystemDescription,
    models: Mapping[str, Model],
    wiring: Wiring,
    conversions: Conversions,
) -> Sequence[tuple[str, Parameter]]:
    """Components with what a start value of the user sets in them; see :func:`start_values`."""
    only = next(iter(models)) if len(models) == 1 else None
    full = f"{only}.{name}" if only and models[only].variable(name) else name
    parameter = Parameter(full, value, where=f"Start value of '{name}'")
    ends = [*_variables(parameter, models), *_fed(parameter, wiring, conversions)]
    return ends or [_missing(parameter, models, only if description.is_single_fmu else None)]


def _of_connectors(
    description: SystemDescription, models: Mapping[str, Model], wiring: Wiring
) -> Iterator[tuple[str, Parameter]]:
    """The intervals that connectors declare (SSP 2.0), for clocks whose interval is not the decision of the FMU, and
    that no output clock drives."""
    declared = [
        (Endpoint(name, c.name), c.interval)
        for name, component in description.components()
        for c in component.connectors
    ]
    declared += [
        (way.end, connector.interval)
        for end, connector in wiring.connectors.items()
        if connector.interval is not None
        for way in wiring.fed_by(str(end))
    ]
    for end, interval in declared:
        variable = models[end.element].variable(end.connector)
        clock = None if variable is None else variable.clock
        is_driven = wiring.into(end).start.element in models and end in wiring.fed
        if interval is not None and clock is not None and clock.takes_interval and not is_driven:
            yield end.element, Parameter(end.connector, interval, where=f"Connector '{end}'")


def _report_unknown(
    unknown: Sequence[Parameter],
    found: Mapping[str, Mapping[str, Parameter]],
    models: Mapping[str, Model],
    notes: Notes,
    warnings: Notes,
) -> None:
    """Notes about parameters without a variable; suggestions are searched only for those that are listed, to save
    time."""
    for k, parameter in enumerate(unknown):
        near = _meant(parameter.name, found, models) if k < MOST_LISTED else None
        if near is None:
            notes.add("parameters fit nothing in the system and are ignored", f"'{parameter.name}'")
        else:
            warnings.add(
                "parameters fit nothing in the system and are ignored. Correct the spelling",
                f"'{parameter.name}' (did you mean '{near}'?)",
                parameter.where,
            )


def _meant(
    name: str, found: Mapping[str, Mapping[str, Parameter]], models: Mapping[str, Model]
) -> str | None:
    """The variable that a misspelt name probably means; never one that has a value already, as in sets with 'mass1',
    'mass2'."""
    for component, model in models.items():
        if name.startswith(f"{component}."):
            free = [v.name for v in model.variables if v.name not in found[component]]
            given = name[len(component) + 1 :]
            twice, _, own = given.partition(".")  # sets of components do not repeat their names
            is_repeated = component.rpartition(".")[2] == twice and own in free
            near = own if is_repeated else meant(given, free)
            return None if near is None else f"{component}.{near}"
    component, dot, variable = name.partition(".")
    near = meant(component, models) if dot else None
    fits = near is not None and models[near].variable(variable) is not None
    return f"{near}.{variable}" if fits else None


def _variables(
    parameter: Parameter, models: Mapping[str, Model]
) -> Iterator[tuple[str, Parameter]]:
    """Components that have a variable of this name; several if there are components 'car' and 'car.engine'."""
    words = parameter.name.split(".")
    for k in range(1, len(words)):
        component, variable = ".".join(words[:k]), ".".join(words[k:])
        if component in models and models[component].variable(variable) is not None:
            yield component, parameter.renamed(variable)


def _fed(
    parameter: Parameter, wiring: Wiring, conversions: Conversions
) -> Iterator[tuple[str, Parameter]]:
    """Variables that a connector of this name feeds, with all conversions."""
    for way in wiring.fed_by(parameter.name):
        transformation, _ = conversions.along(way, parameter)
        yield (
            way.end.element,
            replace(parameter, name=way.end.connector, unit=None, transformation=transformation),
        )


def _missing(
    parameter: Parameter, models: Mapping[str, Model], only: str | None
) -> tuple[str, Parameter]:
    """The component in which the variable is missing, for a message with suggestions; of several, the one with the
    longest name."""
    fits = [name for name in models if parameter.name.startswith(f"{name}.")]
    if fits:
        component = max(fits, key=len)
        return component, parameter.renamed(parameter.name[len(component) + 1 :])
    if only:
        return only, parameter
    raise DescriptionError(
        f"{parameter.where}: '{parameter.name}' is neither 'component.variable' nor a connector of a system that feeds "
        f"something.{did_you_mean(parameter.name.partition('.')[0], models)}"
    )


def described(system: System, prefix: str = "") -> Iterator[Parameter]:
    """Parameters with their full names, from inner to outer systems: those of a system override those of its
    elements."""
    for component in system.components:
        for parameter in component.parameters:
            yield parameter.renamed(f"{prefix}{component.name}.{parameter.name}")
    for nested in system.systems:
        yield from described(nested, f"{prefix}{nested.name}.")
    for parameter in system.parameters:
        yield parameter.renamed(prefix + parameter.name)


def apply(
    component: str, model: Model, given: Mapping[str, Parameter]
) -> tuple[Model, dict[str, NDArray[Any]]]:
    """The model with the shapes that its structural parameters give it, and all start values as arrays.

    Raises
    ------
    DescriptionError
        If a variable does not exist, cannot have a start value, or cannot have this one.
    """
    holders = model.dimension_names
    structural = {
        name: int(values_of(component, settable(component, model, parameter), parameter)[0])
        for name, parameter in given.items()
        if name in holders
    }
    model = _resized(component, model, structural) if structural else model
    clocks = {n: p for n, p in given.items() if (v := model.variable(n)) and v.clock is not None}
    model = _scheduled(component, model, clocks) if clocks else model
    return model, {
        name: values_of(component, settable(component, model, parameter), parameter)
        for name, parameter in given.items()
        if name not in clocks
    }


def note_outside_range(
    component: str,
    model: Model,
    values: Mapping[str, NDArray[Any]],
    given: Mapping[str, Parameter],
    warnings: Notes,
) -> None:
    """Note start values outside of the range that the FMU declares: its behaviour is not defined then (FMI 3.0, 2.4.7)."""
    for name, array in values.items():
        variable = model.variable(name)
        if variable is not None and (found := outside_range(variable, array)):
            warnings.add(OUTSIDE, f"'{component}.{name}' ({found})", given[name].where)


def _scheduled(component: str, model: Model, given: Mapping[str, Parameter]) -> Model:
    """The model with the intervals that a user gives to its clocks: the start value of a clock is its interval."""

    def scheduled(variable: Variable) -> Variable:
        if variable.name not in given or variable.clock is None:
            return variable
        where = _where(component, given[variable.name])
        interval = ClockInterval.of(given[variable.name].value, where)
        _check_takes_interval(component, variable, variable.clock, where)
        return replace(variable, clock=variable.clock.scheduled(interval))

    return replace(model, variables=tuple(scheduled(v) for v in model.variables))


def _check_takes_interval(
    component: str, variable: Variable, clock: ClockAttributes, where: str
) -> None:
    name, kind = f"'{component}.{variable.name}'", clock.interval_variability.value
    if variable.causality is not Causality.INPUT:
        raise DescriptionError(
            f"{where}: the clock {name} is not an input (causality={variable.causality.value}): the FMU decides when it "
            "ticks. Give an interval to an input clock."
        )
    if not clock.takes_interval:
        raise DescriptionError(
            f"{where}: the FMU decides when the clock {name} ticks (intervalVariability={kind}"
            f"{', no interval is declared' if clock.interval is None else ''}). Only triggered input clocks, and fixed or "
            "tunable ones with a declared interval, take one. Leave it out."
        )


def received(parameter: Parameter, models: Mapping[str, Model]) -> tuple[NDArray[Any], str] | None:
    """What a variable gets from a described parameter, with the variable's unit; None if the name fits no variable.

    Parameters
    ----------
    parameter
        With the full name of the variable.
    models
        Full component name → model.

    Raises
    ------
    DescriptionError
        If the variable cannot have this value.
    """
    for component, start in _variables(parameter, models):
        variable = models[component].variable(start.name)
        if variable is not None and variable.clock is None:
            return values_of(
                component, variable, start
            ), variable.unit.name if variable.unit else ""
    return None


def _resized(component: str, model: Model, structural: Mapping[str, int]) -> Model:
    given = ", ".join(f"{name} = {size}" for name, size in structural.items())
    if min(structural.values()) < 0:
        raise DescriptionError(
            f"'{component}': a dimension is below 0 with {given}. Expected 0 or more."
        )
    resized = model.resized(structural)
    if sum(v.size for v in resized.variables) > MOST_ELEMENTS:
        raise DescriptionError(
            f"'{component}': all variables together have more than {MOST_ELEMENTS} elements with {given}. Give smaller "
            "values."
        )
    return resized


def settable(component: str, model: Model, parameter: Parameter) -> Variable:
    """The variable of a start value.

    Raises
    ------
    DescriptionError
        If there is none, or it takes no start value.
    """
    where = _where(component, parameter)
    variable = model.variable(parameter.name)
    if variable is None:
        raise DescriptionError(
            f"{where}: component '{component}' has no variable '{parameter.name}'."
            f"{did_you_mean(parameter.name, [v.name for v in model.variables])}"
        )
    settable = variable.causality is Causality.INPUT or variable.initial in (
        Initial.EXACT,
        Initial.APPROX,
    )
    if variable.variability is Variability.CONSTANT or not settable:
        initial = variable.initial.value if variable.initial else "none"
        raise DescriptionError(
            f"{where}: '{component}.{variable.name}' takes no start value (causality={variable.causality.value}, "
            f"variability={variable.variability.value}, initial={initial}). Set a parameter, an input, or a variable "
            "with initial=exact or approx."
        )
    return variable


def values_of(component: str, variable: Variable, parameter: Parameter) -> NDArray[Any]:
    """A start value as the variable gets it, shape (size,).

    Raises
    ------
    DescriptionError
        If the variable cannot have it.
    """
    where = _where(component, parameter)
    values = parse_value(variable, parameter.value, where)
    transformation = parameter.transformation
    if parameter.unit is not None and variable.type.is_float:
        relative = variable.relative_quantity
        converted, _ = convert_units(parameter.unit, variable.unit, where, relative=relative)
        transformation = converted.then(transformation)
    if transformation.is_identity:
        return values
    if not variable.type.is_float:
        raise DescriptionError(
            f"{where}: a linear transformation needs a floating point variable, "
            f"'{component}.{variable.name}' is {variable.type.value}. Give the value itself."
        )
    check_finite(transformation, where)
    return transformation.factor * values + transformation.offset


def _where(component: str, parameter: Parameter) -> str:
    return parameter.where or f"Start value of '{component}.{parameter.name}'"
