"""Partial derivatives that are used as if outputs depended linearly on inputs: checked at each point, and dropped if not.

Most FMUs neither provide directional derivatives nor declare how their outputs depend on inputs. Their partial derivatives
are measured in Initialization Mode, and may be others later, for example in another mode of the FMU. Whether they still are
right shows where outputs are corrected by them: an output moves on from its last value by its slope, and with a wrong
correction it does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.corrections import Means
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

WORSE = 4.0
"""Partial derivatives are wrong if the corrected output is farther from what its slope predicts than the output itself, by
this factor."""

NEGLIGIBLE = 1e-7
"""Corrections below this part of the value show nothing; those below the error of the prediction neither."""

CLEAR = 4.0
"""A correction that is larger than the error of the prediction by this factor shows at once that it is wrong."""

OLD = 0.8
"""What remains of an older change of a slope at each point."""

MOST_STRIKES = 3
"""Others are wrong if so many in a row are worse than none."""


def correct_means(plan: Plan, p: Emitter) -> None:
    """Correct outputs of instances whose inputs were held at means; partial derivatives that are assumed are checked."""
    assumed = [
        i
        for i in sorted(p.means)
        if (c := plan.corrections.get(i)) is not None and c.means is Means.ASSUMED
    ]
    if not assumed:
        p.correct_means()
        return
    check = AssumedPartials(plan, tuple(_outputs(plan, assumed)))
    p.call(_Uncorrected(check))
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
    """Compares corrected and uncorrected outputs with the values that their slopes predict, and drops what is wrong.

    Attributes
    ----------
    before : shape (outputs,)
        The outputs before they were corrected.
    strikes, bends : shape (outputs,)
        How many corrections in a row were worse than none, and how fast slopes change: by this the prediction is wrong.
    dropped : shape (3, outputs)
        Time in s at which the partial derivatives of an instance were dropped because of this output, and the differences
        with and without correction; NaN before.
    """

    plan: Plan
    outputs: tuple[_Output, ...]
    before: NDArray[np.float64] = field(init=False)
    strikes: NDArray[np.float64] = field(init=False)
    bends: NDArray[np.float64] = field(init=False)
    dropped: NDArray[np.float64] = field(init=False)
    name: ClassVar[str] = "check of partial derivatives"  # type: ignore[misc]

    def __post_init__(self) -> None:
        n = len(self.outputs)
        object.__setattr__(self, "before", np.zeros(n))
        object.__setattr__(self, "strikes", np.zeros(n))
        object.__setattr__(self, "bends", np.zeros(n))
        object.__setattr__(self, "dropped", np.full((3, n), np.nan))

    def __call__(self, store: ValueStore) -> bool:
        """Compare; outputs of an instance whose partial derivatives are wrong get their values from before."""
        values = store.outputs[DataType.FLOAT64]
        start, read = store.history[0][0][DataType.FLOAT64], store.history[0][1]
        second = store.history[1][1] if len(store.history) > 1 else np.full_like(read, np.nan)
        wrong = set()
        for k, one in enumerate(self.outputs):
            length = store.read.item(one.instance) - read.item(one.instance)
            if not (isfinite(length) and length > 0.0):
                continue
            if not isfinite(
                second.item(one.instance)
            ):  # an event was before: the FMU may be in another mode
                self.strikes[k] = 0.0
            if self._is_wrong(k, one, values, start, length):
                wrong.add(one.instance)
                self.dropped[0, k] = store.read.item(one.instance)
        for k, one in enumerate(self.outputs):
            if one.instance in wrong:
                values[one.slot] = self.before[k]
        for i in wrong:
            store.partials[i][:] = 0.0
        return False

    def _is_wrong(
        self,
        k: int,
        one: _Output,
        values: NDArray[np.float64],
        start: NDArray[np.float64],
        length: float,
    ) -> bool:
        """Whether the correction of an output contradicts its slope."""
        corrected, uncorrected, first = (
            values.item(one.slot),
            self.before.item(k),
            start.item(one.slot),
        )
        largest = max(abs(corrected), abs(uncorrected), abs(first))
        if one.slope < 0:
            return False
        slopes = start.item(one.slope), values.item(one.slope)
        bend = max(abs(slopes[1] - slopes[0]) / length, OLD * self.bends.item(k))
        self.bends[k] = bend
        unsure, change = bend * length**2, abs(corrected - uncorrected)
        if not change > max(NEGLIGIBLE * largest, unsure):
            return False
        predicted = first + length * (slopes[0] + slopes[1]) / 2
        self.dropped[1:, k] = differences = corrected - predicted, uncorrected - predicted
        is_worse = abs(differences[0]) > WORSE * abs(differences[1])
        self.strikes[k] = self.strikes.item(k) + 1.0 if is_worse else 0.0
        return is_worse and (change > CLEAR * unsure or self.strikes.item(k) >= MOST_STRIKES)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Instances whose outputs are not corrected any more."""
        found: dict[int, str] = {}
        for one, (time, with_it, without) in zip(
            self.outputs, self.dropped.T.tolist(), strict=True
        ):
            if isfinite(time) and one.instance not in found:
                name = self.plan.instances[one.instance].name
                found[one.instance] = (
                    f"'{one.name}' does not depend on held inputs as it did in Initialization Mode: at t = {time:.6g} s "
                    f"its slope contradicts this (difference {with_it:.3g}, without it {without:.3g}). From then "
                    f"on outputs of '{name}' belong to inputs that are held over a step, so events may be found late. Use "
                    "smaller steps, or an FMU with directional derivatives."
                )
        return tuple(found.values())

    def remembered(self) -> tuple[float, ...]:
        """What was dropped, and what the next point is judged by."""
        every = self.dropped.ravel(), self.strikes, self.bends
        return tuple(np.concatenate(every).tolist())

    def remember(self, numbers: tuple[float, ...]) -> None:
        """Continue with the result of :meth:`remembered`."""
        rows = np.array(numbers).reshape(5, -1)
        self.dropped[:], self.strikes[:], self.bends[:] = rows[:3], rows[3], rows[4]


@dataclass(frozen=True, slots=True, eq=False)
class _Uncorrected(Hook):
    """Notes the outputs before they are corrected."""

    check: AssumedPartials
    name: ClassVar[str] = "outputs before correction"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Note them."""
        values = store.outputs[DataType.FLOAT64]
        for k, one in enumerate(self.check.outputs):
            self.check.before[k] = values[one.slot]
        return False
