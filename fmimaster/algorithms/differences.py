"""Partial derivatives of outputs that depend linearly on inputs, by differences in Initialization Mode or Event Mode."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from fmimaster.base.data import dataclass
from fmimaster.plan.corrections import Correction, Means
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import FunctionHook
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

SMALL = 1e-4
"""Part of its magnitude by which an input is shifted if outputs may depend on it in any way: far above rounding, and small
for a curve."""


@dataclass(frozen=True, slots=True, eq=False)
class _Input:
    """One element of an input that is shifted."""

    instance: int
    correction: Correction
    route: Route
    element: int
    """Number of the route."""
    column: int
    """Of the partial derivatives."""
    buffer: int
    """Outputs of all instances with unchanged inputs."""

    def value(self, store: ValueStore) -> float:
        """The input without the shift."""
        outputs, _ = store.buffers[self.buffer]
        source = float(outputs[self.route.source_type][self.route.source][self.element])
        transformation = self.route.transformation
        return transformation.factor * source + transformation.offset

    @property
    def slot(self) -> int:
        """Slot of the input among the Float64 values."""
        return int(self.route.target.start) + self.element

    def shift(self, store: ValueStore) -> None:
        """Shift it by its magnitude: the effect of rounding is smallest, and the outputs are linear. Where that is only
        assumed, it is shifted by a small part of it."""
        value = self.value(store)
        variable = self.route.link.input
        size = max(abs(value), abs(variable.nominal))
        if self.correction.means is Means.ASSUMED:
            size *= SMALL
        above = (inf if variable.max is None else variable.max) - value
        below = value - (-inf if variable.min is None else variable.min)
        change = min(size, above) if above >= min(size, below) else -min(size, below)
        store.values[DataType.FLOAT64][self.slot] = value + change

    def compare(self, store: ValueStore) -> None:
        """Change of the outputs, divided by the change of the input → partial derivatives."""
        values = store.values[DataType.FLOAT64]
        before = store.buffers[self.buffer][0][DataType.FLOAT64]
        change = values.item(self.slot) - self.value(store)
        slots = [k for slot in self.correction.slots for k in range(slot.start, slot.stop)]
        for row, k in enumerate(slots):
            difference = (values.item(k) - before.item(k)) / change if change else 0.0
            store.partials[self.instance][row, self.column] = difference


def emit_differences(plan: Plan, p: Emitter, instances: Iterable[int]) -> None:
    """Measure the partial derivatives for the correction of outputs of these instances, then restore all values.

    Each input is shifted alone, and the outputs are read. The instances are in Initialization Mode or in Event Mode,
    with inputs that agree with the connected outputs.
    """
    for i in sorted(p.corrected & set(instances)):
        correction = plan.corrections[i]
        if not correction.is_measured:
            continue
        p.get(i)
        buffer, column = p.keep(), 0
        for route in plan.routes[i, Group.CONTINUOUS]:
            for element in range(route.size):
                shifted = _Input(i, correction, route, element, column, buffer)
                name = f"{plan.instances[i].name}.{route.link.input.name}"
                p.move(i)
                p.call(FunctionHook(f"shift of {name}", shifted.shift))
                p.set_inputs(i)
                p.get(i)
                p.call(FunctionHook(f"partial derivatives by {name}", shifted.compare))
                p.recall(buffer)
                column += 1
        p.exchange(i)
