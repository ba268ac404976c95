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
        repeated = p.repeat(least=self.sweeps, most=self.most_sweeps, tolerance=float("inf"))
        with p.through_begin(), repeated:
            p.restore(places)
            self.base.emit(plan, p)
        self._refuse_held(plan, p)

    def _refuse_held(self, plan: Plan, p: Emitter) -> None:
        """Raise if an instance stops at events by inputs that are held: those of an event may lead to no event in the next
        sweep, and those of the whole step to the same one again; what is found so is wrong by a part of the step."""
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
                "judges events by inputs that are those of the same time."
            )
        raise OptionError(
            f"Sweeps need inputs that are interpolated over the step, but those of {names} are held. An FMU that stops at "
            f"its events may then find one in one sweep and none in the next. {instead}"
        )
