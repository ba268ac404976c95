"""The values of a signal that a user gives, checked and in the type of the input that they feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import FmimasterError
from fmimaster.system.model import DataType, Variable

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_ACCEPTED: dict[DataType, tuple[type, ...]] = {DataType.STRING: (str,), DataType.BINARY: (bytes,)}
"""Type of an input → types of values that it takes, if they are not numbers."""

_NUMERIC_KINDS = "biuf"
"""Kinds of NumPy's types that are numbers, without complex numbers, dates and durations."""

_At = Callable[..., FmimasterError]
"""Makes the error for a row, from its number, what the value is, and advice."""


def input_values(
    time: NDArray[np.float64],
    name: str,
    values: NDArray[Any],
    variable: Variable,
    wrong: Callable[[str], FmimasterError],
) -> NDArray[Any]:
    """The values of a signal, in the type of the input that it feeds.

    Parameters
    ----------
    time, values : shape (n,)
        Times in s.
    wrong
        Makes the error of a text.

    Raises
    ------
    FmimasterError
        That of ``wrong``: if a value is missing, is not finite, or has another type or size.
    """
    kind = variable.type
    if variable.shape:
        raise wrong(
            f"'{name}' is an array of shape {variable.shape}. Only scalar inputs can be given."
        )
    if not len(values):
        raise wrong(f"column '{name}' has no rows. Give at least one row of values.")

    def wrong_at(k: int, what: str, advice: str = "Give a number.") -> FmimasterError:
        return wrong(f"column '{name}' is {what} at t = {time[k]:g} s. {advice}")

    if np.ma.is_masked(values):
        raise wrong_at(int(np.ma.getmaskarray(values).argmax()), "empty")
    values = np.ma.getdata(values)
    is_text = values.dtype.kind == "O" and isinstance(values[0], str)
    if is_text is not (kind is DataType.STRING):
        given = "text" if is_text else "no text"
        raise wrong(f"column '{name}' has {given}, but the input has the type {kind.value}.")
    if kind in _ACCEPTED or values.dtype.kind not in _NUMERIC_KINDS:
        _check_types(values, _ACCEPTED.get(kind, _NUMBERS), kind, wrong_at)
    return _numbers(values, kind, wrong_at) if kind.is_numeric else values


def _check_types(
    values: NDArray[Any], accepted: tuple[type, ...], kind: DataType, wrong_at: _At
) -> None:
    for k, value in enumerate(values):
        # for NumPy a duration is an integer
        if not isinstance(value, accepted) or isinstance(value, np.timedelta64):
            raise wrong_at(k, repr(value), f"Expected a value of type {kind.value}.")


def _numbers(values: NDArray[Any], kind: DataType, wrong_at: _At) -> NDArray[Any]:
    """Numbers that the type has."""
    if values.dtype.kind == "O":
        given = values.tolist()
        is_exact = kind.is_integer and all(isinstance(value, int) for value in given)
        # an array of 0 and 2**64 - 1 would have floats, because NumPy gives the two numbers different types
        values = values if is_exact else np.array(given)
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        k = int(finite.argmin())
        raise wrong_at(k, "NaN" if np.isnan(values[k]) else "infinite")
    if values.dtype.kind == "b":
        return values.astype(np.float64) if kind.is_float else values
    if kind.is_float:
        return values
    limits = (0, 1)
    if kind.is_integer:
        limits = np.iinfo(kind.dtype).min, np.iinfo(kind.dtype).max
    for k, value in enumerate(values.tolist()):
        if value != int(value) or not limits[0] <= value <= limits[1]:
            raise wrong_at(k, f"{value}", f"Expected an integer from {limits[0]} to {limits[1]}.")
    return values.astype(kind.dtype) if values.dtype.kind == "O" else values
