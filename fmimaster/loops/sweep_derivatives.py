"""Derivatives of a sweep over a loop, from the directional derivatives of its FMUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.graph import Node
from fmimaster.plan.plan import Plan
from fmimaster.plan.visits import AlgebraicLoop
from fmimaster.program.hook import EVERYTHING, WHAT_VARIES, Partials
from fmimaster.system.model import DataType, DependencyKind, Model, Variable

Matrix = NDArray[np.float64]


class SweepDerivatives:
    """The derivatives of a sweep over one loop, by the chain rule along its connections.

    Parameters
    ----------
    plan : Plan
    loop : AlgebraicLoop
        All of its variables have the type Float64, and all of its FMUs provide directional derivatives.
    initial : bool
        Whether the dependencies of Initialization Mode count.

    Attributes
    ----------
    partials : instance → Partials
        The directional derivatives that each FMU must compute.
    """

    def __init__(self, plan: Plan, loop: AlgebraicLoop, *, initial: bool) -> None:
        inside = set(loop.variables)
        self._feeds = {
            (k.target, k.input.name): ((k.source, k.output.name), k.transformation.factor)
            for i in sorted(loop.instances)
            for k in plan.links.into_instance.get(i, ())
            if (k.target, k.input.name) in inside and (k.source, k.output.name) in inside
        }
        self.partials: dict[int, Partials] = {}
        self._rows: dict[Node, slice] = {}
        self._columns: dict[Node, slice] = {}
        self._inputs: dict[Node, tuple[Node, ...]] = {}
        variables: dict[int, list[Node]] = {i: [] for i in sorted(loop.instances)}
        for node in loop.variables:
            variables[node[0]].append(node)
        for i, nodes in variables.items():
            model = plan.instances[i].model
            outputs = [node for node in nodes if node not in self._feeds]
            inputs = [node for node in nodes if node in self._feeds]
            dependencies = model.initial_dependencies if initial else model.dependencies
            kinds = model.initial_dependency_kinds if initial else model.dependency_kinds
            varying = set[str]()
            for output in outputs:
                depends = dependencies.get(output[1], frozenset())
                self._inputs[output] = tuple(n for n in inputs if n[1] in depends)
                known = kinds.get(output[1], {})
                varying |= {
                    name
                    for name in depends
                    if known.get(name, DependencyKind.DEPENDENT) is DependencyKind.DEPENDENT
                }
            self._rows |= _places(model, outputs)
            self._columns |= _places(model, inputs)
            self.partials[i] = Partials(
                _variables(model, outputs),
                _variables(model, inputs),
                np.array(
                    [name in varying for _, name in inputs for _ in range(_size(model, name))],
                    np.bool_,
                ),
            )
        self._torn = dict.fromkeys(loop.torn)
        self._order = self._in_order()
        self._are_known = False

    def begin(self) -> None:
        """Start a new solution: no derivatives are known."""
        self._are_known = False

    def ask(self) -> None:
        """Request the directional derivatives of the FMUs in the next sweep."""
        for partials in self.partials.values():
            are_known = self._are_known and np.isfinite(partials.values).all()
            partials.wanted[0] = WHAT_VARIES if are_known else EVERYTHING
        self._are_known = True

    def jacobian(self) -> Matrix:
        """Derivatives of the torn outputs after a sweep by those before it; both in the order of their names."""
        at, sizes = 0, [self._rows[node] for node in self._torn]
        n = sum(rows.stop - rows.start for rows in sizes)
        known: dict[Node, Matrix] = {}
        for node, rows in zip(self._torn, sizes, strict=True):
            size = rows.stop - rows.start
            known[node] = np.eye(n)[at : at + size]
            at += size
        found = {node: self._change(node, known, n) for node in self._order}
        return np.concatenate([found[node] for node in self._torn])

    def _change(self, output: Node, known: dict[Node, Matrix], n: int) -> Matrix:
        """Derivatives of an output by the torn outputs; kept for the outputs after it, unless it is torn."""
        values, rows = self.partials[output[0]].values, self._rows[output]
        change = np.zeros((rows.stop - rows.start, n))
        for node in self._inputs[output]:
            source, factor = self._feeds[node]
            # an infinite slope times 0 is NaN: the search continues from other values
            with np.errstate(invalid="ignore"):
                change += factor * (values[rows, self._columns[node]] @ known[source])
        if output not in self._torn:
            known[output] = change
        return change

    def _in_order(self) -> tuple[Node, ...]:
        """All outputs, each after the outputs that feed its inputs; torn outputs are known before the sweep."""
        open_ = {
            output: {self._feeds[n][0] for n in inputs} - self._torn.keys()
            for output, inputs in self._inputs.items()
        }
        followers: dict[Node, list[Node]] = {output: [] for output in open_}
        for output, needed in open_.items():
            for source in needed:
                followers[source].append(output)
        ready = [output for output, needed in open_.items() if not needed]
        order: list[Node] = []
        while ready:
            output = ready.pop()
            order.append(output)
            if output in self._torn:
                continue
            for follower in followers[output]:
                open_[follower].discard(output)
                if not open_[follower]:
                    ready.append(follower)
        return tuple(order)


def sweep_derivatives(plan: Plan, loop: AlgebraicLoop, *, initial: bool) -> SweepDerivatives | None:
    """The derivatives of a sweep over a loop; None if an FMU provides none, or a variable is not of type Float64."""
    for i in loop.instances:
        if not plan.instances[i].model.capabilities.provides_directional_derivatives:
            return None
    for i, name in loop.variables:
        variable = plan.instances[i].model.variable(name)
        if variable is None or variable.type is not DataType.FLOAT64:
            return None
    if any(visit.loop is not None for visit in loop.sweep):
        return None
    return SweepDerivatives(plan, loop, initial=initial)


def _places(model: Model, nodes: Sequence[Node]) -> Mapping[Node, slice]:
    """Slice of the elements of each variable, one after the other."""
    at, found = 0, dict[Node, slice]()
    for node in nodes:
        size = _size(model, node[1])
        found[node] = slice(at, at + size)
        at += size
    return found


def _variables(model: Model, nodes: Sequence[Node]) -> tuple[Variable, ...]:
    found = (model.variable(name) for _, name in nodes)
    return tuple(v for v in found if v is not None)


def _size(model: Model, name: str) -> int:
    variable = model.variable(name)
    return 1 if variable is None else variable.size
