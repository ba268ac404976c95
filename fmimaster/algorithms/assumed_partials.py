"""Partial derivatives that are used as if outputs depended linearly on inputs: checked at each point, and dropped if not.

Most FMUs neither provide directional derivatives nor declare how their outputs depend on inputs. Their partial derivatives
are measured in Initialization Mode, and again in Event Mode after each event: then the FMU may be in another mode. Without
Event Mode they may be others after an event. Whether they still are right shows where outputs are corrected by them: an
output moves on from its last value by its slope, and with a wrong correction it does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from math import inf, isfinite, nan
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import FunctionHook, Hook
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

WRONG = 0.5
"""Partial derivatives are wrong if outputs contradict their corrections by more than this part of these."""

JUMP = 10.0
"""A larger contradiction has another cause, for example an input that has jumped."""

NEGLIGIBLE = 1e-7
"""Corrections below this part of the value show nothing; those below the error of the prediction neither."""

CLEAR = 4.0
"""A correction that is larger than the error of the prediction by this factor shows at once that it is wrong."""

SHORT = 0.125
"""Of the step before: a longer step shows nothing of an output without a slope."""

OLD = 0.8
"""What remains of an older change of a slope at each point."""

MOST_STRIKES = 3
"""Others are wrong if so many in a row contradict."""


def correct_and_check(plan: Plan, p: Emitter, assumed: Iterable[int]) -> None:
    """Correct outputs of instances whose inputs were held at means, and check the partial derivatives that are assumed.

    Parameters
    ----------
    assumed
        Instances with such partial derivatives.
    """
    check = AssumedPartials(plan, tuple(_outputs(plan, assumed)))
    p.call(FunctionHook("outputs before correction", check.note))
    p.correct_means()
    p.call(check)


class _Output(NamedTuple):
    """An element of an output that is corrected."""

    name: str
    instance: int
    slot: int
    slope: int
    """Slot of its time derivative; -1 if there is none."""


def _outputs(plan: Plan, instances: Iterable[int]) -> Iterable[_Output]:
    for i in instances:
        model, slots = plan.instances[i].model, plan.layout.slots
        slopes = {v.derivative_of: v.name for v in model.variables if v.derivative_of}
        for event in plan.events:
            for member in event.members:
                if member.instance == i:
                    slopes |= {
                        z.name: z.derivative for z in member.declaration.indicators if z.derivative
                    }
        correction = plan.corrections[i]
        for variable, slot in zip(correction.outputs, correction.slots, strict=True):
            found = slots.get((i, Group.OUTPUTS, slopes.get(variable.name, "")))
            for k in range(slot.start, slot.stop):
                at = -1 if found is None else found[1].start + k - slot.start
                yield _Output(f"{plan.instances[i].name}.{variable.name}", i, k, at)


@dataclass(frozen=True, slots=True, eq=False)
class AssumedPartials(Hook):
    """Compares how corrections change from point to point with the values that slopes predict, and drops what is wrong.

    In a short step after a long one, for example towards an event, nearly all of a correction vanishes. The output must not
    jump by that.

    Attributes
    ----------
    before : shape (outputs,)
        The outputs before they were corrected.
    noted : shape (2, 2, outputs)
        For the newest point and the one before: the time in s, and the correction of each output.
    strikes, bends : shape (outputs,)
        How often in a row a correction was contradicted; and how fast slopes change, or an output without a slope.
    dropped : shape (3, outputs)
        Time in s at which the partial derivatives of an instance were dropped because of this output, the change of the
        correction, and the contradiction; NaN before.
    """

    plan: Plan
    outputs: tuple[_Output, ...]
    before: NDArray[np.float64] = field(init=False)
    noted: NDArray[np.float64] = field(init=False)
    strikes: NDArray[np.float64] = field(init=False)
    bends: NDArray[np.float64] = field(init=False)
    dropped: NDArray[np.float64] = field(init=False)
    name: ClassVar[str] = "check of partial derivatives"  # type: ignore[misc]

    def __post_init__(self) -> None:
        n = len(self.outputs)
        object.__setattr__(self, "before", np.zeros(n))
        object.__setattr__(self, "noted", np.empty((2, 2, n)))
        object.__setattr__(self, "strikes", np.empty(n))
        object.__setattr__(self, "bends", np.empty(n))
        object.__setattr__(self, "dropped", np.empty((3, n)))
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing is noted or dropped."""
        self.noted[:] = self.dropped[:] = np.nan
        self.strikes[:] = self.bends[:] = 0.0

    def note(self, store: ValueStore) -> None:
        """Note the outputs before they are corrected."""
        values = store.values[DataType.FLOAT64]
        for k, one in enumerate(self.outputs):
            self.before[k] = values[one.slot]

    def __call__(self, store: ValueStore) -> bool:
        """Compare; outputs of an instance whose partial derivatives are wrong get their values from before."""
        values = store.outputs[DataType.FLOAT64]
        wrong = set()
        for k, one in enumerate(self.outputs):
            now, correction = store.read.item(one.instance), values.item(one.slot) - self.before[k]
            is_used = store.partials[one.instance].any()  # those of one that was wrong are 0
            if is_used and self._is_wrong(k, one, store, now, correction):
                wrong.add(one.instance)
            self.noted[0, :, k] = now, correction
        for k, one in enumerate(self.outputs):
            if one.instance in wrong:
                values[one.slot] = self.before[k]
        for i in wrong:
            store.partials[i][:] = 0.0
        return False

    def _is_wrong(
        self, k: int, one: _Output, store: ValueStore, now: float, correction: float
    ) -> bool:
        """Whether the correction of an output contradicts its values and slopes."""
        (before, read), *older = store.history[:2]
        begin = read.item(one.instance)
        if not now > begin:
            return False
        if self.noted[0, 0, k] == begin:  # that step was accepted
            self.noted[1, :, k] = self.noted[0, :, k]
        last = self.noted.item(1, 1, k) if self.noted[1, 0, k] == begin else 0.0
        start, length = before[DataType.FLOAT64].item(one.slot), now - begin
        age = begin - older[0][1].item(one.instance) if older else nan
        if not age > 0.0:  # an event was before: the FMU may be in another mode
            self.strikes[k] = last = 0.0
        slope, unsure = 0.0, inf
        if one.slope >= 0:
            slopes = before[DataType.FLOAT64].item(one.slope), self._value(store, one.slope)
            bend = max(abs(slopes[1] - slopes[0]) / length, OLD * self.bends.item(k))
            self.bends[k] = bend
            slope, unsure = (slopes[0] + slopes[1]) / 2, bend * length**2
        elif age > 0.0:
            slope = (start - older[0][0][DataType.FLOAT64].item(one.slot)) / age
            self.bends[k] = bend = max(abs(slope), OLD * self.bends.item(k))
            unsure = bend * length if length < SHORT * age else inf
        value, change = self._value(store, one.slot), abs(correction - last)
        if not change > max(NEGLIGIBLE * max(abs(value), abs(start)), unsure):
            return False
        contradiction = value - start - length * slope
        is_worse = WRONG * change < abs(contradiction) < JUMP * change
        self.strikes[k] = self.strikes.item(k) + 1.0 if is_worse else 0.0
        if is_worse and (change > CLEAR * unsure or self.strikes.item(k) >= MOST_STRIKES):
            self.dropped[:, k] = now, correction - last, contradiction
            return True
        return False

    @staticmethod
    def _value(store: ValueStore, slot: int) -> float:
        return float(store.outputs[DataType.FLOAT64].item(slot))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Instances whose outputs are not corrected any more."""
        found: dict[int, str] = {}
        for one, (time, change, contradiction) in zip(
            self.outputs, self.dropped.T.tolist(), strict=True
        ):
            if isfinite(time) and one.instance not in found:
                name = self.plan.instances[one.instance].name
                found[one.instance] = (
                    f"'{one.name}' does not depend on held inputs as it did in Initialization Mode: at t = {time:.6g} s "
                    f"its correction by these inputs changed by {change:.3g}, and its values contradict this by "
                    f"{contradiction:.3g}. From then on outputs of '{name}' belong to inputs that are held over a step, "
                    "so events may be found late. Use smaller steps, or an FMU with directional derivatives."
                )
        return tuple(found.values())

    def remembered(self) -> tuple[float, ...]:
        """What was dropped, and what the next point is judged by."""
        return tuple(np.concatenate([array.ravel() for array in self._kept]).tolist())

    def remember(self, numbers: tuple[float, ...]) -> None:
        """Continue with the result of :meth:`remembered`."""
        first = 0
        for array in self._kept:
            array.ravel()[:] = numbers[first : first + array.size]
            first += array.size

    @property
    def _kept(self) -> tuple[NDArray[np.float64], ...]:
        return self.dropped, self.noted, self.strikes, self.bends
