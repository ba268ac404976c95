"""Two instances in the sequence of their predicted events, or in parallel if no event is predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.algorithms.sequential import Sequential
from fmimaster.base.errors import OptionError
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.plan.plan import Plan, StepOrder
from fmimaster.plan.policy import Policy
from fmimaster.program.emitter import Emitter
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.steps.step_rule import StepContext
from fmimaster.system.declarations import Scope


@dataclass(frozen=True, slots=True)
class AutomaticSequence(Algorithm):
    """Choose in each step which of two instances steps first: the one with the earlier predicted private event.

    Parameters
    ----------
    parallel : bool
        Whether both step at the same time, each with extrapolated inputs, if no event is predicted.
    horizon : float
        Horizon of the prediction, in steps.
    extrapolation, interpolation, synchronised
        As in :class:`Sequential`.

    Source: Dejaco and Benedikt (2017), sections 5.1 (automatic sequence) and 5.2 (parallel switching).
    """

    parallel: bool = False
    horizon: float = 1.5
    extrapolation: Polynomial = HOLD
    interpolation: Polynomial = Polynomial(2, 2, history=False)
    synchronised: bool = False

    @property
    def handles_early_returns(self) -> bool:
        """All variants handle them."""
        return True

    @property
    def finds_events_for_others(self) -> bool:
        """The instance that steps first finds events for the other."""
        return True

    def with_loops(self, solved: Callable[[Algorithm], Algorithm]) -> Algorithm:
        """Itself: it steps a whole system only."""
        del solved
        return self

    def policies(self, order: StepOrder) -> tuple[Mapping[int, Policy], ...]:
        """The first one announces its events; in a parallel step neither does."""
        one, other = self._sequences(order)
        ignore = dict.fromkeys(range(2), Policy.IGNORE)
        return (*one.policies(order), *other.policies(order), ignore)

    def variants(self, plan: Plan) -> tuple[Algorithm, ...]:
        """The first instance first, the second first, and both in parallel."""
        return (*self._sequences(plan.step_order), Jacobi(self.extrapolation))

    def _sequences(self, order: StepOrder) -> tuple[Sequential, Sequential]:
        """The sequences with the first and with the second instance first."""
        if len(order.names) != 2:
            raise OptionError(
                f"AutomaticSequence is for two components; there are {len(order.names)}. Use Sequential, and name the "
                "first one."
            )
        one, other = (
            Sequential(name, self.extrapolation, self.interpolation, self.synchronised)
            for name in order.names
        )
        return one, other

    def goes_back(self, plan: Plan) -> list[int]:
        """Instances that discard steps at events."""
        return [i for i, p in enumerate(plan.instances) if p.may_return_early and not p.event_mode]

    def choose(self, context: StepContext) -> int:
        """The variant for the next step; the last one is the parallel step."""
        length = self.horizon * context.size
        events = context.indicators.plan.events
        values = context.indicators.present()
        private, shared = [inf, inf], inf
        for s in context.indicators.sets:
            time = _first_time(s, values, length)
            if events[s.event].scope is Scope.PRIVATE:
                private[s.instance] = min(private[s.instance], time)
            else:
                shared = min(shared, time)
        if self.parallel and min(*private, shared) == inf:
            return 2
        a = context.variant if context.variant < 2 else 0
        return 1 - a if private[1 - a] < private[a] else a

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt of the first variant."""
        self.variants(plan)[0].emit(plan, p)


def _first_time(s: IndicatorSet, values: Sequence[float], length: float) -> float:
    """Time at which all indicators, extrapolated linearly, are at or below 0; inf if it is beyond the length."""
    begin, end = 0.0, length
    for z, dz in s.pairs:
        value, slope = values[z], values[dz] if dz >= 0 else 0.0
        if slope < 0:
            begin = max(begin, -value / slope)
        elif value > 0:
            return inf
        elif slope > 0:
            end = min(end, -value / slope)
    return begin if begin <= end else inf
