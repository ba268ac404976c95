"""Sequential steps around events, without rollback: the first instance finds events, the others follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan, StepOrder
from fmimaster.plan.policy import Policy
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import FunctionHook, Hook
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType


@dataclass(frozen=True, slots=True)
class Sequential(Algorithm):
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

    @property
    def handles_early_returns(self) -> bool:
        """True: only the first one stops at events, and it steps before the others."""
        return True

    @property
    def finds_events_for_others(self) -> bool:
        """The first one finds events for the others."""
        return True

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

    def with_loops(self, solved: Callable[[Algorithm], Algorithm]) -> Algorithm:
        """Itself: it steps a whole system only."""
        del solved
        return self

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
