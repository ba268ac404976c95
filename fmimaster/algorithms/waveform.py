"""Waveform: the whole interval again, with inputs interpolated over the completed step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.errors import OptionError
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Waveform(Algorithm):
    """Repeat the base over the interval, with all instances brought back each time and the outputs at its end known.

    Polynomials extrapolate in the first sweep, and interpolate in the next ones: they go through the outputs at the end of
    the last sweep and those at the start of the interval. An early return is located anew in each sweep, so that the time
    of the event converges together with the inputs; sweeps go on until that time no longer changes.

    Parameters
    ----------
    base : Algorithm
    sweeps : int
        The least number of sweeps.
    restart_sweeps : int
        The least number of sweeps in the first step, and in the first one after an event, which have no history.
    most_sweeps : int
        More have not converged: the step is tried with half its length, or the run ends if no instance stops at events.

    Source: fmimaster (docs/events.md, "E1" and "E2"); waveform relaxation as in Gomes et al. (2017), section 4.2.
    """

    base: Algorithm
    sweeps: int = 2
    restart_sweeps: int = 3
    most_sweeps: int = 50

    @property
    def order(self) -> int:
        """That of the base; more sweeps do not lower it."""
        return self.base.order

    @property
    def handles_early_returns(self) -> bool:
        """Whether the base handles them."""
        return self.base.handles_early_returns

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """All members, in each sweep."""
        return plan.members

    def undoes(self, plan: Plan) -> bool:
        """Where instances stop at events: with inputs of one sweep there may be an event that those of the next one do not
        lead to."""
        return any(plan.instances[i].may_return_early for i in plan.members)

    def restart(self) -> Waveform:
        """The algorithm of a step without history."""
        sweeps = self.restart_sweeps
        return Waveform(self.base, sweeps, sweeps, self.most_sweeps)

    def signals(self) -> tuple[Signal, ...]:
        """Those of the base."""
        return self.base.signals()

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(plan.members)
        p.want_begin()
        with p.repeat(least=self.sweeps, most=self.most_sweeps, tolerance=float("inf")):
            p.restore(places)
            self.base.emit(plan, p)
        self._refuse_held(plan, p)

    def _refuse_held(self, plan: Plan, p: Emitter) -> None:
        """Raise if an instance stops at events that its inputs may undo from sweep to sweep: held at the outputs at an
        event, they may lead to no event, and held at those at the end of the step to the same one again."""
        held = [i for i in sorted(p.held_inputs()) if plan.instances[i].may_return_early]
        if held:
            names = " and ".join(f"'{plan.instances[i].name}'" for i in held)
            raise OptionError(
                f"Sweeps need inputs that are interpolated over the step, but those of {names} are held, and then there "
                "may be an event in one sweep and none in the next. Give the algorithm a polynomial: Jacobi(Polynomial(2, 0)) "
                "(--inputs 2,0), or Polynomial(2, 2) if FMUs publish derivatives of their outputs; or leave the sweeps out."
            )
