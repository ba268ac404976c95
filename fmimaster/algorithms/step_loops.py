"""Algebraic loops of Step Mode are solved: their instances repeat the interval, or exchange values at its end.

All other instances step as usual.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import groupby

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.modes import takes_lines
from fmimaster.algorithms.settling import Settling
from fmimaster.algorithms.waveform import Waveform
from fmimaster.algorithms.wrapper import Wrapper
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.text import listed
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan
from fmimaster.plan.visits import AlgebraicLoop
from fmimaster.program.emitter import Emitter


def held_in_loops(
    plan: Plan, solved: Sequence[Collection[int]], measured: Collection[int]
) -> dict[tuple[int, str], Polynomial]:
    """Inputs in loops of Step Mode that are not solved → held values; not those of loops that the start decides.

    Parameters
    ----------
    solved
        Groups of instances that are solved together.
    measured
        Instances whose direct dependencies are measured at the start.
    """

    def is_pending(loop: AlgebraicLoop) -> bool:
        models = {i: plan.instances[i].model for i in loop.instances}
        undeclared = {i for i, name in loop.variables if name in models[i].assumed_dependencies}
        return loop.assumed and bool(undeclared) and undeclared <= {*measured}

    return {
        node: HOLD
        for loop in plan.step_loops
        if not (any({*group} >= {*loop.instances} for group in solved) or is_pending(loop))
        for node in loop.variables
        if node in plan.links.into
    }


def with_loops(plan: Plan, algorithm: Algorithm, solver: LoopSolver) -> tuple[Algorithm, str]:
    """The algorithm with the loops of Step Mode solved; or the reason why it solves none, and a remedy.

    Raises
    ------
    OptionError
        If a constraint would not be solved.
    """
    wrapped, hindrance = _wrapped(plan, algorithm, solver)
    constraints = [i.name for i in plan.instances if i.model.residuals]
    if constraints and hindrance and not algorithm.solves_constraints:
        raise OptionError(f"The constraint '{constraints[0]}' cannot be solved: {hindrance}")
    return wrapped, hindrance


def _wrapped(plan: Plan, algorithm: Algorithm, solver: LoopSolver) -> tuple[Algorithm, str]:
    def solving(base: Algorithm) -> Algorithm:
        repeated = Parts(base, solved(base.course, solver)) if plan.step_groups else base
        return Settled(repeated, solver) if plan.settled else repeated

    wrapped = algorithm.with_loops(solving)
    if wrapped is algorithm:
        if algorithm.pattern() is not None:
            return algorithm, (
                "with MultiRate, components end their steps at different times. Use a step size for all of them."
            )
        name = type(algorithm).__name__
        return algorithm, f"{name} steps a whole system only. Use Jacobi or GaussSeidel."
    if stopping := [i.name for i in plan.instances if i.may_return_early]:
        return algorithm, (
            f"'{stopping[0]}' ends steps at its events, but a loop of others would be solved at another time. "
            "Use Waveform(Aligned(GaussSeidel(Polynomial(2, 0))), solver=LoopSolver()), which repeats the whole system."
        )
    return wrapped, ""


@dataclass(frozen=True, slots=True)
class Parts(Algorithm):
    """Step groups of instances that share algebraic loops by one algorithm, and all other instances by another one.

    The order is the trigger sequence, with each group at the place of its first member. If the others step in parallel,
    they step before all groups, so none of them gets new outputs.

    Parameters
    ----------
    others : Algorithm
        For the instances outside of groups.
    group : Algorithm
        For each group.
    """

    others: Algorithm
    group: Algorithm

    @property
    def order(self) -> int:
        """The smaller of the two orders."""
        return min(self.others.order, self.group.order)

    def restart(self) -> Parts:
        """The algorithm of a step without history."""
        others = self.others.restart()
        return self if others is self.others else replace(self, others=others)

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """Those of the others."""
        return self.others.goes_back(plan)

    def repeats(self, plan: Plan) -> Sequence[int]:
        """Those of all parts."""
        return sorted(i for part, by in self.parts(plan) for i in by.repeats(part))

    def ends(self, plan: Plan) -> Mapping[int, float]:
        """The ends of both."""
        return {i: end for part, by in self.parts(plan) for i, end in by.ends(part).items()}

    @property
    def can_go_back(self) -> bool:
        """Whether the algorithm of the others can; the groups go back by themselves."""
        return self.others.can_go_back

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the others."""
        parts = self._by_others(plan, before)
        return tuple(n for part, stepped in parts for n in self.others.notes(part, stepped))

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the others."""
        parts = self._by_others(plan, before)
        return tuple(
            w for part, stepped in parts for w in self.others.accuracy_warnings(part, stepped)
        )

    def _by_others(
        self, plan: Plan, before: Collection[int]
    ) -> Iterator[tuple[Plan, frozenset[int]]]:
        """The parts outside of groups, with all instances that step before them."""
        stepped = frozenset(before)
        for part, by in self.parts(plan):
            if by is self.others:
                yield part, stepped
            stepped |= frozenset(part.trigger_sequence)

    def signals(self) -> tuple[Signal, ...]:
        """Those of both."""
        return (*self.others.signals(), *self.group.signals())

    def parts(self, plan: Plan) -> Iterator[tuple[Plan, Algorithm]]:
        """The plan of each part with its algorithm, in the order of the steps."""
        group_of = {i: group for group in plan.step_groups for i in group}
        sequence, inside = plan.trigger_sequence, set(plan.trigger_sequence)
        if self.others.is_parallel:
            sequence = tuple(sorted(sequence, key=lambda i: i in group_of))
        first = {group_of[i]: i for i in reversed(sequence) if i in group_of}
        for group, run in groupby(
            (i for i in sequence if i not in group_of or first[group_of[i]] == i),
            key=lambda i: group_of.get(i, ()),
        ):
            part = tuple(i for i in group or run if i in inside)
            yield replace(plan, trigger_sequence=part), self.group if group else self.others

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        for part, by in self.parts(plan):
            with self.others.given_to_group(part, p) if by is self.group else nullcontext():
                by.emit(part, p)


@dataclass(frozen=True, slots=True)
class Settled(Wrapper):
    """Step by the base, then solve loops of FMUs that cannot go back, by setting inputs and reading outputs.

    FMI forbids Get after Set in Step Mode without a step between them, but many FMUs answer with outputs that belong to
    the new inputs. A card shows that an FMU is one of these, and that its later steps do not change.

    Over a step the inputs are those of the base; at its end inputs and outputs agree.

    Parameters
    ----------
    base : Algorithm
    solver : LoopSolver

    Source: fmimaster, as the solution of algebraic loops at communication points in OMSimulator.
    """

    solver: LoopSolver = LoopSolver()

    @property
    def measures_itself(self) -> bool:
        """True: it measures between the steps and the solution."""
        return True

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base, and which loops are solved."""
        names = listed(f"'{plan.instances[i].name}'" for i in self._chosen(plan))
        said = (
            f"The algebraic loop of {names} is solved at the end of each step, by setting inputs and reading outputs: by "
            "their cards, outputs follow inputs without a step."
        )
        return (*self.base.notes(plan, before), *((said,) if names else ()))

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        self.base.emit(plan, p)
        if not self.base.measures_itself:
            p.measure()
        if chosen := self._chosen(plan):
            Settling(self.solver).at_an_event(plan, p, chosen)
            p.remeasure()

    @staticmethod
    def _chosen(plan: Plan) -> list[int]:
        members = set(plan.members)
        return [i for i in plan.settled if i in members]


def solved(inputs: Polynomial, solver: LoopSolver) -> Waveform:
    """The algorithm for the instances of an algebraic loop in Step Mode.

    All of them go back and repeat the step until the computed outputs equal the assumed ones. No output is read between
    setting inputs and stepping, because FMI forbids this in Step Mode.

    Source: Gomes et al. (2017), Co-simulation: state of the art, sections 4.3.1 and 4.3.2; docs/loops.md.
    """
    return Waveform(LoopSweep(inputs), sweeps=1, solver=solver)


@dataclass(frozen=True, slots=True)
class LoopSweep(Algorithm):
    """One sweep over a loop: Gauss-Seidel with the inputs of the end of the interval.

    Inputs are held over the whole interval at their newest value, not at a mean: at the end of the interval outputs must
    belong to the inputs there; otherwise they would not solve the loop.

    Parameters
    ----------
    inputs : Polynomial
        Polynomial for FMUs that accept polynomials for all of their inputs. ``HOLD`` is the safe choice, because some
        FMUs accept derivatives of inputs and ignore them; these use only the values at the start of the interval.
    """

    inputs: Polynomial = HOLD

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        course = HOLD if self.inputs.is_constant else self.inputs
        for i in plan.trigger_sequence:
            p.inputs(i, course if takes_lines(plan, i) else HOLD, for_all=True)
            p.step(i)
            p.get(i)
