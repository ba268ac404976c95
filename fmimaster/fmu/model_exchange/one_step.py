"""One-step integrators: they remember nothing but the length of the next step, so going back costs nothing.

``kernel/integrator.c`` has the same operations in the same order, so that both executors agree in every bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import ClassVar

import numpy as np

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

_NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_WEIGHTS: tuple[tuple[tuple[int, float], ...], ...] = (
    (),
    ((0, 1 / 5),),
    ((0, 3 / 40), (1, 9 / 40)),
    ((0, 44 / 45), (1, -56 / 15), (2, 32 / 9)),
    ((0, 19372 / 6561), (1, -25360 / 2187), (2, 64448 / 6561), (3, -212 / 729)),
    ((0, 9017 / 3168), (1, -355 / 33), (2, 46732 / 5247), (3, 49 / 176), (4, -5103 / 18656)),
    ((0, 35 / 384), (2, 500 / 1113), (3, 125 / 192), (4, -2187 / 6784), (5, 11 / 84)),
)
"""Of each stage: the stages before it with their weights; those of the last one are the result of order 5."""
_ERROR = (
    (0, 71 / 57600),
    (2, -71 / 16695),
    (3, 71 / 1920),
    (4, -17253 / 339200),
    (5, 22 / 525),
    (6, -1 / 40),
)
"""Weights of the difference of the results of order 5 and 4. Dormand and Prince (1980), RK5(4)7M."""
_DENSE = (
    (0, 1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
    (2, 0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
    (3, 0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
    (4, 0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
    (5, 0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
    (6, 0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
)
"""Stage, and the coefficients of its weight as a polynomial inside the step, of order 4. Shampine (1986)."""

NO_DERIVATIVES = "The FMU cannot compute its derivatives."
TOO_SHORT = "The step would become too short for its tolerance."
DISCARDED = "The FMU discards the states at the end of a fixed step."
"""Reasons why an integrator cannot go on."""

_STAGES = len(_NODES)
_SAFETY = 0.9
_LEAST_FACTOR, _MOST_FACTOR = 0.2, 10.0
"""Of one step length to the next."""
_STRETCH = 1.1
"""A step that would leave less than a tenth of itself to the end goes to the end."""
_FIRST_SHARE, _LEAST_NORM, _SHORTEST_FIRST = 0.01, 1e-5, 1e-6
"""The first step: Hairer, Norsett and Wanner (1993), II.4; the last one in s."""
_FEWEST_ULPS = 16 * 2.0**-52
"""A shorter step, relative to the time, is lost in rounding."""


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
        super().__init__(equations, _STAGES)
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
        most = _MOST_FACTOR
        while True:
            rest = end - time
            is_last = rest <= _STRETCH * wanted
            length = rest if is_last else 0.5 * rest if rest < 2.0 * wanted else wanted
            there = end if is_last else time + length
            error = self._attempt(time, length, there)
            factor = most if error == 0.0 else _SAFETY * error**-0.2
            if error <= 1.0:
                break
            most = 1.0
            wanted = length * max(_LEAST_FACTOR, factor)
            if wanted < _FEWEST_ULPS * max(abs(time), abs(end)):
                raise StuckError(time, TOO_SHORT)
        grown = length * min(max(_LEAST_FACTOR, factor), most)
        self.size = max(wanted, grown) if length < wanted else grown
        self._is_known = True
        return self._end(there, length)

    def _attempt(self, time: float, length: float, there: float) -> float:
        """One step; returns the largest error in units of its tolerance, inf if the FMU cannot compute it."""
        slopes, states = self._slopes, self.states
        for stage in range(1, _STAGES):
            states[:] = self._before + length * _sum(_WEIGHTS[stage], slopes)
            at = there if _NODES[stage] == 1.0 else time + _NODES[stage] * length
            if not (self._equations.move(at, states) and self._equations.derive(slopes[stage])):
                return inf
        error = np.abs(length * _sum(_ERROR, slopes))
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
        if states > _LEAST_NORM and slopes > _LEAST_NORM:
            return _FIRST_SHARE * states / slopes
        return _SHORTEST_FIRST

    def between(self, time: float, states: Vector) -> None:
        """States inside the last step, by a polynomial of degree 4."""
        part = (time - self._from) / self._length
        states[:] = self._before
        for stage, a, b, c, d in _DENSE:
            states += (self._length * (part * (a + part * (b + part * (c + part * d))))) * (
                self._slopes[stage]
            )


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
            self._left = max(1, ceil(rest / self._step * (1.0 - _SLACK)))
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


_SLACK = 1e-9
"""Steps may be longer than the given size by this share, so that rounding does not add one."""


def _sum(weights: tuple[tuple[int, float], ...], slopes: Vector) -> Vector:
    """Weighted sum of slopes, from the first to the last."""
    stage, weight = weights[0]
    total: Vector = weight * slopes[stage]
    for stage, weight in weights[1:]:
        total += weight * slopes[stage]
    return total
