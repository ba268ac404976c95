"""Waveform: repeats the whole interval, with inputs interpolated over the completed step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import inf

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.late_outputs import LateOutputs
from fmimaster.base.errors import OptionError
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter


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
        late = LateOutputs.of(self.base, plan, p)
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
        if all(plan.instances[i].takes_polynomials for i in held):
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
