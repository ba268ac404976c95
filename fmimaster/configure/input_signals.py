"""Signals from the user: tables and functions become a component that feeds the open inputs of a system."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmimaster.base.errors import FileError, OptionError, did_you_mean
from fmimaster.base.files import given_path
from fmimaster.configure.input_values import input_values
from fmimaster.fmu.load import Loader
from fmimaster.fmu.table import Function, SignalTable
from fmimaster.results import table as results
from fmimaster.results.csv import is_time, read_csv
from fmimaster.system.description import Component, Connector, Source
from fmimaster.system.model import Causality
from fmimaster.system.notes import listed
from fmimaster.system.resolve import feed_open_inputs
from fmimaster.system.resolved import OpenInput, ResolvedComponent, ResolvedSystem

_NAME = "input"
"""Name of the component."""

_NO_FILE = Source(Path("(input)"), is_file=False)

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

    def __reduce__(self) -> tuple[Any, ...]:
        # proxies do not pickle
        return type(self), (self.time, dict(self.columns), dict(self.functions))


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
    arrays: Mapping[str, Any], functions: Mapping[str, Function] = MappingProxyType({})
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
    return InputSignals(time, MappingProxyType(columns), MappingProxyType(dict(functions)))


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
    if column.ndim != 1:
        kind = "a single value; start_values sets constants" if column.ndim == 0 else "an array"
        raise OptionError(
            f"input: each time has one value, but '{name}' is {kind} of shape {column.shape}."
            if column.ndim
            else f"input: '{name}' is {kind}. Give one value for each time, or a function of time."
        )
    return _read_only(column.astype(object) if column.dtype.kind == "U" else column)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def input_names(system: ResolvedSystem, *, bare_names: bool) -> dict[str, list[OpenInput]]:
    """Names of the open inputs: ``"component.input"``, and the name of a connector of the root system.

    Parameters
    ----------
    bare_names : bool
        Whether the name of an input alone will do, as for a single FMU. It has priority: ``filter.u`` of an FMU
        ``filter`` with inputs ``u`` and ``filter.u`` is the latter, as for start values.
    """
    known: dict[str, list[OpenInput]] = {}
    for open_input in system.open_inputs:
        component = system.components[open_input.target].name
        names = (f"{component}.{open_input.input.name}", open_input.connector)
        for name in filter(None, names):
            known.setdefault(name, []).append(open_input)
    bare = {o.input.name: [o] for o in system.open_inputs} if bare_names else {}
    return {**known, **bare}


def attach_input(
    given: Input,
    system: ResolvedSystem,
    loader: Loader,
    *,
    bare_names: bool,
    ignore_further: bool = False,
) -> tuple[ResolvedSystem, Component, dict[float, frozenset[str]]]:
    """Connect signals to the open inputs with their names.

    Parameters
    ----------
    bare_names : bool
        As for :func:`input_names`.
    ignore_further : bool
        Whether signals without an open input are left out; otherwise they are an error.

    Returns
    -------
    The system with the signals as its last component, that component, and their jumps: time in s → names.

    Raises
    ------
    FileError, OptionError
        If a file is not a table, a signal has no open input, or no signal has one.
    """
    known = input_names(system, bare_names=bare_names)
    wrong: type[OptionError | FileError] = OptionError
    if isinstance(given, str | os.PathLike):
        path = given_path(given)
        signals, source = _read(path, known), Source(path.resolve())
        what, wrong = f"'{path}'", FileError
    else:
        signals, source, what = InputSignals.of(given), _NO_FILE, "input"
    chosen = _chosen(signals.names, known, what, ignore_further)
    of = {name: known[name][0].input for name in chosen}
    columns = {
        name: input_values(
            signals.time, name, signals.columns[name], of[name], lambda t: wrong(f"{what}: {t}")
        )
        for name in signals.columns
        if name in of
    }
    name = _NAME
    while name in {c.name for c in system.components}:
        name += "_"
    outputs = (Connector(n, Causality.OUTPUT, variable.type) for n, variable in of.items())
    component = Component(name, source, tuple(outputs))
    functions = {n: f for n, f in signals.functions.items() if n in of}
    types = {n: variable.type for n, variable in of.items()}
    table = SignalTable(name, signals.time, columns, types, functions)
    loader.use_table(component, table)
    resolved = ResolvedComponent(name, component.source, table.model, {}, is_input=True)
    fed = feed_open_inputs(system, resolved, {n: known[n] for n in (*columns, *functions)})
    return fed, component, table.jumps()


def _read(path: Path, known: Mapping[str, list[OpenInput]]) -> InputSignals:
    """The columns of a CSV file; those for integers are read as integers, without loss of digits."""
    integers = [name for name, (first, *_) in known.items() if first.input.type.is_integer]
    rows = read_csv(path)
    rows = read_csv(path, [n for n in integers if n in rows.columns])
    if not len(rows.time):
        raise FileError(f"'{path}' has a header and no rows. Give at least one row of values.")
    return InputSignals(rows.time, rows.columns)


def _chosen(
    names: Iterable[str],
    known: Mapping[str, list[OpenInput]],
    what: str,
    ignore_further: bool,
) -> list[str]:
    names = list(names)
    chosen = [name for name in names if name in known]
    for name in names if not (ignore_further and chosen) else ():
        if name not in known:
            where = f"Column '{name}' of {what}" if what != "input" else f"input: '{name}'"
            more = " ignore_further_columns (--ignore-further-columns) ignores such columns."
            raise OptionError(
                f"{where} is not an open input of the system.{did_you_mean(name, known)} Open inputs: "
                f"{listed(_shortest(known)) or 'none'}.{more if chosen else ''}"
            )
    return chosen


def _shortest(known: Mapping[str, list[OpenInput]]) -> list[str]:
    """One name for each open input: of a single FMU without the name of the component."""
    names: dict[tuple[int, str], str] = {}
    for name, inputs in known.items():
        for open_input in inputs:
            key = open_input.target, open_input.input.name
            names[key] = min(names.get(key, name), name, key=len)
    return list(dict.fromkeys(names.values()))
