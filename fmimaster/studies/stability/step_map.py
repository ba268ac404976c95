"""The linear map of one communication step of a coupled system, near a point of a run, and its eigenvalues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import SimulationError
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.load import Loader
from fmimaster.prepare.prepared import Prepared
from fmimaster.run.executor import InitialTimes
from fmimaster.run.reference.executor import ReferenceExecutor
from fmimaster.studies.stability.experiments import Experiments
from fmimaster.studies.stability.linear_fmu import LinearFmu
from fmimaster.studies.stability.linear_instance import LinearInstance
from fmimaster.studies.stability.responses import Responses
from fmimaster.system.model import DataType


class StepMap:
    """The map of one step: the program of the run, executed on linear models of its FMUs.

    Each column is the result of a step after a change of one state of an FMU, one output, or one past value that the
    program uses. This is valid for every algorithm and all kinds of inputs.

    Parameters
    ----------
    experiments : Experiments
    responses : one for each instance
    prepared : Prepared
        Of the same settings, not used for a run.
    size : float
        Of the communication steps in s.
    """

    def __init__(
        self,
        experiments: Experiments,
        responses: Sequence[Responses],
        prepared: Prepared,
        size: float,
    ) -> None:
        plan, programs = prepared.plan, prepared.programs
        self._programs, self._size = programs, size
        n = len(plan.instances)
        fmus = {
            i: LinearFmu(responses[i], size)
            for i in range(n)
            if prepared.components[i].constraint is None
        }
        self.models = tuple(fmus.values())
        self._linear = [LinearInstance(plan, i, fmu) for i, fmu in fmus.items()]
        loader = Loader()
        others: dict[int, Instance] = {
            i: loader.instantiate(prepared.components[i], plan.instances[i].name, InstanceOptions())
            for i in range(n)
            if i not in fmus
        }
        linear = dict(zip(fmus, self._linear, strict=True))
        self._start = experiments.start
        self._executor = ReferenceExecutor(
            plan,
            [linear[i] if i in linear else others[i] for i in range(n)],
            InitialTimes(self._start),
            n_places=programs.n_places,
            n_buffers=programs.n_buffers,
            history=programs.history,
            hooks=programs.hooks,
        )
        store = self._executor.store
        for kind, values in experiments.values.items():
            if not kind.is_float:
                store.values[kind][:] = values
        for i, partials in experiments.executor.store.partials.items():
            store.partials[i][:] = partials
        self._values = store.values.get(DataType.FLOAT64, np.zeros(0))
        used = sorted({k for fmu in self.models for k in fmu.responses.outputs})
        self._outputs = np.array(used, dtype=np.intp)
        self._signals = np.array([k for _, k in plan.layout.signals.values()], dtype=np.intp)
        self._rest()

    def matrix(self) -> NDArray[np.float64]:
        """The map: states of the FMUs, outputs, and outputs in the past, before the step → after it."""
        zero = np.zeros_like(self._vector())
        offset = self._stepped(zero)
        columns = []
        for k in range(len(zero)):
            before = zero.copy()
            before[k] = 1.0
            columns.append(self._stepped(before) - offset)
        return np.stack(columns, axis=1) if columns else np.zeros((0, 0))

    def _rest(self) -> None:
        """Step until the history that the program uses is complete, and store this point with all changes 0."""
        store = self._executor.store
        self._values[:] = 0.0
        store.read[:] = self._start
        self._time = self._start
        for _ in range(self._programs.history + 1):
            self._advance()
        for instance in self._linear:
            instance.put_back(np.zeros_like(instance.states))
        self._values[:] = 0.0
        for outputs, _ in (*store.history, *store.buffers):
            outputs.get(DataType.FLOAT64, np.zeros(0))[:] = 0.0
        for lacking in store.courses.lacking:
            lacking[np.isfinite(lacking)] = 0.0
        self._kept = store.copy(), self._executor.registers.copy(), self._time

    def _stepped(self, before: NDArray[np.float64]) -> NDArray[np.float64]:
        store, registers, self._time = self._kept
        self._executor.store.restore(store)
        self._executor.registers.restore(registers)
        self._put(before)
        self._advance()
        return self._vector()

    def _advance(self) -> None:
        """One step."""
        begin, end = self._time, self._time + self._size
        outcome = self._executor.run(self._programs.attempt, begin, end)
        if outcome.stopped is not None:
            raise SimulationError(
                f"A step of {self._size:g} s cannot be done on the linear models of the FMUs."
            )
        self._executor.run(self._programs.commit, end, end)
        self._executor.rows.count = 0
        self._time = end

    def _vector(self) -> NDArray[np.float64]:
        states = [instance.states for instance in self._linear]
        return np.concatenate([*states, *(values[at] for values, at in self._remembered())])

    def _put(self, vector: NDArray[np.float64]) -> None:
        at = 0
        for instance in self._linear:
            n = len(instance.states)
            instance.put_back(vector[at : at + n])
            at += n
        for values, chosen in self._remembered():
            n = len(values[chosen])
            values[chosen] = vector[at : at + n]
            at += n

    def _remembered(self) -> Iterator[tuple[NDArray[np.float64], Any]]:
        """Values that the next step uses: present and past outputs, signals, and errors of compensated inputs.

        A new algorithm that remembers something elsewhere in the store must add it here, or its stability is wrong.
        """
        store = self._executor.store
        yield self._values, self._outputs
        yield self._values, self._signals
        for outputs, _ in store.history:
            yield outputs.get(DataType.FLOAT64, self._values), self._outputs
        for lacking, since in zip(store.courses.lacking, store.courses.given_from, strict=True):
            known = np.flatnonzero(np.isfinite(since).any(axis=1))
            yield lacking, (known, np.nanargmax(since[known], axis=1))


FREE = 1e-11
"""An eigenvalue that equals 1 within this tolerance belongs to a free position, without a restoring or driving
force."""

GROWTH = 1e-7
"""Largest growth per step due to rounding: a double eigenvalue 1 of a free body is split by the square root of the
rounding error."""


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The eigenvalues of one step.

    Attributes
    ----------
    size : float
        Of the step in s.
    eigenvalues : shape (n,), complex
        The largest first; without those that are exactly 1, which belong to free positions.
    """

    size: float
    eigenvalues: NDArray[np.complex128]

    @classmethod
    def of(cls, matrix: NDArray[np.float64], size: float) -> Spectrum:
        """The spectrum of the matrix of a step."""
        found: NDArray[np.complex128] = np.asarray(np.linalg.eigvals(matrix), np.complex128)
        found = found[np.abs(found - 1.0) > FREE]
        order = np.lexsort((found.imag, -np.abs(found)))
        return cls(size, found[order])

    @property
    def radius(self) -> float:
        """The spectral radius: the growth factor per step of the largest change; 0 if no components are coupled."""
        return float(np.abs(self.eigenvalues[0])) if len(self.eigenvalues) else 0.0

    @property
    def growth(self) -> float:
        """Growth of the largest change per step beyond rounding; negative if it decays."""
        return self.radius - 1.0 - GROWTH

    @property
    def is_stable(self) -> bool:
        """Whether no change grows."""
        return self.growth <= 0.0

    @property
    def tenfold(self) -> float:
        """Time in s in which the largest change grows tenfold, or decays to a tenth if it is stable."""
        rate = abs(log(self.radius)) if self.radius > 0.0 else inf
        return self.size * log(10.0) / rate if rate > 0.0 else inf

    @property
    def period(self) -> float:
        """Period in s with which the largest change oscillates; inf if it keeps its sign."""
        angle = abs(float(np.angle(self.eigenvalues[0]))) if len(self.eigenvalues) else 0.0
        return 2 * pi * self.size / angle if angle > 0.0 else inf
