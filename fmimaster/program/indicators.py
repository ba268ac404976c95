"""The event indicators of a plan, read from the outputs and the history in the value store.

When an indicator is at zero
----------------------------
Two times whose difference is rounding are equal (:func:`fmimaster.instants.grid.rounding`), and a number that consists
of rounding errors only is 0. So an indicator ``z`` with the time derivative ``dz`` is *above zero* if

    z > max(rounding of time * |dz|, ROUNDING * the largest |z| of the run so far, OF_INPUTS * the largest |u| so far),

*below zero* likewise, with REST and ROUNDING instead of ROUNDING and OF_INPUTS, and *at zero* between them. ``u`` are
the inputs of the same unit on which ``z`` depends directly: if bodies move together, the gap between them consists of
their rounding errors only. ``z`` falls if ``dz`` is below zero, and brings it below zero within a usual step; if ``z``
is itself the slope of another indicator, as a velocity is that of a gap, it must bring that one below zero. ``dz`` is
the output that the FMU publishes, otherwise the difference to the previous point. The largest value starts from the
nominal value, if the FMU declares one. An FMU may declare a tolerance relative to the nominal value; the larger
tolerance is used. No tolerance is an absolute number. Therefore the same motion in other units has the same events.

An event is *on* for a member if none of its indicators is above zero, and it is not *at rest*: of those at zero at
least one falls, or all are below zero. A body that lies on another one (gap 0, no approach) is at rest. Bodies are also
at rest if their gap consists of rounding errors only, of either sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from fmimaster.instants.grid import rounding
from fmimaster.numerics.indicators import FAR, OF_INPUTS, ROUNDING
from fmimaster.plan.plan import Plan
from fmimaster.program.indicator_set import (
    EventPhase,
    IndicatorSet,
    Near,
    indicator_set,
    predictions,
)
from fmimaster.program.scales import Scales
from fmimaster.program.signals import marks_of_events
from fmimaster.program.store import OutputCopy, ValueStore, floats
from fmimaster.system.model import DataType

NONE: frozenset[int] = frozenset()
"""No events."""

HELD = 1e-8
"""What is at rest stays so until its motion exceeds this fraction of the inputs: short steps amplify their roundings to
3e-9 of them."""

BARELY = 1e3
"""So many times the tolerance around 0 an FMU that judges by 0 alone may see an indicator on the other side."""

STOPPED = 1e-8
"""An FMU locates its own events to this part of a usual step, in s, or to this part of the indicator's largest value."""

LATE = 1e-5
"""An event is late if all its indicators are below 0 by more than this part of their usual values, or by their change in
this part of a usual step: extrapolated inputs are seldom better."""


class Indicators:
    """The indicators of a plan in a value store.

    Parameters
    ----------
    history : int
        Accepted points in the store.
    step : float
        Length in s of a usual step.
    between : int
        Points of the history inside each step. They are not communication points and are skipped.
    """

    def __init__(
        self, plan: Plan, store: ValueStore, history: int, step: float, between: int = 0
    ) -> None:
        self.plan = plan
        self.store = store
        self.history = history
        self.step = step
        self.distance = 1 + between
        """So many points of the history are from one communication point to the next."""
        members = [(e, m) for e, event in enumerate(plan.events) for m in event.members]
        self.sets = [indicator_set(plan, n, e, m) for n, (e, m) in enumerate(members)]
        self.by_themselves = frozenset(s.event for s in self.sets if not s.is_triggered)
        """Events that FMUs let happen when they are reached from above, not whenever they are on."""
        self.look_ahead = predictions(plan)
        """Instances that predict their next event, with the slots of the predictions."""
        self.pairs = [(s.event, s.pairs) for s in self.sets]
        """For each set: the event, and the slots of its indicators and derivatives, which are read in each step."""
        self.lacks_slopes = any(dz < 0 for _, pairs in self.pairs for _, dz in pairs)
        """Whether an indicator has no derivative."""
        self.member = self.sets[0].instance if self.sets else 0
        """The instance whose times of reading are those of the points."""
        self._marks = marks_of_events(plan)
        self._outputs = floats(store.outputs)
        self.scales = Scales(plan, store, self.sets, step)
        """What is negligible for each indicator."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """As before the first step of a run."""
        self.first: int | None = None
        """The instance whose inputs are extrapolated, while the others have its polynomials; None if all are."""
        self.outdated: frozenset[int] = NONE
        """Numbers of the sets whose indicators are from before an event at this instant; they are ignored."""
        self.resting: frozenset[int] = NONE
        """Events whose bodies rest: they stay at rest while these move by no more than the fraction HELD of the inputs."""
        self.held: frozenset[int] = NONE
        """Events of contacts that are held by a force, or have only just opened: they do not happen."""
        self._present: list[float] | None = None
        self._is_tried = False

    def renew(self, *, is_tried: bool = False) -> None:
        """Note that the outputs have changed. ``is_tried``: by a step that is not accepted yet and may be rolled
        back."""
        self._present = None
        self._is_tried = is_tried

    def present(self) -> list[float]:
        """All Float64 outputs, as they were when first requested after the last change."""
        present = self._present
        if present is None:
            present = self._present = self._outputs.tolist()
            if not self._is_tried:
                size, largest = np.abs(self._outputs), self.store.largest
                if abs(sum(present)) < inf:  # all are: a third of the time of what follows
                    np.maximum(largest, size, out=largest)
                else:
                    np.maximum(largest, size, out=largest, where=size < inf)
        return present

    @property
    def older_points(self) -> Sequence[OutputCopy]:
        """The accepted communication points before the newest one, the newest first."""
        return self.store.history[self.distance : self.history : self.distance]

    def at_start_of_step(self) -> list[float]:
        """All Float64 outputs at the newest accepted point."""
        return floats(self.store.history[0][0]).tolist()  # type: ignore[no-any-return]

    def previous(self, now: float, nearest: float) -> tuple[list[float], float] | None:
        """Float64 outputs at the newest accepted point that is farther than ``nearest`` away, and its time in s."""
        for values, read in self.older_points:
            time = read.item(self.member)
            if not time < inf:  # NaN: there is no history
                return None
            if now - time > nearest:
                return floats(values).tolist(), time
        return None

    def unmoved_since(self, s: IndicatorSet) -> float:
        """Time in s of the oldest accepted point since which the indicators of a set have not changed; inf if they have
        changed since the newest point, as in all FMUs without their own internal grid."""
        present, since = self.present(), inf
        for values, read in self.older_points:
            time, then = read.item(self.member), floats(values)
            # NaN: there is no history
            if not time < inf or any(then.item(k) != present[k] for k in s.z):
                break
            since = time
        return since

    def is_ahead(self, s: IndicatorSet, now: float) -> bool:
        """Whether a set belongs to a later time in s: its instance has stepped past an event and cannot go back."""
        return float(self.store.read.item(s.instance)) > now

    def predicted_by_fmus(self, in_fmu: bool) -> frozenset[int]:
        """Instances whose own prediction of their next event is used: those with a prediction and without indicators,
        or all with a prediction if ``in_fmu``."""
        by_indicators = set() if in_fmu else {s.instance for s in self.sets}
        return frozenset(i for i, _ in self.look_ahead if i not in by_indicators)

    def is_left_to_fmu(self, event: int) -> bool:
        """Whether FMUs that return early decide alone on an event."""
        return all(s.stops for s in self.sets if s.event == event)

    def at(self) -> frozenset[int]:
        """Events that are active for a member."""
        found, values = NONE, self.present()
        for s in self.sets:
            if s.event not in found and not self._is_far_above(s, values) and self.is_on(s):
                found |= {s.event}
        return found

    def is_off(self, s: IndicatorSet) -> bool:
        """Whether an event cannot happen in the mode that its member has now."""
        return s.active >= 0 and not self.store.outputs[DataType.BOOLEAN][s.active]

    def was_off(self, s: IndicatorSet) -> bool:
        """Whether an event could not happen at the communication point before: its indicators there tell nothing."""
        points = self.older_points[:1] if s.active >= 0 else ()
        return any(not values[DataType.BOOLEAN][s.active] for values, _ in points)

    def began_off(self, s: IndicatorSet) -> bool:
        """Whether an event could not happen at the newest accepted point, from which a step was tried."""
        return s.active >= 0 and not self.store.history[0][0][DataType.BOOLEAN][s.active]

    def _is_far_above(self, s: IndicatorSet, values: Sequence[float]) -> bool:
        """Whether the first indicator of a set stays clearly above zero within a quarter of a step. This is so in most
        steps, and saves further checks. Times that are equal up to rounding are never so far apart."""
        z, dz = s.pairs[0]
        z_now = values[z]
        return (
            dz >= 0
            and z_now > abs(values[dz]) * self.step / 4
            and z_now > s.tolerances[0]
            and z_now > ROUNDING * self.store.largest.item(z)
            and z_now > OF_INPUTS * self.scales.of_inputs(z)
        )

    def is_on(self, s: IndicatorSet) -> bool:
        """Whether an event is active for a member. If the FMU triggers it, by its own condition, no indicator may be
        above 0."""
        if s.number in self.outdated or self.is_dropped(s.event):
            return False
        if s.is_inside or (not s.is_triggered and any(self.present()[k] > 0.0 for k in s.z)):
            return False
        return self._phase(s, self._at_zero(s)) is EventPhase.ON

    def is_dropped(self, event: int) -> bool:
        """Whether a member of an event does not take part any more: it no longer happens."""
        marks = self._marks[event]
        return bool(marks) and any(self.present()[mark] > 0.0 for mark in marks)

    def rests(self, s: IndicatorSet, values: Sequence[float]) -> bool:
        """Whether all indicators of a set and their derivatives are negligible in these outputs: bodies that touch and
        do not move. Otherwise rounding would cause contact events again and again."""
        if s.event in self.held:
            return True
        part = HELD if s.event in self.resting else ROUNDING
        return all(
            dz >= 0
            and abs(values[z])
            <= self.scales.negligible(z, dz, part)  # first: it seldom is, in any step
            and abs(values[dz]) <= self.scales.rest_of_slope(s, z, dz, self.step, values, part)
            for z, dz in s.pairs
        )

    def is_closed(self, s: IndicatorSet, values: Sequence[float]) -> bool:
        """Whether two bodies touch: the first indicator of a contact, the gap, is negligible."""
        z, dz = s.pairs[0]
        return values[z] <= self.scales.negligible(z, dz)

    def stopped_at(self, instances: frozenset[int]) -> frozenset[int]:
        """Events at which these instances have stopped, within the accuracy of an FMU's own event location. Events at
        rest are excluded, because bodies in contact approach each other by rounding."""
        near = Near(STOPPED * self.step, STOPPED, ROUNDING)
        return frozenset(
            s.event
            for s in self.sets
            if s.instance in instances and self._phase(s, near) >= EventPhase.UNKNOWN
        )

    def still_on(self, event: int) -> bool:
        """Whether an event is active for all its members whose indicators are up to date."""
        sets = [s for s in self.sets if s.event == event and s.number not in self.outdated]
        return bool(sets) and all(self.is_on(s) for s in sets)

    def may_be_none(self, event: int, before: Sequence[float]) -> bool:
        """Whether an event that is on may be none for its FMUs: its trigger has changed no indicator since these outputs,
        all are at zero, and one has a slope of zero. FMUs of fmi-ls-events 0.2 judge triggers by 0, without tolerance."""
        values = self.present()
        return all(
            all(values[z] == before[z] for z in s.z)
            and all(abs(values[z]) <= BARELY * self.scales.negligible(z, dz) for z, dz in s.pairs)
            and any(
                abs(values[dz]) <= BARELY * self.scales.rest(dz) for _, dz in s.pairs if dz >= 0
            )
            for s in self.sets
            if s.event == event
        )

    def is_late(self, event: int) -> bool:
        """Whether an event has been active for a member for so long that it should have been found earlier."""
        values = self.present()
        return any(
            all(
                values[z] < -max(LATE * self.usual(s, n), self.scales.rest(z))
                for n, z in enumerate(s.z)
            )
            for s in self.sets
            if s.event == event and s.number not in self.outdated and not self.is_off(s)
        )

    def largest(self, event: int) -> float:
        """The smallest of its members' largest indicators: how far below 0 they are for the lowest member."""
        values = self.present()
        return min(max(values[k] for k in s.z) for s in self.sets if s.event == event)

    def _at_zero(self, s: IndicatorSet) -> Near:
        """The tolerances around 0 of the indicators of a member, at the time of its outputs."""
        return Near(rounding(self.store.read.item(s.instance), self.step), ROUNDING, OF_INPUTS)

    def _phase(self, s: IndicatorSet, near: Near) -> EventPhase:
        """How far an event has come for a member."""
        if self.is_off(s):
            return EventPhase.ABOVE
        values, largest = self.present(), self.store.largest
        falls = unknown = at_zero = below = False
        for (z, dz), tolerance in zip(s.pairs, s.tolerances, strict=True):
            # most sets end at the first indicator, in each step
            z_now, usual = values[z], largest.item(z)
            if dz < 0 and z_now > max(FAR * usual, tolerance):
                return EventPhase.ABOVE
            slope, length = self._slope(s, z, dz, values)
            bound = max(near.part * usual, near.seconds * abs(slope), tolerance)
            if z_now > bound and z_now > near.of_inputs * self.scales.of_inputs(z):
                return EventPhase.ABOVE
            if z_now < -max(bound, self.scales.rest(z)):
                below = True
            else:
                at_zero = True
                falls |= slope < -self.scales.rest_of_slope(s, z, dz, length, values)
                unknown |= length == 0.0
        if not (falls or unknown) and at_zero:
            return EventPhase.AT_REST
        if self.rests(s, values):
            return EventPhase.AT_REST
        return EventPhase.ON if falls or below else EventPhase.UNKNOWN

    def _slope(
        self, s: IndicatorSet, z: int, dz: int, values: Sequence[float]
    ) -> tuple[float, float]:
        """The time derivative of an indicator, and the length in s over which it was taken; 0 and 0 if it is not known."""
        if dz >= 0:
            slope, length = values[dz], self.step
        else:
            now = self.store.read.item(s.instance)
            previous = self.previous(now, rounding(now, self.step))
            if previous is None:
                return 0.0, 0.0
            before, time = previous
            length = now - time
            slope = (values[z] - before[z]) / length
        return (slope, length) if abs(slope) < inf else (0.0, 0.0)

    def usual(self, s: IndicatorSet, n: int) -> float:
        """The largest value so far of a set's indicator of this number, or its change in a usual step if that is larger."""
        slope, _ = self._slope(s, *s.pairs[n], self.present())
        return max(self.store.largest.item(s.z[n]), abs(slope) * self.step)
