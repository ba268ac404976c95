"""Waveform: repeats the whole interval, with inputs interpolated over the completed step.

With a solver, the unknowns are the outputs that an instance uses before their source has stepped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.loops.discrete import DiscreteLoop
from fmimaster.loops.hook import LoopHooks
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.graph import Node
from fmimaster.plan.layout import Group, Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.delays import delays
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import ValueStore


@dataclass(frozen=True, slots=True)
class Waveform(Algorithm):
    """Repeat the base over the interval: all instances go back, and the outputs at its end are known from the last
    sweep.

    Polynomials extrapolate in the first sweep, and interpolate in the next ones: they go through the outputs at the end of
    the last sweep and those at the start of the interval. An early return is located anew in each sweep, and the time
    of the event converges together with the inputs; sweeps are repeated until that time no longer changes.

    Parameters
    ----------
    base : Algorithm
    sweeps : int
        The least number of sweeps.
    restart_sweeps : int
        The least number of sweeps in the first step, and in the first one after an event, which have no history.
    most_sweeps : int
        The largest number of sweeps. If they do not converge, the step is repeated with half its length, or the run
        ends if no instance stops at events.
    tolerance : float
        Sweeps are repeated until no output changes by more than this, relative to the larger of its nominal value and
        its magnitude. With ``inf`` only the number of sweeps is used.
    corrections : int, optional
        Largest number of sweeps after the first one; then the step is accepted without convergence (semi-implicit). By
        default a step must converge to the tolerance.
    solver : LoopSolver, optional
        Chooses the values from which each sweep starts, to need few sweeps. The unknowns are the outputs that an
        instance uses before their source has stepped. The solver has its own tolerances and its own limit.

    Source: fmimaster (docs/events.md, "E1" and "E2"); waveform relaxation as in Gomes et al. (2017), section 4.2; strong
    coupling and bounded corrections (semi-implicit): there, section 4.3.1.
    """

    base: Algorithm
    sweeps: int = 2
    restart_sweeps: int = 3
    most_sweeps: int = 50
    tolerance: float = inf
    corrections: int | None = None
    solver: LoopSolver | None = None

    def __post_init__(self) -> None:
        if self.corrections is not None and self.corrections < 0:
            raise OptionError(f"Waveform: corrections={self.corrections}, expected 0 or more.")
        if not self.tolerance > 0:  # NaN, too
            raise OptionError(f"Waveform: tolerance={self.tolerance}, expected a positive number.")
        if self.solver is not None and (self.tolerance < inf or self.corrections is not None):
            raise OptionError(
                "Waveform: a solver has its own tolerance and its own limit. Write "
                "solver=LoopSolver(relative=1e-6, bounded=3) instead of tolerance=1e-6, corrections=2."
            )

    @property
    def order(self) -> int:
        """The order of the base; more sweeps do not lower it."""
        return self.base.order

    @property
    def why_it_goes_back(self) -> tuple[str, str]:
        """Because sweeps repeat the step."""
        return (
            "each step is repeated (sweeps)",
            "an algorithm that does each step once (Jacobi, GaussSeidel)",
        )

    @property
    def handles_early_returns(self) -> bool:
        """Whether the base handles them."""
        return self.base.handles_early_returns

    @property
    def divides_steps(self) -> bool:
        """Whether the base does."""
        return self.base.divides_steps

    @property
    def converges(self) -> bool:
        """Whether sweeps are repeated until outputs no longer change."""
        return self.solver is not None or self.tolerance < inf

    @property
    def solves_constraints(self) -> bool:
        """Whether its sweeps have a solver; sweeps alone cannot solve for a force."""
        return self.solver is not None

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """All members, in each sweep."""
        return plan.members

    def repeats(self, plan: Plan) -> Sequence[int]:
        """All members, if sweeps converge."""
        return plan.members if self.converges else self.base.repeats(plan)

    def undoes(self, plan: Plan) -> bool:
        """Whether instances stop at events: an event with the inputs of one sweep may not occur with those of the next
        one."""
        return any(plan.instances[i].may_return_early for i in plan.members)

    def restart(self) -> Waveform:
        """The algorithm of a step without history."""
        base, sweeps = self.base.restart(), self.restart_sweeps
        if base is self.base and (sweeps == self.sweeps or self.solver is not None):
            return self
        return replace(self, base=base, sweeps=sweeps)

    def with_loops(self, solved: Callable[[Algorithm], Algorithm]) -> Waveform:
        """Loops are solved by the sweeps if these converge, otherwise within each sweep."""
        return self if self.converges else replace(self, base=self.base.with_loops(solved))

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.notes(plan, self._known(plan, before))

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.accuracy_warnings(plan, self._known(plan, before))

    def _known(self, plan: Plan, before: Collection[int]) -> Collection[int]:
        """Instances whose outputs at the end of the step are known in a sweep: all, after the first sweep."""
        return {*before, *plan.members} if self.converges or self.sweeps > 1 else before

    def signals(self) -> tuple[Signal, ...]:
        """Those of the base."""
        return self.base.signals()

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        if not self.base.can_go_back:
            raise OptionError(
                "Sweeps cannot be done with GaussSeidel in the mode 'sub'. Use the mode 'lin'."
            )
        places = p.save(plan.members)
        with p.through_begin():
            if self.solver is None:
                self._repeat(plan, p, places)
            else:
                self._solve(plan, p, places, self.solver)
        self._refuse_held(plan, p)

    def _repeat(self, plan: Plan, p: Emitter, places: dict[int, int]) -> None:
        least, most = self.sweeps, max(self.sweeps, self.most_sweeps)
        bounded = self.corrections is not None
        if self.corrections is not None:
            self._refuse_bounded(plan)
            most = 1 + self.corrections
            least = min(least, most)
        with p.repeat(least=least, most=most, tolerance=self.tolerance, bounded=bounded):
            p.restore(places)
            self.base.emit(plan, p)

    def _solve(self, plan: Plan, p: Emitter, places: dict[int, int], solver: LoopSolver) -> None:
        late = _LateOutputs.of(self.base, plan, p)
        with late.solved(p, solver):
            p.restore(places)
            self.base.emit(plan, p)

    def _refuse_bounded(self, plan: Plan) -> None:
        """Raise if an instance may stop at an event, because the time of the event must converge without a limit of
        sweeps."""
        stopping = [
            plan.instances[i].name for i in plan.members if plan.instances[i].may_return_early
        ]
        if stopping:
            raise OptionError(
                f"Waveform: corrections={self.corrections} is not possible if an FMU stops at its events, as "
                f"'{stopping[0]}' does, because the time of an event must converge. Leave the corrections out."
            )

    def _refuse_held(self, plan: Plan, p: Emitter) -> None:
        """Raise if an instance with held inputs stops at events. Inputs at the time of an event may give no event in
        the next sweep, and inputs of the whole step may give the same event again; its time would be wrong by a part of
        the step."""
        if not plan.instances.any_may_return_early:
            return
        held = [i for i in sorted(p.held_inputs()) if plan.instances[i].may_return_early]
        if not held:
            return
        names = " and ".join(f"'{plan.instances[i].name}'" for i in held)
        if all(plan.instances[i].model.takes_polynomials for i in held):
            instead = (
                "Give the algorithm a polynomial: Jacobi(Polynomial(2, 0)) (--inputs 2,0), or Polynomial(2, 2) if FMUs "
                "publish derivatives of their outputs; or leave the sweeps out."
            )
        else:
            instead = (
                "Not all of them can take polynomials. Use the event clock Predictive (--event-clock predictive), which "
                "finds events with inputs of the same time."
            )
        raise OptionError(
            f"Sweeps need inputs that are interpolated over the step, but those of {names} are held. An FMU that stops at "
            f"its events may then find one in one sweep and none in the next. {instead}"
        )


@dataclass(frozen=True, slots=True)
class _LateOutputs:
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
    def of(cls, base: Algorithm, plan: Plan, p: Emitter) -> _LateOutputs:
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
