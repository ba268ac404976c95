"""The mode of Gauss-Seidel in which inputs follow all points of their source inside the step."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import ClassVar

from fmimaster.algorithms.modes import (
    MIDDLE,
    AlongLine,
    InputMode,
    Order,
    Treatment,
    can_be_divided,
    correct,
    give,
    refuse_no_number,
    takes_lines,
)
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter

PARTS = 10
"""Number of micro steps per step of the four units of Holzinger and Benedikt (2019)."""


@dataclass(frozen=True, slots=True)
class Subsequence(InputMode):
    """All instances step in parts, and inputs follow the outputs of their source after each part.

    An FMU whose step cannot be divided is treated as in :class:`AlongLine`.

    Parameters
    ----------
    parts : int
        Number of parts of a step; ideally the number of internal steps of the FMUs.

    Source: Holzinger and Benedikt (2019), section 3.2.1.
    """

    parts: int = PARTS
    name: ClassVar[str] = "sub"

    def __post_init__(self) -> None:
        refuse_no_number("parts", self.parts)

    @property
    def can_go_back(self) -> bool:
        """False: outputs at the start are corrected by the last inputs of the instance."""
        return False

    def treatment(self, plan: Plan, instance: int) -> Treatment:
        """Depends on whether the FMU accepts polynomials, and whether its step can be divided."""
        if not can_be_divided(plan, instance):
            return AlongLine().treatment(plan, instance)
        is_held = not takes_lines(plan, instance)
        how = "held at the mean of its ends" if is_held else "interpolated"
        what = f"the step is divided into {self.parts} parts; in each part inputs are {how}"
        correction = plan.corrections.get(instance)
        can_be_corrected = correction is not None and correction.is_sure
        held = MIDDLE if is_held else None
        return Treatment(what, self.parts, held=held, is_corrected=can_be_corrected)

    def emit(self, order: Order, inputs: Polynomial, plan: Plan, p: Emitter) -> None:
        """Write the steps of all groups; each buffer holds all outputs after one part."""
        for planned in (plan.instances[i] for i in plan.trigger_sequence):
            if planned.may_return_early or planned.may_request_events:
                raise OptionError(
                    f"GaussSeidel in the mode 'sub' divides each step into parts, but '{planned.name}' may have an event "
                    "between them, where the other FMUs cannot go back. Use the mode 'lin'."
                )
        begin, start = p.keep_begin(), p.keep()
        points = [p.new_buffer() for _ in range(self.parts + 1)]
        for point in points:
            p.keep_in(point)
        writing = _Writing(order, inputs, plan, p, points, start, begin)
        for group in order.groups:
            treatments = {i: self.treatment(plan, i) for i in group}
            # in the order of the group: no instance gets new outputs of later ones
            for parts, run in groupby(treatments.items(), lambda item: item[1].parts):
                alike = dict(run)
                if parts == self.parts:
                    writing.correct_the_start(alike)
                    writing.step_in_parts(alike)
                else:
                    writing.step_at_once(alike)


@dataclass(frozen=True, slots=True)
class _Writing:
    """Writes the steps of all groups, one after the other."""

    order: Order
    inputs: Polynomial
    plan: Plan
    p: Emitter
    points: list[int]
    """Buffers of all outputs at the start and after each part. When an instance is written, its outputs at the start
    are corrected for the inputs there."""
    start: int
    """Buffer of the outputs at the start, as they were recorded."""
    begin: int
    """Buffer of the outputs before other parts of the system stepped."""

    def correct_the_start(self, group: Mapping[int, Treatment]) -> None:
        """Correct the first point of each instance of a group for its inputs there."""
        p, chosen = self.p, [i for i, t in group.items() if t.is_corrected]
        if not chosen:
            return
        p.recall(self.points[0])
        for i in chosen:
            with self.order.sources_of(i, p, self.start, self.begin):
                correct(i, self.plan, p)
        p.keep_in(self.points[0])

    def step_in_parts(self, group: Mapping[int, Treatment]) -> None:
        """The steps of the instances that can be divided."""
        p, parts = self.p, len(self.points) - 1
        for k in range(parts):
            p.recall(self.points[k + 1])
            since = tuple(dict.fromkeys((self.points[k], self.points[0], self.begin)))
            with p.over(k / parts, (k + 1) / parts):
                for i, treatment in group.items():
                    with self.order.sources_of(i, p, self.start, self.begin):
                        give(i, treatment, self.inputs, since, p)
                p.step_all(group)
            for i, treatment in group.items():
                p.get(i)
                with self.order.sources_of(i, p, self.start, self.begin):
                    if treatment.is_corrected and treatment.held is not None:
                        correct(i, self.plan, p)
                    elif treatment.is_corrected and k + 1 == parts:
                        p.move(i)  # the inputs by which the next start is corrected
            p.keep_in(self.points[k + 1])

    def step_at_once(self, group: Mapping[int, Treatment]) -> None:
        """The steps of the others, whose new outputs are known in all parts of the interval."""
        p = self.p  # its present values are those of the last point
        for i, treatment in group.items():
            with self.order.sources_of(i, p, self.start, self.begin):
                give(i, treatment, self.inputs, (self.points[0], self.begin), p)
        p.step_all(group)
        for i, treatment in group.items():
            p.get(i)
            if treatment.is_corrected:
                with self.order.sources_of(i, p, self.start, self.begin):
                    correct(i, self.plan, p)
        end = p.keep()
        for point in self.points[1:]:
            p.recall(point)
            for i in group:
                p.revert(i, end)
            p.keep_in(point)
