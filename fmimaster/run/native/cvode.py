"""CVODE as the kernel calls it: the memory and the vectors of an integration, lent to ``kernel/cvode.c``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmimaster.fmu.model_exchange.cvode import CvodeIntegration
from fmimaster.fmu.model_exchange.equations import FmuEquations
from fmimaster.fmu.model_exchange.sundials import sundials
from fmimaster.kernel._kernel import ffi, lib

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

    def __init__(self, integration: CvodeIntegration, equations: FmuEquations) -> None:
        self.cvode = c = ffi.new("fm_cvode *")
        self._kept: list[Any] = []
        for name, function in _FUNCTIONS.items():
            kind = ffi.typeof(getattr(c.sundials, name))
            setattr(c.sundials, name, ffi.cast(kind, sundials().address(function)))
        derive, linearize = (ffi.addressof(lib, f"fm_cvode_{f}") for f in ("derive", "linearize"))
        integration.allocate(_address(derive), _address(linearize), _address(c))
        c.memory = ffi.cast("void *", integration.memory.value)
        vectors = (ffi.cast("void *", vector) for vector in integration.vectors)
        c.states_vector, c.work_vector, c.tolerances_vector = vectors
        for name in ("states", "work", "tolerances"):
            setattr(c, name, self._doubles(getattr(integration, name)))
        for name in ("slopes", "slopes_before"):
            setattr(c, name, self._doubles(np.zeros(equations.n)))
        c.relative, c.absolute = integration.relative, integration.absolute
        c.has_inputs = equations.has_inputs
        if integration.has_jacobian:
            self._lend_jacobian(equations)

    def _lend_jacobian(self, equations: FmuEquations) -> None:
        call = self.cvode.jacobian
        assert equations.jacobian_references is not None
        for what, references in zip(
            ("unknowns", "knowns"), equations.jacobian_references, strict=True
        ):
            self._kept.append(ffi.new("uint32_t[]", references))
            setattr(call, what, self._kept[-1])
            setattr(call, f"n_{what}", len(references))
        call.n_sensitivity = call.n_seed = equations.n
        call.sensitivity, call.seed = (self._doubles(np.zeros(equations.n)) for _ in range(2))

    def _doubles(self, array: Any) -> Any:
        self._kept.append(ffi.from_buffer("double[]", array))
        return self._kept[-1]


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))
