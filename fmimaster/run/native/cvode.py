"""CVODE as the kernel calls it: the memory and the vectors of an integration, lent to ``kernel/cvode.c``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fmimaster.fmu.model_exchange.integrator import CvodeParts
from fmimaster.fmu.model_exchange.sundials import sundials
from fmimaster.kernel._kernel import ffi, lib

JacobianReferences = Callable[[], tuple[list[int], list[int]] | None]

_FUNCTIONS = {
    "step": "CVode",
    "interpolate": "CVodeGetDky",
    "restart": "CVodeReInit",
    "set_stop_time": "CVodeSetStopTime",
    "set_tolerances": "CVodeSVtolerances",
    "elements": "N_VGetArrayPointer",
    "columns": "SUNDenseMatrix_Data",
}
"""Name in ``fm_sundials`` → function of SUNDIALS."""


class LentCvode:
    """The integration of one instance, which CVODE then continues by calls of the kernel only.

    Attributes
    ----------
    cvode : fm_cvode
        Its Jacobian is not bound yet.
    """

    def __init__(self, parts: CvodeParts, jacobian_references: JacobianReferences) -> None:
        self.cvode = c = ffi.new("fm_cvode *")
        self._kept: list[Any] = []
        for name, function in _FUNCTIONS.items():
            kind = ffi.typeof(getattr(c.sundials, name))
            setattr(c.sundials, name, ffi.cast(kind, sundials().address(function)))
        derive, linearize = (ffi.addressof(lib, f"fm_cvode_{f}") for f in ("derive", "linearize"))
        memory, addresses = parts.allocate(_address(derive), _address(linearize), _address(c))
        c.memory = ffi.cast("void *", memory)
        vectors = (ffi.cast("void *", vector) for vector in addresses)
        c.states_vector, c.work_vector, c.tolerances_vector = vectors
        n = len(parts.states)
        c.states, c.work = self._doubles(parts.states), self._doubles(parts.work)
        c.tolerances = self._doubles(parts.tolerances)
        c.slopes, c.slopes_before = (self._doubles(np.zeros(n)) for _ in range(2))
        c.relative, c.absolute = parts.relative, parts.absolute
        c.has_inputs = parts.has_inputs
        if parts.has_jacobian:
            self._lend_jacobian(n, jacobian_references())

    def _lend_jacobian(self, n: int, found: tuple[list[int], list[int]] | None) -> None:
        call = self.cvode.jacobian
        assert found is not None
        for what, references in zip(("unknowns", "knowns"), found, strict=True):
            self._kept.append(ffi.new("uint32_t[]", references))
            setattr(call, what, self._kept[-1])
            setattr(call, f"n_{what}", len(references))
        call.n_sensitivity = call.n_seed = n
        call.sensitivity, call.seed = (self._doubles(np.zeros(n)) for _ in range(2))

    def _doubles(self, array: Any) -> Any:
        self._kept.append(ffi.from_buffer("double[]", array))
        return self._kept[-1]


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))
