"""Outputs that an instance uses before their source has stepped: the unknowns of a step that is solved by sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.loops.discrete import DiscreteLoop
from fmimaster.loops.hook import LoopHooks
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.graph import Node
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.delays import delays
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import ValueStore


@dataclass(frozen=True, slots=True)
class LateOutputs:
    """The outputs of a part of a system that an algorithm passes on before their source has stepped.

    A sweep starts from assumed values of these outputs and computes new ones. All other outputs are new wherever they
    are used, so a sweep is a function of the late outputs alone. These are read off the delays of a trial program, not off
    the graph of loops: so one mechanism serves loops, strong coupling, and every base algorithm.
    """

    plan: Plan
    outputs: tuple[Node, ...]
    """Sorted by the names of instance and variable, to be independent of the order in the system."""
    variables: tuple[Node, ...] = ()
    """These outputs, their connected inputs, and all variables of their algebraic loops."""

    @classmethod
    def of(cls, base: Algorithm, plan: Plan, p: Emitter) -> LateOutputs:
        """Those of one execution of the base."""
        trial, inside = Emitter(plan, p.history), set(plan.members)
        with trial.through_begin():
            base.emit(plan, trial)
        found, inputs = set[Node](), set[Node]()
        for delay in delays(trial.program("trial"), plan):
            link = delay.route.link
            if delay.steps > 0 and link.source in inside:
                taken = 0 if delay.is_held else delay.fitted.derivatives
                found.add((link.source, link.output.name))
                inputs.add((link.target, link.input.name))
                found.update(islice(_derivatives(plan, link.source, link.output.name), taken))
        loop_of = plan.step_visits.loop_of
        loops = {id(loop): loop for node in found if (loop := loop_of.get(node))}
        variables = (found | inputs).union(*(loop.variables for loop in loops.values()))
        return cls(
            plan,
            _by_name(plan, found),
            _by_name(plan, {node for node in variables if node[0] in inside}),
        )

    @contextmanager
    def solved(self, p: Emitter, solver: LoopSolver) -> Iterator[None]:
        """Repeat the sweep that is written inside until these outputs equal the assumed values.

        Floating point outputs are solved with all other outputs at their assumed values; then the others are compared.
        """
        if not self.outputs:
            yield
            return
        discrete = [node for node in self.outputs if not self._is_float(node)]
        continuous = [node for node in self.outputs if self._is_float(node)]
        instances = np.array(sorted({i for i, _ in self.outputs}), np.int64)
        p.call(Assumed(instances, p.end))
        loop = DiscreteLoop(self.plan, discrete, self.variables)
        with ExitStack() as around:
            if discrete:
                around.enter_context(_swept(p, loop))
            if continuous:
                hooks = LoopHooks(
                    self.plan,
                    continuous,
                    solver,
                    variables=self.variables,
                    residuals=self._residuals(),
                    slope=self._slope(),
                    replayed=True,
                )
                around.enter_context(_swept(p, hooks))
            if continuous and discrete:
                p.call(loop.holding(discrete))
            yield

    def _is_float(self, node: Node) -> bool:
        """Whether an output is a floating point unknown. The declared variability is no criterion: many FMUs declare
        all outputs as discrete, because they change at communication points only; outputs that change only in Event
        Mode are constant in Step Mode."""
        variable = self.plan.instances[node[0]].model.variable(node[1])
        return variable is not None and variable.type.is_float

    def _residuals(self) -> dict[Node, Node]:
        """The residuals of constraints: these must be 0, and replace the difference from the assumed value."""
        found = {}
        for i, name in self.outputs:
            residual = self.plan.instances[i].model.residuals.get(name)
            if residual is not None:
                found[i, name] = (i, residual.output)
        return found

    def _slope(self) -> Node | None:
        """The output with the derivative of the residual, if there is exactly one constraint."""
        residuals = self._residuals()
        if len(self.outputs) != 1 or not residuals:
            return None
        [(i, name)] = self.outputs
        return i, self.plan.instances[i].model.residuals[name].slope


def _by_name(plan: Plan, nodes: set[Node]) -> tuple[Node, ...]:
    return tuple(sorted(nodes, key=lambda n: (plan.instances[n[0]].name, n[1])))


@contextmanager
def _swept(p: Emitter, hooks: LoopHooks | DiscreteLoop) -> Iterator[None]:
    p.call(hooks.begin)
    with p.repeat(least=1, most=hooks.most, tolerance=inf):
        yield
        p.call(hooks.sweep)


def _derivatives(plan: Plan, instance: int, output: str) -> Iterator[Node]:
    """The outputs that are the first, second, ... derivative of an output."""
    derivative_of = {
        v.derivative_of: v.name
        for v in plan.instances[instance].model.variables
        if (instance, Group.OUTPUTS, v.name) in plan.layout.slots
    }
    while output := derivative_of.pop(output, ""):
        yield instance, output


@dataclass(frozen=True, slots=True, eq=False)
class Assumed(Hook):
    """Marks the outputs of these instances in the store as outputs at a fraction of the interval, where they are
    assumed.

    Polynomials then end at the assumed values in the first sweep as well.
    """

    instances: NDArray[np.int64]
    at: float
    name: ClassVar[str] = "outputs assumed at the end"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Change the time at which the outputs were read."""
        begin, end = store.interval
        store.read[self.instances] = end if self.at == 1.0 else begin + self.at * (end - begin)
        return False

    def twin(self, store: ValueStore) -> Twin:
        """The same in C."""
        del store
        return Twin(
            "assumed outputs",
            numbers={"n": len(self.instances), "at": self.at},
            arrays={"instances": self.instances},
        )
