"""From the value of an output to that of an input: types, units and transformations, connection by connection.

Also from a start value that is given, as a text or as numbers, to the values of a variable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.system.adaptation import INPUT
from fmimaster.system.description import Connection, Endpoint, Parameter, SystemDescription
from fmimaster.system.model import DataType, Model, Transformation, Unit, Variable, is_lossless
from fmimaster.system.notes import Notes
from fmimaster.system.resolved import Link
from fmimaster.system.units import convert_units
from fmimaster.system.wiring import SINKS, Way, Wiring

_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def parse_value(variable: Variable, value: Any, where: str) -> NDArray[Any]:
    """A start value for a variable, from text, a number, or a sequence of them.

    Parameters
    ----------
    value
        One value for a scalar or for all elements; else as many as the variable has, in row-major order; a text for an
        array holds them separated by blanks. An item of an enumeration may be given by its name.
    where : str
        The value that is given, for messages: ``"start value of 'pump.p'"``.

    Returns
    -------
    shape (size,), dtype of the variable's type.

    Raises
    ------
    DescriptionError
        If a value is not of that type or out of its range, or the number of values is wrong.
    """
    elements = _elements(variable, value)
    if len(elements) not in (1, variable.size):
        raise DescriptionError(
            f"{where}: got {len(elements)} values, expected {variable.size}"
            f"{f' (shape {variable.shape})' if variable.shape else ''}."
        )
    values = np.array([_element(variable, e, where) for e in elements], variable.type.dtype)
    return values if len(values) == variable.size else np.repeat(values, variable.size)


def outside_range(variable: Variable, values: NDArray[Any]) -> str:
    """The first value that is outside of the declared minimum and maximum, in words with these; empty if there is none.

    Parameters
    ----------
    values : shape (size,)
        Of the variable.
    """
    if variable.min is None and variable.max is None:
        return ""
    least = -inf if variable.min is None else variable.min
    most = inf if variable.max is None else variable.max
    numbers = values.astype(float)
    outside = numbers[~((numbers >= least) & (numbers <= most))]
    if not outside.size:
        return ""
    if variable.max is None:
        expected = f"at least {least:.12g}"
    else:
        expected = (
            f"at most {most:.12g}" if variable.min is None else f"{least:.12g} to {most:.12g}"
        )
    return f"{outside[0]:.12g}, expected {expected}"


def _elements(variable: Variable, value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return value.split() if variable.shape and variable.type is not DataType.STRING else [value]
    if isinstance(value, bytes):
        return [value]
    return list(np.asarray(value, dtype=object).ravel())


def _element(variable: Variable, value: Any, where: str) -> Any:
    kind = variable.type
    try:
        if kind is DataType.STRING:
            return _checked(str, value)
        if kind is DataType.BINARY:
            return bytes.fromhex(value) if isinstance(value, str) else _checked(bytes, value)
        if kind is DataType.BOOLEAN:
            return _TRUTH[str(value).strip().lower()]
        if kind.is_float:
            return float(value)
        if variable.enumeration and isinstance(value, str) and value in variable.enumeration:
            return variable.enumeration[value]
        return _integer(kind, value)
    except (ValueError, TypeError, KeyError, OverflowError):
        raise DescriptionError(
            f"{where}: {value!r} is not a value of type {kind.value}.{_expected(variable, value)}"
        ) from None


def _checked(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _integer(kind: DataType, value: Any) -> int:
    number = int(value) if isinstance(value, str) else value
    if number != int(number):
        raise ValueError
    limits = np.iinfo(kind.dtype)
    if not limits.min <= number <= limits.max:
        raise OverflowError
    return int(number)


def _expected(variable: Variable, value: Any) -> str:
    if variable.enumeration:
        items = ", ".join(variable.enumeration)
        return f" Expected one of {items}, or its number.{did_you_mean(str(value), variable.enumeration)}"
    if variable.type is DataType.BOOLEAN:
        return " Expected true or false."
    if variable.type.is_integer:
        limits = np.iinfo(variable.type.dtype)
        return f" Expected an integer from {limits.min} to {limits.max}."
    return ""


class Conversions:
    """The conversions of a value along its connections.

    Each connection converts from the unit at its start to the unit at its end, unless that is suppressed, and applies its
    own transformation then. A connector of a system without a unit has the unit of the input that it feeds inside of
    the system, or otherwise the unit of its source.
    """

    def __init__(self, wiring: Wiring, models: Mapping[str, Model], notes: Notes) -> None:
        self._wiring = wiring
        self._models = models
        self._notes = notes
        self._units: dict[Endpoint, Unit | None] = {}

    def along(
        self, way: Way, given: Parameter | None = None
    ) -> tuple[Transformation, tuple[str, ...]]:
        """Product of all unit conversions and transformations along the connections, and notes about them.

        Parameters
        ----------
        given
            The parameter whose value is converted, if it is one: its unit and its transformation are applied first.

        Raises
        ------
        DescriptionError
            If two units have different dimensions, or only one end is a difference.
        """
        self._check_differences(way)
        product, notes = Transformation(), []
        relative = self._is_relative(way)
        unit = self.unit(way.start)
        if given is not None and given.unit is not None:
            where = given.where or f"Start value of '{given.name}'"
            if unit is not None:
                product, _ = convert_units(given.unit, unit, where, relative=relative)
            unit = unit or given.unit
        if given is not None:
            product = product.then(given.transformation)
        for connection in way.connections:
            is_known = self.unit(connection.end) is not None or connection.end == way.end
            target = self.unit(connection.end) if is_known else unit
            if not connection.suppress_unit_conversion and self._is_float(connection):
                text = self._wiring.text(connection.end)
                converted, note = convert_units(unit, target, text, relative=relative)
                product = product.then(converted)
                notes += [note] if note else []
            product = product.then(connection.transformation)
            unit = target
        if way.connections:
            check_finite(product, self._wiring.text(way.end))
        return product, tuple(notes)

    def unit(self, end: Endpoint) -> Unit | None:
        """Unit of a variable or connector; None if it has none or uses that of its source."""
        if end not in self._units:
            variable, connector = self._variable(end), self._wiring.connectors.get(end)
            own = variable or connector
            unit = None if own is None else own.unit
            if unit is None and connector is not None and connector.kind in SINKS:
                unit = self._unit_inside(end)
            self._units[end] = unit
        return self._units[end]

    def _unit_inside(self, end: Endpoint) -> Unit | None:
        """Unit of the inputs that a connector of a system feeds inside of it, if they have the same unit."""
        fed = [c.end for c in self._wiring.fed_directly(end) if self._is_float(c)]
        inside = dict.fromkeys(unit for unit in map(self.unit, fed) if unit is not None)
        if len(inside) > 1:
            self._notes.add(
                "connectors of systems have no unit, and feed inputs in several units; values are used in the unit "
                "of their source",
                f"'{end}'",
            )
        return next(iter(inside)) if len(inside) == 1 else None

    def _variable(self, end: Endpoint) -> Variable | None:
        model = self._models.get(end.element)
        return None if model is None else model.variable(end.connector)

    def _type(self, end: Endpoint) -> DataType | None:
        found = self._variable(end) or self._wiring.connectors.get(end)
        return None if found is None else found.type

    def _is_float(self, connection: Connection) -> bool:
        """Whether a value on a connection can have a unit."""
        types = (self._type(connection.start), self._type(connection.end))
        return all(kind is None or kind.is_float for kind in types)

    def _is_relative(self, way: Way) -> bool:
        ends = (self._variable(way.start), self._variable(way.end))
        return any(v.relative_quantity for v in ends if v is not None)

    def _check_differences(self, way: Way) -> None:
        source, target = self._variable(way.start), self._variable(way.end)
        if source is None or target is None or source.relative_quantity == target.relative_quantity:
            return
        explained = [v.unit and v.unit.exponents for v in (source, target)]
        suppressed = any(c.suppress_unit_conversion for c in way.connections)
        if None in explained or suppressed or not way.connections:
            return
        words = ["a difference" if v.relative_quantity else "none" for v in (source, target)]
        raise DescriptionError(
            f"{self._wiring.text(way.end)}: '{source.name}' is {words[0]} and '{target.name}' is {words[1]} "
            "(relativeQuantity), so the offset of their units is not defined. Connect variables of one kind, or "
            "switch the conversion off (suppressUnitConversion)."
        )


def between(
    source: Variable, target: Variable, text: str
) -> tuple[Transformation, tuple[str, ...]]:
    """Conversion of units between two variables that no connection of the description joins, and notes about it."""
    if not (source.type.is_float and target.type.is_float):
        return Transformation(), ()
    relative = target.relative_quantity
    transformation, note = convert_units(source.unit, target.unit, text, relative=relative)
    return transformation, (note,) if note else ()


def checked_link(link: Link, text: str, allow_lossy: bool) -> Link:
    """A link whose types and transformation fit, with notes about the conversion of types."""
    notes = _check_types(link.output, link.input, text, allow_lossy)
    check_transformation(link.input, link.transformation, text)
    return replace(link, notes=(*notes, *link.notes)) if notes else link


def _check_types(
    source: Variable, target: Variable, text: str, allow_lossy: bool
) -> tuple[str, ...]:
    """Notes about the conversion of types; a conversion that is not possible is refused."""
    ends = f"'{source.name}' and '{target.name}'"
    # FMI passes a scalar and an array of one element in the same way, and FMUs in use connect them
    if source.shape != target.shape and not source.size == target.size == 1:
        raise DescriptionError(
            f"{text}: shapes differ, {ends} are {source.shape or 'scalar'} and {target.shape or 'scalar'}. "
            "Connect variables of the same shape."
        )
    if source.type is target.type:
        return ()
    conversion = f"{source.type.value} to {target.type.value}"
    if not (source.type.is_numeric and target.type.is_numeric):
        raise DescriptionError(
            f"{text}: {conversion} cannot be converted. Connect variables of the same type."
        )
    if (source.type, target.type) == (DataType.FLOAT64, DataType.FLOAT32):
        return (f"{conversion}, rounded",)
    if is_lossless(source, target):
        return (conversion,)
    if allow_lossy:
        return (f"{conversion}, may lose values (allowed)",)
    raise DescriptionError(
        f"{text}: {conversion} can lose values. Connect variables of matching types, or allow it with "
        "allow_lossy_conversions (--allow-lossy-conversions)."
    )


def check_transformation(target: Variable, transformation: Transformation, text: str) -> None:
    """Refuse a linear transformation of anything but floating point numbers."""
    if not transformation.is_identity and not target.type.is_float:
        raise DescriptionError(
            f"{text}: a linear transformation needs a floating point target, '{target.name}' is "
            f"{target.type.value}. Transform at a Float64 input, or leave the transformation out."
        )


def check_finite(transformation: Transformation, text: str) -> None:
    """Refuse a transformation whose product with all unit conversions is NaN or too large."""
    if not (math.isfinite(transformation.factor) and math.isfinite(transformation.offset)):
        raise DescriptionError(
            f"{text}: all units and transformations together have the factor {transformation.factor:g} and the offset "
            f"{transformation.offset:g}. Expected finite numbers; correct a transformation or a unit."
        )


def with_units_of_sources(
    description: SystemDescription,
    models: Mapping[str, Model],
    wiring: Wiring,
    unit: Callable[[Endpoint], Unit | None],
) -> dict[str, Model]:
    """The models; all floating point variables of an element have the unit of the source of its input.

    Parameters
    ----------
    unit
        The unit of a variable or of a connector that takes values.
    """
    elements = {name for name, c in description.components() if c.adaptation is not None}

    def source(name: str) -> Endpoint:
        """The source of an element's input; not another element, whose unit is that of its own source."""
        passed = {name}
        while True:
            start = wiring.into(Endpoint(name, INPUT)).start
            if start.element not in elements or start.element in passed:
                return start
            passed.add(name := start.element)

    found = dict(models)
    for name in elements:
        if models[name].variable(INPUT) is None:
            continue
        of_source = unit(source(name))
        variables = (
            replace(v, unit=of_source) if v.type.is_float else v for v in models[name].variables
        )
        found[name] = replace(models[name], variables=tuple(variables))
    return found
