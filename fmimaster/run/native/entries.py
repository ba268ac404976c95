"""The entries of all instances of a run, each as its binding says how it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.fmu.instance import Instance
from fmimaster.fmu.kernel_entry import (
    Binding,
    KernelEntries,
    Requests,
)
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.run.native.fmu_entry import VERSIONS, FmuEntry, Lent
from fmimaster.run.native.header import Context
from fmimaster.run.native.instances import IsolatedEntry, KernelEntry, PythonEntry

if TYPE_CHECKING:
    from fmimaster.fmu.adaptation_instance import AdaptationInstance
    from fmimaster.fmu.model_exchange.instance import ModelExchangeInstance
    from fmimaster.fmu.scheduled import ScheduledInstance


def make_entries(
    context: Context, instances: Sequence[Instance], n_places: int
) -> list[KernelEntry]:
    """The entries of all instances."""
    functions: dict[int, Any] = {}  # per library
    # an instance uses few of the places: memory of the others is never touched
    places = np.zeros((len(instances), max(n_places, 1)), np.uintp)
    return [
        make_entry(context, i, instance, places[i], functions)
        for i, instance in enumerate(instances)
    ]


def make_entry(
    context: Context,
    i: int,
    instance: Instance,
    places: NDArray[np.uintp],
    functions: dict[int, Any],
) -> KernelEntry:
    """The entry of an instance, as it says itself how it is called.

    Parameters
    ----------
    places
        Room for the addresses of its saved FMU states.
    functions
        Library → addresses of its functions; those of a new library are added.
    """
    return instance.kernel_entry(_Ways(context, i, instance, places, functions))


@dataclass
class _Ways(KernelEntries[KernelEntry]):
    """Makes the entry of one instance; parameters as of :func:`make_entry`. What few systems need is imported late."""

    context: Context
    i: int
    instance: Instance
    places: NDArray[np.uintp]
    functions: dict[int, Any]

    def in_python(self) -> PythonEntry:
        """By the methods of the instance."""
        return PythonEntry(self.context, self.i, self.instance)

    def of_fmu(self, binding: Binding) -> KernelEntry:
        """By the functions of a Co-Simulation FMU."""
        return FmuEntry(self._lent(binding))

    def of_model_exchange(self, binding: Binding, instance: ModelExchangeInstance) -> KernelEntry:
        """By the functions of a Model Exchange FMU, with an integrator of the kernel."""
        from fmimaster.run.native.exchange import ExchangeEntry

        return ExchangeEntry(self._lent(binding), instance)

    def of_scheduled(self, binding: Binding, instance: ScheduledInstance) -> KernelEntry:
        """By the functions of a Scheduled Execution FMU, whose partitions are activated in C."""
        from fmimaster.run.native.scheduled import ScheduledEntry

        return ScheduledEntry(self._lent(binding), instance)

    def of_element(self, instance: AdaptationInstance[Any]) -> KernelEntry:
        """By the twin of an element of semantic adaptation."""
        from fmimaster.run.native.adaptation import AdaptationEntry

        return AdaptationEntry(instance, len(self.places))

    def of_other_process(self, requests: Requests) -> KernelEntry:
        """By requests to another process."""
        return IsolatedEntry(self.in_python(), requests)

    def _lent(self, binding: Binding) -> Lent:
        functions = self.functions
        if binding.library not in functions:
            functions[binding.library] = _functions_of(binding)
        return Lent(self.in_python(), binding, self.places, functions[binding.library])


def _functions_of(binding: Binding) -> Any:
    """Addresses of the FMI functions of a library."""
    version = VERSIONS[binding.prefix]
    names = [version.name(function) for function in range(lib.FM_FUNCTIONS)]
    addresses = [binding.address(ffi.string(name).decode()) if name else 0 for name in names]
    return ffi.new("void *[]", [ffi.cast("void *", a) for a in addresses])
