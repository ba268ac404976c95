"""The entries of all instances of a run, each as its binding says how it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fmimaster.fmu.instance import Instance, KernelInterface
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.run.native.exchange import ExchangeEntry
from fmimaster.run.native.instances import (
    VERSIONS,
    Context,
    Entry,
    FmuEntry,
    PythonEntry,
    Version,
)


def make_entries(context: Context, instances: Sequence[Instance], n_places: int) -> list[Entry]:
    """The entries of all instances, each as it says itself how it is called."""
    functions: dict[int, Any] = {}  # per library
    # an instance uses few of the places: memory of the others is never touched
    places = np.zeros((len(instances), max(n_places, 1)), np.uintp)
    entries: list[Entry] = []
    for i, instance in enumerate(instances):
        python, binding = PythonEntry(context, i, instance), instance.binding
        if binding.interface is KernelInterface.PYTHON:
            entries.append(python)
            continue
        if binding.library not in functions:
            functions[binding.library] = _functions_of(VERSIONS[binding.interface], binding.address)
        kind = FmuEntry if binding.exchange is None else ExchangeEntry
        entries.append(kind(python, binding, places[i], functions[binding.library]))
    return entries


def _functions_of(version: Version, address: Callable[[str], int]) -> Any:
    """Addresses of the FMI functions of a library."""
    names = [version.name(function) for function in range(lib.FM_FUNCTIONS)]
    addresses = [address(ffi.string(name).decode()) if name else 0 for name in names]
    return ffi.new("void *[]", [ffi.cast("void *", a) for a in addresses])
