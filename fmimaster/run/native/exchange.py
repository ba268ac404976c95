"""Model Exchange FMUs as the kernel steps them, also by CVODE: their memory and settings are lent to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.call_log import DISCARD
from fmimaster.fmu.kernel_entry import ExchangeParts, KernelInterface
from fmimaster.fmu.model_exchange.integrator import CvodeParts, KernelIntegrators
from fmimaster.fmu.model_exchange.one_step import DISCARDED, NO_DERIVATIVES, TOO_SHORT
from fmimaster.fmu.model_exchange.sundials import sundials
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.native.instances import READ, FmuEntry, Lent
from fmimaster.system.model import DataType

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


_STUCK = {
    lib.FM_NO_DERIVATIVES: NO_DERIVATIVES,
    lib.FM_TOO_SHORT: TOO_SHORT,
    lib.FM_STATES_DISCARDED: DISCARDED,
}


class ExchangeEntry(FmuEntry, KernelIntegrators):
    """A Model Exchange FMU as the kernel calls it."""

    def __init__(self, lent: Lent, parts: ExchangeParts) -> None:
        super().__init__(lent)
        self._parts = parts
        self._n_places = len(lent.places)
        self._exchange = x = ffi.new("fm_exchange *")
        self._arrays: list[Any] = []
        self._steps: Any = None
        lent.python.execute_events = parts.execute_events
        x.fmu, x.python = self._fmu, lent.python.entry
        x.version = 2 if lent.binding.interface is KernelInterface.FMI2 else 3
        x.execute_events = lib.fm_python_events
        x.stops, x.copies, x.completes = parts.stops, parts.copies, parts.completes
        x.remembers = parts.remembers
        lib.fm_exchange_table(x, self.entry)
        self._lend_memory()
        parts.when_prepared(self._prepare)

    def _lend_memory(self) -> None:
        """The memory of the instance, which has its size when Initialization Mode is entered, and room for copies."""
        memory, x = self._parts.memory(), self._exchange
        x.n, x.m, x.size = len(memory.states), len(memory.indicators), len(memory.values)
        places = np.zeros(self._n_places * len(memory.values))
        self._arrays = [
            ffi.from_buffer("double[]", array)
            for array in (memory.values, memory.states, memory.nominals, memory.indicators, places)
        ]
        x.memory, x.states, x.nominals, x.indicators, x.places = self._arrays

    def _prepare(self) -> None:
        self._lend_memory()
        x = self._exchange
        for name, size in {"there": x.m, "at_low": x.m, "at_high": x.m, "z": x.m, "y": x.n}.items():
            setattr(x, name, self._room(size))
        self._parts.integration().continue_in(self)

    def dormand_prince(self, relative: float, absolute: float) -> None:
        """Continue by the method of Dormand and Prince."""
        self._continue_by(ffi.new("fm_one_step *", {"relative": relative, "absolute": absolute}))

    def euler(self, step: float) -> None:
        """Continue by the Euler method."""
        self._continue_by(ffi.new("fm_one_step *", {"step": step}), is_euler=True)

    def cvode(self, parts: CvodeParts) -> None:
        """Continue by CVODE."""

        self._steps = lent = LentCvode(parts, self._parts.jacobian_references)
        self._version.bind_derivative(self._fmu, ffi.addressof(lent.cvode, "jacobian"))
        lib.fm_exchange_cvode(self._exchange, lent.cvode)

    def _continue_by(self, steps: Any, *, is_euler: bool = False) -> None:
        x, self._steps = self._exchange, steps
        steps.states, steps.before = self._room(x.n), x.states
        steps.slopes = self._room(x.n * lib.FM_MOST_STAGES)
        lib.fm_exchange_one_step(x, steps, is_euler)

    def _room(self, size: int) -> Any:
        self._arrays.append(ffi.new("double[]", size))
        return self._arrays[-1]

    def bind(
        self, call: Any, group: Group, segment: Segment, values: NDArray[Any] | None = None
    ) -> None:
        """Make an FMI call ready; discrete inputs go through Python, because they need Event Mode."""
        if group in READ or group is Group.CONTINUOUS or segment.type is DataType.CLOCK:
            super().bind(call, group, segment, values)
        else:
            self._python.bind(call, group, segment, values)

    def raise_failure(self, function: str, status: int, step: float) -> None:
        """Raise the error in the words of the instance."""
        parts = self._parts
        if status in _STUCK:
            raise parts.stuck(parts.memory().time, _STUCK[status])
        if status == lib.FM_STUCK:
            raise parts.stuck(parts.memory().time, parts.integration().message)
        if status == lib.FM_BEHIND_EVENT:
            raise parts.behind_event(self._exchange.wanted)
        if status == lib.FM_REFUSED:
            status = DISCARD
        super().raise_failure(function, status, step)
