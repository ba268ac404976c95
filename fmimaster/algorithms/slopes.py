"""Measurement whether FMUs use the input derivatives that they accept, before sweeps rely on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

RISE = 1e-3
"""Rise of inputs over the step, relative to their magnitude, which is taken as at least 1."""

NOTHING = 1e-6
"""Largest ratio, due to rounding, of the change of outputs by rising inputs to that by held larger inputs. An output
behind n integrators has the ratio 1 / (n + 1)."""


def emit_slopes(
    plan: Plan,
    p: Emitter,
    instances: tuple[int, ...],
    places: Mapping[int, int],
    start: int,
    held: int,
) -> None:
    """Write a step with inputs held at a larger value, and one with inputs that rise to this value.

    Parameters
    ----------
    places, start
        FMU states at the start of the step, and the buffer of the outputs.
    held
        Buffer of the outputs after a step with unchanged inputs.
    """
    raised = Raised(plan, instances)
    buffers = []
    for course in (HOLD, Polynomial(2, 0, history=False)):
        p.restore({i: places[i] for i in instances})
        p.recall(start)
        p.call(raised)
        for i in instances:
            p.inputs(i, course, for_all=True)
        for i in instances:
            p.step(i)
            p.get(i)
        buffers.append(p.keep())
    larger, rising = buffers
    p.call(IgnoredSlopes(plan, instances, (held, larger, rising)))


@dataclass(frozen=True, slots=True, eq=False)
class Raised(Hook):
    """The outputs that feed these instances are larger at the end of the step."""

    plan: Plan
    instances: tuple[int, ...]
    name: ClassVar[str] = "raised outputs"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Change the outputs, and the time at which they were read."""
        routes = [r for i in self.instances for r in self.plan.routes[i, Group.CONTINUOUS]]
        outputs = store.outputs[DataType.FLOAT64]
        for slot in {
            r.source.start: r.source for r in routes if r.source_type is DataType.FLOAT64
        }.values():
            outputs[slot] += RISE * np.maximum(np.abs(outputs[slot]), 1.0)
        for source in {r.link.source for r in routes}:
            store.read[source] = store.interval[1]
        return False


@dataclass(frozen=True, slots=True, eq=False)
class IgnoredSlopes(Hook):
    """Finds the instances whose outputs depend on the inputs of a step, but not on their derivatives."""

    plan: Plan
    instances: tuple[int, ...]
    buffers: tuple[int, int, int]
    """Outputs after a step with held inputs, with larger ones, and with rising ones."""
    found: list[str] = field(default_factory=list)
    name: ClassVar[str] = "outputs by rising inputs"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Store these instances."""
        self.found.clear()
        held, larger, rising = (store.buffers[k][0] for k in self.buffers)
        for i in self.instances:
            slots = [
                (kind, slot)
                for (k, group, _), (kind, slot) in self.plan.layout.slots.items()
                if k == i and group is Group.OUTPUTS and kind is DataType.FLOAT64
            ]
            steps = [np.abs(larger[t][s] - held[t][s]) for t, s in slots]
            slopes = [np.abs(rising[t][s] - held[t][s]) for t, s in slots]
            moved = any(size.any() for size in steps)
            if moved and all((b <= NOTHING * a).all() for a, b in zip(steps, slopes, strict=True)):
                self.found.append(self.plan.instances[i].name)
        return False

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning for each of these instances."""
        return tuple(
            f"'{name}' accepts derivatives of its inputs (canInterpolateInputs), but ignores them: with rising inputs, "
            "its outputs are those of constant inputs. Loops and sweeps with it use the values at the start "
            "of the step. Use an algorithm with held inputs (HOLD, --inputs hold)."
            for name in self.found
        )
