"""Model Exchange FMUs as the kernel steps them: their memory and settings, lent to ``kernel/exchange.c``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.instance import Binding, KernelInterface
from fmimaster.fmu.model_exchange.cvode import CvodeIntegration
from fmimaster.fmu.model_exchange.instance import ModelExchangeInstance
from fmimaster.fmu.model_exchange.one_step import (
    DISCARDED,
    NO_DERIVATIVES,
    TOO_SHORT,
    DormandPrince,
    Euler,
)
from fmimaster.fmu.status import DISCARD
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.native.cvode import LentCvode
from fmimaster.run.native.instances import READ, FmuEntry, PythonEntry, guarded
from fmimaster.system.model import DataType

_STUCK = {
    lib.FM_NO_DERIVATIVES: NO_DERIVATIVES,
    lib.FM_TOO_SHORT: TOO_SHORT,
    lib.FM_STATES_DISCARDED: DISCARDED,
}


class ExchangeEntry(FmuEntry):
    """A Model Exchange FMU as the kernel calls it. Parameters as of :class:`FmuEntry`."""

    def __init__(
        self, python: PythonEntry, binding: Binding, places: NDArray[np.uintp], functions: Any
    ) -> None:
        super().__init__(python, binding, places, functions)
        self._instance: ModelExchangeInstance = binding.exchange
        self._n_places = len(places)
        self._exchange = x = ffi.new("fm_exchange *")
        self._arrays: list[Any] = []
        self._steps: Any = None
        x.fmu, x.python = self._fmu, python.entry
        x.version = 2 if binding.interface is KernelInterface.FMI2 else 3
        x.execute_events = lib.fm_python_events
        x.stops, x.copies = self._instance.stops, self._instance.copies
        x.completes = self._instance.completes
        x.remembers = self._instance.integrator.remembers
        lib.fm_exchange_table(x, self.entry)
        self._lend_memory()
        self._instance.prepared = self._prepare
        if self._instance.is_started:  # in an earlier structure of the system
            self._prepare()

    def _lend_memory(self) -> None:
        """The memory of the instance, which has its size when Initialization Mode is entered, and room for copies."""
        memory, x = self._instance.memory, self._exchange
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
        instance = self._instance
        if isinstance(instance.integration, CvodeIntegration):
            self._steps = lent = LentCvode(instance.integration, instance.equations)
            jacobian = ffi.addressof(lent.cvode, "jacobian")
            self._version.bind_derivative(self._fmu, jacobian)
            lib.fm_exchange_cvode(x, lent.cvode)
            return
        self._steps = s = ffi.new("fm_one_step *")
        integrator = instance.integrator
        if isinstance(integrator, DormandPrince):
            s.relative, s.absolute = integrator.tolerances(instance.tolerance)
        elif isinstance(integrator, Euler):
            s.step = integrator.step
        s.states, s.before = self._room(x.n), x.states
        s.slopes = self._room(x.n * lib.FM_MOST_STAGES)
        lib.fm_exchange_one_step(x, s, isinstance(integrator, Euler))

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
        if status in _STUCK:
            raise self._instance.stuck(self._instance.memory.time, _STUCK[status])
        if status == lib.FM_STUCK:
            integration = self._instance.integration
            assert isinstance(integration, CvodeIntegration)
            raise self._instance.stuck(self._instance.memory.time, integration.message)
        if status == lib.FM_BEHIND_EVENT:
            raise self._instance.behind_event(self._exchange.wanted)
        if status == lib.FM_REFUSED:
            status = DISCARD
        super().raise_failure(function, status, step)


@ffi.def_extern("fm_python_events", error=lib.FM_ERROR)  # type: ignore[untyped-decorator]
def _execute_events(self: Any) -> int:
    entry: PythonEntry = ffi.from_handle(self)
    instance = entry.instance
    assert isinstance(instance, ModelExchangeInstance)
    return guarded(entry, instance.execute_events)
