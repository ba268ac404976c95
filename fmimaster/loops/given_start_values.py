"""Start values of outputs in loops with discrete variables, from the given start values of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.graph import Node
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType
from fmimaster.system.notes import listed


@dataclass(frozen=True, slots=True)
class Output:
    """An output at which a loop is cut, as a place in the value store."""

    name: str
    node: Node
    type: DataType
    slot: slice


def outputs_of(plan: Plan, nodes: Iterable[Node]) -> tuple[Output, ...]:
    """The outputs among these variables, sorted by name."""
    found = []
    for i, name in nodes:
        place = plan.layout.place(i, name)
        if place is None:
            continue
        kind, slot = place
        found.append(Output(f"{plan.instances[i].name}.{name}", (i, name), kind, slot))
    return tuple(sorted(found, key=lambda output: output.name))


class GivenStartValues(Hook):
    """Outputs in the store ← the start values that the user or the system has given to inputs which they feed.

    If no such input has a start value, the output keeps the value that was read.
    """

    def __init__(self, plan: Plan, outputs: Sequence[Node], variables: Sequence[Node]) -> None:
        self.given = [
            (output, start)
            for output in outputs_of(plan, outputs)
            if (start := _start(plan, output, frozenset(variables))) is not None
        ]
        self.name = f"start values of {listed([o.name for o, _ in self.given], 3)}"

    def __call__(self, store: ValueStore) -> bool:
        """Write the start values into the store."""
        for output, start in self.given:
            store.values[output.type][output.slot] = start
        return False


def _start(plan: Plan, output: Output, variables: frozenset[Node]) -> NDArray[Any] | None:
    """The value of the output that gives the start value of the first input, by name, that has one."""
    fed = {
        f"{plan.instances[k.target].name}.{k.input.name}": k
        for k in plan.links.out_of.get(output.node, ())
        if (k.target, k.input.name) in variables
        and k.transformation.factor  # with 0 the input does not depend on the output
    }
    for _, link in sorted(fed.items()):
        given = plan.instances[link.target].start_values.get(link.input.name)
        if given is not None:
            values = np.array(given, link.input.type.dtype)
            if not link.transformation.is_identity:
                values = (values - link.transformation.offset) / link.transformation.factor
            if output.type.is_integer:
                values = np.rint(values)
            return values.astype(output.type.dtype)
    return None
