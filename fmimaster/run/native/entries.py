"""The entries of all instances of a run, each as its binding says how it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.instance import Instance, KernelInterface
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.run.native.context import Context
from fmimaster.run.native.exchange import ExchangeEntry
from fmimaster.run.native.instances import (
    VERSIONS,
    Entry,
    FmuEntry,
    PythonEntry,
    Version,
)
from fmimaster.run.native.isolated import IsolatedEntry, RemoteInstance


def make_entries(context: Context, instances: Sequence[Instance], n_places: int) -> list[Entry]:
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
) -> Entry:
    """The entry of an instance, as it says itself how it is called.

    Parameters
    ----------
    places
        Room for the addresses of its saved FMU states.
    functions
        Library → addresses of its functions; those of a new library are added.
    """
    binding = instance.binding
    if binding.adaptation is not None:
        from fmimaster.run.native.adaptation import AdaptationEntry  # few systems need it

        return AdaptationEntry(binding.adaptation, len(places))
    python = PythonEntry(context, i, instance)
    if isinstance(instance, RemoteInstance):
        return IsolatedEntry(python, instance)
    if binding.interface is KernelInterface.PYTHON:
        return python
    if binding.library not in functions:
        functions[binding.library] = _functions_of(VERSIONS[binding.interface], binding.address)
    kind: type[FmuEntry] = FmuEntry
    if binding.exchange is not None:
        kind = ExchangeEntry
    elif binding.scheduled is not None:
        from fmimaster.run.native.scheduled import ScheduledEntry  # as above

        kind = ScheduledEntry
    return kind(python, binding, places, functions[binding.library])


def _functions_of(version: Version, address: Callable[[str], int]) -> Any:
    """Addresses of the FMI functions of a library."""
    names = [version.name(function) for function in range(lib.FM_FUNCTIONS)]
    addresses = [address(ffi.string(name).decode()) if name else 0 for name in names]
    return ffi.new("void *[]", [ffi.cast("void *", a) for a in addresses])
