"""Modes of Gauss-Seidel: what an instance is given of the sources that have stepped before it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import ClassVar

from fmimaster.errors import OptionError
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.polynomial import Polynomial

SUB_STEPS = 5
"""The least number of sub-steps with which the best sequence of four units is the best in simulations, too. Source:
fmimaster (docs/trigger-sequence.md); 2 make it the third of 24."""

MIDDLE = 0.5
"""Of an interval, as a fraction of it: a line has its mean there."""


@dataclass(frozen=True, slots=True)
class Order:
    """The instances of a trigger sequence in the groups that step at the same time."""

    groups: tuple[tuple[int, ...], ...]
    later: Mapping[int, tuple[int, ...]]
    """Instance → sources that come later in the sequence, but are in a group before it, or that are in its own group and
    read before it: it is given their outputs as they are before the first group."""
    stale: Mapping[int, tuple[int, ...]]
    """Instance → sources of which it is given the outputs at the start of the interval in any case."""

    def is_behind(self, instance: int, plan: Plan, p: Emitter) -> bool:
        """Whether an instance is given the outputs of a source that has stepped."""
        older = {*self.later.get(instance, ()), *self.stale.get(instance, ())}
        return any(p.is_ahead(k) for k in plan.sources[instance] if k not in older)

    @contextmanager
    def sources_of(self, instance: int, p: Emitter, start: int, begin: int) -> Iterator[None]:
        """What is written inside finds the outputs of the instance's sources as it is to be given them.

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
    """How one instance is given the inputs whose source has stepped before it."""

    what: str
    """In words: of the inputs whose source has stepped."""
    parts: int = 1
    """Its step is done in so many sub-steps."""
    is_end: bool = False
    """Whether inputs are held at the value at the end of the source's step."""
    is_held: bool = False
    """Whether inputs are constant over a sub-step, at the value in its middle."""
    is_corrected: bool = False
    """Whether outputs are corrected to the inputs at the end of the step."""
    is_fallback: bool = False
    """Whether this is less than the mode means, because the FMU cannot do it."""


AT_THE_END = Treatment("inputs are held at the value at the end of the source's step", is_end=True)
IN_THE_MIDDLE = Treatment("inputs are held at the mean of start and end", is_held=True)
ALONG_THE_LINE = Treatment("inputs are interpolated over the step")
CORRECTED = Treatment(
    "inputs are held at the mean of start and end, and outputs are corrected by their partial derivatives",
    is_held=True,
    is_corrected=True,
)
PARTLY_CORRECTED = Treatment(
    "inputs are held at the mean of start and end, and outputs that feed others are corrected by their partial "
    "derivatives; other outputs lag by half a step",
    is_held=True,
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
    what = f"the step is divided in {parts} parts, in each of which the interpolated value in its middle is held"
    return Treatment(what, parts, is_held=True)


class Mode(ABC):
    """What Gauss-Seidel gives an instance of the sources that have stepped before it.

    Inputs whose source has not stepped are extrapolated in all modes alike.

    Source: fmimaster (docs/trigger-sequence.md); "lin" and "sub" are Holzinger and Benedikt (2019), section 3.2.
    """

    __slots__ = ()
    name: ClassVar[str]
    """On the command line."""

    @property
    def can_go_back(self) -> bool:
        """Whether an attempt can be undone or repeated."""
        return True

    @abstractmethod
    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """What is done for an instance, by the capabilities of its FMU."""

    def emit(self, order: Order, inputs: Polynomial, plan: Plan, p: Emitter) -> None:
        """Write the steps of all groups; ``inputs`` are those whose source has not stepped."""
        start = p.keep() if order.later else 0
        begin = p.keep_begin() if order.stale else 0
        for group in order.groups:
            treatments = {
                i: self.treatment(plan, i) if order.is_behind(i, plan, p) else AT_THE_END
                for i in group
            }
            for parts in sorted({t.parts for t in treatments.values()}):
                chosen = [i for i in group if treatments[i].parts == parts]
                since = {i: p.keep_begins(i) for i in chosen if not treatments[i].is_end}
                for k in range(parts):
                    with p.over(k / parts, (k + 1) / parts) if parts > 1 else nullcontext():
                        for i in chosen:
                            with order.sources_of(i, p, start, begin):
                                give(i, treatments[i], inputs, since.get(i, ()), p)
                        p.step_all(chosen)
            for i in group:
                p.get(i)
                if treatments[i].is_corrected:  # before the outputs of those behind it are read
                    with order.sources_of(i, p, start, begin):
                        correct(i, plan, p)


def give(
    instance: int, treatment: Treatment, inputs: Polynomial, since: tuple[int, ...], p: Emitter
) -> None:
    """Give an instance its inputs; ``since``: buffers of the outputs at the start of the step."""
    if treatment.is_end:
        p.inputs(instance, inputs)
    else:
        held = MIDDLE if treatment.is_held else None
        p.interpolate(instance, inputs, since, held=held, parts=treatment.parts)


def correct(instance: int, plan: Plan, p: Emitter) -> None:
    """Correct the outputs of an instance at once, for those that step next.

    Where instances stop at events it is done at the end of the attempt too: this one may go back until then. One that
    stops itself may have failed its step, and is corrected only then.
    """
    p.held.add(instance)
    if plan.instances.any_may_return_early:
        p.means.add(instance)
    if not plan.instances[instance].may_return_early:
        p.correct([instance])


@dataclass(frozen=True, slots=True)
class End(Mode):
    """Inputs are held at the value at the end of the source's step: they lead by half a step on average.

    With a polynomial as the inputs of the algorithm, that polynomial serves instead.
    """

    name: ClassVar[str] = "end"

    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """All FMUs can do that."""
        del plan, instance
        return AT_THE_END


@dataclass(frozen=True, slots=True)
class Mid(Mode):
    """Inputs are held at the mean of start and end. Outputs that depend directly on them lag by half a step."""

    name: ClassVar[str] = "mid"

    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """All FMUs can do that."""
        del plan, instance
        return IN_THE_MIDDLE


@dataclass(frozen=True, slots=True)
class Held(Mode):
    """Inputs are held at the mean of start and end, and outputs are corrected to the inputs at the end of the step.

    Parameters
    ----------
    sub_steps : int
        Of an FMU whose outputs depend directly on inputs and cannot be corrected.
    """

    sub_steps: int = SUB_STEPS
    name: ClassVar[str] = "held"

    def __post_init__(self) -> None:
        refuse_no_number("sub_steps", self.sub_steps)

    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """By whether outputs depend directly on inputs, and can be corrected."""
        depending = _direct_outputs(plan, instance)
        correction = plan.corrections.get(instance)
        if not depending:
            return IN_THE_MIDDLE
        corrected = correction.outputs if correction is not None and correction.means else ()
        if depending <= {v.name for v in corrected}:
            return CORRECTED
        if can_be_divided(plan, instance):
            return _divided(self.sub_steps)
        if corrected:
            return PARTLY_CORRECTED
        return NOT_INTERPOLATED


@dataclass(frozen=True, slots=True)
class Linear(Mode):
    """Inputs go along the straight line from the start to the end of the source's step: the mode that is recommended.

    An FMU that takes no polynomials is treated as by :class:`Held`.

    Parameters
    ----------
    sub_steps : int
        As of :class:`Held`.
    """

    sub_steps: int = SUB_STEPS
    name: ClassVar[str] = "lin"

    def __post_init__(self) -> None:
        refuse_no_number("sub_steps", self.sub_steps)

    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """By whether the FMU takes polynomials."""
        if takes_lines(plan, instance):
            return ALONG_THE_LINE
        return Held(self.sub_steps).treatment(plan, instance)


def can_be_divided(plan: Plan, instance: int) -> bool:
    """Whether the step of an instance can be done in parts: not if it may end one early at an event of its own."""
    planned = plan.instances[instance]
    can = planned.model.capabilities
    return can.can_handle_variable_communication_step_size and not planned.may_return_early


def takes_lines(plan: Plan, instance: int) -> bool:
    """Whether all connected continuous inputs of an instance can follow a straight line over a step."""
    planned = plan.instances[instance]
    routes = plan.routes.get((instance, Group.CONTINUOUS), ())
    return planned.takes_polynomials and all(
        planned.model.takes_polynomial_of(route.link.input) for route in routes
    )


def _direct_outputs(plan: Plan, instance: int) -> set[str]:
    """Outputs that are used or recorded, and depend directly on connected continuous inputs."""
    fed = {route.link.input.name for route in plan.routes.get((instance, Group.CONTINUOUS), ())}
    dependencies = plan.instances[instance].model.dependencies
    return {
        v.name
        for segment in plan.layout.segments(instance, Group.OUTPUTS)
        for v in segment.variables
        if dependencies.get(v.name, frozenset()) & fed
    }


def refuse_no_number(name: str, value: int) -> None:
    """Raise if a number of parts of a step is none."""
    if value < 1:
        raise OptionError(f"{name}={value}: expected at least 1.")


END = End()
"""Inputs are held at the value that the source has at the end of its step."""

MID = Mid()
"""Inputs are held at the mean of the source's values at the start and at the end of its step."""

LINEAR = Linear()
"""Inputs are interpolated along the source's step, where the FMU can take polynomials."""

HELD = Held()
"""As :data:`MID`, and outputs are corrected where the FMU has partial derivatives."""
