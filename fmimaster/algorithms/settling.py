"""Consistent values at one instant: inputs agree with the connected outputs, and algebraic loops are solved.

In Initialization Mode and in Event Mode, inputs can be set and outputs read as often as needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.text import listed
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.graph import Node, dependency_graph
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.plan.visits import AlgebraicLoop, Visit, visits
from fmimaster.program.emitter import Emitter
from fmimaster.system.states import State

if TYPE_CHECKING:
    from fmimaster.loops.discrete import DiscreteLoop
    from fmimaster.loops.hook import LoopHooks

LOOSER = 10.0
"""Ratio of the change of outputs to the tolerance of the residual, if a loop is solved again."""

NO_LOOPS: Mapping[Node, LoopHooks | DiscreteLoop] = {}


@dataclass(frozen=True, slots=True)
class Settling:
    """Makes values consistent at one instant.

    Parameters
    ----------
    solver : LoopSolver
        Solver of loops that are cut at continuous outputs.
    """

    solver: LoopSolver = LoopSolver()

    def at_the_start(self, plan: Plan, p: Emitter) -> Collection[int]:
        """Write the exchange in Initialization Mode; only outputs that others need are read.

        Outputs that are needed before the visit of their instance are read beforehand, so nothing is computed from
        values that were never set. The solution of a loop is searched from the start values of its inputs, or from the
        first values of its outputs if the loop is only assumed.

        Returns
        -------
        Instances that have left Initialization Mode, because a calculated parameter of them can be read only after
        that.
        """
        read: set[int] = set()
        left: set[int] = set()
        for visit in plan.visits:
            sources = set[int]().union(*(plan.sources[i] for i in visit.instances))
            sources |= set().union(*(plan.parameter_links.sources[i] for i in visit.instances))
            if visit.parameters:
                _leave(plan, p, visit.instances, left)
            if visit.loop:
                sources |= set(visit.instances)
            for instance in sorted(sources - read - (set() if visit.loop else {*visit.instances})):
                p.get(instance, Group.SOURCES)
            read |= sources | set(visit.instances)
            if visit.loop is not None:
                self._take_start_values(visit.loop, plan, p)
            self._visit(visit, plan, p, Group.SOURCES)
        if plan.steady:
            _refuse_steady_states(plan, left)
            self._solve_steady_states(plan, p)
        return left

    def _solve_steady_states(self, plan: Plan, p: Emitter) -> None:
        """Start values with which the derivatives of some states are 0; all loops are solved in each sweep."""
        # only systems with algebraic loops need it
        from fmimaster.loops.hook import LoopHooks

        zero = {(s.instance, s.state): (s.instance, s.derivative) for s in plan.steady}
        states = list(zero)
        hooks = LoopHooks(
            plan,
            states,
            self.solver,
            group=Group.INITIAL,
            residuals=zero,
            what=f"steady state of {listed(f'{plan.instances[i].name}.{name}' for i, name in states)}",
        )
        p.call(hooks.begin)
        with p.repeat(least=1, most=hooks.most, tolerance=inf):
            for i in sorted({i for i, _ in states}):
                p.set(i, Group.INITIAL)
                p.get(i, Group.SOURCES)
            for visit in plan.visits:
                self._visit(visit, plan, p, Group.SOURCES)
            p.call(hooks.sweep)

    def at_an_event(self, plan: Plan, p: Emitter, instances: Collection[int]) -> None:
        """Write the exchange of these instances in Event Mode; the others are not affected."""
        for visit in visits_among(plan, instances):
            self._visit(visit, plan, p, Group.OUTPUTS)

    def at_a_change(
        self, plan: Plan, p: Emitter, instances: Collection[int], corrected: Collection[int]
    ) -> None:
        """Write the exchange of instances in Initialization Mode or Event Mode, in the order of dataflow with others in
        Step Mode, of which outputs are corrected and which are in no loop."""
        for visit in visits_among(plan, {*instances, *corrected}):
            if visit.instances[0] in corrected:
                p.correct(visit.instances)
            else:
                self._visit(visit, plan, p, Group.SOURCES)

    def clocked_values(self, plan: Plan, p: Emitter, instances: Collection[int]) -> None:
        """Write how clocks and clocked values go from instance to instance at an event, in the order of dataflow.

        Instances that feed each other are visited again and again, until nothing changes.
        """
        for visit in plan.clocked_visits:
            chosen = [i for i in visit.instances if i in instances]
            if len(chosen) < 2 and not visit.cut:
                self._pass_clocked(p, chosen)
                continue
            inside = {*chosen}
            cut = [node for node in visit.cut if node[0] in inside]
            if not cut:
                self._pass_clocked(p, chosen)
                continue
            # only systems with algebraic loops need it
            from fmimaster.loops.discrete import DiscreteLoop

            loop = DiscreteLoop(plan, cut, cut, passes_events=True)
            p.call(loop.begin)
            with p.repeat(least=1, most=loop.most, tolerance=inf):
                self._pass_clocked(p, chosen)
                p.call(loop.sweep)

    @staticmethod
    def _pass_clocked(p: Emitter, instances: Iterable[int]) -> None:
        for i in instances:
            p.move_triggers(i)
            p.set(i, Group.TRIGGERS)
            p.get_clocked(i)

    def tolerance_of_updates(self, plan: Plan, instances: Collection[int]) -> float:
        """Largest accepted change of outputs between two updates of discrete states of these instances.

        Relative to nominal value or magnitude: a loop that was solved before is solved again, from its solution.
        """
        solved = [v.loop for v in visits_among(plan, instances) if v.loop is not None]
        if solved:
            # only systems with algebraic loops need it
            from fmimaster.loops.search import ROUNDINGS
            from fmimaster.loops.unknowns import precision

            variables = (node for loop in solved for node in loop.variables)
            return LOOSER * max(self.solver.relative, ROUNDINGS * precision(plan, variables))
        return 0.0

    def _take_start_values(self, loop: AlgebraicLoop, plan: Plan, p: Emitter) -> None:
        # only systems with algebraic loops need it
        from fmimaster.loops.unknowns import StartValues

        for inner in loops_in(loop):
            if inner.torn and not inner.assumed:
                p.call(StartValues(plan, inner.torn, inner.variables))
            if inner.discrete and not inner.assumed:
                _take_given_start_values(inner, plan, p)

    def _visit(
        self,
        visit: Visit,
        plan: Plan,
        p: Emitter,
        group: Group,
        around: Mapping[Node, LoopHooks | DiscreteLoop] = NO_LOOPS,
    ) -> None:
        """Exchange the values of one visit; ``around``: the loops that contain it, by the outputs at which they are
        cut."""
        if visit.loop is not None:
            self._solve(visit.loop, plan, p, group, around)
            return
        (i,) = visit.instances
        if visit.parameters:
            p.give_parameters(i)
        if visit.sets:
            p.move(i)
            p.set_inputs(i)
        if visit.gets:
            p.get(i, group)
        for hooks in dict.fromkeys(around[node] for node in visit.held):
            p.call(hooks.holding([node for node in visit.held if around[node] is hooks]))

    def _solve(
        self,
        loop: AlgebraicLoop,
        plan: Plan,
        p: Emitter,
        group: Group,
        around: Mapping[Node, LoopHooks | DiscreteLoop],
    ) -> None:
        """Sweeps over a loop until it is solved."""
        hooks = self._hooks(loop, plan, initial=group is Group.SOURCES)
        p.call(hooks.begin)
        with p.repeat(least=1, most=hooks.most, tolerance=inf):
            for visit in loop.sweep:
                self._visit(visit, plan, p, group, {**around, **dict.fromkeys(loop.cut, hooks)})
            for i in loop.instances:
                p.derive(i, hooks.sweep)
            p.call(hooks.sweep)

    def _hooks(self, loop: AlgebraicLoop, plan: Plan, *, initial: bool) -> LoopHooks | DiscreteLoop:
        """The solver of a loop, by the outputs at which it is cut."""
        # only systems with algebraic loops need them
        from fmimaster.loops.discrete import DiscreteLoop
        from fmimaster.loops.hook import LoopHooks
        from fmimaster.loops.sweep_derivatives import sweep_derivatives

        if not loop.torn:
            return DiscreteLoop(
                plan, loop.discrete, loop.variables, assumed=loop.assumed, solver=self.solver
            )
        return LoopHooks(
            plan,
            loop.torn,
            self.solver,
            variables=loop.variables,
            assumed=loop.assumed,
            derivatives=sweep_derivatives(plan, loop, initial=initial),
        )


def visits_among(plan: Plan, instances: Collection[int]) -> Iterator[Visit]:
    """The visits of some instances by the dependencies of the run, while the outputs of all others stay as they are.

    A loop through other instances is cut there. Sweeping all of it once per update would be a plain iteration, which
    diverges if the gain is above 1, and would update discrete states in each sweep.
    """
    chosen = frozenset(instances)
    for visit in plan.step_visits:
        inside = chosen.intersection(visit.instances)
        if inside == set(visit.instances):
            yield visit
        elif visit.loop is not None and inside:
            into = (k for i in sorted(inside) for k in plan.links.into_instance.get(i, ()))
            links = [k for k in into if k.source in inside]
            graph = dependency_graph(plan.instances, links, initial=False)
            left = visits(graph, plan.trigger_sequence)
            fed_by_others = inside.difference(*(v.instances for v in left))
            yield from (Visit((i,)) for i in visit.instances if i in fed_by_others)
            yield from left


def _leave(plan: Plan, p: Emitter, targets: Collection[int], left: set[int]) -> None:
    """End Initialization Mode of instances whose calculated parameters are needed, because they can be read only after
    it."""
    into = (k for t in sorted(targets) for k in plan.parameter_links.into_instance.get(t, ()))
    for link in into:
        i = link.source
        if not link.output.get_in_initialization and i not in left:
            measure_partials(plan, p, [i])
            p.mode(i, State.STEP_MODE)  # FMI 2.0: there is no Event Mode
            p.get(i)
            left.add(i)


def measure_partials(plan: Plan, p: Emitter, instances: Iterable[int]) -> None:
    """Measure the partial derivatives by which outputs of instances are corrected, if any are; in Initialization or Event
    Mode."""
    if p.corrected:
        from fmimaster.algorithms.differences import emit_differences

        emit_differences(plan, p, instances)


def _take_given_start_values(loop: AlgebraicLoop, plan: Plan, p: Emitter) -> None:
    """Set the outputs at which a loop is cut to the given start values of the inputs in the loop."""
    # only systems with algebraic loops need it
    from fmimaster.loops.unknowns import GivenStartValues

    every = GivenStartValues(plan, loop.variables, loop.variables)
    if not every.given:
        return
    p.call(every)
    for i in loop.instances:
        p.move(i)
        p.set_inputs(i)
    for i in loop.instances:
        p.get(i, Group.SOURCES)
    cut = GivenStartValues(plan, loop.discrete, loop.variables)
    if cut.given:
        p.call(cut)


def _refuse_steady_states(plan: Plan, left: Collection[int]) -> None:
    """Raise if an instance cannot be computed repeatedly, because it has left Initialization Mode."""
    if left:
        names = listed(f"'{plan.instances[i].name}'" for i in sorted(left))
        raise OptionError(
            f"steady_states: {names} must leave Initialization Mode before the others, so that a calculated parameter can "
            "be read (FMI 2.0). The search for a steady state needs all in Initialization Mode. Leave steady_states "
            "out, or set the connected parameters by start values."
        )


def loops_in(loop: AlgebraicLoop) -> Iterator[AlgebraicLoop]:
    """A loop and the loops inside its sweep."""
    yield loop
    for visit in loop.sweep:
        if visit.loop is not None:
            yield from loops_in(visit.loop)
