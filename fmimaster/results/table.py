"""Rows and columns: an immutable table in memory, with names, units, time, events and statistics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import ColumnError, OptionError, did_you_mean, there_are
from fmimaster.record.causes import Activations, Event, Steps
from fmimaster.record.step_series import StepSeries
from fmimaster.results.columns import is_masked
from fmimaster.results.statistics import NO_RUN, Statistics

Self = TypeVar("Self", bound="Table")

FIRST = np.int32(0)
"""Superdense index of the first row at a time."""

_ROWS_AT_ONCE = 16_384
"""Rows whose times are compared at once: they fit into the cache of a core."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False, eq=False, repr=False)
class Table(Mapping[str, NDArray[Any]]):
    """An immutable table of what was recorded: rows are instants, columns are variables.

    It is a mapping from names to arrays with ``"time"`` as the first name, so that ``dict(table)`` and
    ``pandas.DataFrame(dict(table))`` work. ``len(table)`` is the number of names; the number of rows is :attr:`rows`.
    Equality is that of objects, because the equality of arrays is no single truth value.

    Arrays are used without a copy: the caller must not write to them any more.

    Parameters
    ----------
    time : shape (n,), in s
        Does not decrease; rows at the same time are the states before and after events.
    columns : name → shape (n,) or (n, *dims)
        Floats, integers, Booleans, or objects (``str`` and ``bytes`` of String and Binary); a masked array if values
        can be missing.
    units : name → unit
        Units of the columns that have one.
    index : shape (n,)
        Superdense index: 0 for the first row at a time, 1, 2, … for later ones; computed if None. It takes 4 bytes per
        row, and none if no time is repeated.
    statistics
        Numbers of steps and calls, and wall times; :data:`NO_RUN` if the table does not come from a run.
    metadata : name → value
        Origin of the table, as JSON values; for a run see :func:`fmimaster.prepare.prepared.run_metadata`.
    events, steps, activations
        Events between the rows, the cause of the end of each step, and the activations of time-based clocks; see
        :mod:`fmimaster.record.causes`. Steps of a long run that repeat, as with periodic clocks, are not kept one by one:
        they are made when they are read.
    intermediate : name of a component → Table
        Outputs inside of the steps of a component, at times of its own, if the run has recorded them.
    """

    time: NDArray[np.float64]
    columns: Mapping[str, NDArray[Any]]
    units: Mapping[str, str]
    index: NDArray[np.int32]
    statistics: Statistics
    metadata: Mapping[str, Any]
    events: tuple[Event, ...]
    steps: Sequence[Steps]
    activations: tuple[Activations, ...]
    intermediate: Mapping[str, Table]

    def __init__(
        self,
        *,
        time: ArrayLike,
        columns: Mapping[str, ArrayLike],
        units: Mapping[str, str] = MappingProxyType({}),
        index: ArrayLike | None = None,
        statistics: Statistics = NO_RUN,
        metadata: Mapping[str, Any] = MappingProxyType({}),
        events: Iterable[Event] = (),
        steps: Iterable[Steps] = (),
        activations: Iterable[Activations] = (),
        intermediate: Mapping[str, Table] = MappingProxyType({}),
    ) -> None:
        rows = _time(time)
        repeats = not _increases(rows)
        if repeats:
            _refuse_decreasing(rows)
        table = {name: _column(name, values, len(rows)) for name, values in columns.items()}
        if "time" in table:
            raise OptionError("A column is called 'time', which is the name of the time itself.")
        for name in units:
            if name not in table:
                near = did_you_mean(name, table)
                raise OptionError(f"A unit is given for '{name}', which is not a column.{near}")
        if index is not None:
            counted = np.asarray(index, np.int32)
        else:
            counted = _superdense_index(rows) if repeats else np.broadcast_to(FIRST, len(rows))
        assign = partial(object.__setattr__, self)
        assign("time", rows)
        assign("columns", MappingProxyType(table))
        assign("units", MappingProxyType(dict(units)))
        assign("index", _column("index", counted, len(rows)))
        assign("statistics", statistics)
        assign("metadata", MappingProxyType(dict(metadata)))
        assign("events", tuple(events))
        assign("steps", steps if isinstance(steps, StepSeries) else tuple(steps))
        assign("activations", tuple(activations))
        assign("intermediate", MappingProxyType(dict(intermediate)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, without ``"time"``."""
        return tuple(self.columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.time)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The values of a column, or the times in s: read-only, of shape ``(rows,)`` or ``(rows, *dims)``.

        Raises
        ------
        ColumnError
            If there is no such column; it is a :class:`KeyError` as well.
        """
        if name == "time":
            return self.time
        if name not in self.columns:
            raise ColumnError(name, self.columns)
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name == "time" or name in self.columns

    def __iter__(self) -> Iterator[str]:
        """Iterate over ``"time"`` and the names of the columns."""
        yield "time"
        yield from self.columns

    def __len__(self) -> int:
        """Number of names, with ``"time"``. The number of rows is :attr:`rows`."""
        return 1 + len(self.columns)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same object: equality of arrays is not a single truth value."""
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        span = f", {self.time[0]:g} s to {self.time[-1]:g} s" if self.rows else ""
        events = f", {len(self.events)} events" if self.events else ""
        return (
            f"<{type(self).__name__}: {self.rows} rows, {len(self.columns)} columns{span}{events}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor: proxies cannot be pickled, and arrays would become writable
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("columns", "units", "metadata", "intermediate"):
            state[name] = dict(state[name])
        return partial(type(self), **state), ()

    def select(self: Self, patterns: str | Sequence[str]) -> Self:
        """The table with only the columns that match, in the order of the patterns.

        Parameters
        ----------
        patterns
            Names or patterns: ``*`` matches any characters and ``?`` one character; brackets are literal: ``"x[1]"``.

        Returns
        -------
        Table
            A table of the same class, with the same rows.

        Raises
        ------
        OptionError
            If a pattern matches no column.
        """
        chosen = matching(patterns, self.columns)
        return replace(
            self,
            columns={name: self.columns[name] for name in chosen},
            units={name: self.units[name] for name in chosen if name in self.units},
        )

    def expand(self: Self) -> Self:
        """The table with array columns replaced by a column per element: ``x[1,1]``, ``x[1,2]``, ….

        Returns
        -------
        Table
            A table of the same class. Elements are in row-major order and counted from 1.
        """
        if all(values.ndim == 1 for values in self.columns.values()):
            return self
        columns, units = {}, {}
        for name, values in self.columns.items():
            for k in np.ndindex(values.shape[1:]):
                element = f"{name}[{','.join(str(i + 1) for i in k)}]" if k else name
                in_all_rows = (slice(None), *k)
                columns[element] = values[in_all_rows]
                if name in self.units:
                    units[element] = self.units[name]
        return replace(self, columns=columns, units=units)

    def to_structured(self) -> NDArray[Any]:
        """Structured array, as FMPy returns it.

        Returns
        -------
        shape (rows,)
            With ``"time"`` and the columns as fields; a masked array if a column is one.
        """
        masked = any(map(np.ma.isMaskedArray, self.columns.values()))
        made = np.ma.empty if masked else np.empty
        table: NDArray[Any] = made(self.rows, [(n, v.dtype, v.shape[1:]) for n, v in self.items()])
        for name, values in self.items():
            table[name] = values
        return table


def matching(patterns: str | Sequence[str], names: Iterable[str]) -> list[str]:
    """Names that match any of the patterns, in the order of the patterns, each once.

    :mod:`fnmatch` is not used, because it reads ``x[1]`` as ``x1``.
    """
    known, chosen = dict.fromkeys(names), dict[str, None]()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if pattern in known and {"*", "?"}.isdisjoint(pattern):  # of a run there may be thousands
            chosen[pattern] = None
            continue
        glob = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
        found = [name for name in known if re.fullmatch(glob, name, re.DOTALL)]
        if not found:
            near = did_you_mean(pattern, known) or there_are([*known])
            raise OptionError(f"No column of the results matches '{pattern}'.{near}")
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _time(values: ArrayLike) -> NDArray[np.float64]:
    if is_masked(values):
        raise OptionError("time has absent values; expected a number in each row.")
    time = np.asarray(values, np.float64)
    if time.ndim != 1:
        raise OptionError(f"time has the shape {time.shape}; expected one axis, the rows.")
    return _read_only(time)


def _increases(time: NDArray[np.float64]) -> bool:
    """Whether each time is after the one before."""
    return all((time[p][1:] > time[p][:-1]).all() for p in _parts(len(time)))


def _refuse_decreasing(time: NDArray[np.float64]) -> None:
    for part in _parts(len(time)):
        steps = np.diff(time[part])
        if not (steps >= 0.0).all():
            row = part.start + int(np.flatnonzero(~(steps >= 0.0))[0])
            raise OptionError(
                f"time decreases from {float(time[row])!r} s to {float(time[row + 1])!r} s"
                f" between rows {row} and {row + 1}; expected increasing or repeated times."
            )


def _column(name: str, values: ArrayLike, rows: int) -> NDArray[Any]:
    column = np.asanyarray(values)
    if column.shape[:1] != (rows,):
        raise OptionError(
            f"Column '{name}' has the shape {column.shape}; expected {rows} rows, as time has."
        )
    if column.dtype.kind == "U":
        column = column.astype(object)
    if column.dtype.kind not in "biufO":
        raise OptionError(
            f"Column '{name}' has the type {column.dtype};"
            " expected floats, integers, Booleans, or objects for text."
        )
    return _read_only(column)


def _superdense_index(time: NDArray[np.float64]) -> NDArray[np.int32]:
    index = np.zeros(len(time), np.int32)
    latest = 0
    for part in _parts(len(time)):
        rows = np.arange(part.start + 1, part.start + len(time[part]))
        is_first = time[part][1:] > time[part][:-1]
        first = np.maximum.accumulate(np.where(is_first, rows, latest))
        index[rows] = rows - first
        latest = int(first[-1])
    return index


def _parts(rows: int) -> Iterator[slice]:
    """Blocks of rows, each with the last row of the block before: arrays for all rows would need much memory."""
    for first in range(0, rows - 1, _ROWS_AT_ONCE):
        yield slice(first, first + _ROWS_AT_ONCE + 1)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view: NDArray[Any] = array.view()
    view.flags.writeable = False
    return view
