"""Values that a user gives, converted to the type of a variable, or refused with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.system.model import DataType, Variable

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
    values = np.empty(variable.size, dtype=variable.type.dtype)
    for i, element in enumerate(elements):
        values[i] = _element(variable, element, where)
    if len(elements) == 1:
        values[:] = values[0]
    return values


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
