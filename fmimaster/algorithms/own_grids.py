"""OwnGrids: each instance steps on its own grid, with the newest outputs at the start of its step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.programs import Pattern
from fmimaster.steps.step_rule import RateInterval, RatePattern


@dataclass(frozen=True, slots=True)
class OwnGrids(Algorithm):
    """Step each instance over the intervals between its own communication points.

    The first variant is a step of all instances; each different interval of the pattern has another variant. The inputs
    of an instance are set at the start of its step, and its step is done at the end, so the instance is never ahead of
    the present communication point.

    Source: fmimaster (docs/multi-rate.md).
    """

    rates: RatePattern

    @property
    def is_parallel(self) -> bool:
        """True: no instance uses outputs that are newer than the start of its step."""
        return True

    def with_loops(self, solved: Callable[[Algorithm], Algorithm]) -> OwnGrids:
        """Itself: the members of a loop may end their steps at different points."""
        del solved
        return self

    def variants(self, plan: Plan) -> tuple[Algorithm, ...]:
        """The steps of each different interval."""
        del plan
        return tuple(map(self._variant, self._different()))

    def pattern(self) -> Pattern:
        """The variants of all intervals."""
        number = {interval: k for k, interval in enumerate(self._different())}
        return Pattern(
            tuple(number[interval] for interval in self.rates.intervals), number[self.rates.last]
        )

    def _different(self) -> tuple[RateInterval, ...]:
        return tuple(dict.fromkeys((self._whole, *self.rates.intervals, self.rates.last)))

    @property
    def _whole(self) -> RateInterval:
        """A step of all instances, used to describe the delays of connections."""
        return RateInterval(self.rates.components, self.rates.components)

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write a step of all instances."""
        self._variant(self._whole).emit(plan, p)

    def _variant(self, interval: RateInterval) -> StepsThatEnd:
        return StepsThatEnd(interval, self.rates.components)


@dataclass(frozen=True, slots=True)
class StepsThatEnd(Algorithm):
    """The steps that end at the end of an interval, and the inputs of steps that begin at its start.

    Instances that are no components, such as the table of an input file, step over each interval.
    """

    interval: RateInterval
    components: frozenset[str]
    """All components with a step size."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        for i in self._of(plan, self.interval.begins):
            p.move(i)
        ends = self._of(plan, self.interval.ends)
        for i in ends:
            p.set_inputs(i)
        p.step_all(ends)
        for i in ends:
            p.get(i)

    def ends(self, plan: Plan) -> Mapping[int, float]:
        """The end, for instances whose step ends there; all others are not stepped."""
        return dict.fromkeys(self._of(plan, self.interval.ends), 1.0)

    def under_way(self, plan: Plan) -> Sequence[int]:
        """Instances whose step ends in this interval and started before it."""
        begins = self._of(plan, self.interval.begins)
        return [i for i in self._of(plan, self.interval.ends) if i not in begins]

    def _of(self, plan: Plan, names: frozenset[str]) -> list[int]:
        every = [(i, plan.instances[i].name) for i in plan.members]
        return [i for i, name in every if name in names or name not in self.components]
