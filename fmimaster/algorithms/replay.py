"""Measurements at an FMU before a method relies on them: whether it repeats a step exactly after its state was restored,
and whether it uses polynomials of inputs.

They are done in each run that relies on them, not by ``validate``: the answer depends on parameters and start values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import ClassVar

import numpy as np

from fmimaster.algorithms.modes import takes_lines
from fmimaster.base.data import dataclass
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.program.programs import Replay
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

RISE = 1e-3
"""Rise of inputs over the step, relative to their magnitude, which is taken as at least 1."""

NOTHING = 1e-6
"""Largest ratio, due to rounding, of the change of outputs by rising inputs to that by held larger inputs. An output
behind n integrators has the ratio 1 / (n + 1)."""


def emit_slopes(
    plan: Plan,
    p: Emitter,
    instances: tuple[int, ...],
    places: Mapping[int, int],
    start: int,
    held: int,
) -> IgnoredSlopes:
    """Write a step with inputs held at a larger value, and one with inputs that rise to this value; returns what finds FMUs
    that ignore the rise.

    Parameters
    ----------
    places, start
        FMU states at the start of the step, and the buffer of the outputs.
    held
        Buffer of the outputs after a step with unchanged inputs.
    """
    raised = Raised(plan, instances)
    buffers = []
    for course in (HOLD, Polynomial(2, 0, history=False)):
        p.restore({i: places[i] for i in instances})
        p.recall(start)
        p.call(raised)
        _step(p, instances, course)
        buffers.append(p.keep())
    larger, rising = buffers
    found = IgnoredSlopes(plan, instances, (held, larger, rising))
    p.call(found)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Raised(Hook):
    """The outputs that feed these instances are larger at the end of the step."""

    plan: Plan
    instances: tuple[int, ...]
    name: ClassVar[str] = "raised outputs"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Change the outputs, and the time at which they were read."""
        routes = [r for i in self.instances for r in self.plan.routes[i, Group.CONTINUOUS]]
        outputs = store.outputs[DataType.FLOAT64]
        for slot in {
            r.source.start: r.source for r in routes if r.source_type is DataType.FLOAT64
        }.values():
            outputs[slot] += RISE * np.maximum(np.abs(outputs[slot]), 1.0)
        for source in {r.link.source for r in routes}:
            store.read[source] = store.interval[1]
        return False


@dataclass(frozen=True, slots=True, eq=False)
class IgnoredSlopes(Hook):
    """Finds the instances whose outputs depend on the inputs of a step, but not on their derivatives."""

    plan: Plan
    instances: tuple[int, ...]
    buffers: tuple[int, int, int]
    """Outputs after a step with held inputs, with larger ones, and with rising ones."""
    found: list[str] = field(default_factory=list)
    name: ClassVar[str] = "outputs by rising inputs"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Store these instances."""
        held, larger, rising = (store.buffers[k][0] for k in self.buffers)
        for i in self.instances:
            slots = [
                (kind, slot)
                for (k, group, _), (kind, slot) in self.plan.layout.slots.items()
                if k == i and group is Group.OUTPUTS and kind is DataType.FLOAT64
            ]
            steps = [np.abs(larger[t][s] - held[t][s]) for t, s in slots]
            slopes = [np.abs(rising[t][s] - held[t][s]) for t, s in slots]
            moved = any(size.any() for size in steps)
            if moved and all((b <= NOTHING * a).all() for a, b in zip(steps, slopes, strict=True)):
                self.found.append(self.plan.instances[i].name)
        return False

    def begin_anew(self) -> None:
        """Nothing was found."""
        self.found.clear()

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning for each of these instances."""
        return tuple(
            f"'{name}' accepts derivatives of its inputs (canInterpolateInputs), but ignores them: with rising inputs, "
            "its outputs are those of constant inputs. Loops and sweeps with it use the values at the start "
            "of the step. Use an algorithm with held inputs (HOLD, --inputs hold)."
            for name in self.found
        )


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
    ignoring: Sequence[str] = ()
    if followers:
        with p.over(0.0, 0.5):
            ignoring = emit_slopes(plan, p, followers, start_places, start, middle).found
    twice = p.program("replay")
    p.restore(start_places)
    p.recall(start)
    return Replay(twice, p.program("back"), ignoring)


def _step(p: Emitter, instances: Sequence[int], course: Polynomial = HOLD) -> None:
    for i in instances:
        p.inputs(i, course, for_all=True)
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

    def begin_anew(self) -> None:
        """Nothing was found."""
        self.found.clear()

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
