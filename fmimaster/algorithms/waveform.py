"""Waveform: the whole interval again, with inputs interpolated over the completed step."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.algorithms.algorithm import Algorithm
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
        More end the run: not converged.

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
