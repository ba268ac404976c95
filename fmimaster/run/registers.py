"""Registers: all data that change during a run, except the value store, the FMUs and the state of the loop over
time."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.apart.shared_run import marks

RegisterCopy = tuple[NDArray[Any], ...]
"""The arrays of the registers, in their order."""


class Counted(IntEnum):
    """Kinds of calls that are counted: the rows of ``Registers.calls``."""

    STEPS = 0
    RESTORES = 1
    EVENTS = 2


class Registers:
    """Memory of an executor from one execution to the next.

    The arrays are allocated once. Both executors work on them; the kernel borrows them.

    Parameters
    ----------
    n_instances, n_places, n_buffers : int
    start : float
        Initial time in s of all instances.

    Attributes
    ----------
    at : shape (n_instances,)
        Present time of each instance in s.
    stepped : shape (n_instances,)
        Number of the step that led each instance to its state; goes back with it.
    pending : shape (n_instances,)
        Whether ``DoStep`` has requested an event that the instance has not had: it must not step on before.
    follows_polynomials : shape (n_instances,)
        Whether the instance has been given a polynomial: then it is given one each time.
    next_events : shape (n_instances,)
        Time in s of the next event that each instance has named; inf for none.
    initialized : shape (n_instances,)
        Whether each instance has left Initialization Mode, and is not terminated. It is not copied: a run that continues
        initializes all.
    calling : shape (n_instances,)
        What the integrator of each instance has called last, for the kernel; it is not copied.
    calls : shape (number of kinds, n_instances)
        How often each kind of call was made, see :class:`Counted`.
    kept_from : shape (n_instances,)
        Time in s of the earliest state of each instance that was saved in the present execution; inf if none was. It is
        nothing that is remembered, and not copied.
    place_at, place_stepped : shape (n_places,)
        ``at`` and ``stepped`` of the instance that was saved in a place.
    kept_limit, kept_requests : shape (n_buffers,), (n_buffers, n_instances)
        Limit in s, and instances that requested an event, when a buffer was kept.
    """

    def __init__(self, n_instances: int, n_places: int, n_buffers: int, start: float) -> None:
        self.at = np.full(n_instances, start)
        self.stepped = np.zeros(n_instances, np.int64)
        self.pending = np.zeros(n_instances, np.uint8)
        self.follows_polynomials = np.zeros(n_instances, np.intc)
        self.next_events = np.full(n_instances, np.inf)
        self.calls = np.zeros((len(Counted), n_instances), np.int64)
        self.kept_from = np.full(n_instances, np.inf)
        self.initialized = marks(n_instances)
        self.calling = marks(n_instances)
        self.place_at = np.full(n_places, start)
        self.place_stepped = np.zeros(n_places, np.int64)
        self.kept_limit = np.full(n_buffers, start)
        self.kept_requests = np.zeros((n_buffers, n_instances), np.uint8)

    def by_instance(self) -> RegisterCopy:
        """The arrays with one value for each instance, in their last dimension."""
        return (
            self.at,
            self.stepped,
            self.pending,
            self.follows_polynomials,
            self.next_events,
            self.calls,
            self.initialized,
        )

    def copy(self) -> RegisterCopy:
        """A copy of all registers."""
        return tuple(array.copy() for array in self._arrays())

    def restore(self, copy: RegisterCopy) -> None:
        """Restore the result of :meth:`copy`, from registers of the same sizes."""
        for array, saved in zip(self._arrays(), copy, strict=True):
            array[...] = saved

    def _arrays(self) -> RegisterCopy:
        return (
            self.at,
            self.stepped,
            self.pending,
            self.follows_polynomials,
            self.next_events,
            self.calls,
            self.place_at,
            self.place_stepped,
            self.kept_limit,
            self.kept_requests,
        )
