"""Components with steps of their own: several in one communication step (SubSteps), or on grids of their own (OwnGrids)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from itertools import pairwise

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.modes import AlongLine
from fmimaster.algorithms.wrapper import Wrapper
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.programs import Pattern
from fmimaster.steps.step_rule import RateInterval, RatePattern


@dataclass(frozen=True, slots=True)
class SubSteps(Wrapper):
    """Divide the communication step of some components; the slowest components step first.

    A component with n sub-steps does n steps of equal size within a communication step. Inputs from slower components,
    which have stepped already, are interpolated over their step; inputs from faster ones are held or extrapolated.

    Parameters
    ----------
    base : Algorithm
        Algorithm for components with the same number of sub-steps, and for inputs from sources that have stepped: a
        GaussSeidel.
    counts : component name → number of sub-steps
        Components that are not named have 1. Each number must be a multiple of the next smaller one; then each step of
        a slower component ends together with a sub-step of the faster ones.

    Source: Gear and Wells (1984), Multirate linear multistep methods, BIT 24 (there: slowest first).

    Examples
    --------
    >>> from fmimaster import reference_path, simulate
    >>> from fmimaster.algorithms import SubSteps
    >>> system = reference_path("systems/two-mass-b1-mixed.ssp")
    >>> algorithm = SubSteps(counts={"upper": 4})
    >>> results = simulate(system, algorithm=algorithm, step_size=0.1, stop_time=0.3)
    >>> [(instance.name, instance.calls) for instance in results.statistics.instances]
    [('upper', 12), ('lower', 3)]
    """

    base: Algorithm = GaussSeidel(mode=AlongLine(sub_steps=1))
    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(n > 0 for n in self.counts.values()):
            raise OptionError(
                f"SubSteps(counts={self.counts!r}): expected names of components with numbers of sub-steps, 1 or more."
            )
        if self.base.is_parallel:
            raise OptionError(
                f"SubSteps: the base {self.base} does not interpolate inputs whose source has stepped. Use GaussSeidel() "
                "(--algorithm gauss-seidel)."
            )
        Wrapper.__post_init__(self)
        numbers = sorted({1, *self.counts.values()})
        for slower, faster in pairwise(numbers):
            if faster % slower:
                raise OptionError(
                    f"SubSteps: {faster} sub-steps are not a multiple of {slower} sub-steps. Choose numbers of which each "
                    "divides the next one, or MultiRate (--component-step-size), in which each component has its own grid."
                )

    @property
    def measures_itself(self) -> bool:
        """True: it measures after each step of the fastest components."""
        return True

    @property
    def divides_steps(self) -> bool:
        """True."""
        return True

    def repeats(self, plan: Plan) -> Sequence[int]:
        """Those of the base."""
        return sorted(i for _, part in self._levels(plan) for i in self.base.repeats(part))

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base, for each number of sub-steps."""
        return tuple(
            n for part, old in self._behind(plan, before) for n in self.base.notes(part, old)
        )

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base, for each number of sub-steps."""
        behind = self._behind(plan, before)
        return tuple(w for part, old in behind for w in self.base.accuracy_warnings(part, old))

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """Those of the base, and slower ones that a faster one with Event Mode may stop between its sub-steps."""
        return sorted({*self.base.goes_back(plan), *self._ahead_of_events(plan)})

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        self._refuse(plan)
        places = p.save(self._ahead_of_events(plan))
        self._emit(1, list(self._levels(plan)), p)
        for instance, place in places.items():
            p.align(instance, place)

    def _ahead_of_events(self, plan: Plan) -> list[int]:
        """Instances that are ahead of a faster one at the end of a sub-step, where it may request an event; without those
        that stay there, because they cannot go back."""
        levels = list(self._levels(plan))
        with_events = [
            n
            for n, part in levels
            if any(plan.instances[i].may_request_events for i in part.members)
        ]
        most = max(with_events, default=1)
        return [
            i
            for n, part in levels
            for i in part.members
            if n < most and not plan.instances[i].stays_ahead
        ]

    def _emit(self, done: int, levels: Sequence[tuple[int, Plan]], p: Emitter) -> None:
        """Write the steps of these levels over the present interval, which is already one of ``done`` parts."""
        if not levels:
            p.measure()
            return
        (count, part), *faster = levels
        n = count // done
        for k in range(n):
            with p.over(k / n, (k + 1) / n) if n > 1 else nullcontext():
                self.base.emit(part, p)
                self._emit(count, faster, p)

    def _levels(self, plan: Plan) -> Iterator[tuple[int, Plan]]:
        """Numbers of sub-steps, the smallest first, each with the plan of its instances."""
        count = {i: self.counts.get(plan.instances[i].name, 1) for i in plan.members}
        for n in sorted(set(count.values())):
            chosen = tuple(i for i in plan.trigger_sequence if count[i] == n)
            yield n, replace(plan, trigger_sequence=chosen)

    def _behind(self, plan: Plan, before: Collection[int]) -> Iterator[tuple[Plan, frozenset[int]]]:
        """The plan of each level, with the instances that have stepped before."""
        stepped = frozenset(before)
        for _, part in self._levels(plan):
            yield part, stepped
            stepped |= frozenset(part.trigger_sequence)

    def _refuse(self, plan: Plan) -> None:
        names = [planned.name for planned in plan.instances]
        for name in self.counts:
            if name not in names:
                raise OptionError(
                    f"SubSteps: there is no component '{name}'.{did_you_mean(name, names)} There are "
                    f"{', '.join(sorted(names))}."
                )
        for i, n in ((i, self.counts.get(plan.instances[i].name, 1)) for i in plan.members):
            planned = plan.instances[i]
            if n > 1 and planned.may_return_early:
                raise OptionError(
                    f"SubSteps: '{planned.name}' may end a step early at its own event, and its sub-steps could not "
                    "be undone. Use an event clock that needs no early returns (LookAhead, Predictive)."
                )
        for group in plan.step_groups:
            members = sorted(names[i] for i in group)
            if len({self.counts.get(name, 1) for name in members}) > 1:
                raise OptionError(
                    f"SubSteps: {' and '.join(map(repr, members))} share an algebraic loop, which is solved at the "
                    "end of their steps. Give them the same number of sub-steps."
                )


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
