"""The sequence of two instances by which of them has an event first, or parallel steps where none has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.algorithms.protocol import Alternative, StepContext
from fmimaster.algorithms.sequential import Sequential
from fmimaster.control.event_clock import IndicatorSet
from fmimaster.errors import OptionError
from fmimaster.plan.plan import Plan, Policy
from fmimaster.program.emitter import Emitter
from fmimaster.program.polynomial import HOLD, Polynomial
from fmimaster.system.model import Scope


@dataclass(frozen=True, slots=True)
class AutomaticSequence:
    """Two instances, of which the one steps first that has a private event first, as far as extrapolations tell.

    Parameters
    ----------
    parallel : bool
        Whether both step at once, each with extrapolated inputs, where no event is in sight.
    horizon : float
        How far it is looked ahead, in steps.
    extrapolation, interpolation, synchronised
        As of :class:`Sequential`.

    Source: Dejaco and Benedikt (2017), sections 5.1 (automatic sequence) and 5.2 (parallel switching).
    """

    parallel: bool = False
    horizon: float = 1.5
    extrapolation: Polynomial = HOLD
    interpolation: Polynomial = Polynomial(2, 2, history=False)
    synchronised: bool = False
    order: ClassVar[int] = 1
    aligns: ClassVar[bool] = True

    def alternatives(self, plan: Plan) -> tuple[Alternative, ...]:
        """The one first, the other first, and both at once."""
        if len(plan.instances) != 2:
            raise OptionError(
                f"AutomaticSequence is for two instances; there are {len(plan.instances)}. Use Sequential, and say who is "
                "first."
            )
        names = [instance.name for instance in plan.instances]
        sequential = [
            Sequential(name, self.extrapolation, self.interpolation, self.synchronised)
            for name in names
        ]
        always = frozenset({0, 1}) if self.extrapolation.degree else frozenset()
        found = [
            Alternative(one, one.policies(plan), always | {1 - i}, first=i)
            for i, one in enumerate(sequential)
        ]
        ignore = {0: Policy.IGNORE, 1: Policy.IGNORE}
        return (*found, Alternative(Jacobi(self.extrapolation), ignore, always))

    def policies(self, plan: Plan) -> Mapping[int, Policy]:
        """Those of the first alternative."""
        return self.alternatives(plan)[0].policies

    def goes_back(self, plan: Plan) -> list[int]:
        """Whoever discards steps at events."""
        return [i for i, p in enumerate(plan.instances) if p.may_return_early and not p.event_mode]

    def choose(self, question: StepContext) -> int:
        """The alternative for the next step; the last one is the parallel step."""
        length = self.horizon * question.size
        events = question.indicators.plan.events
        values = question.indicators.present()
        private, shared = [inf, inf], inf
        for s in question.indicators.sets:
            time = _first_time(s, values, length)
            if events[s.event].scope is Scope.PRIVATE:
                private[s.instance] = min(private[s.instance], time)
            else:
                shared = min(shared, time)
        if self.parallel and min(*private, shared) == inf:
            return 2
        a = question.present if question.present < 2 else 0
        return 1 - a if private[1 - a] < private[a] else a

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt of the first alternative."""
        self.alternatives(plan)[0].algorithm.emit(plan, p)


def _first_time(s: IndicatorSet, values: Sequence[float], length: float) -> float:
    """When all indicators, extrapolated linearly, are at or below 0; inf if that is not within the length."""
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
