"""A CSV file as a component: each column is an output that follows the table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.instance import Instance, StepAnswer, Transfer
from fmimaster.system.model import (
    Capabilities,
    Causality,
    DataType,
    Initial,
    Model,
    Variability,
    Variable,
    Version,
)


class Table:
    """Signals over time.

    Parameters
    ----------
    time : shape (n,), non-decreasing, in s
        Two rows with the same time and different values define a discontinuity; from there on the later row is valid.
    columns : name → shape (n,)
    types : name → DataType
        Floating point signals are interpolated linearly, all others keep their value until the next row; before the
        first and after the last row the nearest value is used. A column without a type is Float64.

    A Float64 column ``u`` has a second output ``der(u)``, its slope to the right, so that it can be extrapolated.
    """

    def __init__(
        self,
        name: str,
        time: NDArray[np.float64],
        columns: Mapping[str, NDArray[Any]],
        types: Mapping[str, DataType],
    ) -> None:
        self.time = time
        self._times = time.tolist()
        self.columns = columns
        self._types = types
        variables = []
        for k, column in enumerate(columns):
            variables.append(_output(column, k, types.get(column, DataType.FLOAT64)))
        for k, column in enumerate(columns):
            if types.get(column, DataType.FLOAT64) is DataType.FLOAT64:
                slope = _output(f"der({column})", len(columns) + k, DataType.FLOAT64, column)
                variables.append(slope)
        self._signals = [
            (c, v.type.is_float, False) for c, v in zip(columns, variables, strict=False)
        ]
        self._signals += [(c, True, True) for c in columns]
        self.model = Model(
            name=name,
            fmi_version=Version("none (a table)"),
            model_identifier=name,
            instantiation_token="",
            variables=tuple(variables),
            dependencies={v.name: frozenset() for v in variables},
            initial_dependencies={v.name: frozenset() for v in variables},
            capabilities=Capabilities(
                can_get_and_set_fmu_state=True, can_handle_variable_communication_step_size=True
            ),
        )

    def jumps(self) -> dict[float, frozenset[str]]:
        """Time in s → columns that are discontinuous there: rows at one time with unequal values, and changes of signals
        that are held."""
        last = np.flatnonzero(np.append(np.diff(self.time) != 0, True))  # row of each distinct time
        first = np.append(0, last[:-1] + 1)
        found: dict[float, set[str]] = {}
        for column, is_float, is_slope in self._signals:
            if is_slope:
                continue
            values = self.columns[column]
            before = first if is_float else np.append(0, last[:-1])
            for k in np.flatnonzero(values[before] != values[last]).tolist():
                found.setdefault(float(self.time[last[k]]), set()).add(column)
        return {time: frozenset(found[time]) for time in sorted(found)}

    def moved(self, points: Mapping[float, float]) -> Table:
        """The same table, with the rows at each of these times at another time near it, also those between the two."""
        time = self.time.copy()
        for before, after in points.items():
            first = np.searchsorted(self.time, min(before, after), "left")
            last = np.searchsorted(self.time, max(before, after), "right")
            time[first:last] = after
        return Table(self.model.name, time, self.columns, self._types)

    def value(self, signal: int, time: float) -> float:
        """Value, from the right, of the signal with that value reference."""
        column, is_float, is_slope = self._signals[signal]
        values = self.columns[column]
        k = bisect_right(self._times, time) - 1  # the last row at or before this time
        outside = k < 0 or k + 1 == len(values)
        if is_slope and outside:
            return 0.0
        if not is_float or outside:
            return values[max(k, 0)]  # type: ignore[no-any-return]
        t0, t1 = self._times[k], self._times[k + 1]
        if is_slope:
            return (values[k + 1] - values[k]) / (t1 - t0)  # type: ignore[no-any-return]
        w0 = (t1 - time) / (t1 - t0)
        return w0 * values[k] + (1 - w0) * values[k + 1]  # type: ignore[no-any-return]


class TableInstance(Instance):
    """A table as an instance: its state is the time."""

    def __init__(self, table: Table, name: str) -> None:
        super().__init__(name, table.model)
        self._table = table
        self._time = 0.0
        self._places: dict[int, float] = {}

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these signals into ``values``."""
        del kind

        def read() -> None:
            for k, reference in enumerate(references):
                values[k] = self._table.value(reference, self._time)

        return read

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """Go to the start time."""
        self._time = start

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Go to the end of the step."""
        self._time = time + size
        return None

    def save(self, place: int) -> None:
        """Save the time."""
        self._places[place] = self._time

    def restore(self, place: int) -> None:
        """Restore the time."""
        self._time = self._places[place]


def _output(
    name: str, reference: int, kind: DataType, derivative_of: str | None = None
) -> Variable:
    return Variable(
        name=name,
        value_reference=reference,
        type=kind,
        causality=Causality.OUTPUT,
        variability=Variability.CONTINUOUS if kind.is_float else Variability.DISCRETE,
        initial=Initial.EXACT,
        derivative_of=derivative_of,
    )
