"""The differential equations of a Model Exchange FMU, by the calls of FMI 2.0 or 3.0."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property

import numpy as np

from fmimaster.fmu.binary import BinaryInstance
from fmimaster.fmu.instance import Transfer
from fmimaster.fmu.model_exchange.choice import has_jacobian, jacobian_references
from fmimaster.fmu.model_exchange.integrator import Vector
from fmimaster.fmu.status import DISCARD, SUCCESS
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
        self.n, self.m, self.nominals = n, m, nominals
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
