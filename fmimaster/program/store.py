"""The value store: the values of a run, used by programs and hooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.inputs.polynomial import (
    MOST_CANDIDATES,
    MOST_COEFFICIENTS,
    MOST_GIVEN,
    Polynomials,
    evaluate,
)
from fmimaster.plan.layout import Group, Layout
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType

Copy = tuple[NDArray[Any], ...]
"""The arrays of a value store, in their order."""

OutputCopy = tuple[dict[DataType, NDArray[Any]], NDArray[np.float64]]
"""Outputs per type, and the time in s at which those of each instance were read."""


class Courses:
    """Polynomials of continuous inputs over the interval: instance → polynomials, if its inputs are not held.

    All data are in arrays that the kernel uses directly.

    Attributes
    ----------
    degree : shape (n_instances,)
        Degree of the polynomials of each instance; -1 while its inputs are held.
    centre : shape (n_instances,)
        In s.
    coefficients : list of arrays, one per instance, shape (MOST_COEFFICIENTS, inputs)
        Row k holds the coefficients of ``(t - centre) ** k``; rows beyond the degree mean nothing.
    errors : list of arrays, one per instance, shape (inputs, MOST_CANDIDATES)
        Measured errors of adaptive polynomials, in the unit of the output; NaN while they are not known.
    measured : list of arrays, one per instance, shape (inputs,)
        Time in s of the point at which they were measured last; NaN before.
    lacking, given_from : lists of arrays, one per instance, shape (inputs, MOST_GIVEN)
        Half of the output minus the value of a compensated, held input, in the unit of the input; and the times in s
        since which it was held. NaN before.
    foreseen : list of arrays, one per instance, shape (inputs,)
        What the polynomial of an input that is held over halves of a step has at the end of that, in the unit of the input.
    """

    def __init__(self, n_inputs: Sequence[int]) -> None:
        self.degree = np.full(len(n_inputs), -1, np.intc)
        self.centre = np.zeros(len(n_inputs))
        self.coefficients = [np.zeros((MOST_COEFFICIENTS, n)) for n in n_inputs]
        self.errors = [np.full((n, MOST_CANDIDATES), nan) for n in n_inputs]
        self.measured = [np.full(n, nan) for n in n_inputs]
        self.lacking = [np.full((n, MOST_GIVEN), nan) for n in n_inputs]
        self.given_from = [np.full((n, MOST_GIVEN), nan) for n in n_inputs]
        self.foreseen = [np.zeros(n) for n in n_inputs]

    def get(self, instance: int) -> Polynomials | None:
        """A copy of the polynomials of an instance; None while its inputs are held."""
        degree = self.degree.item(instance)
        if degree < 0:
            return None
        coefficients = self.coefficients[instance][: degree + 1]
        return Polynomials(coefficients.copy(), self.centre.item(instance))

    def value(self, instance: int, time: float, highest: int | None) -> NDArray[np.float64]:
        """The inputs at a time, as an FMU has them that takes no derivatives beyond the highest; shape (inputs,).

        Parameters
        ----------
        highest
            As of :attr:`Model.highest_order`.
        """
        degree = self.degree.item(instance)
        taken = degree if highest is None else min(degree, highest)
        coefficients = self.coefficients[instance][: taken + 1]
        return evaluate(coefficients, time - self.centre.item(instance))

    def put(self, instance: int, polynomials: Polynomials) -> None:
        """The inputs of an instance follow polynomials."""
        rows = len(polynomials.coefficients)
        self.coefficients[instance][:rows] = polynomials.coefficients
        self.centre[instance] = polynomials.centre
        self.degree[instance] = rows - 1


def floats(values: Mapping[DataType, NDArray[Any]]) -> NDArray[Any]:
    """The Float64 outputs among all; a structure of a system that changes may have none."""
    return values.get(DataType.FLOAT64, np.zeros(0))


class ValueStore:
    """The values of a run: one array per type, the read times of each instance's outputs, and copies of all outputs.

    Parameters
    ----------
    layout : Layout
    n_instances, n_triggers : int
    n_buffers : int
        Buffers of KEEP.
    history : int
        Number of accepted points that are stored.

    partials : instance → (outputs, inputs)
        Shapes of the partial derivatives that are measured.

    Attributes
    ----------
    values : DataType → array of shape (size,)
        Allocated once; executors and FMUs use them directly.
    outputs : DataType → array
        The parts of them that hold the outputs of all instances.
    largest : shape (Float64 outputs,)
        Largest absolute value of each so far, updated when event indicators are evaluated: the scale for negligible
        values.
    read : shape (n_instances,)
        Time in s at which the outputs of each instance were read; NaN before. A polynomial through the wrong time would
        be an error of order one without a message.
    active : shape (n_triggers,)
        Which triggers are active.
    intervals : instance → Intervals
        Of its clocks in the group INTERVALS, in their order: what GET has read and nobody has taken yet.
    shifts : instance → array of shape (2, clocks)
        Numerators and denominators of the shifts in s of those of them whose FMU tells the shift; 0 / 0 for others.
    courses : Courses
        Polynomials of the continuous inputs of each instance.
    partials : instance → array of shape (outputs, inputs)
        Partial derivatives of outputs with respect to inputs that were measured by differences, see the plan's corrections.
    interval : (float, float)
        Begin and end in s of the interval of the present execution, for hooks.
    history : list of copies of the outputs
        The accepted points, newest first.
    buffers : list of copies of the outputs
        Copies made by KEEP, by number; without the history.
    """

    def __init__(
        self,
        layout: Layout,
        n_instances: int,
        n_buffers: int = 0,
        *,
        history: int = 0,
        n_triggers: int = 0,
        partials: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        self.values: dict[DataType, NDArray[Any]] = {
            kind: np.full(
                size,
                "" if kind is DataType.STRING else b"" if kind is DataType.BINARY else 0,
                dtype=kind.dtype,
            )
            for kind, size in layout.sizes.items()
        }
        self.outputs: dict[DataType, NDArray[Any]] = {
            kind: self.values[kind][:size] for kind, size in layout.output_sizes.items() if size
        }
        self.largest = np.zeros(layout.output_sizes.get(DataType.FLOAT64, 0))
        self.read = np.full(n_instances, np.nan)
        self.active = np.zeros(n_triggers, np.bool_)
        for segments in (groups.get(Group.TRIGGERS, ()) for groups in layout.groups):
            for s in segments:
                if s.type is DataType.CLOCK:  # set only to say that it is active
                    self.values[s.type][s.start : s.stop] = True
        self.intervals = {
            i: Intervals.of(sum(len(s.variables) for s in groups[Group.INTERVALS]))
            for i, groups in enumerate(layout.groups)
            if Group.INTERVALS in groups
        }
        self.shifts = {
            i: np.zeros((2, len(a.counter)), np.uint64) for i, a in self.intervals.items()
        }
        self.courses = Courses(
            [
                sum(s.stop - s.start for s in groups.get(Group.CONTINUOUS, ()))
                for groups in layout.groups
            ]
        )
        self.partials = {i: np.zeros(shape) for i, shape in (partials or {}).items()}
        self.interval = (nan, nan)
        self._present = self.outputs, self.read
        self.history = [self.copy_of_outputs() for _ in range(history)]
        self.buffers = [self.copy_of_outputs() for _ in range(n_buffers)]

    def copy_of_outputs(self) -> OutputCopy:
        """The present outputs and read times."""
        return {kind: array.copy() for kind, array in self.outputs.items()}, self.read.copy()

    def keep(self, buffer: int) -> None:
        """Outputs and read times → buffer."""
        _copy(self._present, self.buffers[buffer])

    def recall(self, buffer: int) -> None:
        """Outputs and read times ← buffer."""
        _copy(self.buffers[buffer], self._present)

    def revert(self, instance: int, slots: Sequence[tuple[DataType, slice]], buffer: int) -> None:
        """These outputs of an instance, and when they were read ← buffer."""
        values, read = self.buffers[buffer]
        for kind, slot in slots:
            self.outputs[kind][slot] = values[kind][slot]
        self.read[instance] = read[instance]

    def remember(self, buffer: int | None = None) -> None:
        """Outputs and read times, or those of a buffer, become the newest point of the history; the oldest is
        removed."""
        self.history.insert(0, self.history.pop())
        _copy(self._present if buffer is None else self.buffers[buffer], self.history[0])

    def forget(self) -> None:
        """No point of the history has a time any more."""
        for _, read in self.history:
            read[:] = np.nan

    def copy(self) -> Copy:
        """A copy of all data of the store that can change."""
        courses = self.courses
        used = zip(courses.coefficients, courses.degree, strict=True)
        return tuple(
            array.copy()
            for array in (*self._arrays(), *(rows[: degree + 1] for rows, degree in used))
        )

    def restore(self, copy: Copy) -> None:
        """Restore a :meth:`copy` of this store, or of a store of the same layout and sizes."""
        arrays = (*self._arrays(), *self.courses.coefficients)
        for array, saved in zip(arrays, copy, strict=True):
            array[: len(saved)] = saved

    def _arrays(self) -> Copy:
        courses = self.courses
        copies = [*self.history, *self.buffers]
        return (
            courses.degree,
            courses.centre,
            *courses.errors,
            *courses.measured,
            *courses.lacking,
            *courses.given_from,
            *courses.foreseen,
            *self.partials.values(),
            *self.values.values(),
            self.largest,
            self.read,
            self.active,
            *(array for intervals in self.intervals.values() for array in intervals.arrays),
            *(array for values, read in copies for array in (*values.values(), read)),
        )


def _copy(source: OutputCopy, target: OutputCopy) -> None:
    for kind, array in source[0].items():
        target[0][kind][:] = array
    target[1][:] = source[1]
