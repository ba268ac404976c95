"""What the inputs of one FMU do to its outputs: responses to pulses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fmimaster.errors import SimulationError
from fmimaster.plan.layout import Group
from fmimaster.program.instructions import Fit
from fmimaster.program.polynomial import Polynomials
from fmimaster.stability.experiments import Experiments
from fmimaster.system.model import DataType

_AMPLITUDES = (1.0, 1e-2, 1e-4, 1e-6)
"""Sizes of pulses that are tried, as parts of the nominal value or the present one, whichever is larger."""

_PROPORTIONAL = 1e-9
"""Responses that differ by less from being proportional are taken at once."""

_COMPARED = 5
"""Steps of the responses by which pulses of different sizes are compared."""


class Responses:
    """One FMU: what its inputs do to its outputs.

    The inputs of one step are polynomials of the time since its start, in steps: ``w[k * n + j]`` is the coefficient of
    power ``k`` of input ``j``.

    Attributes
    ----------
    inputs : int
        Elements of its connected continuous inputs, n.
    degree : int
        Of the polynomials that it is given.
    outputs : indices of the Float64 values
        Those of its outputs that feed continuous inputs.
    noise : float
        Relative difference between responses to pulses of different sizes, and in different steps: 0 for a linear FMU.
    """

    def __init__(self, experiments: Experiments, instance: int) -> None:
        plan = experiments.prepared.plan
        self._experiments, self._i = experiments, instance
        self.name = plan.instances[instance].name
        segments = plan.layout.segments(instance, Group.CONTINUOUS)
        self._slot = slice(segments[0].start, segments[0].stop) if segments else slice(0, 0)
        self.inputs = self._slot.stop - self._slot.start
        self.degree = max(
            (
                f.rows - 1
                for f in experiments.prepared.programs.attempt.instructions
                if isinstance(f, Fit) and f.instance == instance and not f.is_constant
            ),
            default=0,
        )
        slots = (
            slot
            for (_, group), routes in plan.routes.items()
            if group is Group.CONTINUOUS
            for route in routes
            if route.link.source == instance and route.source_type is DataType.FLOAT64
            for slot in (route.source, *route.derivatives)
        )
        self.outputs = sorted({k for slot in slots for k in range(slot.start, slot.stop)})
        nominals = [v.nominal or 1.0 for s in segments for v in s.variables for _ in range(v.size)]
        present = np.abs(experiments.values[DataType.FLOAT64][self._slot].astype(float))
        self._scale = np.maximum(np.abs(nominals), present) if nominals else np.zeros(0)
        self.noise = 0.0
        self._amplitude: float | None = None
        self._compared = False

    def pulses(self, sizes: Sequence[float], at: int = 0) -> NDArray[np.float64]:
        """Responses of the outputs to each coefficient of the inputs in one of these steps.

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

    def compare(self, pulses: NDArray[np.float64], size: float) -> None:
        """Compare responses to pulses in the first step with those to later ones: :attr:`noise` is at least the difference.

        An FMU that is not linear, and does not rest at the point, responds in another way from step to step.
        """
        if self.noise < _PROPORTIONAL and self._compared:
            return
        later = len(pulses) // 2
        moved = self.pulses([size] * len(pulses), later)
        self.noise = max(self.noise, _difference(pulses[: len(moved)], moved))
        self._compared = True

    def at_once(self) -> NDArray[np.float64]:
        """What a change of the inputs in Event Mode changes in the outputs, shape (outputs, inputs)."""
        assert self._amplitude is not None
        experiments, found = self._experiments, np.zeros((len(self.outputs), self.inputs))
        store = experiments.executor.store.values[DataType.FLOAT64]
        experiments.go_back(self._i)
        for k in range(self.inputs):
            change = self._amplitude * self._scale[k]
            for sign in (1.0, -1.0):
                self._give(experiments.start, 1.0, np.zeros(self.inputs * (self.degree + 1)))
                store[self._slot.start + k] += sign * change
                experiments.executor.store.courses.degree[self._i] = -1
                experiments.change_at_once(self._i)
                found[:, k] += sign * store[self.outputs] / (2 * change)
        return found

    def partials(
        self, unknowns: Sequence[int], knowns: Sequence[int], shape: tuple[int, int]
    ) -> NDArray[np.float64]:
        """Partial derivatives of outputs by inputs; as for :meth:`Experiments.partials`."""
        return self._experiments.partials(self._i, unknowns, knowns, shape)

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
                f"The outputs of '{self.name}' are not finite after a change of its inputs, so that it has no linear "
                "response at this point."
            )
        self.noise = least

    def _measured(
        self, sizes: Sequence[float], amplitude: float, at: int = 0
    ) -> NDArray[np.float64]:
        n = self.inputs * (self.degree + 1)
        found = np.zeros((len(sizes) - at, len(self.outputs), n))
        for k in range(n):
            change = np.zeros(n)
            change[k] = amplitude * self._scale[k % self.inputs]
            # what does not change its sign with the pulse is not linear
            both = self._run(sizes, change, at) - self._run(sizes, -change, at)
            found[:, :, k] = both[at:] / (2 * change[k])
        return found

    def _run(
        self, sizes: Sequence[float], change: NDArray[np.float64], at: int
    ) -> NDArray[np.float64]:
        """The outputs after each step, if these coefficients are added to the inputs in one of them."""
        experiments, none = self._experiments, np.zeros_like(change)
        experiments.go_back(self._i)
        time, found = experiments.start, np.empty((len(sizes), len(self.outputs)))
        for step, size in enumerate(sizes):
            self._give(time, size, change if step == at else none)
            experiments.step(self._i, time, time + size)
            time += size
            found[step] = experiments.executor.store.values[DataType.FLOAT64][self.outputs]
        return found

    def _give(self, time: float, size: float, change: NDArray[np.float64]) -> None:
        store = self._experiments.executor.store
        present = self._experiments.values[DataType.FLOAT64][self._slot]
        coefficients = change.reshape(self.degree + 1, self.inputs).copy()
        coefficients[0] += present
        store.values[DataType.FLOAT64][self._slot] = coefficients[0]
        store.courses.degree[self._i] = -1
        if self.degree > 0:
            powers = size ** np.arange(self.degree + 1)[:, np.newaxis]
            store.courses.put(self._i, Polynomials(coefficients / powers, time))


def _difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest difference of responses, relative to the largest response of the same output."""
    largest = np.max(np.abs(one), axis=(0, 2), initial=0.0)
    largest[largest == 0.0] = 1.0
    return float(
        np.max(np.max(np.abs(one - other), axis=(0, 2), initial=0.0) / largest, initial=0.0)
    )
