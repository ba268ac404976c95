"""Weights of inputs from one run of the system and runs of its components alone: measured effects, or rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from math import inf, isfinite, log10
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.studies.optimization.trial import rms

if TYPE_CHECKING:
    from fmimaster.studies.optimization.alone import Alone

Input = tuple[str, str]
"""Component and input."""


class Weighting(ABC):
    """Base of all weightings: the cost of a stale input."""

    __slots__ = ()

    def check(self, components: Collection[str]) -> None:
        """Refuse settings that do not fit to these components; by default there are none.

        Raises
        ------
        OptionError
        """
        del components

    @abstractmethod
    def weights(self, component: Alone) -> Iterable[tuple[Input, float]]:
        """The weight of each connected input of a component, not negative."""


@dataclass(frozen=True, slots=True)
class Propagated(Weighting):
    """Weigh each input by the effect of its extrapolation error on the outputs of its component alone.

    ``c_i = max over the outputs o of rms(response_o) / rms(Y_o)``. The response is the difference between two runs of the
    component with the inputs of the system's run: one with the input held over each step, one with it interpolated.

    Source: fmimaster, docs/trigger-sequence.md ("propagated weights").
    """

    def weights(self, component: Alone) -> Iterable[tuple[Input, float]]:
        """The weight of each input of a component."""
        scale = rms(component.recorded_outputs())
        counted = scale > 0
        for name in sorted(component.links):
            response = rms(component.run(stale=name) - component.fresh)[counted] / scale[counted]
            yield (component.name, name), float(max(response, default=0.0))


_KNOTS = (0.01, 0.1, 1.0)
"""Where a feature is low, medium, high; linear between them on the axis of its logarithm."""
_STATIC = 0.01
"""A response during a step is static if it is below this fraction of the immediate response."""
_JUMP = 20.0
"""An increment is a jump if it is larger than the median by this factor, and its neighbours are not."""

_DISCRETE, _DISCRETE_SLOW = 1.0, 0.6
_STATIC_PATH = 1.0
_DIRECT = (0.5, 0.7, 0.9)
"""Direct feed-through, by the frequency of the coupling."""
_INDIRECT = (0.25, 0.40, 0.70)
"""No direct feed-through, by the rate of the component."""


@dataclass(frozen=True, slots=True)
class Features:
    """Features of one connection that the rules use.

    Attributes
    ----------
    discrete : bool
        Whether the signal is discrete, or jumps.
    feed_through : bool
        Whether an output of the component depends on the input directly.
    at_once, in_a_step : float
        Largest immediate response of an output (ft), and response during a step (dyn), to a usual increment of the
        input, relative to a usual increment of the output.
    rate : float
        r: geometric mean of the component's eigenvalues, times the step size.
    frequency : float
        nu: of the coupling, times the step size.
    parts : float
        s: micro steps of the source in a step.
    """

    discrete: bool
    feed_through: bool
    at_once: float
    in_a_step: float
    rate: float
    frequency: float
    parts: float = 1.0

    @property
    def static(self) -> bool:
        """Whether the input acts immediately or not at all."""
        return self.feed_through and self.in_a_step < _STATIC * self.at_once


@dataclass(frozen=True, slots=True)
class Fuzzy(Weighting):
    """Weigh each input by rules about its signal and its component.

    Parameters
    ----------
    micro_steps : component → s
        The internal step size of a component, which its FMU may publish as ``fixedInternalStepSize``. Default: the step
        size of the run.

    Notes
    -----
    The frequency nu and the rate r are low, medium or high with memberships that are linear between 0.01, 0.1 and 1 on a
    logarithmic axis. Discrete signals weigh 1 if the component has direct feed-through or a high rate, else 0.6. Direct
    feed-through without dynamics weighs 1; with dynamics 0.5, 0.7, 0.9 by nu. No direct feed-through weighs 0.25, 0.4, 0.7
    by r. All is multiplied by ``0.9 + 0.1 min(1, log10 s)``, s the micro steps of the source in a step.

    Source: Holzinger and Benedikt (2019), Optimal trigger sequence for non-iterative co-simulation, sections 3.2 and 3.3.
    They publish no rules; these are fmimaster's, which reproduce their eq. (14) within 0.01.
    """

    micro_steps: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, size in self.micro_steps.items():
            if not 0 < size < inf:
                raise OptionError(f"Micro step of '{name}': {size}, expected a number above 0.")

    def check(self, components: Collection[str]) -> None:
        """Refuse micro steps of components that do not exist."""
        for name in self.micro_steps:
            if name not in components:
                raise OptionError(
                    f"Micro step of '{name}': there is no component '{name}'.{did_you_mean(name, components)}"
                )

    def weights(self, component: Alone) -> Iterable[tuple[Input, float]]:
        """The weight of each input of a component."""
        for name, features in self.features(component).items():
            yield (component.name, name), weight(features)

    def features(self, component: Alone) -> dict[str, Features]:
        """The features of each input of a component."""
        names = sorted(component.links)
        if not names:
            return {}
        responses = {n: _response(component, n) for n in names if not component.is_discrete(n)}
        rate = mean_rate(list(responses.values()))
        usual = rms(np.diff(component.recorded_outputs(), axis=0))
        found = {}
        for name in names:
            signal, response = component.recorded_input(name), responses.get(name)
            increment = float(np.sqrt(np.mean(np.diff(signal) ** 2)))
            spread = float(np.std(signal))
            feed_through = component.passes_on(name)
            found[name] = Features(
                discrete=component.is_discrete(name) or jumps(signal),
                feed_through=feed_through,
                at_once=_largest(response.at_once, increment, usual)
                if response and feed_through
                else 0.0,
                in_a_step=_largest(response.after_a_step, increment, usual) if response else 0.0,
                rate=rate,
                frequency=increment / spread if spread else 0.0,
                parts=component.step_size / self._micro_step(component, name),
            )
        return found

    def _micro_step(self, component: Alone, name: str) -> float:
        """Of the component that feeds an input, in s."""
        source, published = component.source_of(name)
        return self.micro_steps.get(source) or published or component.step_size


def _response(component: Alone, name: str) -> StepResponse:
    """By two runs of the component, one with the input larger by its usual increment all the time."""
    signal = component.recorded_input(name)
    size = float(np.sqrt(np.mean(np.diff(signal) ** 2))) or 1.0
    return StepResponse((component.run(shifted={name: size}) - component.fresh) / size)


def _largest(response: NDArray[np.float64], increment: float, usual: NDArray[np.float64]) -> float:
    counted = usual > 0
    parts = np.abs(response[counted]) * increment / usual[counted]
    return float(max(parts, default=0.0))


def jumps(signal: NDArray[np.float64]) -> bool:
    """Whether a signal has isolated increments that are far larger than usual."""
    sizes = np.abs(np.diff(signal))
    large = sizes > _JUMP * np.median(sizes)
    padded = np.concatenate(([False], large, [False]))
    return bool(np.any(large & ~padded[:-2] & ~padded[2:]))


def memberships(value: float) -> tuple[float, float, float]:
    """Membership of a feature in low, medium and high; the sum is 1."""
    low, medium, high = map(log10, _KNOTS)
    at = min(max(log10(value), low), high) if value > 0 else low
    if at < medium:
        part = (at - low) / (medium - low)
        return 1 - part, part, 0.0
    part = (at - medium) / (high - medium)
    return 0.0, 1 - part, part


def weight(features: Features) -> float:
    """The weight of a connection by the rules."""
    if features.discrete:
        high = 1.0 if features.feed_through else memberships(features.rate)[2]
        found = high * _DISCRETE + (1 - high) * _DISCRETE_SLOW
    elif features.static:
        found = _STATIC_PATH
    else:
        rules = _DIRECT if features.feed_through else _INDIRECT
        feature = features.frequency if features.feed_through else features.rate
        found = sum(m * w for m, w in zip(memberships(feature), rules, strict=True))
    parts = log10(max(features.parts, 1.0)) if isfinite(features.parts) else 1.0
    return found * (0.9 + 0.1 * min(1.0, parts))


_BLOCKS = 10
"""Rows and columns of blocks of the Hankel matrix: as many states can be seen."""
_RANK = 1e-7
"""A singular value below this part of the largest one is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class StepResponse:
    """The response to a unit step of one input at the first point: shape (points, outputs)."""

    values: NDArray[np.float64]

    @property
    def at_once(self) -> NDArray[np.float64]:
        """D: the immediate part; shape (outputs,)."""
        first: NDArray[np.float64] = self.values[0]
        return first

    @property
    def after_a_step(self) -> NDArray[np.float64]:
        """S: the further change at the end of the first step; shape (outputs,)."""
        difference: NDArray[np.float64] = self.values[1] - self.values[0]
        return difference

    @property
    def pulses(self) -> NDArray[np.float64]:
        """Responses to a pulse over the first step, without D: shape (points - 1, outputs)."""
        return np.diff(self.values, axis=0)


def mean_rate(responses: list[StepResponse]) -> float:
    """Geometric mean of the absolute eigenvalues of a linear component, per step; 0 if one is 0.

    The eigenvalues are those of the discrete system with the fewest states that has these pulse responses, found by the
    singular value decomposition of their Hankel matrix, and then of the continuous one, ``log(mu)``.

    Source: Juang and Pappa (1985), An eigensystem realization algorithm, eqs. (8) to (22).
    """
    if not responses:
        return 0.0
    pulses = np.stack([r.pulses for r in responses], axis=2)  # points, outputs, inputs
    sizes = np.max(np.abs(pulses), axis=(0, 2), initial=0.0)
    if len(pulses) < 2 or not np.any(sizes > 0):
        return 0.0
    n = min(_BLOCKS, len(pulses) // 2)
    pulses = pulses[:, sizes > 0] / sizes[sizes > 0][:, None]
    # a Hankel matrix whose blocks are the responses of all outputs to all inputs
    first, second = (
        np.block([[pulses[i + j + shift] for j in range(n)] for i in range(n)]) for shift in (0, 1)
    )
    u, s, v = np.linalg.svd(first, full_matrices=False)
    rank = int(np.sum(s > _RANK * s[0]))
    root = 1 / np.sqrt(s[:rank])
    step = root[:, None] * (u[:, :rank].T @ second @ v[:rank].T) * root
    mu = np.linalg.eigvals(step).astype(complex)
    rates = np.abs(np.log(mu[mu != 0]))
    if not len(rates) or np.min(rates) == 0:
        return 0.0
    return float(np.exp(np.mean(np.log(rates))))
