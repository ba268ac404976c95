"""Measurement whether an FMU repeats a step exactly after its state was restored, before a method relies on it.

It is done in each run that relies on it, not by ``validate``: the answer depends on parameters and start values.
:mod:`fmimaster.algorithms.slopes` measures whether an FMU uses polynomials of inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fmimaster.algorithms.modes import takes_lines
from fmimaster.algorithms.slopes import emit_slopes
from fmimaster.inputs.polynomial import HOLD
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.program.programs import Replay
from fmimaster.program.store import ValueStore

ROUNDING = 1e-12
"""Relative difference of outputs between two equal steps that is due to rounding; an exact replay has none."""


def emit_replay(plan: Plan, p: Emitter, instances: Sequence[int]) -> Replay:
    """Write a step, then the same step twice, then restore the state. The interval is two steps long.

    The first step gives solvers inside the FMUs a history, which many FMUs do not save. FMUs that stop at events are
    excluded, because their own event search may stop at slightly different times.

    Source: fmimaster; of 28 public FMUs that can get and set their state, 9 do not repeat a step exactly.
    """
    chosen = [i for i in instances if not plan.instances[i].may_return_early]
    if not chosen:
        return Replay()
    start_places, start = p.save(chosen), p.keep()
    with p.over(0.0, 0.5):
        _step(p, chosen)
    places, middle = p.save(chosen), p.keep()
    with p.over(0.5, 1.0):
        _step(p, chosen)
        first = p.keep()
        p.restore(places)
        p.recall(middle)
        _step(p, chosen)
        p.call(ReplayedOutputs(plan, tuple(chosen), first))
    followers = tuple(i for i in chosen if i in p.polynomial_inputs and takes_lines(plan, i))
    if followers:
        with p.over(0.0, 0.5):
            emit_slopes(plan, p, followers, start_places, start, middle)
    twice = p.program("replay")
    p.restore(start_places)
    p.recall(start)
    return Replay(twice, p.program("back"))


def _step(p: Emitter, instances: Sequence[int]) -> None:
    for i in instances:
        p.inputs(i, HOLD, for_all=True)
    for i in instances:
        p.step(i)
        p.get(i)


@dataclass(frozen=True, slots=True, eq=False)
class ReplayedOutputs(Hook):
    """Compares the outputs of these instances with those after the first of two equal steps."""

    plan: Plan
    instances: tuple[int, ...]
    buffer: int
    found: list[tuple[float, str, str]] = field(default_factory=list)
    """For each differing instance: the difference relative to nominal value or magnitude, its name, and the output that
    differs most."""
    name: ClassVar[str] = "outputs of a repeated step"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Store the differences."""
        self.found.clear()
        before = store.buffers[self.buffer][0]
        for i in self.instances:
            planned = self.plan.instances[i]
            largest = max(
                (
                    (_difference(before[kind][slot], store.values[kind][slot], v.nominal), v.name)
                    for segment in self.plan.layout.segments(i, Group.OUTPUTS)
                    for v in segment.variables
                    for kind, slot in [self.plan.layout.slots[i, Group.OUTPUTS, v.name]]
                ),
                default=(0.0, ""),
            )
            if largest[0] > ROUNDING:
                self.found.append((largest[0], planned.name, largest[1]))
        return False

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning for each instance that differs."""
        return tuple(
            f"'{name}' does not repeat a step exactly after its state was restored: its output '{output}' differs by "
            f"{size:.2g} (relative). Loops and sweeps with it cannot be solved more accurately than that. Ask the FMU's "
            "vendor, give a larger tolerance (loop_solver=LoopSolver(relative=...)), or use an algorithm that does not go "
            "back (loops=Loops.NONE, --loops none)."
            for size, name, output in self.found
        )


def _difference(then: np.ndarray, now: np.ndarray, nominal: float) -> float:
    """The largest difference of an element, relative to nominal value or magnitude; 1 for types that are not floating
    point."""
    if then.dtype.kind != "f":
        return 0.0 if (then == now).all() else 1.0
    size = np.maximum(np.abs(then), abs(nominal))
    return float(np.max(np.abs(now.astype(float) - then) / size))
