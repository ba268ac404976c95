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
        Relative difference between the responses to pulses of different sizes.
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

    def pulses(self, sizes: Sequence[float]) -> NDArray[np.float64]:
        """Responses of the outputs to each coefficient of the inputs in the first of these steps.

        Parameters
        ----------
        sizes
            Of the steps, in s.

        Returns
        -------
        shape (steps, outputs, coefficients)
        """
        if self._amplitude is None:
            self._choose_amplitude(sizes[0])
        assert self._amplitude is not None
        return self._measured(sizes, self._amplitude)

    def _choose_amplitude(self, size: float) -> None:
        """The largest pulses to which the responses are proportional; the best ones, if there are none."""
        self.noise = np.inf
        for amplitude in _AMPLITUDES:
            whole, half = (
                self._measured([size] * _COMPARED, part * amplitude) for part in (1.0, 0.5)
            )
            largest = np.max(np.abs(whole), axis=(0, 2), initial=0.0)
            largest[largest == 0.0] = 1.0
            differences = np.max(np.abs(whole - half), axis=(0, 2), initial=0.0) / largest
            noise = float(np.max(differences, initial=0.0))
            if noise < self.noise:
                self.noise, self._amplitude = noise, amplitude
            if noise < _PROPORTIONAL:
                return
        if self._amplitude is None:
            raise SimulationError(
                f"The outputs of '{self.name}' are not finite after a change of its inputs, so that it has no linear "
                "response at this point."
            )

    def _measured(self, sizes: Sequence[float], amplitude: float) -> NDArray[np.float64]:
        n = self.inputs * (self.degree + 1)
        found = np.zeros((len(sizes), len(self.outputs), n))
        for k in range(n):
            change = np.zeros(n)
            change[k] = amplitude * self._scale[k % self.inputs]
            # what does not change its sign with the pulse is not linear
            found[:, :, k] = self._run(sizes, change) - self._run(sizes, -change)
            found[:, :, k] /= 2 * change[k]
        return found

    def _run(self, sizes: Sequence[float], change: NDArray[np.float64]) -> NDArray[np.float64]:
        """The outputs after each step, if these coefficients are added to the inputs in the first one."""
        experiments = self._experiments
        experiments.go_back(self._i)
        time, found = experiments.start, np.empty((len(sizes), len(self.outputs)))
        for step, size in enumerate(sizes):
            self._give(time, size, change if step == 0 else np.zeros_like(change))
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
