"""The inputs of one FMU in a step: their slots, and the coefficients of their polynomials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.inputs.polynomial import Polynomials
from fmimaster.plan.layout import Group, Segment
from fmimaster.plan.plan import Plan
from fmimaster.prepare.prepared import Prepared
from fmimaster.program.instructions.inputs import Fit
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType


class InputSlots:
    """The Float64 inputs of one FMU that are set before each step.

    Their values in a step are a vector ``w``. First come the coefficients of continuous inputs, polynomials of the time
    since the start of the step in units of the step: power 0 of all inputs, then power 1, and so on. Then come the
    values of discrete inputs; some FMUs of FMI 2.0 declare all inputs as discrete.

    Attributes
    ----------
    continuous, discrete : slices of the Float64 values
    degree : int
        Degree of the polynomials passed to the FMU.
    """

    def __init__(self, prepared: Prepared, instance: int) -> None:
        plan = prepared.plan
        self._i = instance
        self._continuous = _segment(plan, instance, Group.CONTINUOUS)
        groups = input_groups(plan, instance)
        self._discrete = (
            _segment(plan, instance, Group.DISCRETE) if Group.DISCRETE in groups else None
        )
        self.continuous, self.discrete = map(_slice, (self._continuous, self._discrete))
        self.degree = max(
            (
                f.rows - 1
                for f in prepared.programs.attempt.instructions
                if isinstance(f, Fit) and f.instance == instance and not f.is_constant
            ),
            default=0,
        )

    @property
    def n_continuous(self) -> int:
        """Elements of the continuous inputs."""
        return len(range(self.continuous.start, self.continuous.stop))

    @property
    def size(self) -> int:
        """Length of ``w``."""
        n_discrete = len(range(self.discrete.start, self.discrete.stop))
        return self.n_continuous * (self.degree + 1) + n_discrete

    @property
    def references(self) -> Mapping[Group, tuple[int, ...]]:
        """Group → value references of its inputs."""
        both = (Group.CONTINUOUS, self._continuous), (Group.DISCRETE, self._discrete)
        return {group: s.value_references for group, s in both if s is not None}

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scale of each element of ``w``: the nominal value, or the present one if that is larger."""
        continuous, discrete = (
            np.maximum(list(_nominals(segment)), np.abs(values[slot]))
            for segment, slot in (
                (self._continuous, self.continuous),
                (self._discrete, self.discrete),
            )
        )
        return np.concatenate([np.tile(continuous, self.degree + 1), discrete])

    def put(
        self,
        store: ValueStore,
        present: NDArray[np.float64],
        change: NDArray[np.float64],
        time: float,
        size: float,
    ) -> None:
        """Set the inputs in the store to their present values and a change.

        Parameters
        ----------
        present
            All Float64 values.
        change
            A vector ``w`` that is added.
        time, size : float
            Start and size of the step in s.
        """
        n = self.n_continuous * (self.degree + 1)
        values = store.values.get(DataType.FLOAT64, np.zeros(0))
        coefficients = change[:n].reshape(self.degree + 1, self.n_continuous).copy()
        coefficients[0] += present[self.continuous]
        values[self.continuous] = coefficients[0]
        values[self.discrete] = present[self.discrete] + change[n:]
        store.courses.degree[self._i] = -1
        if self.degree > 0:
            powers = size ** np.arange(self.degree + 1)[:, np.newaxis]
            store.courses.put(self._i, Polynomials(coefficients / powers, time))


def input_groups(plan: Plan, instance: int) -> list[Group]:
    """The groups of connected inputs that are set before each step.

    If Event Mode is used, discrete inputs are excluded, because they change at events only.
    """
    event_mode = plan.instances[instance].event_mode
    groups = (Group.CONTINUOUS,) if event_mode else (Group.CONTINUOUS, Group.DISCRETE)
    return [group for group in groups if (instance, group) in plan.routes]


def _segment(plan: Plan, instance: int, group: Group) -> Segment | None:
    segments = plan.layout.segments(instance, group)
    return next((s for s in segments if s.type is DataType.FLOAT64), None)


def _slice(segment: Segment | None) -> slice:
    return slice(0, 0) if segment is None else slice(segment.start, segment.stop)


def _nominals(segment: Segment | None) -> Iterator[Any]:
    for variable in () if segment is None else segment.variables:
        for _ in range(variable.size):
            yield abs(variable.nominal or 1.0)
