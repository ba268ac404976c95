"""Model Exchange FMUs as the kernel steps them, also by CVODE: their memory and settings are lent to it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.call_log import DISCARD
from fmimaster.fmu.model_exchange.cvode import CvodeIntegration, address_of, sundials
from fmimaster.fmu.model_exchange.instance import ModelExchangeInstance
from fmimaster.fmu.model_exchange.integrator import KernelIntegrators
from fmimaster.fmu.model_exchange.one_step import DISCARDED, NO_DERIVATIVES, TOO_SHORT
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.native.fmu_entry import FmuEntry, Lent
from fmimaster.run.native.header import LentMemory, derivative_fields
from fmimaster.run.native.instances import READ
from fmimaster.system.model import DataType

JacobianReferences: TypeAlias = tuple[list[int], list[int]] | None

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


class _LentCvode(LentMemory):
    """The integration of one instance, which CVODE then continues by calls of the kernel only.

    Attributes
    ----------
    cvode : fm_cvode
        Its Jacobian is not bound yet.
    """

    def __init__(
        self, integration: CvodeIntegration, jacobian_references: JacobianReferences
    ) -> None:
        super().__init__()
        self.cvode = c = ffi.new("fm_cvode *")
        for name, function in _FUNCTIONS.items():
            kind = ffi.typeof(getattr(c.sundials, name))
            setattr(c.sundials, name, ffi.cast(kind, address_of(getattr(sundials(), function))))
        derive, linearize = (ffi.addressof(lib, f"fm_cvode_{f}") for f in ("derive", "linearize"))
        memory, addresses = integration.allocate(_address(derive), _address(linearize), _address(c))
        c.memory = ffi.cast("void *", memory)
        vectors = (ffi.cast("void *", vector) for vector in addresses)
        c.states_vector, c.work_vector, c.tolerances_vector = vectors
        n = len(integration.states)
        self.fill(
            c,
            states=integration.states,
            work=integration.work,
            tolerances=integration.tolerances,
            slopes=np.zeros(n),
            slopes_before=np.zeros(n),
            relative=integration.relative,
            absolute=integration.absolute,
            has_inputs=integration.equations.has_inputs,
        )
        if integration.has_jacobian:
            assert jacobian_references is not None
            self.fill(
                c.jacobian, **derivative_fields(*jacobian_references, np.zeros(n), np.zeros(n))
            )


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


_STUCK = {
    lib.FM_NO_DERIVATIVES: NO_DERIVATIVES,
    lib.FM_TOO_SHORT: TOO_SHORT,
    lib.FM_STATES_DISCARDED: DISCARDED,
}


class ExchangeEntry(FmuEntry, KernelIntegrators):
    """A Model Exchange FMU as the kernel calls it."""

    def __init__(self, lent: Lent, instance: ModelExchangeInstance) -> None:
        super().__init__(lent)
        self._instance = instance
        self._n_places = len(lent.places)
        lent.python.execute_events = instance.execute_events
        self._exchange = self.made(
            "fm_exchange",
            fmu=self.fmu,
            python=lent.python.entry,
            version=int(lent.binding.prefix[-1]),
            execute_events=lib.fm_python_events,
            stops=instance.stops,
            copies=instance.copies,
            completes=instance.completes,
            remembers=instance.integrator.remembers,
        )
        lib.fm_exchange_table(self._exchange, self.entry)
        self._of_run = self.part()
        self._lend_memory()
        instance.when_prepared(self._prepare)

    def _lend_memory(self) -> None:
        """The memory of the instance, which has its size when Initialization Mode is entered, and room for copies."""
        memory = self._instance.memory
        n, m, size = len(memory.states), len(memory.indicators), len(memory.values)
        self._of_run.give_back()
        self._of_run.fill(
            self._exchange,
            n=n,
            m=m,
            size=size,
            memory=memory.values,
            states=memory.states,
            nominals=memory.nominals,
            indicators=memory.indicators,
            places=np.zeros(self._n_places * size),
            y=np.zeros(n),
            goes_back=False,
            **{name: np.zeros(m) for name in ("there", "at_low", "at_high", "z")},
        )

    def _prepare(self) -> None:
        self._lend_memory()
        self._instance.integration.continue_in(self)

    def dormand_prince(self, relative: float, absolute: float) -> None:
        """Continue by the method of Dormand and Prince."""
        self._continue_by(ffi.new("fm_one_step *", {"relative": relative, "absolute": absolute}))

    def euler(self, step: float) -> None:
        """Continue by the Euler method."""
        self._continue_by(ffi.new("fm_one_step *", {"step": step}), is_euler=True)

    def cvode(self, integration: CvodeIntegration) -> None:
        """Continue by CVODE."""
        references = self._instance.equations.jacobian_references
        lent = self._of_run.lent(_LentCvode(integration, references))
        self._version.bind_derivative(self.fmu, ffi.addressof(lent.cvode, "jacobian"))
        lib.fm_exchange_cvode(self._exchange, lent.cvode)

    def _continue_by(self, steps: Any, *, is_euler: bool = False) -> None:
        x = self._exchange
        slopes, lent = np.zeros(x.n * lib.FM_MOST_STAGES), self._of_run
        lent.fill(lent.lent(steps), states=np.zeros(x.n), before=x.states, slopes=slopes)
        lib.fm_exchange_one_step(x, steps, is_euler)

    def bind(self, call: Any, group: Group, segment: Segment, values: NDArray[Any]) -> None:
        """Make an FMI call ready; discrete inputs go through Python, because they need Event Mode."""
        if group in READ or group is Group.CONTINUOUS or segment.type is DataType.CLOCK:
            super().bind(call, group, segment, values)
        else:
            self._python.bind(call, group, segment, values)

    def raise_failure(self, function: str, status: int, step: float) -> None:
        """Raise the error in the words of the instance."""
        instance = self._instance
        if status in _STUCK:
            raise instance.stuck(instance.memory.time, _STUCK[status])
        if status == lib.FM_STUCK:
            raise instance.stuck(instance.memory.time, instance.integration.message)
        if status == lib.FM_BEHIND_EVENT:
            raise instance.behind_event(self._exchange.wanted)
        if status == lib.FM_REFUSED:
            status = DISCARD
        super().raise_failure(function, status, step)
