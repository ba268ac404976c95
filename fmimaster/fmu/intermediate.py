"""What happens inside of steps, in Intermediate Update Mode of FMI 3.0: outputs are read, and inputs are set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import isnan, nan
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.system.model import Causality, DataType, Model, Variability, Variable

Getter = Callable[[DataType, Sequence[int], NDArray[Any]], Callable[[], None]]
"""Makes a function that reads variables of one type into an array; see :meth:`Instance.getter`."""


class Decision(Protocol):
    """Decides inside of a step whether the FMU is to end it."""

    def __call__(self, begin: float, time: float, values: NDArray[np.float64]) -> float:
        """The time in s at which the FMU is requested to return early, NaN if it is not.

        Parameters
        ----------
        begin, time : float
            Start of the step, and time of the values, in s.
        values : shape (n,)
            The watched variables, in their order.
        """
        ...


class IntermediateOutputs:
    """Outputs of one instance that are read inside of its steps.

    Values from a step that is undone are dropped when the instance begins its next step.

    Parameters
    ----------
    recorded : variables
        Variables of which each intermediate value is kept.
    watched : variables
        Float64 scalars that ``decide`` takes.
    decide : Decision, optional
    """

    def __init__(
        self,
        recorded: Sequence[Variable] = (),
        watched: Sequence[Variable] = (),
        decide: Decision | None = None,
    ) -> None:
        self.recorded = tuple(sorted(recorded, key=lambda v: v.type.value))
        self._watched = tuple(watched)
        self._decide = decide
        self._begin = 0.0
        self._times: list[float] = []
        self._rows: list[list[NDArray[Any]]] = []
        self._reads: list[Callable[[], None]] = []
        self._values: list[NDArray[Any]] = []
        self._watched_values = np.zeros(len(self._watched))

    @property
    def references(self) -> tuple[int, ...]:
        """Value references of all of them."""
        return tuple(dict.fromkeys(v.value_reference for v in (*self.recorded, *self._watched)))

    def bind(self, getter: Getter) -> None:
        """Make the FMI calls ready."""
        self._reads, self._values = [], []
        for kind, chosen in groupby(self.recorded, key=lambda v: v.type):
            variables = tuple(chosen)
            values = np.zeros(sum(v.size for v in variables), kind.dtype)
            self._reads.append(getter(kind, [v.value_reference for v in variables], values))
            self._values.append(values)
        if self._watched:
            references = [v.value_reference for v in self._watched]
            self._reads.append(getter(DataType.FLOAT64, references, self._watched_values))

    def begin(self, time: float) -> None:
        """A step begins at this time in s: later values are from a step that was undone."""
        self._begin = time
        while self._times and self._times[-1] > time:
            self._times.pop()
            self._rows.pop()

    def take(self, time: float, can_return: bool) -> float:
        """Read the values of a time in s; returns the time at which the FMU is requested to return early, or NaN."""
        for read in self._reads:
            read()
        if self.recorded:
            self._times.append(time)
            self._rows.append([values.copy() for values in self._values])
        if self._decide is None or not can_return:
            return nan
        return self._decide(self._begin, time, self._watched_values)

    def table(self) -> tuple[NDArray[np.float64], dict[str, NDArray[Any]]]:
        """Times in s, shape (n,), and name → values, shape (n, *shape of the variable)."""
        n = len(self._times)
        times = np.array(self._times, np.float64)
        columns: dict[str, NDArray[Any]] = {}
        for k, (kind, chosen) in enumerate(groupby(self.recorded, key=lambda v: v.type)):
            block = np.array([row[k] for row in self._rows], kind.dtype)
            first = 0
            for v in chosen:
                part = block[:, first : first + v.size] if n else block
                columns[v.name] = part.reshape(n, *v.shape)
                first += v.size
        return times, columns


class InsideOfSteps:
    """What one instance does in Intermediate Update Mode, and what it failed in.

    Parameters
    ----------
    inputs
        Value references of the inputs that are set there.
    outputs : IntermediateOutputs or None
        The outputs that are read there.

    Attributes
    ----------
    refresh : function or None
        Sets the inputs at a time in s.
    failure : CallError or None
        The error of a call there; an exception cannot pass through the FMU, so the step raises it.
    """

    def __init__(self, inputs: tuple[int, ...], outputs: IntermediateOutputs | None) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.refresh: Callable[[float], None] | None = None
        self.failure: CallError | None = None

    @property
    def required(self) -> tuple[int, ...]:
        """Value references of all variables that the instance uses there."""
        return (*self.inputs, *(() if self.outputs is None else self.outputs.references))

    def bind(self, getter: Getter) -> None:
        """Make the FMI calls ready."""
        if self.outputs is not None:
            self.outputs.bind(getter)

    def update(
        self, _environment: Any, time: float, set_requested: bool, get_allowed: bool, *rest: Any
    ) -> None:
        """``IntermediateUpdateCallback``, which the FMU calls inside of a step."""
        _, can_return, early_return_requested, early_return_time = rest
        if early_return_requested:
            early_return_requested[0] = False
        until = nan
        if get_allowed and self.outputs is not None and self.failure is None:
            try:  # FMI 3.0, 4.2.1.3: nothing is read after an input was set
                until = self.read(nan, time, can_return)
            except CallError:  # an exception cannot pass through the FMU
                return
        if set_requested and self.refresh is not None and self.failure is None:
            try:
                self.refresh(time)
            except CallError as error:
                self.failure = error
        if not isnan(until) and early_return_requested and self.failure is None:
            early_return_requested[0] = True
            early_return_time[0] = until

    def read(self, begin: float, time: float, can_return: bool) -> float:
        """Read outputs; see :class:`fmimaster.fmu.kernel_entry.UpdateCallback`."""
        assert self.outputs is not None
        if not isnan(begin):
            self.outputs.begin(begin)
        try:
            return self.outputs.take(time, can_return)
        except CallError as error:
            self.failure = error
            raise

    def raise_if_failed(self) -> None:
        """Raise the error of a call in this mode, if there was one."""
        if self.failure is not None:
            raise self.failure

    def raise_failure(
        self, otherwise: Callable[[str, int, float], None]
    ) -> Callable[[str, int, float], None]:
        """Raises the error of a call in this mode, or that of the step."""

        def raise_it(function: str, status: int, step: float) -> None:
            self.raise_if_failed()
            otherwise(function, status, step)

        return raise_it


def inputs_in_steps(model: Model) -> tuple[int, ...]:
    """Value references of the inputs that are set in Intermediate Update Mode; nothing is read there."""
    if model.has_array_inputs:
        return ()
    return tuple(
        v.value_reference
        for v in model.variables
        if v.intermediate_update
        and v.causality is Causality.INPUT
        and v.variability is Variability.CONTINUOUS
        and v.type is DataType.FLOAT64
    )


def readable_inside(model: Model, names: Sequence[str]) -> tuple[Variable, ...]:
    """Those of these variables that can be read in Intermediate Update Mode."""
    if not model.capabilities.provides_intermediate_update:
        return ()
    chosen = (model.variable(name) for name in names)
    return tuple(
        v
        for v in chosen
        if v is not None
        and v.intermediate_update
        and v.causality is not Causality.INPUT
        and v.type is not DataType.CLOCK
    )
