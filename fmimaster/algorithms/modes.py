"""Modes of Gauss-Seidel: the inputs of an instance from sources that have stepped before it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from typing import ClassVar

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.system.model import Variable

SUB_STEPS = 5
"""The smallest number of sub-steps for which the computed best sequence of four units is also the best in simulations.
With 2 it is the third of 24. Source: fmimaster (docs/trigger-sequence.md)."""

LAST = 1 / 8
"""Part of a step, at its end, with the inputs at the end of it. The value before is such that the mean is that of the line:
so this part need not be very short, which FMUs take badly."""

MIDDLE = 0.5
"""Middle of an interval, as a fraction of it: a line has its mean there."""


@dataclass(frozen=True, slots=True)
class Order:
    """The instances of a trigger sequence in the groups that step at the same time."""

    groups: tuple[tuple[int, ...], ...]
    later: Mapping[int, tuple[int, ...]]
    """Instance → sources that are later in the sequence but in an earlier group, or in its own group and read before
    it. It gets their outputs from before the first group."""
    stale: Mapping[int, tuple[int, ...]]
    """Instance → sources whose outputs at the start of the interval it always gets."""

    def is_behind(self, instance: int, plan: Plan, p: Emitter) -> bool:
        """Whether an instance gets outputs of a source that has stepped."""
        older = {*self.later.get(instance, ()), *self.stale.get(instance, ())}
        return any(p.is_ahead(k) for k in plan.sources[instance] if k not in older)

    @contextmanager
    def sources_of(self, instance: int, p: Emitter, start: int, begin: int) -> Iterator[None]:
        """Context in which the outputs of the instance's sources are those that it shall get.

        Parameters
        ----------
        start, begin : int
            Buffers of the outputs before the first group, and at the start of the interval.
        """
        older = {k: start for k in self.later.get(instance, ()) if p.is_ahead(k)}
        older |= {k: begin for k in self.stale.get(instance, ()) if p.is_ahead(k)}
        with p.reverted(older):
            yield


@dataclass(frozen=True, slots=True)
class Treatment:
    """Treatment of the inputs of one instance whose source has stepped before it."""

    what: str
    """The treatment in words."""
    parts: int = 1
    """Number of sub-steps of its step."""
    last: float | None = None
    """The last of two parts, as a fraction of the step; None if all parts are equal."""
    is_end: bool = False
    """Whether inputs are held at the value at the end of the source's step."""
    held: float | None = None
    """Fraction of a sub-step over which inputs are constant at their values there; None if they are not constant."""
    is_corrected: bool = False
    """Whether outputs are corrected for the inputs at the end of the step."""
    is_fallback: bool = False
    """Whether the FMU lacks a capability for the full treatment of the mode."""

    def part(self, k: int) -> tuple[float, float, float | None]:
        """Begin and end of a sub-step, as fractions of the step; and where in it inputs have their values."""
        if self.last is None:
            return k / self.parts, (k + 1) / self.parts, self.held
        first = 1.0 - self.last
        return (first, 1.0, 1.0) if k else (0.0, first, (0.5 - self.last) / first**2)


AT_THE_END = Treatment("inputs are held at the value at the end of the source's step", is_end=True)
IN_THE_MIDDLE = Treatment("inputs are held at the mean of start and end", held=MIDDLE)
AT_ITS_END = Treatment(
    "inputs are held at their values at the end of the step, because outputs depend directly on them",
    held=1.0,
)
TO_ITS_END = Treatment(
    f"inputs are held, at the mean of start and end on average, and in the last {LAST:g} of the step at their values "
    "at the end, because outputs depend directly on them",
    2,
    LAST,
)
ALONG_THE_LINE = Treatment("inputs are interpolated over the step")
SAMPLED = Treatment(
    "inputs are held at their newest values, because its outputs change at single instants only",
    is_end=True,
)
FULLY_CORRECTED = Treatment(
    "inputs are held at the mean of start and end, and outputs are corrected by their partial derivatives",
    held=MIDDLE,
    is_corrected=True,
)
PARTLY_CORRECTED = Treatment(
    "inputs are held at the mean of start and end, and outputs that feed others are corrected by their partial "
    "derivatives; other outputs are delayed by half a step",
    held=MIDDLE,
    is_corrected=True,
)
NOT_INTERPOLATED = Treatment(
    "inputs are held at the value at the end of the source's step instead of being interpolated: the FMU takes no "
    "polynomials, its outputs cannot be corrected, and its step cannot be divided. So they lead by half a step on average. "
    "Use a smaller step size, or choose the trigger sequence by simulations (fmimaster optimize)",
    is_end=True,
    is_fallback=True,
)


def _divided(parts: int) -> Treatment:
    if parts == 1:
        return IN_THE_MIDDLE
    what = f"the step is divided into {parts} parts; in each part the interpolated value in its middle is held"
    return Treatment(what, parts, held=MIDDLE)


class InputMode(TypedArguments, ABC):
    """Treatment of inputs from sources that have stepped before the instance in Gauss-Seidel.

    Inputs whose source has not stepped are extrapolated in the same way in all modes.

    Source: fmimaster (docs/trigger-sequence.md); "lin" and "sub" are Holzinger and Benedikt (2019), section 3.2.
    """

    __slots__ = ()
    name: ClassVar[str]
    """Name on the command line."""

    @property
    def can_go_back(self) -> bool:
        """Whether an attempt can be undone or repeated."""
        return True

    @property
    def interpolates(self) -> bool:
        """Whether inputs belong to the whole step of their source, not to its end."""
        return True

    def treatment_of(self, plan: Plan, instance: int, *, is_behind: bool = True) -> Treatment:
        """The treatment of an instance; ``is_behind``: whether a source of it has stepped."""
        if self.interpolates and samples(plan, instance):
            return SAMPLED
        return self.treatment(plan, instance) if is_behind else AT_THE_END

    @abstractmethod
    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """The treatment of another instance, by the capabilities of its FMU."""

    def emit(self, order: Order, inputs: Polynomial, plan: Plan, p: Emitter) -> None:
        """Write the steps of all groups; ``inputs`` is the polynomial of inputs whose source has not stepped."""
        start = p.keep() if order.later else 0
        begin = p.keep_begin() if order.stale else 0
        for group in order.groups:
            treatments = {
                i: self.treatment_of(plan, i, is_behind=order.is_behind(i, plan, p)) for i in group
            }
            divisions = {(t.parts, t.last): t for t in treatments.values()}
            for parts, last in sorted(divisions, key=lambda d: (d[0], d[1] or 0.0)):
                chosen = [
                    i for i in group if (treatments[i].parts, treatments[i].last) == (parts, last)
                ]
                since = {i: p.keep_begins(i) for i in chosen if not treatments[i].is_end}
                for k in range(parts):
                    first, end, _ = divisions[parts, last].part(k)
                    with p.over(first, end) if parts > 1 else nullcontext():
                        for i in chosen:
                            known = p.until_jumps() if self.interpolates else nullcontext()
                            with order.sources_of(i, p, start, begin), known:
                                give(i, treatments[i], inputs, since.get(i, ()), p, k)
                        p.step_all(chosen)
            for i in group:
                p.get(i)
                if treatments[i].is_corrected:  # before the outputs of later instances are read
                    with order.sources_of(i, p, start, begin):
                        correct(i, plan, p)


def give(
    instance: int,
    treatment: Treatment,
    inputs: Polynomial,
    since: tuple[int, ...],
    p: Emitter,
    k: int = 0,
) -> None:
    """Set the inputs of an instance for a part of its step; ``since``: buffers of the outputs at its start."""
    if treatment is SAMPLED:
        p.inputs(instance, HOLD)
    elif treatment.is_end:
        p.inputs(instance, inputs)
    else:
        held = treatment.part(k)[2]
        p.interpolate(instance, inputs, since, held=held, parts=treatment.parts)


def correct(instance: int, plan: Plan, p: Emitter) -> None:
    """Correct the outputs of an instance immediately, for the instances that step next.

    If instances stop at events, outputs are also corrected at the end of the attempt, because this instance may go back
    before. An instance that stops itself may have failed its step, and is corrected only at the end.
    """
    p.held.add(instance)
    if plan.instances.any_may_return_early:
        p.means.add(instance)
    if not plan.instances[instance].may_return_early:
        routes = plan.routes.get((instance, Group.CONTINUOUS), ())
        p.correct([instance], at_left=any(r.left is not None for r in routes))


@dataclass(frozen=True, slots=True)
class AtEnd(InputMode):
    """Inputs are held at the value at the end of the source's step: they lead by half a step on average.

    If the algorithm has a polynomial for inputs, that polynomial is used instead.
    """

    name: ClassVar[str] = "end"

    @property
    def interpolates(self) -> bool:
        """False."""
        return False

    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """All FMUs can do that."""
        del plan, instance
        return AT_THE_END


@dataclass(frozen=True, slots=True)
class AtMiddle(InputMode):
    """Inputs are held at the mean of start and end. Outputs that depend directly on them are delayed by half a step."""

    name: ClassVar[str] = "mid"

    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """All FMUs can do that."""
        del plan, instance
        return IN_THE_MIDDLE


@dataclass(frozen=True, slots=True)
class Corrected(InputMode):
    """Inputs are held at the mean of start and end, and outputs are corrected to the inputs at the end of the step.

    Parameters
    ----------
    sub_steps : int
        Number of sub-steps of an FMU whose outputs depend directly on inputs and cannot be corrected.
    to_end : bool
        Whether such an FMU does two sub-steps instead, the last one with the inputs at the end of the step.
    """

    sub_steps: int = SUB_STEPS
    to_end: bool = False
    name: ClassVar[str] = "held"

    def __post_init__(self) -> None:
        refuse_no_number("sub_steps", self.sub_steps)

    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """Depends on whether outputs depend directly on inputs, and can be corrected."""
        depending = _direct_outputs(plan, instance)
        correction = plan.corrections.get(instance)
        if not depending:
            return IN_THE_MIDDLE
        corrected = correction.outputs if correction is not None and correction.is_sure else ()
        known = {v.name for v in corrected}
        if {v.name for v in depending} <= known:
            return FULLY_CORRECTED
        is_divided = can_be_divided(plan, instance)
        has_grid = plan.instances[instance].model.capabilities.fixed_internal_step_size is not None
        late = {v.name for v in depending if v.is_continuous} - known
        if is_divided and self.to_end and late and not has_grid:
            return TO_ITS_END
        if is_divided and self.sub_steps > 1:
            return _divided(self.sub_steps)
        if corrected:
            return PARTLY_CORRECTED
        if self.sub_steps == 1 and not has_states(plan, instance):
            return AT_ITS_END
        return IN_THE_MIDDLE if is_divided else NOT_INTERPOLATED


@dataclass(frozen=True, slots=True)
class AlongLine(Corrected):
    """Inputs are interpolated linearly from the start to the end of the source's step. This mode is recommended.

    An FMU that accepts no polynomials is treated as in :class:`Corrected`.

    Parameters
    ----------
    sub_steps, to_end
        As in :class:`Corrected`.
    """

    name: ClassVar[str] = "lin"

    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """Depends on whether the FMU accepts polynomials."""
        if takes_lines(plan, instance):
            return ALONG_THE_LINE
        return Corrected.treatment(self, plan, instance)


def has_states(plan: Plan, instance: int) -> bool:
    """Whether an instance is known to have continuous states."""
    model = plan.instances[instance].model
    return bool(model.n_states or model.state_derivatives)


def samples(plan: Plan, instance: int) -> bool:
    """Whether an instance is a controller that samples its inputs: all of its outputs that feed others are discrete, and it
    has neither continuous states nor Event Mode. Then a line over the step, or its mean, would be an older sample."""
    planned = plan.instances[instance]
    links = plan.links.out_of_instance.get(instance, ())
    if planned.event_mode or planned.may_return_early or has_states(plan, instance):
        return False
    return bool(links) and not any(link.output.is_continuous for link in links)


def held_connections(
    plan: Plan, sequence: Sequence[int], stale: Set[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Source and target of connections with discrete values only, which are held from the end of the source's step on.

    The source has stepped before the target, but its new values belong to the end of its step: the target gets the values
    from the start. Two sources are excepted: one with Event Mode changes its values at events, not in steps; and the new
    values of a controller that gets a value from the start of the step belong to that time.
    """
    position = {i: k for k, i in enumerate(sequence)}
    found = set[tuple[int, int]]()
    for k in sequence:
        links = plan.links.out_of_instance.get(k, ())
        if plan.instances[k].event_mode or all(link.output.is_continuous for link in links):
            continue
        known = (j for j in plan.sources[k] if j in position)
        old = stale | found
        if samples(plan, k) and any(position[j] > position[k] or (j, k) in old for j in known):
            continue
        continuous = {link.target for link in links if link.output.is_continuous}
        targets = {link.target for link in links} - continuous
        found |= {(k, i) for i in targets if position.get(i, -1) > position[k]}
    return found - stale


def can_be_divided(plan: Plan, instance: int) -> bool:
    """Whether the step of an instance can be divided: not if the instance may have its own event between the parts."""
    planned = plan.instances[instance]
    can = planned.model.capabilities
    has_events = planned.may_return_early or planned.may_request_events
    return can.can_handle_variable_communication_step_size and not has_events


def takes_lines(plan: Plan, instance: int) -> bool:
    """Whether all connected continuous inputs of an instance can follow a straight line over a step."""
    planned = plan.instances[instance]
    routes = plan.routes.get((instance, Group.CONTINUOUS), ())
    return planned.model.takes_polynomials and all(
        planned.model.takes_polynomial_of(route.link.input) for route in routes
    )


def _direct_outputs(plan: Plan, instance: int) -> list[Variable]:
    """Outputs that are used or recorded, and depend directly on connected continuous inputs."""
    fed = {route.link.input.name for route in plan.routes.get((instance, Group.CONTINUOUS), ())}
    dependencies = plan.instances[instance].model.dependencies
    return [
        v
        for segment in plan.layout.segments(instance, Group.OUTPUTS)
        for v in segment.variables
        if dependencies.get(v.name, frozenset()) & fed
    ]


def refuse_no_number(name: str, value: int) -> None:
    """Raise if a number of parts of a step is less than 1."""
    if value < 1:
        raise OptionError(f"{name}={value}: expected at least 1.")
