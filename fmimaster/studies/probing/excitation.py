"""How an FMU is excited and observed in a measurement: times, variables, inputs that vary, and the traces of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import inf, isfinite, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.system.conversions import parse_value
from fmimaster.system.declarations import Interface
from fmimaster.system.model import Causality, DataType, Model, Source, Variability, Variable

_USUAL_STEPS = 500
"""Steps of a run of an FMU that suggests no step size, as in a simulation."""
_USUAL_SPAN = 1.0
"""Length of the run in s if the FMU suggests none."""
_MOST_OBSERVED = 200
"""Most variables that are observed."""
_SHARE = 0.01
"""Amplitude of a varied input, relative to its magnitude."""
_PERIOD = 7
"""Number of steps for one radian of a varied input."""

_NUMBERS = frozenset(DataType) - {DataType.STRING, DataType.BINARY, DataType.CLOCK}


class MeasuredTimes(NamedTuple):
    """Times of a measured run in s."""

    start: float
    stop: float
    size: float


@dataclass(frozen=True, slots=True)
class Use:
    """The FMU that is measured, and how it is used; it can be passed to another process."""

    source: Source
    name: str
    """Name of its instance."""
    interface: Interface | None = None
    """None for the default one."""
    varied: bool = True
    """Whether the inputs vary from step to step."""


def times_of(model: Model) -> MeasuredTimes:
    """Start, stop and step of a run, by the default experiment."""
    said, fixed = model.default_experiment, model.capabilities.fixed_internal_step_size
    start, stop = said.start_time or 0.0, said.stop_time
    if stop is None or not (isfinite(stop) and stop > start):
        stop = start + _USUAL_SPAN
    size = said.step_size or fixed or (stop - start) / _USUAL_STEPS
    return MeasuredTimes(start, stop, size)


def observed_variables(model: Model) -> list[Variable]:
    """The outputs of an FMU that are numbers; if there are none, its local variables. Without clocked variables."""
    for causality in (Causality.OUTPUT, Causality.LOCAL):
        found = [
            v
            for v in model.with_causality(causality)
            if v.type in _NUMBERS and not v.clocks and v.variability is not Variability.CONSTANT
        ]
        if found:
            return found[:_MOST_OBSERVED]
    return []


def changeable_inputs(model: Model) -> list[Variable]:
    """Inputs that are numbers, without clocked ones."""
    inputs = model.with_causality(Causality.INPUT)
    return [v for v in inputs if v.type in _NUMBERS and not v.clocks]


class VariedValues:
    """Variables of one instance as one array of floating point numbers, however many types they have."""

    def __init__(
        self, variables: Sequence[Variable], bind: Callable[..., Callable[[], None]]
    ) -> None:
        self.variables = list(variables)
        self._parts: list[tuple[slice, NDArray[Any], Callable[[], None]]] = []
        at = 0
        for kind, group in groupby(self.variables, key=lambda v: v.type):
            chosen = list(group)
            size = sum(v.size for v in chosen)
            values = np.zeros(size, dtype=kind.dtype)
            transfer = bind(kind, [v.value_reference for v in chosen], values)
            self._parts.append((slice(at, at + size), values, transfer))
            at += size
        self.size = at

    def read(self) -> NDArray[np.float64]:
        """The present values of the FMU, in a new array."""
        found = np.zeros(self.size)
        for place, values, transfer in self._parts:
            transfer()
            found[place] = values
        return found

    def write(self, numbers: NDArray[np.float64]) -> None:
        """Set all variables."""
        for place, values, transfer in self._parts:
            values[:] = numbers[place]
            transfer()


def start_value(variable: Variable) -> NDArray[np.float64]:
    """Start value of an input, shape (elements,); 0 if it has none."""
    start = variable.start or (0,)
    values = parse_value(variable, start[0] if len(start) == 1 else start, variable.name)
    return values.astype(np.float64)


def varied(
    variable: Variable, rest: NDArray[np.float64], steps: int, number: int
) -> NDArray[np.float64]:
    """The value of an input before a step: a slow oscillation about its value at rest, within its limits.

    Parameters
    ----------
    steps : int
        Number of steps so far.
    number : int
        Number of the input; each has a phase of its own.
    """
    size = np.maximum(np.abs(rest), abs(variable.nominal))
    return np.clip(rest + _SHARE * size * sin(steps / _PERIOD + number), *_limits(variable))


def shifts(variable: Variable, rest: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Other values of an input: above and below the one at rest, within its limits; of a Boolean the other one."""
    if variable.type is DataType.BOOLEAN:
        return [1.0 - rest]
    if not variable.type.is_float:
        found = [rest + 1.0, rest - 1.0]
    else:
        size = np.maximum(np.abs(rest), abs(variable.nominal))
        found = [rest + _SHARE * size, rest - _SHARE * size, rest + size]
    if variable.enumeration is not None:
        found = [np.clip(v, *_ends(variable.enumeration.values())) for v in found]
    return [np.clip(v, *_limits(variable)) for v in found]


def _limits(variable: Variable) -> tuple[float, float]:
    """Smallest and largest value, also by the type."""
    least = -inf if variable.min is None else variable.min
    most = inf if variable.max is None else variable.max
    if not variable.type.is_float:
        of_type = np.iinfo(variable.type.dtype)
        least, most = max(least, float(of_type.min)), min(most, float(of_type.max))
    return least, most


def _ends(values: Iterable[int]) -> tuple[int, int]:
    known = sorted(values)
    return known[0], known[-1]


@dataclass(frozen=True, slots=True)
class StepTrace:
    """Values of the observed variables after each step, from the start on.

    Attributes
    ----------
    values : shape (1 + steps, elements)
    ended : str
        Why there are fewer steps than planned; empty if there are not.
    terminated : bool
        Whether the FMU has ended the simulation, which it may do.
    """

    values: NDArray[np.float64]
    ended: str = ""
    terminated: bool = False

    @classmethod
    def of(cls, rows: Sequence[NDArray[np.float64]]) -> StepTrace:
        """The trace with these rows."""
        return cls(np.array(rows))


def differences(
    names: Sequence[str],
    nominal: NDArray[np.float64],
    one: NDArray[np.float64],
    other: NDArray[np.float64],
) -> Mapping[str, float]:
    """Variable → largest relative difference of its elements, as far as both traces go; only those that differ."""
    rows = min(len(one), len(other))
    a, b = one[:rows], other[:rows]
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.maximum(np.abs(a), np.abs(b)), nominal)
        apart = np.abs(a - b) / size
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    apart = np.where(same, 0.0, np.where(np.isfinite(apart), apart, 1.0))
    largest = apart.max(axis=0, initial=0.0)
    found: dict[str, float] = {}
    for name, value in zip(names, largest.tolist(), strict=True):
        if value > 0.0:
            found[name] = max(found.get(name, 0.0), value)
    return found


def moved(names: Iterable[str], values: NDArray[np.float64]) -> int:
    """Number of variables that change along a trace."""
    changed = ~((values == values[:1]) | (np.isnan(values) & np.isnan(values[:1]))).all(axis=0)
    return len({name for name, has in zip(names, changed.tolist(), strict=True) if has})
