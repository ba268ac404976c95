"""Responses of the outputs of one FMU to pulses at its inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import SimulationError
from fmimaster.plan.layout import Group
from fmimaster.studies.stability.experiments import Experiments, InputSlots
from fmimaster.system.model import DataType

_AMPLITUDES = (1.0, 1e-2, 1e-4, 1e-6)
"""Sizes of pulses that are tried, as parts of the nominal value or the present one, whichever is larger."""

_PROPORTIONAL = 1e-9
"""Responses that differ by less from being proportional are taken at once."""

_ROUNDED = 8
"""Units in the last place by which an output of an FMU may be rounded."""

_COMPARED = 5
"""Steps of the responses by which pulses of different sizes are compared."""


class Responses:
    """One FMU: what its inputs do to its outputs.

    Attributes
    ----------
    inputs : InputSlots
    scale : shape (inputs.size,)
        What is large for each coefficient of the inputs: responses are those to pulses of this size.
    outputs : indices of the Float64 values
        Those of its outputs that feed inputs.
    noise : float
        Relative difference between responses to pulses of different sizes, and in different steps, for steps of the size
        that was compared last: 0 for a linear FMU.
    """

    def __init__(self, experiments: Experiments, instance: int) -> None:
        plan = experiments.prepared.plan
        self._experiments, self._i = experiments, instance
        self.name = plan.instances[instance].name
        self.inputs = InputSlots(experiments.prepared, instance)
        slots = (
            slot
            for (_, group), routes in plan.routes.items()
            if group in (Group.CONTINUOUS, Group.DISCRETE)
            for route in routes
            if route.link.source == instance and route.source_type is DataType.FLOAT64
            for slot in (route.source, *route.derivatives)
        )
        self.outputs = sorted({k for slot in slots for k in range(slot.start, slot.stop)})
        self._present = experiments.values.get(DataType.FLOAT64, np.zeros(0))
        self.scale = self.inputs.scale(self._present)
        self._largest = np.zeros(len(self.outputs))
        self.noise = 0.0
        self._amplitude: float | None = None
        self._disproportion = 0.0

    def pulses(self, sizes: Sequence[float], at: int = 0) -> NDArray[np.float64]:
        """Responses of the outputs to each coefficient of the inputs in one of these steps, for pulses of :attr:`scale`.

        Parameters
        ----------
        sizes
            Of the steps, in s.
        at
            Number of the step with the pulse.

        Returns
        -------
        shape (steps from that on, outputs, coefficients)
        """
        if self._amplitude is None:
            self._choose_amplitude(sizes[0])
        assert self._amplitude is not None
        return self._measured(sizes, self._amplitude, at)

    @property
    def rounding(self) -> NDArray[np.float64]:
        """Errors of responses that come from the rounding of outputs, shape (outputs,)."""
        assert self._amplitude is not None
        rounding: NDArray[np.float64] = _ROUNDED * np.finfo(float).eps * self._largest
        return rounding / self._amplitude

    def compare(self, pulses: NDArray[np.float64], size: float) -> None:
        """Compare responses to pulses in the first step with those to later ones, and set :attr:`noise`.

        The responses of a nonlinear FMU that is not at rest at the point differ from step to step.
        """
        later = len(pulses) // 2
        moved = self.pulses([size] * len(pulses), later)
        self.noise = max(self._disproportion, _difference(pulses[: len(moved)], moved))

    def at_once(self) -> NDArray[np.float64]:
        """Change of the outputs by a change of continuous inputs in Event Mode, shape (outputs, inputs)."""
        assert self._amplitude is not None
        experiments, inputs = self._experiments, self.inputs
        store = experiments.executor.store
        found = np.zeros((len(self.outputs), inputs.n_continuous))
        experiments.go_back(self._i)
        for k in range(inputs.n_continuous):
            change = np.zeros(inputs.size)
            change[k] = self._amplitude * self.scale[k]
            for sign in (1.0, -1.0):
                inputs.put(store, self._present, sign * change, experiments.start, 1.0)
                store.courses.degree[self._i] = -1
                experiments.change_at_once(self._i)
                found[:, k] += sign * self._values[self.outputs] / (2 * change[k])
        return found

    def partials(
        self, unknowns: Sequence[int], knowns: Sequence[int], shape: tuple[int, int]
    ) -> NDArray[np.float64]:
        """Partial derivatives of outputs by inputs; as for :meth:`Experiments.partials`."""
        return self._experiments.partials(self._i, unknowns, knowns, shape)

    @property
    def _values(self) -> NDArray[np.float64]:
        """All present Float64 values of the run."""
        return self._experiments.executor.store.values[DataType.FLOAT64]

    def _choose_amplitude(self, size: float) -> None:
        """The largest pulses to which the responses are proportional; the best ones, if there are none."""
        least = np.inf
        for amplitude in _AMPLITUDES:
            whole, half = (
                self._measured([size] * _COMPARED, part * amplitude) for part in (1.0, 0.5)
            )
            difference = _difference(whole, half)
            if difference < least:
                least, self._amplitude = difference, amplitude
            if difference < _PROPORTIONAL:
                break
        if self._amplitude is None:
            raise SimulationError(
                f"The outputs of '{self.name}' are not finite after a change of its inputs, so it has no linear "
                "response at this point."
            )
        self._disproportion = least

    def _measured(
        self, sizes: Sequence[float], amplitude: float, at: int = 0
    ) -> NDArray[np.float64]:
        n = self.inputs.size
        found = np.zeros((len(sizes) - at, len(self.outputs), n))
        for k in range(n):
            change = np.zeros(n)
            change[k] = amplitude * self.scale[k]
            # a part that does not change its sign with the pulse is not linear
            both = self._run(sizes, change, at) - self._run(sizes, -change, at)
            found[:, :, k] = both[at:] / (2 * amplitude)
        return found

    def _run(
        self, sizes: Sequence[float], change: NDArray[np.float64], at: int
    ) -> NDArray[np.float64]:
        """The outputs after each step, if these coefficients are added to the inputs in one of them."""
        experiments, none = self._experiments, np.zeros_like(change)
        experiments.go_back(self._i)
        time, found = experiments.start, np.empty((len(sizes), len(self.outputs)))
        for step, size in enumerate(sizes):
            given = change if step == at else none
            self.inputs.put(experiments.executor.store, self._present, given, time, size)
            experiments.step(self._i, time, time + size)
            time += size
            found[step] = self._values[self.outputs]
        self._largest = np.maximum(self._largest, np.max(np.abs(found), axis=0))
        return found


def _difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest difference of responses, relative to the largest response of the same output."""
    largest = np.max(np.abs(one), axis=(0, 2), initial=0.0)
    largest[largest == 0.0] = 1.0
    return float(
        np.max(np.max(np.abs(one - other), axis=(0, 2), initial=0.0) / largest, initial=0.0)
    )
