"""Signals from the user, for open inputs: tables, and functions of time."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.fmu.computed import Function
from fmimaster.results import table as results
from fmimaster.results.csv import is_time

_EXPECTED = (
    "the path of a CSV file, Results, a mapping of names to arrays (with 'time') or to functions of time, a structured "
    "array with a field 'time', or a DataFrame with the time as its index or as its column 'time'"
)


@dataclass(frozen=True, eq=False, repr=False)
class InputSignals:
    """Signals for open inputs: values over time, and functions of time.

    Parameters
    ----------
    time : shape (n,), in s
        Does not decrease. Two rows with the same time define a discontinuity. Empty if there are functions only.
    columns : name → shape (n,)
        A floating point signal is interpolated linearly between rows; all others keep their value until the next row.
    functions : name → function
        Each takes the time in s and returns the value there; the same value for the same time.
    """

    time: NDArray[np.float64]
    columns: Mapping[str, NDArray[Any]]
    functions: Mapping[str, Function] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> InputSignals:
        """The signals in what a user gives; arrays are copied.

        Raises
        ------
        OptionError
            If it is of another kind, or its parts do not fit together.
        """
        if isinstance(given, InputSignals):
            return given
        if isinstance(given, results.Table):
            return _of_arrays({"time": given.time, **given.columns})
        if isinstance(given, Mapping):
            functions = {name: f for name, f in given.items() if callable(f)}
            arrays = {name: v for name, v in given.items() if name not in functions}
            for name in given:
                if not isinstance(name, str):
                    raise OptionError(f"input: {name!r} is not a name. Give names as text.")
            if "time" in functions or ("time" in arrays and len(arrays) + len(functions) == 1):
                raise OptionError(
                    "input: 'time' holds the times of the arrays, and there are no signals. Add signals."
                )
            return _of_arrays(arrays, functions)
        if isinstance(given, np.ndarray) and given.dtype.names:
            return _of_arrays({name: given[name] for name in given.dtype.names})
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(given, pandas.DataFrame):
            return _of_arrays(_of_frame(given, pandas.RangeIndex))
        raise OptionError(f"input: an object of type {type(given).__name__}, expected {_EXPECTED}.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all signals."""
        return (*self.columns, *self.functions)

    @property
    def digest(self) -> str:
        """A hash of times and values, without functions."""
        found = hashlib.sha256(self.time.tobytes())
        for name, values in self.columns.items():
            found.update(repr((name, values.dtype.str, values.tolist())).encode())
        return found.hexdigest()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, InputSignals)
            and self.names == other.names
            and self.functions == other.functions
            and np.array_equal(self.time, other.time)
            and all(np.array_equal(v, other.columns[n]) for n, v in self.columns.items())
        )

    def __repr__(self) -> str:
        many = f", {len(self.time)} rows" if self.columns else ""
        span = f", {self.time[0]:g} s to {self.time[-1]:g} s" if len(self.time) else ""
        return f"<InputSignals: {', '.join(self.names)}{many}{span}>"


Input: TypeAlias = (
    str
    | os.PathLike[str]
    | InputSignals
    | results.Table
    | Mapping[str, ArrayLike | Callable[[float], Any]]
    | NDArray[Any]
    | Any
)
"""Types of input that are accepted; the last one is a DataFrame of pandas, which is not needed otherwise."""


def _of_arrays(
    arrays: Mapping[str, Any], functions: Mapping[str, Function] | None = None
) -> InputSignals:
    columns = {name: _copied(name, values) for name, values in arrays.items() if name != "time"}
    if not columns and not functions:
        raise OptionError(f"input: no signal is given. Expected {_EXPECTED}.")
    if columns and "time" not in arrays:
        raise OptionError(
            f"input: '{next(iter(columns))}' has values, but their times are missing. Add 'time', in s."
        )
    try:
        time = _read_only(_times(arrays.get("time", ())))
    except (TypeError, ValueError):
        raise OptionError(
            "input: 'time' has values that are not numbers. Give times in s."
        ) from None
    if time.ndim != 1:
        raise OptionError(f"input: 'time' has the shape {time.shape}; expected one axis, the rows.")
    for name, values in columns.items():
        if len(values) != len(time):
            raise OptionError(
                f"input: '{name}' has {len(values)} values, and 'time' has {len(time)}. Give one value for each time."
            )
    if not np.isfinite(time).all():
        raise OptionError("input: 'time' has NaN or infinite values. Give finite times in s.")
    if (late := np.flatnonzero(np.diff(time) < 0.0)).size:
        k = int(late[0])
        raise OptionError(
            f"input: 'time' decreases from {float(time[k])!r} s to {float(time[k + 1])!r} s between rows {k} and {k + 1}; "
            "expected increasing or repeated times."
        )
    return InputSignals(time, columns, functions or {})


def _of_frame(frame: Any, counted: type[Any]) -> dict[str, Any]:
    """The columns of a DataFrame, with its column ``time``, its index, or the column with a name of the time as times.

    ``counted`` is the type of an index that numbers the rows.
    """
    columns = {str(name): frame[name].to_numpy() for name in frame}
    index = frame.index
    if "time" in columns:
        return columns
    if not is_time(index.name) and index.dtype.kind in "iu":
        named = [name for name in columns if is_time(name)]
        if len(named) == 1:
            return {"time": columns.pop(named[0]), **columns}
        if isinstance(index, counted) and index.name is None:
            raise OptionError(
                "input: the DataFrame has no column 'time', and its index only numbers the rows. "
                "Add the column 'time', in s, or make the times its index."
            )
    return {"time": index.to_numpy(), **columns}


def _times(given: Any) -> NDArray[np.float64]:
    """Times as numbers; dates and durations of NumPy have other units than s."""
    if np.asarray(given).dtype.kind in "bcmM":
        raise TypeError
    return np.array(given, np.float64)


def _copied(name: str, values: Any) -> NDArray[Any]:
    try:
        column = np.ma.array(values) if np.ma.isMaskedArray(values) else np.array(values)
    except ValueError:
        raise OptionError(f"input: the values of '{name}' have unequal shapes.") from None
    if column.dtype.kind == "S":  # such an array drops zeros at the end of binary values
        column = np.array(values, object)
    if column.ndim > 1:
        raise OptionError(
            f"input: each time has one value, but '{name}' is an array of shape {column.shape}."
        )
    if not column.ndim:
        raise OptionError(
            f"input: '{name}' is a single value; start_values sets constants. Give one value for each time, or a function "
            "of time."
        )
    return _read_only(column.astype(object) if column.dtype.kind == "U" else column)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
