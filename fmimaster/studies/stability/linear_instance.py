"""A linear model instead of an FMU, on which the programs of a run can be executed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.instance import Instance, Signal, StepAnswer, Transfer, UpdateAnswer
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.studies.stability.linear_fmu import LinearFmu
from fmimaster.system.model import DataType


class LinearInstance(Instance):
    """An instance that computes the deviations of an FMU from the point at which its responses were measured.

    Parameters
    ----------
    plan : Plan
    instance : int
    fmu : LinearFmu
        The measured linear model.

    Attributes
    ----------
    states : shape (states,)
        Empty before the first step, because their number is unknown until then.
    """

    def __init__(self, plan: Plan, instance: int, fmu: LinearFmu) -> None:
        planned, layout = plan.instances[instance], plan.layout
        super().__init__(planned.name, planned.model)
        self._fmu, self._responses = fmu, fmu.responses
        inputs = self._inputs = fmu.responses.inputs
        at = {slot: k for k, slot in enumerate(fmu.responses.outputs)}
        self._outputs_of: dict[int, list[int]] = {
            v.value_reference: [at.get(k, len(at)) for k in layout.elements(instance, [v])]
            for s in layout.segments(instance, Group.OUTPUTS)
            if s.type is DataType.FLOAT64
            for v in s.variables
        }
        self._outputs = np.zeros(len(at) + 1)  # the last one is for outputs that feed nothing
        self._held = np.zeros(inputs.n_continuous)
        self._shown = np.zeros(inputs.n_continuous)
        """The inputs to which the outputs belong."""
        self._discrete = np.zeros(inputs.discrete.stop - inputs.discrete.start)
        self._in_event_mode = False
        self._course: tuple[float, Signal] | None = None
        self.states = np.zeros(fmu.states)
        self._places: dict[int, tuple[Any, ...]] = {}

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """Outputs; those of other types than Float64 do not change."""
        if kind is not DataType.FLOAT64:
            return lambda: None
        chosen = [k for r in references for k in self._outputs_of[r]]

        def read() -> None:
            values[:] = self._outputs[chosen]

        return read

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """Inputs, held; those of other types than Float64 have no effect."""
        groups = self._inputs.references
        if kind is not DataType.FLOAT64 or tuple(references) not in groups.values():
            return lambda: None
        if tuple(references) == groups.get(Group.DISCRETE):
            return partial(np.copyto, self._discrete, values)

        def write() -> None:
            self._held[:] = values
            self._course = None
            if self._in_event_mode:
                self._outputs[:-1] += self._fmu.at_once @ (self._held - self._shown)
                self._shown[:] = self._held

        return write

    def polynomial_setter(self, references: Sequence[int]) -> Any:
        """Continuous inputs as polynomials."""
        del references

        def give(time: float, signal: Signal) -> None:
            self._course = time, signal

        return give

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        """Those of the FMU at the point."""
        partials = self._responses.partials(unknowns, knowns, (len(sensitivity), len(seed)))

        def derive() -> None:
            sensitivity[:] = partials @ seed

        return derive

    def enter_event_mode(self) -> None:
        """Outputs follow the inputs from now on."""
        self._in_event_mode = True

    def enter_step_mode(self) -> None:
        """Outputs stay as they are until the next step."""
        self._in_event_mode = False

    def update_discrete_states(self) -> UpdateAnswer:
        """There are no events."""
        return UpdateAnswer()

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """One step of the linear model for this step size."""
        step = self._fmu.step(size)
        given = np.zeros((self._inputs.degree + 1, len(self._held)))
        given[0] = self._held
        if self._course is not None:
            _, signal = self._course
            for k in range(len(given)):
                given[k] = signal(time, k) * (size**k / factorial(k))
        self._shown = given.sum(axis=0)
        w = np.concatenate([given.ravel(), self._discrete]) / self._responses.scale
        self._outputs[:-1] = step.exit @ self.states + step.direct @ w
        self.states = step.transition @ self.states + step.entry @ w
        return None

    def put_back(self, states: NDArray[np.float64]) -> None:
        """Set the states; the inputs and outputs are 0 then."""
        self.states = states.copy()
        self._course = None
        for array in self._arrays():
            array[:] = 0.0

    def save(self, place: int) -> None:
        """Save all that changes."""
        arrays = (array.copy() for array in self._arrays())
        self._places[place] = (self.states, self._course, *arrays)

    def restore(self, place: int) -> None:
        """Restore what was saved."""
        self.states, self._course, *arrays = self._places[place]
        for array, saved in zip(self._arrays(), arrays, strict=True):
            array[:] = saved

    def _arrays(self) -> tuple[NDArray[np.float64], ...]:
        return self._outputs, self._held, self._shown, self._discrete
