"""The change of outputs from one pass of an iteration to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
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
