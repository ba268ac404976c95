"""Steps around events without rollback: the first instance finds events, the others follow.

Which instance is the first one is given, or chosen in each step by predicted events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan, StepOrder
from fmimaster.plan.policy import Policy
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import FunctionHook, Hook
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.program.store import ValueStore
from fmimaster.steps.step_rule import StepContext
from fmimaster.system.declarations import Scope
from fmimaster.system.model import DataType


class FirstFindsEvents(Algorithm):
    """Base of algorithms in which the instance that steps first finds events for the others."""

    __slots__ = ()

    @property
    def handles_early_returns(self) -> bool:
        """True: only the first one stops at events, and it steps before the others."""
        return True

    @property
    def finds_events_for_others(self) -> bool:
        """True."""
        return True

    def with_loops(self, solved: Callable[[Algorithm], Algorithm]) -> Algorithm:
        """Itself: it steps a whole system only."""
        del solved
        return self


@dataclass(frozen=True, slots=True)
class Sequential(FirstFindsEvents):
    """Step one instance with extrapolated inputs until its next event, then the others with its computed outputs.

    The first one stops at its events. The others ignore theirs, which the event clock :class:`Check` finds afterwards at
    points where all states are synchronous. If the first one discards a step at an event, it must be able to go back;
    no other instance ever goes back.

    Parameters
    ----------
    first : str
        Name of the component that steps first. Default: the first one of the trigger sequence.
    extrapolation : Polynomial
        Polynomial of the inputs of the first one. With ``HOLD`` the FMU may extrapolate by input derivatives.
    interpolation : Polynomial
        Polynomial of the inputs of the others, through start and end of the first one's step.
    synchronised : bool
        Whether the first one gets the computed left limits of the others at a shared event. Otherwise it gets the
        extrapolated values by which it found the event, as in the paper.

    Source: Dejaco and Benedikt (2017), steps I to V. With ``synchronised`` and a quintic extrapolation it is "C5" of
    docs/events.md.
    """

    first: str | None = None
    extrapolation: Polynomial = HOLD
    interpolation: Polynomial = Polynomial(2, 2, history=False)
    synchronised: bool = False

    def sequence(self, order: StepOrder) -> tuple[int, ...]:
        """Instances in the order in which they step."""
        if self.first is None:
            return order.trigger_sequence
        if self.first not in order.names:
            raise OptionError(
                f"Sequential: there is no component '{self.first}'."
                f"{did_you_mean(self.first, order.names)}"
            )
        first = order.names.index(self.first)
        return (first, *(i for i in order.trigger_sequence if i != first))

    def policies(self, order: StepOrder) -> tuple[Mapping[int, Policy], ...]:
        """The first one announces its events, the others ignore theirs."""
        first, *others = self.sequence(order)
        return ({first: Policy.ANNOUNCE, **dict.fromkeys(others, Policy.IGNORE)},)

    def leader(self, order: StepOrder) -> int:
        """The first one."""
        return self.sequence(order)[0]

    def goes_back(self, plan: Plan) -> list[int]:
        """The first one, if it discards a step at an event."""
        first = self.leader(plan.step_order)
        planned = plan.instances[first]
        return [first] if planned.may_return_early and not planned.event_mode else []

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        first, *others = self.sequence(plan.step_order)
        if not self.synchronised:
            p.keep_begin()  # for the hook at events
        places = p.save(self.goes_back(plan))
        with p.through_begin():
            p.inputs(first, self.extrapolation)
            p.step(first)
            p.get(first)
            for instance, place in places.items():
                p.align(instance, place)
            for i in others:
                p.inputs(i, self.interpolation, for_all=True)
                p.step(i)
                p.get(i)

    def event_hook(self, plan: Plan, begin: int) -> Hook | None:
        """A hook that replaces the payload of the first one by values extrapolated from the start of its step."""
        if self.synchronised:
            return None
        first = self.leader(plan.step_order)
        chosen = []
        for k in plan.triggers_of(first):
            for route in plan.triggers[k].payload:
                source = route.link.source
                slope = next(
                    (
                        plan.layout.slots[source, Group.OUTPUTS, v.name][1].start
                        for v in plan.instances[source].model.variables
                        if v.derivative_of == route.link.output.name
                        and (source, Group.OUTPUTS, v.name) in plan.layout.slots
                    ),
                    None,
                )
                if slope is not None and route.source_type is DataType.FLOAT64:
                    chosen.append((route, source, slope))

        def extrapolate(store: ValueStore) -> None:
            values, read = store.buffers[begin]
            outputs = values[DataType.FLOAT64]
            for route, source, slope in chosen:
                length = store.read[first] - read[source]
                value = outputs[route.source.start] + outputs[slope] * length
                t = route.transformation
                store.values[route.target_type][route.target] = t.factor * value + t.offset

        return FunctionHook("extrapolated payload", extrapolate)


@dataclass(frozen=True, slots=True)
class AutomaticSequence(FirstFindsEvents):
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
            if events[s.event].scope is not Scope.SHARED:
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
