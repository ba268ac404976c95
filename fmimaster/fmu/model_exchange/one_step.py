"""One-step integrators: they remember nothing but the length of the next step, so going back costs nothing.

``kernel/integrator.c`` has the same calls in the same order; both compute by :mod:`fmimaster.numerics.runge_kutta`.
"""

from __future__ import annotations

from math import ceil, inf
from typing import ClassVar

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.fmu.model_exchange.integrator import (
    DEFAULT_TITLE,
    Equations,
    ErrorControlled,
    Integration,
    Integrator,
    KernelIntegrators,
    StuckError,
    Vector,
)
from fmimaster.numerics.runge_kutta import (
    ERROR_WEIGHTS,
    IDLE_STAGE,
    MOST_FACTOR,
    SLACK,
    STAGE_NODES,
    STAGE_WEIGHTS,
    STAGES,
    dense_weight,
    first_length,
    grown_length,
    is_lost,
    length_factor,
    next_length,
    shorter_length,
    weighted_sum,
)

NO_DERIVATIVES = "The FMU cannot compute its derivatives."
TOO_SHORT = "The step would become too short for its tolerance."
DISCARDED = "The FMU discards the states at the end of a fixed step."
"""Reasons why an integrator cannot go on."""


@dataclass(frozen=True)
class DormandPrince(ErrorControlled):
    """The explicit Runge-Kutta method of Dormand and Prince, of order 5, with control of the step size.

    For models that are not stiff. The error of a state in a step is kept below
    ``absolute * nominal value + relative * magnitude``.

    Parameters
    ----------
    relative : float, optional
        Relative tolerance; default: the tolerance of the run, see ``Settings.tolerance``.
    absolute : float, optional
        Tolerance in units of the nominal value of a state; default: the relative one.

    Source: Dormand and Prince (1980), A family of embedded Runge-Kutta formulae; dense output: Shampine (1986).
    """

    title: ClassVar[str] = DEFAULT_TITLE
    twin: ClassVar[str] = "dormand_prince"

    def start(self, equations: Equations, tolerance: float) -> Integration:
        """The integration of an instance."""
        return _DormandPrinceSteps(equations, *self.tolerances(tolerance))


@dataclass(frozen=True)
class Euler(Integrator):
    """The explicit Euler method with a fixed step size: cheap, of order 1, for comparisons and for real time.

    Parameters
    ----------
    step : float
        Step size in s. Each communication step, and each part of it from event to event, is divided into equal steps
        that are not longer. Default: one step.
    """

    step: float = inf

    twin: ClassVar[str] = "euler"

    def __post_init__(self) -> None:
        if not self.step > 0:
            raise OptionError(f"step of Euler is {self.step:g} s. Expected a number above 0.")

    def start(self, equations: Equations, tolerance: float) -> Integration:
        """The integration of an instance; the tolerance has no effect."""
        del tolerance
        return _EulerSteps(equations, self.step)

    @property
    def words(self) -> str:
        """Its settings in a few words."""
        return "Euler" if self.step == inf else f"Euler, step {self.step:g} s"


class _OneStep(Integration):
    """Common parts: the last step from ``_from`` by ``_length``, and the slopes at its stages."""

    def __init__(self, equations: Equations, stages: int) -> None:
        self._equations = equations
        self.states = np.zeros(equations.n)
        self._before = np.zeros(equations.n)
        self._slopes = np.zeros((stages, equations.n))
        self._time = self._from = self._length = 0.0
        self._is_known = False
        """Whether the last slope is the one at the present point."""

    def restart(self, time: float, states: Vector) -> None:
        """Start here; the FMU stands there."""
        self._time = time
        self.states[:] = states
        self._is_known = False

    def _begin(self) -> None:
        """The slope where a step starts."""
        self._before[:] = self.states
        if self._is_known:
            self._slopes[0] = self._slopes[-1]
        elif not self._equations.derive(self._slopes[0]):
            raise StuckError(self._time, NO_DERIVATIVES)

    def _end(self, there: float, length: float) -> float:
        self._from, self._length, self._time = self._time, length, there
        return there


class _DormandPrinceSteps(_OneStep):
    def __init__(self, equations: Equations, relative: float, absolute: float) -> None:
        super().__init__(equations, STAGES)
        self._relative, self._absolute = relative, absolute

    def continue_in(self, kernel: KernelIntegrators) -> None:
        """Let the kernel continue with the same tolerances."""
        kernel.dormand_prince(self._relative, self._absolute)

    def advance(self, end: float) -> float:
        """One step whose error is below the tolerance; the last stage is at its end."""
        time = self._time
        if not self._equations.n:
            self._equations.move(end, self.states)
            return self._end(end, end - time)
        self._begin()
        wanted = self.size or self._first_size()
        most = MOST_FACTOR
        while True:
            rest = end - time
            length = next_length(rest, wanted)
            there = end if length == rest else time + length
            error = self._attempt(time, length, there)
            factor = length_factor(error, most)
            if error <= 1.0:
                break
            most = 1.0
            wanted = shorter_length(length, factor)
            if is_lost(wanted, time, end):
                raise StuckError(time, TOO_SHORT)
        self.size = grown_length(length, wanted, factor, most)
        self._is_known = True
        return self._end(there, length)

    def _attempt(self, time: float, length: float, there: float) -> float:
        """One step; returns the largest error in units of its tolerance, inf if the FMU cannot compute it."""
        slopes, states = self._slopes, self.states
        for stage in range(1, STAGES):
            states[:] = self._before + length * weighted_sum(STAGE_WEIGHTS[stage], stage, slopes, 1)
            at = there if STAGE_NODES[stage] == 1.0 else time + STAGE_NODES[stage] * length
            if not (self._equations.move(at, states) and self._equations.derive(slopes[stage])):
                return inf
        error = np.abs(length * weighted_sum(ERROR_WEIGHTS, STAGES, slopes, 1))
        larger = np.maximum(np.abs(self._before), np.abs(states))
        # a maximum, not a mean: its bits do not depend on the order of a sum
        return float(np.max(error / self._scale(larger)))

    def _scale(self, magnitude: Vector) -> Vector:
        return self._absolute * self._equations.nominals + self._relative * magnitude

    def _first_size(self) -> float:
        """The first step, so short that it changes the states by a hundredth at most."""
        magnitude = np.abs(self._before)
        scale = self._scale(magnitude)
        states = float(np.max(magnitude / scale))
        slopes = float(np.max(np.abs(self._slopes[0]) / scale))
        return first_length(states, slopes)

    def between(self, time: float, states: Vector) -> None:
        """States inside the last step, by a polynomial of degree 4."""
        part = (time - self._from) / self._length
        states[:] = self._before
        for stage in range(STAGES):
            if stage != IDLE_STAGE:
                states += dense_weight(stage, part, self._length) * self._slopes[stage]


class _EulerSteps(_OneStep):
    def __init__(self, equations: Equations, step: float) -> None:
        super().__init__(equations, 1)
        self._step = step
        self._end_of_parts, self._left, self._part = 0.0, 0, 0.0
        """The end to which so many equal parts of this length in s are left; none: they are not known yet."""

    def continue_in(self, kernel: KernelIntegrators) -> None:
        """Let the kernel continue with the same step size."""
        kernel.euler(self._step)

    def restart(self, time: float, states: Vector) -> None:
        """Start here; the FMU stands there."""
        super().restart(time, states)
        self._left = 0

    def advance(self, end: float) -> float:
        """One of the equal steps to the end."""
        time = self._time
        self._begin()
        if not self._left or end != self._end_of_parts:
            rest = end - time
            self._left = max(1, ceil(rest / self._step * (1.0 - SLACK)))
            self._end_of_parts, self._part = end, rest / self._left
        is_last = self._left == 1
        there = end if is_last else time + self._part
        length = end - time if is_last else self._part
        self._left -= 1
        self.states[:] = self._before + length * self._slopes[0]
        if not self._equations.move(there, self.states):
            raise StuckError(time, DISCARDED)
        return self._end(there, length)

    def between(self, time: float, states: Vector) -> None:
        """States inside the last step, on a line."""
        states[:] = self._before + (time - self._from) * self._slopes[0]
