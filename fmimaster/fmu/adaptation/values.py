"""The values of an element, in memory that Python and the kernel share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.system.model import DataType

SLOT_BYTES = 8
"""Size of a slot; a value of any numeric type stands at its start."""


class Values:
    """Values by name. Each lies in a slot of its own, with its own type.

    Parameters
    ----------
    types : name → DataType
        Numeric types, Boolean and Clock; the slots are in this order.

    Attributes
    ----------
    memory : shape (number of values,)
        The slots as bits.
    places : name → int
        Numbers of the slots.
    """

    def __init__(self, types: Mapping[str, DataType]) -> None:
        self.memory: NDArray[np.uint64] = np.zeros(len(types), np.uint64)
        self.places = {name: k for k, name in enumerate(types)}
        slots: Any = self.memory.data.cast("B")
        self._slots: dict[str, Any] = {}
        for name, kind in types.items():
            begin = self.places[name] * SLOT_BYTES
            end = begin + kind.dtype.itemsize
            self._slots[name] = slots[begin:end].cast(kind.dtype.char)

    def __contains__(self, name: str) -> bool:
        return name in self._slots

    def __getitem__(self, name: str) -> Any:
        """A float, int or bool."""
        return self._slots[name][0]

    def __setitem__(self, name: str, value: Any) -> None:
        self._slots[name][0] = value
