"""Memory of instances that Python and the kernel share: values of an element, an instance with an integrator, model
partitions.

Each is one array or one record, whose copy is a saved state. The kernel's own names for its parts are in ``kernel.h``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType

SLOT_BYTES = 8
"""Size of a slot; a value of any numeric type stands at its start."""


class ElementValues:
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


class MemoryPlace(IntEnum):
    """Places of single numbers, in the order of those in ``kernel.h``."""

    TIME = 0
    """In s."""
    NEXT_EVENT = 1
    """Time in s of the next time event; inf for none."""
    SIZE = 2
    """Length in s of the step that the integrator tries next; 0 if it is not known."""
    MODE = 3
    """A :class:`ExchangeMode`."""
    EVENTS = 4
    """How often Event Mode was entered."""
    ENDS = 5
    """1 if the FMU has requested the end of the run."""
    UNTOLD = 6
    """1 if ``CompletedIntegratorStep`` waits until no copy of earlier states can be restored."""
    STEP_EVENT = 7
    """1 if only ``CompletedIntegratorStep`` has requested the event that follows."""


class ExchangeMode(IntEnum):
    """The mode that the FMU is in, as far as steps depend on it."""

    INITIALIZATION = 0
    EVENT = 1
    CONTINUOUS_TIME = 2


class ExchangeMemory:
    """What an instance with an integrator remembers between steps: one array.

    If the FMU cannot save its state, the copy is all that is saved. It does not contain the effect of an event on discrete
    variables, so such an event cannot be undone.

    Attributes
    ----------
    values : shape (number of all numbers,)
        All of it.
    states, nominals : shape (n,)
    indicators : shape (m,)
        Event indicators at ``TIME``. Above 0, or at most 0: a change is an event (FMI 3.0, 3.1.1).
    """

    def __init__(self, n: int, m: int) -> None:
        first = len(MemoryPlace)
        self.values = np.zeros(first + 2 * n + m)
        self.states = self.values[first : first + n]
        self.nominals = self.values[first + n : first + 2 * n]
        self.indicators = self.values[first + 2 * n :]
        self.nominals[:] = 1.0
        self[MemoryPlace.NEXT_EVENT] = inf

    @property
    def time(self) -> float:
        """Time in s that the instance has reached."""
        return self[MemoryPlace.TIME]

    def __getitem__(self, number: MemoryPlace) -> float:
        return float(self.values[number])

    def __setitem__(self, number: MemoryPlace, value: float) -> None:
        self.values[number] = value


_INTERVALS = ("counter", "resolution", "seconds", "qualifier")


class ScheduledMemory:
    """What a Scheduled Execution instance remembers beside its FMU: one record, whose fields are those of ``fm_schedule``.

    The order of its clocks is that in which they are activated.

    Parameters
    ----------
    n_clocks, n_countdowns : int

    Attributes
    ----------
    values : record
        All of it.
    now : shape ()
        Time in s.
    n_activations : shape ()
    is_set : shape ()
        Whether a variable was set after the last activation.
    activated : shape (n_clocks,)
        Time in s of the last activation; -inf before the first one.
    due : shape (n_clocks,)
        Clocks that tick now, whose partitions are not activated yet.
    active : shape (n_clocks,)
        Output clocks that the FMU has activated, which are not read yet.
    announced : Intervals
        Of the countdown clocks. CHANGED: the FMU has told it in ``ClockUpdate``, and it is not read yet.
    """

    def __init__(self, n_clocks: int, n_countdowns: int) -> None:
        kinds = (np.uint64, np.uint64, np.float64, np.int32)
        fields: list[Any] = [  # from large to small ones: each is aligned
            ("now", np.float64),
            ("n_activations", np.int64),
            ("activated", np.float64, n_clocks),
            *((name, kind, n_countdowns) for name, kind in zip(_INTERVALS, kinds, strict=True)),
            ("is_set", np.bool_),
            ("due", np.bool_, n_clocks),
            ("active", np.bool_, n_clocks),
        ]
        self.values: NDArray[Any] = np.zeros((), fields)
        self.now, self.n_activations, self.is_set = (
            self.values[name] for name in ("now", "n_activations", "is_set")
        )
        self.activated, self.due, self.active = (
            self.values[name] for name in ("activated", "due", "active")
        )
        self.announced = Intervals(*(self.values[name] for name in _INTERVALS))
        self.clear()

    def clear(self) -> None:
        """Nothing is remembered: the state right after the instantiation."""
        self.values[...] = np.zeros_like(self.values)
        self.activated[:] = -np.inf
