"""Signals that mark the rows in which an instance does not take part any more.

As signals of the run they are in each format of results, and a step that is undone restores them. Masked outputs would hide
the values that are held.
"""

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


def mark_slots(plan: Plan) -> Mapping[int, int]:
    """Instance → the slot of its mark."""
    signals = plan.layout.signals
    named = {i: mark_name(planned.name) for i, planned in enumerate(plan.instances)}
    return {i: signals[name][1] for i, name in named.items() if name in signals}


def marks_of_events(plan: Plan) -> list[list[int]]:
    """For each event the slots of the marks of its members."""
    slots = mark_slots(plan)
    return [
        [slots[m.instance] for m in event.members if m.instance in slots] for event in plan.events
    ]


def marks(plan: Plan, store: ValueStore) -> Mapping[int, Callable[[], None]]:
    """Instance → a function that sets its mark. All marks are cleared."""
    found = {}
    for i, slot in mark_slots(plan).items():
        values = store.values[DataType.FLOAT64]
        values[slot] = 0.0
        found[i] = partial(values.__setitem__, slot, 1.0)
    return found
