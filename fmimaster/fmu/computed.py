"""Components that fmimaster computes itself, as instances: tables, functions of time, constraints.

So they have the order, conversions, polynomials and listing of an FMU, and are no special case in the loop.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from operator import itemgetter
from struct import Struct
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import ConstraintError, DescriptionError, SimulationError
from fmimaster.fmu.instance import Instance, StepAnswer, Transfer
from fmimaster.system.constraints import FORCE, GAP, INPUTS, SLIP, SLOPE
from fmimaster.system.conversions import parse_value
from fmimaster.system.declarations import Capabilities, Version
from fmimaster.system.model import Causality, DataType, Initial, Model, Variability, Variable

Function: TypeAlias = Callable[[float], Any]
"""Time in s → value of a signal."""


class SignalTable:
    """Signals over time.

    Parameters
    ----------
    time : shape (n,), non-decreasing, in s
        Two rows with the same time and different values define a discontinuity; from that time on the later row is
        valid.
    columns : name → shape (n,)
    types : name → DataType
        Floating point signals are interpolated linearly, all others keep their value until the next row; before the
        first and after the last row the nearest value is used. A column without a type is Float64.
    functions : name → function
        Further signals: each function is called with the present time in s whenever its output is read.
    discontinuous : names, optional
        Columns with an output ``left(u)``; by default those that are discontinuous somewhere.

    A Float64 column ``u`` has a second output ``der(u)``, its slope to the right, for extrapolation. A function has
    none. A column of any type that is discontinuous somewhere has an output ``left(u)``: the value at the end of a step
    without its discontinuities. That is the left limit at the first one in the step, if there is one.

    Attributes
    ----------
    signals : value reference → function
        Returns the right limit of the signal at a time in s.
    left : value reference → function
        Of the outputs with left limits: takes the start and the end of a step in s.
    """

    def __init__(
        self,
        name: str,
        time: NDArray[np.float64],
        columns: Mapping[str, NDArray[Any]],
        types: Mapping[str, DataType],
        functions: Mapping[str, Function] = MappingProxyType({}),
        discontinuous: Collection[str] | None = None,
    ) -> None:
        self.time = time
        self._times = time.tolist()
        self._last = np.flatnonzero(np.append(np.diff(time) != 0, True))
        """The last row of each distinct time."""
        self.columns = columns
        self._types = types
        self._functions = functions
        variables: list[Variable] = []
        self.signals: list[Function] = []

        def add(signal: Function, output: str, kind: DataType, of: str | None = None) -> None:
            variables.append(_output(output, len(variables), kind, of))
            self.signals.append(signal)

        for column, values in columns.items():
            kind = types.get(column, DataType.FLOAT64)
            add(partial(self._interpolated if kind.is_float else self._held, values), column, kind)
        for name, function in functions.items():
            kind = types.get(name, DataType.FLOAT64)
            variable = _output(name, len(variables), kind)
            add(partial(_value_of, function, variable), name, kind)
        for column, values in columns.items():
            if types.get(column, DataType.FLOAT64) is DataType.FLOAT64:
                add(partial(self._slope, values), f"der({column})", DataType.FLOAT64, column)
        self.left: dict[int, Callable[[float, float], Any]] = {}
        if discontinuous is None:
            discontinuous = frozenset[str]().union(*self.jumps().values())
        self._discontinuous = discontinuous
        for column in columns:
            if column in discontinuous:
                reference, kind = len(variables), types.get(column, DataType.FLOAT64)
                add(self.signals[list(columns).index(column)], f"left({column})", kind)
                variables[reference] = replace(variables[reference], left_limit_of=column)
                jumps = self._jumps_of(column)
                self.left[reference] = partial(_left, jumps, self.signals[reference])
        self.model = Model(
            name=name,
            fmi_version=Version("none (a table)"),
            variables=tuple(variables),
            dependencies={v.name: frozenset() for v in variables},
            initial_dependencies={v.name: frozenset() for v in variables},
            capabilities=Capabilities(
                can_get_and_set_fmu_state=True,
                can_serialize_fmu_state=True,
                can_handle_variable_communication_step_size=True,
            ),
        )

    def jumps(self) -> dict[float, frozenset[str]]:
        """Time in s → columns that are discontinuous there: rows at one time with different values, and changes of held
        signals."""
        found: dict[float, set[str]] = {}
        for column in self.columns:
            for time, _ in self._jumps_of(column):
                found.setdefault(time, set()).add(column)
        return {time: frozenset(found[time]) for time in sorted(found)}

    def _jumps_of(self, column: str) -> list[tuple[float, Any]]:
        """Times in s at which a column is discontinuous, each with the value before."""
        values, last = self.columns[column], self._last
        is_float = self._types.get(column, DataType.FLOAT64).is_float
        before = np.append(0, last[:-1] + 1 if is_float else last[:-1])
        changed = np.flatnonzero(values[before] != values[last])
        return [(self.time.item(last[k]), values[before[k]]) for k in changed]

    def moved(self, points: Mapping[float, float]) -> SignalTable:
        """The same table with the rows at each of these times moved to another time nearby, also the rows in
        between."""
        time = self.time.copy()
        for before, after in points.items():
            first = np.searchsorted(self.time, min(before, after), "left")
            last = np.searchsorted(self.time, max(before, after), "right")
            time[first:last] = after
        known = self._types, self._functions, self._discontinuous
        return SignalTable(self.model.name, time, self.columns, *known)

    def _row(self, time: float) -> int:
        """The last row at or before a time; -1 before the first one."""
        return bisect_right(self._times, time) - 1

    def _held(self, values: NDArray[Any], time: float) -> Any:
        return values[max(self._row(time), 0)]

    def _interpolated(self, values: NDArray[Any], time: float) -> Any:
        k = self._row(time)
        if k < 0 or k + 1 == len(values):
            return values[max(k, 0)]
        t0, t1 = self._times[k], self._times[k + 1]
        w0 = (t1 - time) / (t1 - t0)
        return w0 * values[k] + (1 - w0) * values[k + 1]

    def _slope(self, values: NDArray[Any], time: float) -> Any:
        k = self._row(time)
        if k < 0 or k + 1 == len(values):
            return 0.0
        return (values[k + 1] - values[k]) / (self._times[k + 1] - self._times[k])


def _left(jumps: Sequence[tuple[float, Any]], signal: Function, begin: float, end: float) -> Any:
    """The value before the first of these jumps in a step; without one, the value of the signal at its end."""
    k = bisect_right(jumps, begin, key=itemgetter(0))
    return jumps[k][1] if k < len(jumps) and jumps[k][0] <= end else signal(end)


def _value_of(function: Function, variable: Variable, time: float) -> Any:
    """The value of a function of the user.

    Raises
    ------
    SimulationError
        If it raises an exception, or returns a value of another type.
    """
    where = f"The function for the input '{variable.name}'"
    try:
        value = function(time)
    except (Exception, SystemExit) as error:  # sys.exit() would lose the rows
        raise SimulationError(
            f"{where} raised {type(error).__name__} at t = {time:.12g} s: {error}", time=time
        ) from error
    if isinstance(value, float) and variable.type is DataType.FLOAT64 and isfinite(value):
        return value  # the usual case, in a tenth of the time
    try:
        (parsed,) = parse_value(variable, value, f"{where} at t = {time:.12g} s")
    except DescriptionError as error:
        raise SimulationError(str(error), time=time) from None
    if variable.type.is_float and not isfinite(parsed):
        raise SimulationError(
            f"{where} returned {parsed} at t = {time:.12g} s. Return a finite number.", time=time
        )
    return parsed


_TIME = Struct("<d")
"""The serialized state of a table."""


class TableInstance(Instance):
    """A table as an instance: its state is the time."""

    def __init__(self, table: SignalTable, name: str) -> None:
        super().__init__(name, table.model)
        self._table = table
        self._time = self._begin = 0.0
        self._places: dict[int, float] = {}

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these signals into ``values``."""
        del kind
        signals = [self._table.signals[reference] for reference in references]
        of_step = self._table.left
        left = [(k, of_step[r]) for k, r in enumerate(references) if r in of_step]

        def read() -> None:
            for k, signal in enumerate(signals):
                values[k] = signal(self._time)
            for k, limit in left:
                values[k] = limit(self._begin, self._time)

        return read

    can_reset = True

    def reset(self) -> None:
        """Nothing remains of a run that the next one does not replace."""

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """Go to the start time."""
        self._time = self._begin = start

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Go to the end of the step."""
        self._begin, self._time = time, time + size
        return None

    def save(self, place: int) -> None:
        """Save the time."""
        self._places[place] = self._time

    def restore(self, place: int) -> None:
        """Restore the time."""
        self._time = self._begin = self._places[place]

    def serialized(self) -> bytes:
        """The time."""
        return _TIME.pack(self._time)

    def deserialize(self, state: bytes) -> None:
        """Restore the time."""
        (self._time,) = _TIME.unpack(state)
        self._begin = self._time


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


_LEFT = {FORCE, SLOPE}
"""Outputs that the solver writes into the value store; reading leaves them unchanged."""


class ConstraintInstance(Instance):
    """Differences of positions and of velocities.

    The force is an unknown of a loop. The solver writes it into the value store, and reading the outputs leaves it
    unchanged; only in Initialization Mode the instance provides its start value.

    Parameters
    ----------
    tolerance : float
        Largest difference of positions and velocities at the start.
    """

    def __init__(self, name: str, model: Model, tolerance: float) -> None:
        super().__init__(name, model)
        self._tolerance = tolerance
        self._names = {v.value_reference: v.name for v in model.variables}
        self._values: dict[str, float] = {}
        self._places: dict[int, dict[str, float]] = {}
        self._is_started = False
        self.reset()

    can_reset = True

    def reset(self) -> None:
        """No value is known, and the initialization is to come."""
        self._values.update((v.name, 0.0) for v in self.model.variables if v.start is not None)
        self._is_started = False

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads the differences, and in Initialization Mode the force."""
        del kind
        names = [self._names[reference] for reference in references]

        def read() -> None:
            for k, name in enumerate(names):
                if name in INPUTS:
                    values[k] = self._difference(name)
                elif name not in _LEFT or not self._is_started:
                    values[k] = self._values[name]

        return read

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets the compared inputs, or the start value of the force."""
        del kind
        names = [self._names[reference] for reference in references]

        def write() -> None:
            self._values.update(zip(names, values.tolist(), strict=True))

        return write

    def _difference(self, name: str) -> float:
        first, second = INPUTS[name]
        return self._values[first] - self._values[second]

    def enter_step_mode(self) -> None:
        """End of the initialization: the ends must agree, because no smooth force could bring them together.

        Raises
        ------
        ConstraintError
            If they do not.
        """
        self._is_started = True
        known = [name for name in INPUTS if self.model.variable(name) is not None]
        differences = {name: self._difference(name) for name in known}
        if all(abs(d) <= self._tolerance for d in differences.values()):
            return
        what = {GAP: "positions", SLIP: "velocities"}
        found = " and ".join(
            f"the {what[name]} of its ends differ by {d:.6g}"
            for name, d in differences.items()
            if not abs(d) <= self._tolerance
        )
        raise ConstraintError(
            f"The constraint '{self.name}' is not met at the start: {found}. They may differ by {self._tolerance:g}, "
            "because a force that removes a difference within one step does not decay. Change start "
            "values of the "
            "components at its ends.",
            constraint=self.name,
            differences=differences,
        )

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Nothing changes with time."""
        return None

    def save(self, place: int) -> None:
        """Save the compared values."""
        self._places[place] = dict(self._values)

    def restore(self, place: int) -> None:
        """Restore the compared values."""
        self._values.update(self._places[place])

    def serialized(self) -> bytes:
        """The compared values."""
        return json.dumps(self._values).encode()

    def deserialize(self, state: bytes) -> None:
        """Restore the compared values."""
        self._values.update(json.loads(state))
