"""What a Scheduled Execution instance remembers beside its FMU: one record, whose copy belongs to each saved FMU state.

The kernel works on the same record; its fields are those of ``fm_schedule`` in ``kernel.h``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.system.clocks import Intervals

_INTERVALS = ("counter", "resolution", "seconds", "qualifier")


class Memory:
    """The memory of one instance. The order of its clocks is that in which they are activated.

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
