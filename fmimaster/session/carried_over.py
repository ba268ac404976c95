"""Inputs and outputs of instances that stay when the structure of a system changes: from one value store to another."""

from __future__ import annotations

from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore


def carry_over(before: Plan, old: ValueStore, after: Plan, new: ValueStore) -> None:
    """What instances have as inputs and outputs goes from one value store to another."""
    numbers = {planned.name: i for i, planned in enumerate(before.instances)}
    for i, planned in enumerate(after.instances):
        j = numbers.get(planned.name)
        if j is None:
            continue
        _hold_inputs(before, old, j)
        for group in (Group.OUTPUTS, Group.CONTINUOUS, Group.DISCRETE):
            for name in (v.name for s in after.layout.segments(i, group) for v in s.variables):
                if (place := before.layout.slots.get((j, group, name))) is not None:
                    kind, slot = after.layout.slots[i, group, name]
                    new.values[kind][slot] = old.values[kind][place[1]]


def _hold_inputs(plan: Plan, store: ValueStore, i: int) -> None:
    """Continuous inputs that follow polynomials ← their present values."""
    if store.courses.degree[i] >= 0:
        (segment,) = plan.layout.segments(i, Group.CONTINUOUS)
        highest = plan.instances[i].highest_order
        values = store.courses.value(i, store.interval[1], highest)
        store.values[segment.type][segment.start : segment.stop] = values
