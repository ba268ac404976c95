"""The equations of a Model Exchange FMU, by the calls of FMI 2.0 or 3.0, and where its event indicators change."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.binary import BinaryInstance
from fmimaster.fmu.call_log import DISCARD, SUCCESS
from fmimaster.fmu.instance import Transfer
from fmimaster.fmu.model_exchange.integrator import Vector, has_jacobian, jacobian_references
from fmimaster.numerics.indicators import BISECT_EVERY, MOST_TRIALS, is_located, next_trial
from fmimaster.system.model import Causality

Attempt = Callable[[], bool]
"""A call that the FMU may discard: then it returns False."""


class FmuEquations:
    """The equations ``dx/dt = f(t, x)`` and event indicators ``z(t, x)`` of an instance.

    Parameters
    ----------
    instance : BinaryInstance
    n, m : int
        Numbers of states and of event indicators.
    nominals : shape (n,)
        Borrowed; the instance keeps them up to date.

    Attributes
    ----------
    set_inputs : function or None
        Sets the inputs at a time in s, if they follow polynomials.
    """

    def __init__(self, instance: BinaryInstance, n: int, m: int, nominals: Vector) -> None:
        self.n, self.nominals = n, nominals
        self.set_inputs: Callable[[float], None] | None = None
        self._instance = instance
        self._states, self._derivatives = np.zeros(n), np.zeros(n)
        self._indicators = np.zeros(m)
        self._seed, self._product = np.zeros(n), np.zeros(n)
        self._set_time = instance.function("SetTime", ctypes.c_void_p, ctypes.c_double)
        derivatives = (
            "GetDerivatives" if instance.prefix == "fmi2" else "GetContinuousStateDerivatives"
        )
        self._set_states = self._attempt("SetContinuousStates", self._states)
        self._get_states = self._transfer("GetContinuousStates", self._states)
        self._get_derivatives = self._attempt(derivatives, self._derivatives)
        self._get_nominals = self._transfer("GetNominalsOfContinuousStates", nominals)
        self._get_indicators = self._attempt("GetEventIndicators", self._indicators)

    def _transfer(self, name: str, values: Vector) -> Transfer:
        if not len(values):
            return lambda: None
        pointer, n = self._instance.pointer(values), ctypes.c_size_t(len(values))
        return self._instance.transfer(name, pointer, n)

    def _attempt(self, name: str, values: Vector) -> Attempt:
        if not len(values):
            return lambda: True
        instance, function = self._instance, self._instance.function(name)
        pointer, n = instance.pointer(values), ctypes.c_size_t(len(values))

        def act() -> bool:
            status = function(instance.component, pointer, n)
            if status in SUCCESS:
                return True
            if status != DISCARD:
                instance.fail(name, status)
            return False

        return act

    def move(self, time: float, states: Vector) -> bool:
        """Set time in s, states and inputs; returns False if the FMU discards them."""
        status = self._set_time(self._instance.component, time)
        if status not in SUCCESS:
            if status != DISCARD:
                self._instance.fail("SetTime", status)
            return False
        self._states[:] = states
        if not self._set_states():
            return False
        if self.set_inputs is not None:
            self.set_inputs(time)
        return True

    def derive(self, derivatives: Vector) -> bool:
        """Get the derivatives where the FMU stands; returns False if the FMU cannot compute them there."""
        if not self._get_derivatives():
            return False
        derivatives[:] = self._derivatives
        return True

    def indicate(self, indicators: Vector) -> bool:
        """Get the event indicators where the FMU stands; returns False if the FMU cannot compute them there."""
        if not self._get_indicators():
            return False
        indicators[:] = self._indicators
        return True

    def read(self, states: Vector) -> None:
        """Get the states, and their nominal values, as they are after an event.

        A nominal value of 0 is replaced by 1, a negative one by its magnitude: FMI demands values above 0.
        """
        self._get_states()
        states[:] = self._states
        self._get_nominals()
        np.abs(self.nominals, out=self.nominals)
        self.nominals[self.nominals == 0.0] = 1.0

    @property
    def has_jacobian(self) -> bool:
        """Whether the FMU provides directional derivatives of the derivatives by the states."""
        return has_jacobian(self._instance.model)

    @property
    def has_inputs(self) -> bool:
        """Whether the FMU has continuous inputs."""
        variables = self._instance.model.variables
        return any(v.causality is Causality.INPUT and v.is_continuous for v in variables)

    @cached_property
    def jacobian_references(self) -> tuple[list[int], list[int]] | None:
        """Value references of the derivatives and of the states; None if one is not declared."""
        return jacobian_references(self._instance.model)

    @cached_property
    def _multiply(self) -> Transfer:
        assert self.jacobian_references is not None
        return self._instance.directional_derivative(
            *self.jacobian_references, seed=self._seed, sensitivity=self._product
        )

    def multiply_jacobian(self, seed: Vector, product: Vector) -> bool:
        """The matrix of the partial derivatives of the derivatives by the states, where the FMU stands, times the
        seed."""
        self._seed[:] = seed
        self._multiply()
        product[:] = self._product
        return True


def locate(
    low: float,
    high: float,
    at_low: Vector,
    at_high: Vector,
    indicators: Callable[[float], Vector],
) -> float:
    """The first time of a bracket of about one rounding error in which an indicator has changed its domain.

    The domain is compared with that after the last event. Hysteresis is the task of the FMU (FMI 3.0, 3.1.1): an indicator
    that is 0 after an event would change again at once. Twin of ``locate`` in ``kernel/exchange.c``.

    Illinois method on the earliest of the secants of all indicators that have changed; each trial looks at all of them.

    Parameters
    ----------
    low, high : float
        Times in s: at ``low`` none has changed, at ``high`` at least one has. At the returned time one has, too.
    at_low, at_high : shape (m,)
        The indicators there; overwritten.
    indicators : function
        Of a time in s between both: shape (m,), borrowed until the next call.
    """
    start = at_low.tolist()
    domains: NDArray[np.bool_] = at_low > 0.0
    low_weight = high_weight = 1.0
    moved = 0  # the end that was moved last: -1 for the low one
    for trial in range(1, MOST_TRIALS):
        if is_located(low, high):
            break
        middle = next_trial(
            low,
            high,
            low_weight,
            high_weight,
            start,
            at_low.tolist(),
            at_high.tolist(),
            len(start),
            trial % BISECT_EVERY == 0,
        )
        now = indicators(middle)
        if ((now > 0.0) != domains).any():
            high, at_high[:] = middle, now
            low_weight, high_weight = 0.5 * low_weight if moved > 0 else 1.0, 1.0
            moved = 1
        else:
            low, at_low[:] = middle, now
            low_weight, high_weight = 1.0, 0.5 * high_weight if moved < 0 else 1.0
            moved = -1
    return high
