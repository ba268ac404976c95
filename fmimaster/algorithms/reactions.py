"""Which outputs react at once to which inputs, measured at the start of a run where that decides whether there is a loop.

An FMU that does not declare the dependencies of its outputs may be in an algebraic loop or not; one that declares wrong
ones hides a loop. Inputs are changed by a small part of their magnitude, one at a time: in Initialization Mode, where
outputs may be read with any inputs; and over two very short steps, for FMUs that can go back and declare nothing, or have
reacted to more than they declare. An output that depends on an input through states changes in proportion to the length of
the step, or less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.graph import ALL_SET, Node, components
from fmimaster.plan.layout import Group
from fmimaster.plan.links import is_clocked
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import has_clocks
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import FunctionHook, Hook
from fmimaster.program.instructions.base import Program
from fmimaster.program.programs import Question, Reactions
from fmimaster.program.store import ValueStore
from fmimaster.system.declarations import Interface
from fmimaster.system.model import Model
from fmimaster.system.states import State

SHIFT = 1e-3
"""Part of its magnitude, which is at least its nominal value, by which an input is changed."""

LENGTHS = 1 / 64, 1 / 512
"""Lengths of the two short steps, as parts of a usual one."""

MOST_TRIED = 5
"""Most components of a system in which FMUs that declare all dependencies get short steps: to write the programs of these
takes a time that grows with the square of the number."""

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
            inputs = [
                u
                for u in fed[i]
                if (i, u) in inside
                and _can_be_changed(models[i], u)
                and (i, Group.CONTINUOUS, u) in slots
            ]
            outputs = tuple(y for y in read[i] if (i, y) in inside)
            if _is_unsure(models[i], inputs, outputs):
                silent = tuple(y for y in outputs if y in models[i].assumed_dependencies)
                yield Question(i, tuple(inputs[:MOST_INPUTS]), outputs, silent)


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
    found = []
    for question in questions(plan, instances):
        i, slots = question.instance, plan.layout.slots
        places = tuple(slots[i, Group.OUTPUTS, name] for name in question.outputs)
        result = Reactions(question, plan.instances[i].name, places)
        feeds_itself = i in plan.sources[i]
        begin, compare = _Outputs(result), _Compare(result)
        p.get(i, Group.SOURCES)
        p.call(begin)
        p.exchange(i, Group.SOURCES)
        p.call(compare.base)
        p.get(i, Group.SOURCES)
        p.call(compare)
        for row, name in enumerate(question.inputs):
            for sign in (1.0, -1.0):
                if feeds_itself:
                    p.call(begin.restored)
                p.move(i)
                p.call(_Shift(result, plan, name, sign))
                p.set_inputs(i)
                p.get(i, Group.SOURCES)
                p.call(compare.of(row))
        if feeds_itself:
            p.call(begin.restored)
        p.exchange(i, Group.SOURCES)
        p.call(compare.last)
        found.append(result)
    return found


def emit_trials(plan: Plan, p: Emitter, found: Iterable[Reactions]) -> None:
    """Write the short steps of each FMU that can go back. They are done where they decide: see
    :meth:`Reactions.needs_steps`."""
    buffer = None
    for result in found:
        planned = plan.instances[result.question.instance]
        can = planned.model.capabilities
        is_free = can.can_get_and_set_fmu_state and can.can_handle_variable_communication_step_size
        has_events = planned.event_mode or planned.may_return_early or has_clocks(planned.model)
        is_few = bool(result.question.open) or len(plan.instances) <= MOST_TRIED
        if is_few and is_free and not has_events:
            buffer = p.new_buffer() if buffer is None else buffer
            _emit_trial(plan, p, result, buffer)


def _emit_trial(plan: Plan, p: Emitter, result: Reactions, buffer: int) -> None:
    """Write one short step for each input: with equal inputs twice, then with one changed at a time."""
    i = result.question.instance
    places, compare = p.save([i]), _Compare(result)
    p.keep_in(buffer)
    for rows, row in enumerate((None, None, *range(len(result.question.inputs)))):
        p.move(i)
        if row is not None:
            p.call(_Shift(result, plan, result.question.inputs[row], 1.0))
        p.set(i, Group.CONTINUOUS)
        p.step(i)
        p.get(i)
        p.call(compare.base if rows == 0 else compare if row is None else compare.of(row))
        p.restore(places)
        p.recall(buffer)
    trial = p.program("trial")
    p.restore(places)
    p.recall(buffer)
    back = p.program("back")
    ready, both = State.STEP_MODE, Program("trial", trial.instructions + back.instructions)
    check(both, plan, begin=ready, end=ready, history=bool(p.history))
    result.trial, result.back = trial, back


class _Shift(Hook):
    """Changes an input of an instance, within its limits."""

    def __init__(self, result: Reactions, plan: Plan, name: str, sign: float) -> None:
        i = result.question.instance
        variable = plan.instances[i].model.variable(name)
        assert variable is not None
        self.name = f"shift of {result.name}.{name}"
        self._result, self._sign = result, sign
        self._type, self._slot = plan.layout.slots[i, Group.CONTINUOUS, name]
        self._nominal = abs(variable.nominal)
        self._min = -np.inf if variable.min is None else variable.min
        self._max = np.inf if variable.max is None else variable.max

    def __call__(self, store: ValueStore) -> bool:
        """Change it."""
        self._result.is_busy = True
        values = store.values[self._type][self._slot]
        size = SHIFT * np.maximum(np.abs(values), self._nominal)
        shifted = values + self._sign * size
        values[:] = np.where((shifted < self._min) | (shifted > self._max), values, shifted)
        return False


class _Outputs(Hook):
    """Copies the outputs of a measurement; no buffer, which would hold those of all instances."""

    name: ClassVar[str] = "outputs before a measurement"  # type: ignore[misc]

    def __init__(self, result: Reactions) -> None:
        self.places = result.outputs
        self.values: list[NDArray[np.float64]] = []

    def __call__(self, store: ValueStore) -> bool:
        """Copy them."""
        self.values = [store.values[kind][slot].copy() for kind, slot in self.places]
        return False

    @property
    def restored(self) -> Hook:
        """A hook that writes the copies back."""

        def restore(store: ValueStore) -> None:
            for (kind, slot), value in zip(self.places, self.values, strict=True):
                store.values[kind][slot] = value

        return FunctionHook(self.name, restore)


class _Compare(Hook):
    """Compares outputs with equal inputs with those of the first call, and notes the changes."""

    name: ClassVar[str] = "reactions of outputs"  # type: ignore[misc]

    def __init__(self, result: Reactions) -> None:
        self.result, self.base = result, _Outputs(result)

    def __call__(self, store: ValueStore) -> bool:
        """Note the changes."""
        self._note(store, self.result.noise[self.result.at])
        return False

    def of(self, row: int) -> Hook:
        """A hook that notes the changes by an input."""

        def note(store: ValueStore) -> None:
            self._note(store, self.result.changes[self.result.at, row])

        return FunctionHook(self.name, note)

    @property
    def last(self) -> Hook:
        """A hook that notes the changes after all inputs were set back."""

        def note(store: ValueStore) -> None:
            self(store)
            self.result.is_busy = False

        return FunctionHook(self.name, note)

    def _note(self, store: ValueStore, noted: NDArray[np.float64]) -> None:
        result = self.result
        for k, (kind, slot) in enumerate(result.outputs):
            then, now = self.base.values[k], store.values[kind][slot]
            noted[k] = max(noted[k], _difference(then, now))
            result.sizes[result.at, k] = float(np.abs(then).max(initial=0.0))


def _difference(then: NDArray[np.float64], now: NDArray[np.float64]) -> float:
    """The largest change of an element; infinite where a value has become NaN."""
    equal = (then == now) | (np.isnan(then) & np.isnan(now))
    with np.errstate(invalid="ignore"):
        change = np.where(equal, 0.0, np.abs(now - then))
    return float(np.where(np.isnan(change), np.inf, change).max(initial=0.0))
