"""Changes of values: of outputs from one pass of an iteration to the next, and of discrete values from step to step.

Changes of discrete values are events for instances with Event Mode, or are located by a step-size rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Twin
from fmimaster.program.store import ValueStore
from fmimaster.run.state import RunState
from fmimaster.system.model import DataType


def nominals_of_outputs(plan: Plan) -> dict[DataType, NDArray[np.float64]]:
    """Nominal value of each output slot; inf for signals, whose changes are ignored."""
    nominals = {
        kind: np.ones(size)
        for kind, size in plan.layout.output_sizes.items()
        if size and kind.is_float
    }
    for (i, group, name), (kind, slot) in plan.layout.slots.items():
        if group is Group.OUTPUTS and kind.is_float:
            variable = plan.instances[i].model.variable(name)
            assert variable is not None
            nominals[kind][slot] = variable.nominal
    for _, k in plan.layout.signals.values():
        nominals[DataType.FLOAT64][k] = np.inf
    return nominals


def largest_change(
    before: dict[DataType, NDArray[Any]],
    store: ValueStore,
    nominals: dict[DataType, NDArray[np.float64]],
) -> float:
    """Largest change of an output, relative to the larger of nominal value and magnitude; inf if another one differs."""
    largest = 0.0
    for kind, now in store.outputs.items():
        if kind.is_float:
            scale = np.maximum(nominals[kind], np.abs(now))
            with np.errstate(invalid="ignore"):  # an output that became infinite has not converged
                change = np.abs(now - before[kind]) / scale
            largest = max(largest, np.inf if np.isnan(change).any() else float(np.max(change)))
        elif not np.array_equal(now, before[kind]):
            return np.inf
    return largest


class Changes:
    """Compares discrete variables with what they were; the old values are in the state of the run."""

    def __init__(self, plan: Plan, store: ValueStore, state: RunState) -> None:
        self._store = store
        self._state = state
        self.inputs = [
            (route.source_type, route.source, i)
            for (i, group), routes in plan.routes.items()
            if group is Group.DISCRETE and plan.instances[i].event_mode
            for route in routes
        ]
        self._outputs = [
            (route.source_type, route.source, plan.instances[route.link.source].name)
            for route in plan.discrete_routes
        ]
        self._lent: dict[DataType, NDArray[Any]] = {}
        """The old values of the inputs, type by type, as twins read them."""
        self._lent_from: list[list[Any]] | None = None

    def note(self) -> None:
        """Use the present values as reference for changes."""
        values = self._store.values
        self._state.discrete_inputs = [values[k][s].tolist() for k, s, _ in self.inputs]
        self._state.discrete_outputs = [values[k][s].tolist() for k, s, _ in self._outputs]

    def inputs_changed(self) -> set[int]:
        """Instances with Event Mode that have a new discrete input."""
        if not self.inputs:
            return set()
        values = self._store.values
        return {
            i
            for (k, s, i), before in zip(self.inputs, self._state.discrete_inputs, strict=True)
            if values[k][s].tolist() != before
        }

    def outputs_changed(self) -> tuple[str, ...]:
        """Components with a connected discrete output that has changed; one for each such connection."""
        values = self._store.values
        return tuple(
            name
            for (k, s, name), before in zip(
                self._outputs, self._state.discrete_outputs, strict=True
            )
            if values[k][s].tolist() != before
        )

    def twins(self) -> Sequence[Twin]:
        """The twins in C that detect whether an input has changed since :meth:`lend`: one for each type."""
        slots: dict[DataType, list[int]] = {}
        for kind, s, _ in self.inputs:
            slots.setdefault(kind, []).extend(range(s.start, s.stop))
        values = self._store.values
        self._lent = {k: np.zeros(len(found), values[k].dtype) for k, found in slots.items()}
        return [
            Twin(
                "changes",
                {
                    "n": len(found),
                    "size": kind.dtype.itemsize,
                    "is_float": kind.is_float,
                    "is_object": kind.dtype == object,
                },
                {
                    "slots": np.array(found, np.int64),
                    "values": values[kind],
                    "before": self._lent[kind],
                },
            )
            for kind, found in slots.items()
        ]

    def lend(self) -> None:
        """The twins count changes from the values from which this does."""
        if self._lent_from is self._state.discrete_inputs:
            return
        self._lent_from = self._state.discrete_inputs
        for kind, lent in self._lent.items():
            old = zip(self.inputs, self._state.discrete_inputs, strict=True)
            lent[:] = [x for (k, _, _), before in old if k is kind for x in before]
