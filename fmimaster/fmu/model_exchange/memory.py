"""The memory of an instance with an integrator between steps: one array, whose copy is a saved state.

The kernel works on the same array; the numbers stand in ``kernel.h`` in the same order. If the FMU cannot save its state,
the copy is all that is saved. It does not contain the effect of an event on discrete variables, so such an event cannot
be undone.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf

import numpy as np


class Number(IntEnum):
    """Places of single numbers."""

    TIME = 0
    """In s."""
    NEXT_EVENT = 1
    """Time in s of the next time event; inf for none."""
    SIZE = 2
    """Length in s of the step that the integrator tries next; 0 if it is not known."""
    MODE = 3
    """A :class:`Mode`."""
    EVENTS = 4
    """How often Event Mode was entered."""
    ENDS = 5
    """1 if the FMU has requested the end of the run."""
    UNTOLD = 6
    """1 if ``CompletedIntegratorStep`` waits until no copy of earlier states can be restored."""
    STEP_EVENT = 7
    """1 if only ``CompletedIntegratorStep`` has requested the event that follows."""


class Mode(IntEnum):
    """The mode that the FMU is in, as far as steps depend on it."""

    INITIALIZATION = 0
    EVENT = 1
    CONTINUOUS_TIME = 2


class Memory:
    """The memory of one instance.

    Attributes
    ----------
    values : shape (number of all numbers,)
        All of it.
    states, nominals : shape (n,)
    indicators : shape (m,)
        Event indicators at ``TIME``. Above 0, or at most 0: a change is an event (FMI 3.0, 3.1.1).
    """

    def __init__(self, n: int, m: int) -> None:
        first = len(Number)
        self.values = np.zeros(first + 2 * n + m)
        self.states = self.values[first : first + n]
        self.nominals = self.values[first + n : first + 2 * n]
        self.indicators = self.values[first + 2 * n :]
        self.nominals[:] = 1.0
        self[Number.NEXT_EVENT] = inf

    @property
    def time(self) -> float:
        """Time in s that the instance has reached."""
        return self[Number.TIME]

    def __getitem__(self, number: Number) -> float:
        return float(self.values[number])

    def __setitem__(self, number: Number, value: float) -> None:
        self.values[number] = value
