"""Which outputs react at once to which inputs, measured at the start of a run where that decides whether there is a loop.

An FMU that does not declare the dependencies of its outputs may be in an algebraic loop or not; one that declares wrong
ones hides a loop. Inputs are changed by a small part of their magnitude, one at a time: in Initialization Mode, where
outputs may be read with any inputs; and over two very short steps, for FMUs that can go back and declare nothing, or have
reacted to more than they declare. An output that depends on an input through states changes in proportion to the length of
the step, or less.

Instances with equally many inputs are measured together, each with its own inputs: the cost is proportional to the number
of instances.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.plan.graph import ALL_SET, Node, components
from fmimaster.plan.layout import Group
from fmimaster.plan.links import is_clocked
from fmimaster.plan.plan import Plan
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import FunctionHook
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.steps import Repeat, Restore, Save, Until
from fmimaster.program.programs import Question, Reactions, Seen, ShortSteps
from fmimaster.program.store import ValueStore
from fmimaster.system.declarations import Interface
from fmimaster.system.model import DataType, Model
from fmimaster.system.states import State

SHIFT = 1e-3
"""Part of its magnitude, which is at least its nominal value, by which an input is changed."""

LENGTHS = 1 / 64, 1 / 512
"""Lengths of the two short steps, as parts of a usual one."""

MOST_INPUTS = 200
"""Most inputs of an instance that are changed, one at a time."""


def questions(plan: Plan, chosen: Collection[int]) -> Iterator[Question]:
    """What is to be measured at these instances: only what can be in a loop of continuous signals."""
    links = [
        k
        for k in plan.links
        if k.input.is_continuous and k.output.is_continuous and not is_clocked(k)
    ]
    models = [planned.model for planned in plan.instances]
    fed = _by_instance((k.target, k.input.name) for k in links)
    read = _by_instance((k.source, k.output.name) for k in links)
    arcs: dict[Node, list[Node]] = {(i, ALL_SET): [(i, y) for y in read.get(i, ())] for i in fed}
    arcs |= {(k.target, k.input.name): [(k.target, ALL_SET)] for k in links}
    for k in links:
        arcs.setdefault((k.source, k.output.name), []).append((k.target, k.input.name))
    slots = plan.layout.slots
    for part in components(arcs):
        inside = set(part)
        for i in sorted({i for i, _ in part if len(part) > 1} & set(chosen)):
            every = [u for u in fed[i] if (i, u) in inside]
            inputs = [
                u
                for u in every
                if _can_be_changed(models[i], u) and (i, Group.CONTINUOUS, u) in slots
            ][:MOST_INPUTS]
            outputs = tuple(y for y in read[i] if (i, y) in inside)
            if _is_unsure(models[i], inputs, outputs):
                silent = tuple(y for y in outputs if y in models[i].assumed_dependencies)
                fixed = tuple(u for u in every if u not in inputs)
                yield Question(i, tuple(inputs), fixed, outputs, silent)


def _by_instance(nodes: Iterator[Node]) -> dict[int, tuple[str, ...]]:
    found: dict[int, dict[str, None]] = {}
    for i, name in nodes:
        found.setdefault(i, {})[name] = None
    return {i: tuple(names) for i, names in found.items()}


def _can_be_changed(model: Model, name: str) -> bool:
    variable = model.variable(name)
    return variable is not None and variable.type.is_float and variable.can_be_set_repeatedly


def _is_unsure(model: Model, inputs: Sequence[str], outputs: Sequence[str]) -> bool:
    """Whether an output may depend on an input though it does not declare so; what fmimaster computes is known."""
    if model.residuals or model.interface is Interface.SCHEDULED_EXECUTION:
        return False
    return any(
        y in model.assumed_dependencies or not model.dependencies.get(y, frozenset()) >= {*inputs}
        for y in outputs
        if inputs
    )


def emit_reactions(plan: Plan, p: Emitter, instances: Collection[int]) -> list[Reactions]:
    """Write the measurement at instances in Initialization Mode, after all values agree; then all values are restored."""
    found = [
        Reactions(q, plan.instances[q.instance].name, _can_be_tried(plan, q.instance))
        for q in questions(plan, instances)
    ]
    for members in _alike(found):
        measured = _Measurement(plan, members, signs=(1.0, -1.0))
        numbers = [r.question.instance for r in members]
        for i in numbers:
            p.move(i)
        p.call(FunctionHook("outputs before a measurement", measured.begin))
        p.write(Repeat(measured.passes, measured.passes, bounded=True))
        p.call(FunctionHook("changed inputs", measured.shift))
        for i in numbers:
            p.set_inputs(i)
            p.get(i, Group.SOURCES)
        p.call(FunctionHook("reactions of outputs", measured.compare))
        p.write(Until(np.inf))
    return found


def _alike(reactions: Iterable[Reactions]) -> Iterable[list[Reactions]]:
    """Those with equally many inputs together: no FMU is called for the inputs of others."""
    found: dict[int, list[Reactions]] = {}
    for one in reactions:
        found.setdefault(len(one.question.inputs), []).append(one)
    return found.values()


def _can_be_tried(plan: Plan, i: int) -> bool:
    """Whether an instance can do short steps and go back, without events."""
    planned = plan.instances[i]
    can = planned.model.capabilities
    is_free = can.can_get_and_set_fmu_state and can.can_handle_variable_communication_step_size
    return is_free and not (
        planned.event_mode or planned.may_return_early or planned.model.has_clocks
    )


@dataclass(frozen=True)
class ShortStepWriter:
    """Writes and checks the short steps of instances that need them: few do, so they are written during the start."""

    emitter: Emitter = field(compare=False)
    """That of the run."""
    known: dict[tuple[int, ...], ShortSteps] = field(default_factory=dict, compare=False)
    """By the instances: runs may be repeated."""

    def __call__(self, reactions: Sequence[Reactions]) -> Iterator[ShortSteps]:
        """Short steps of instances with equally many inputs at a time."""
        for members in _alike(reactions):
            numbers = tuple(r.question.instance for r in members)
            if numbers not in self.known:
                self.known[numbers] = self._trial(members)
            yield self.known[numbers]

    def _trial(self, members: Sequence[Reactions]) -> ShortSteps:
        plan, p, buffer = self.emitter.plan, self.emitter.another(), 0
        measured = _Measurement(plan, members, signs=(1.0,))
        numbers = [r.question.instance for r in members]
        for place, i in enumerate(numbers):
            p.write(Save(i, place))
        p.keep_in(buffer)
        for i in numbers:
            p.move(i)
        p.call(FunctionHook("outputs before a measurement", measured.begin))
        p.write(Repeat(measured.passes, measured.passes, bounded=True))
        for i in numbers:
            p.move(i)
        p.call(FunctionHook("changed inputs", measured.shift))
        for i in numbers:
            p.set_inputs(i)
            p.step(i)
            p.get(i)
        p.call(FunctionHook("reactions of outputs", measured.compare))
        for place, i in enumerate(numbers):
            p.write(Restore(i, place))
        p.recall(buffer)
        p.write(Until(np.inf))
        trial = p.program("trial")
        for place, i in enumerate(numbers):
            p.write(Restore(i, place))
        p.recall(buffer)
        back = p.program("back")
        ready, both = State.STEP_MODE, Program("trial", trial.instructions + back.instructions)
        check(both, plan, begin=ready, end=ready, history=bool(p.history))
        return ShortSteps(members, trial, back)


class _Measurement:
    """Passes over instances with equally many inputs: one without changes, one for each input, and one without changes.

    After all passes but the last one, the outputs in the store are those from before.
    """

    def __init__(self, plan: Plan, members: Sequence[Reactions], signs: Sequence[float]) -> None:
        self._plan, self._members = plan, members
        rows = range(len(members[0].question.inputs))
        self._changes = [None, *product(rows, signs), None]
        """Of each pass: input and sign."""
        self.passes = len(self._changes)
        self._done = 0

    @cached_property
    def _outputs(self) -> _Elements:
        slots, members = self._plan.layout.slots, self._members
        nodes = [(r.question.instance, name) for r in members for name in r.question.outputs]
        return _Elements([slots[i, Group.OUTPUTS, name] for i, name in nodes])

    @cached_property
    def _inputs(self) -> list[_Inputs]:
        questions = [r.question for r in self._members]
        rows = range(len(questions[0].inputs))
        return [_Inputs(self._plan, [(q.instance, q.inputs[k]) for q in questions]) for k in rows]

    def begin(self, store: ValueStore) -> None:
        """Outputs are those from before the measurement, and inputs those that fit to them."""
        self._done = first = 0
        self._before = self._outputs.read(store)
        self._given = [inputs.read(store) for inputs in self._inputs]
        self._seen = Seen.of(len(self._inputs), self._outputs.number)
        for one in self._members:
            end = first + len(one.question.outputs)
            one.seen[one.at], one.is_busy, first = (self._seen, slice(first, end)), True, end

    def shift(self, store: ValueStore) -> None:
        """Change the inputs of this pass, and no others."""
        for inputs, given in zip(self._inputs, self._given, strict=True):
            inputs.write(store, given)
        if (change := self._changes[self._done]) is not None:
            row, sign = change
            self._inputs[row].shift(store, sign)

    def compare(self, store: ValueStore) -> None:
        """Note how outputs differ from those of the first pass."""
        now, seen, change = self._outputs.read(store), self._seen, self._changes[self._done]
        if self._done == 0:
            self._base = now
            seen.sizes[:] = self._outputs.largest(np.abs(now))
            seen.moves[:] = self._outputs.largest(_difference(self._before, now))
        noted = seen.noise if change is None else seen.changes[change[0]]
        np.maximum(noted, self._outputs.largest(_difference(self._base, now)), out=noted)
        self._done += 1
        if self._done < self.passes:
            self._outputs.write(store, self._before)
            return
        for one in self._members:
            one.is_busy = False


class _Elements:
    """The elements of some variables in the value store."""

    def __init__(self, places: Sequence[tuple[DataType, slice]]) -> None:
        self.number = len(places)
        parts: dict[DataType, tuple[list[int], list[int]]] = {}
        for number, (kind, slot) in enumerate(places):
            index, owners = parts.setdefault(kind, ([], []))
            index += range(slot.start, slot.stop)
            owners += [number] * (slot.stop - slot.start)
        self._parts = [(kind, np.array(index, int)) for kind, (index, _) in parts.items()]
        self.owners = np.array([number for _, owners in parts.values() for number in owners], int)
        """Number of the variable of each element."""
        self._are_scalars = self.owners.tolist() == [*range(len(places))]

    def read(self, store: ValueStore) -> NDArray[np.float64]:
        """All elements, one after the other."""
        return np.concatenate([store.values[t][index] for t, index in self._parts], dtype=float)

    def write(self, store: ValueStore, values: NDArray[np.float64]) -> None:
        """Give the elements these values."""
        at = 0
        for kind, index in self._parts:
            store.values[kind][index] = values[at : at + len(index)]
            at += len(index)

    def largest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The largest value among the elements of each variable; none is below 0."""
        if self._are_scalars:
            return values
        found = np.zeros(self.number)
        np.maximum.at(found, self.owners, values)
        return found


class _Inputs(_Elements):
    """One input of each instance."""

    def __init__(self, plan: Plan, nodes: Sequence[Node]) -> None:
        super().__init__([plan.layout.slots[i, Group.CONTINUOUS, name] for i, name in nodes])
        every = [v for i, name in nodes if (v := plan.instances[i].model.variable(name))]
        self._nominal = np.array([abs(v.nominal) for v in every])[self.owners]
        self._min = np.array([-np.inf if v.min is None else v.min for v in every])[self.owners]
        self._max = np.array([np.inf if v.max is None else v.max for v in every])[self.owners]

    def shift(self, store: ValueStore, sign: float) -> None:
        """Change them by a small part of their magnitude, within their limits."""
        values = self.read(store)
        shifted = values + sign * SHIFT * np.maximum(np.abs(values), self._nominal)
        is_outside = (shifted < self._min) | (shifted > self._max)
        self.write(store, np.where(is_outside, values, shifted))


def _difference(then: NDArray[np.float64], now: NDArray[np.float64]) -> NDArray[np.float64]:
    """The change of each element; infinite where a value has become NaN."""
    with np.errstate(invalid="ignore"):
        change = np.abs(now - then)
    if np.isfinite(change).all():
        return change
    change[(then == now) | (np.isnan(then) & np.isnan(now))] = 0.0
    return np.where(np.isnan(change), np.inf, change)
