"""Signals that mark the rows in which an instance does not take part any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType


def mark_name(instance: str) -> str:
    """The name of the signal, and of its column in the results."""
    return f"{instance}.dropped"


def mark_signals(instances: Iterable[str]) -> tuple[Signal, ...]:
    """A signal for each of these instances: 0, or 1 in rows in which it does not take part."""
    return tuple(Signal(mark_name(name), is_mark=True) for name in instances)


def marks(plan: Plan, store: ValueStore) -> Mapping[int, Callable[[], None]]:
    """Instance → a function that sets its mark. All marks are cleared."""
    found = {}
    for i, planned in enumerate(plan.instances):
        if (signal := plan.layout.signals.get(mark_name(planned.name))) is not None:
            _, at = signal
            values = store.values[DataType.FLOAT64]
            values[at] = 0.0
            found[i] = partial(values.__setitem__, at, 1.0)
    return found
