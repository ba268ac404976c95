"""The signals that a user gives become a component that feeds the open inputs of a system."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import FileError, FmimasterError, OptionError, did_you_mean
from fmimaster.base.files import given_path
from fmimaster.base.text import listed
from fmimaster.configure.input_signals import Input, InputSignals
from fmimaster.fmu.computed import SignalTable
from fmimaster.fmu.load import Loader
from fmimaster.results.csv import read_csv
from fmimaster.system.description import Component, Connector
from fmimaster.system.model import Causality, DataType, Source, Variable
from fmimaster.system.resolve import feed_open_inputs
from fmimaster.system.resolved import OpenInput, ResolvedComponent, ResolvedSystem

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_ACCEPTED: dict[DataType, tuple[type, ...]] = {DataType.STRING: (str,), DataType.BINARY: (bytes,)}
"""Type of an input → types of values that it takes, if they are not numbers."""

_NUMERIC_KINDS = "biuf"
"""Kinds of NumPy's types that are numbers, without complex numbers, dates and durations."""

_At = Callable[..., FmimasterError]
"""Makes the error for a row, from its number, what the value is, and advice."""


def _input_values(
    time: NDArray[np.float64],
    name: str,
    values: NDArray[Any],
    variable: Variable,
    wrong: Callable[[str], FmimasterError],
) -> NDArray[Any]:
    """The values of a signal at these times in s, in the type of the input that it feeds.

    ``wrong`` makes the error if a value is missing, is not finite, or has another type or size.
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


_NAME = "input"
"""Name of the component."""

_NO_FILE = Source(Path("(input)"), is_file=False)


def _open_inputs(system: ResolvedSystem, bare_names: bool) -> dict[str, list[OpenInput]]:
    """Names of the open inputs: ``"component.input"``, the name of a connector of the root system, and bare names.

    A bare name has priority: ``filter.u`` of an FMU ``filter`` with inputs ``u`` and ``filter.u`` is the latter, as for
    start values.
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
    absent: Collection[str] | None = None,
) -> tuple[ResolvedSystem, Component | None, list[str]]:
    """Connect signals to the open inputs with their names.

    Parameters
    ----------
    bare_names : bool
        Whether the name of an input alone will do, as for a single FMU.
    ignore_further : bool
        Whether signals without an open input are left out; otherwise they are an error.
    absent
        Of one of several structures: the components that exist in others only. Any signals can then be left out.

    Returns
    -------
    The system with the signals as its last component; that component, or None if all are left out; those left out.

    Raises
    ------
    FileError, OptionError
        If a file is not a table, a signal has no open input, or no signal has one.
    """
    known = _open_inputs(system, bare_names)
    wrong: type[OptionError | FileError] = OptionError
    if isinstance(given, str | os.PathLike):
        path = given_path(given)
        signals, source = _read(path, known), Source(path.resolve())
        what, wrong = f"'{path}'", FileError
    else:
        signals, source, what = InputSignals.of(given), _NO_FILE, "input"
    chosen = [name for name in signals.names if name in known]
    left_out = [name for name in signals.names if name not in known]
    if left_out and absent is None and not (ignore_further and chosen):
        raise _no_open_input(left_out[0], known, what, others_fit=bool(chosen))
    if not chosen:
        return system, None, left_out
    of = {name: known[name][0].input for name in chosen}
    columns = {
        name: _input_values(
            signals.time, name, signals.columns[name], of[name], lambda t: wrong(f"{what}: {t}")
        )
        for name in signals.columns
        if name in of
    }
    name = _NAME
    while name in {c.name for c in system.components}.union(absent or ()):
        name += "_"
    outputs = (Connector(n, Causality.OUTPUT, variable.type) for n, variable in of.items())
    component = Component(name, source, tuple(outputs))
    functions = {n: f for n, f in signals.functions.items() if n in of}
    types = {n: variable.type for n, variable in of.items()}
    table = SignalTable(name, signals.time, columns, types, functions)
    loader.use_table(component, table)
    resolved = ResolvedComponent(name, component.source, table.model, {}, is_input=True)
    fed = feed_open_inputs(system, resolved, {n: known[n] for n in (*columns, *functions)})
    return fed, component, left_out


def _read(path: Path, known: Mapping[str, list[OpenInput]]) -> InputSignals:
    """The columns of a CSV file; those for integers are read as integers, without loss of digits."""
    integers = [name for name, (first, *_) in known.items() if first.input.type.is_integer]
    rows = read_csv(path)
    rows = read_csv(path, [n for n in integers if n in rows.columns])
    if not len(rows.time):
        raise FileError(f"'{path}' has a header and no rows. Give at least one row of values.")
    return InputSignals(rows.time, rows.columns)


def _no_open_input(
    name: str, known: Mapping[str, list[OpenInput]], what: str, *, others_fit: bool
) -> OptionError:
    where = f"Column '{name}' of {what}" if what != "input" else f"input: '{name}'"
    more = " ignore_further_columns (--ignore-further-columns) ignores such columns."
    return OptionError(
        f"{where} is not an open input of the system.{did_you_mean(name, known)} Open inputs: "
        f"{listed(_shortest(known)) or 'none'}.{more if others_fit else ''}"
    )


def _shortest(known: Mapping[str, list[OpenInput]]) -> list[str]:
    """One name for each open input: of a single FMU without the name of the component."""
    names: dict[tuple[int, str], str] = {}
    for name, inputs in known.items():
        for open_input in inputs:
            key = open_input.target, open_input.input.name
            names[key] = min(names.get(key, name), name, key=len)
    return list(dict.fromkeys(names.values()))
