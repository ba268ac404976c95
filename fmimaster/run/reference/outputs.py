"""GET, CORRECT, DERIVE, SAMPLE, and the instructions on copies of the outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fmimaster.fmu.instance import Transfer
from fmimaster.plan.layout import Group
from fmimaster.program.hook import EVERYTHING, NOTHING
from fmimaster.program.instructions.base import Instruction
from fmimaster.program.instructions.outputs import (
    Correct,
    Derive,
    Forget,
    Get,
    Keep,
    Recall,
    Remember,
    Revert,
    Sample,
)
from fmimaster.run.inputs import moves
from fmimaster.run.reference.machine import Action, Machine, in_turn, view
from fmimaster.run.ticks import AskedClocks, asked_clocks, clocked_parts
from fmimaster.system.clocks import Intervals, Qualifier
from fmimaster.system.model import DataType


def get(m: Machine, instruction: Get, _: int) -> Action:
    """GET."""
    i, at, read = instruction.instance, m.at, m.store.read
    if instruction.group is Group.CLOCKED:
        return _get_clocked(m, i)
    if instruction.group is Group.INTERVALS:
        return _get_intervals(m, i)
    if instruction.group is Group.CLOCKS:
        return _get_clocks(m, i)
    transfer = in_turn(m.getters(i, m.plan.layout.segments(i, instruction.group)))
    if instruction.group not in (Group.OUTPUTS, Group.SOURCES):
        return transfer

    def act() -> None:
        transfer()
        read[i] = at[i]

    return act


def _get_clocks(m: Machine, i: int) -> Action:
    segments = m.plan.layout.segments
    transfers = m.getters(i, segments(i, Group.CLOCKS))
    inputs = [m.part(s) for s in segments(i, Group.INPUT_CLOCKS)]

    def act() -> None:
        for part in inputs:
            part[:] = False
        for transfer in transfers:
            transfer()

    return act


def _get_clocked(m: Machine, i: int) -> Action:
    instance, values = m.instances[i], m.store.values
    clocks = values[DataType.CLOCK]
    asked = []
    for s in m.plan.layout.segments(i, Group.CLOCKS):
        now = np.zeros(s.stop - s.start, np.bool_)
        read = instance.getter(s.type, s.value_references, now)
        asked.append((read, m.part(s), now))
    clocked = clocked_parts(m.plan, i)
    readers = m.getters(i, (part.segment for part in clocked))
    parts = [(list(part.clocks), read) for part, read in zip(clocked, readers, strict=True)]

    def act() -> None:
        for read, active, now in asked:
            read()
            active |= now
        for slots, transfer in parts:
            if clocks[slots].any():
                transfer()

    return act


def _get_intervals(m: Machine, i: int) -> Action:
    clocks, known = m.store.values.get(DataType.CLOCK), m.store.intervals[i]

    def transfers(*, initialized: bool) -> list[tuple[AskedClocks, Intervals, Transfer]]:
        found = []
        for asked in asked_clocks(m.plan, i, initialized=initialized):
            answers = Intervals.of(len(asked.references))
            transfer = m.instances[i].intervals(asked.references, answers)
            found.append((asked, answers, transfer))
        return found

    at_first, later = transfers(initialized=False), transfers(initialized=True)

    def act() -> None:
        for asked, answers, transfer in later if m.initialized[i] else at_first:
            if asked.clock is not None and not clocks[asked.clock]:  # type: ignore[index]
                continue
            transfer()
            changed = answers.qualifier == Qualifier.CHANGED
            places = np.array(asked.places)[changed]
            for whole, part in zip(known.arrays, answers.arrays, strict=True):
                whole[places] = part[changed]

    return act


def correct(m: Machine, instruction: Correct, _: int) -> Action:
    """CORRECT."""
    i, store = instruction.instance, m.store
    correction, partials = m.plan.corrections[i], store.partials.get(i)
    n_outputs, n_inputs = correction.shape
    seed, sensitivity = np.zeros(n_inputs), np.zeros(n_outputs)
    routes = m.plan.routes[i, Group.CONTINUOUS]
    elements = [
        element
        for route in routes
        for element in moves(route.at_left if instruction.at_left else route, store, m.plan)
    ]
    slots = [k for slot in correction.slots for k in range(slot.start, slot.stop)]
    outputs, courses = view(store.values[DataType.FLOAT64]), store.courses
    degree = courses.degree
    segment = m.plan.layout.segments(i, Group.CONTINUOUS)[0]
    inputs, at, highest = m.part(segment), m.at, m.plan.instances[i].model.highest_order
    if partials is None:
        derive = m.derivative(i, correction.outputs, correction.inputs, seed, sensitivity)

    def multiply() -> None:
        assert partials is not None
        sensitivity[:] = 0.0
        for k in range(n_inputs):
            sensitivity[:] += partials[:, k] * seed[k]

    differentiate = derive if partials is None else multiply

    def act() -> None:
        if degree[i] >= 0:
            inputs[:] = courses.value(i, at[i], highest)
            degree[i] = -1
        for k, (target, t, source, s, convert) in enumerate(elements):
            now = source[s] if convert is None else convert(source[s])
            seed[k] = now - target[t]
            target[t] = now
        if seed.any():
            differentiate()
            for slot, change in zip(slots, sensitivity.tolist(), strict=True):
                outputs[slot] += change

    return act


def derive(m: Machine, instruction: Derive, _: int) -> Action:
    """DERIVE."""
    i = instruction.instance
    partials = m.hooks[instruction.hook].partials(i)
    assert partials is not None
    n_outputs, n_inputs = partials.values.shape
    seed, sensitivity = np.zeros(n_inputs), np.zeros(n_outputs)
    differentiate = m.derivative(i, partials.outputs, partials.inputs, seed, sensitivity)
    wanted, values, varies = partials.wanted, partials.values, partials.varies.tolist()
    slots, outputs = m.plan.layout.elements(i, partials.outputs), m.store.values[DataType.FLOAT64]

    def act() -> None:
        if wanted[0] and not np.isfinite(outputs[slots]).all():
            values[:] = np.nan
            wanted[0] = NOTHING
        for k in range(n_inputs if wanted[0] else 0):
            if wanted[0] == EVERYTHING or varies[k]:
                seed[k] = 1.0
                differentiate()
                seed[k] = 0.0
                values[:, k] = sensitivity
        wanted[0] = NOTHING

    return act


def keep(m: Machine, instruction: Keep, _: int) -> Action:
    """KEEP."""
    buffer, registers = instruction.buffer, m.registers

    def act() -> None:
        m.store.keep(buffer)
        registers.kept_limit[buffer] = m.limit
        registers.kept_requests[buffer] = 0
        registers.kept_requests[buffer, list(m.requests)] = 1

    return act


def recall(m: Machine, instruction: Recall, _: int) -> Action:
    """RECALL."""
    buffer, registers = instruction.buffer, m.registers

    def act() -> None:
        m.store.recall(buffer)
        m.limit = min(registers.kept_limit.item(buffer), m.end)
        m.requests = set(registers.kept_requests[buffer].nonzero()[0].tolist())

    return act


def revert(m: Machine, instruction: Revert, _: int) -> Action:
    """REVERT."""
    i, buffer = instruction.instance, instruction.buffer
    segments = m.plan.layout.segments(i, Group.OUTPUTS)
    slots = [(s.type, slice(s.start, s.stop)) for s in segments]
    return lambda: m.store.revert(i, slots, buffer)


def remember(m: Machine, instruction: Remember, _: int) -> Action:
    """REMEMBER."""
    return lambda: m.store.remember(instruction.buffer)


def forget(m: Machine, _instruction: Forget, _: int) -> Action:
    """FORGET."""
    return m.store.forget


def sample(m: Machine, _instruction: Sample, _: int) -> Action:
    """SAMPLE."""
    return lambda: m.rows.append(m.end)


ACTIONS: dict[type[Instruction], Callable[..., Action]] = {
    Correct: correct,
    Derive: derive,
    Get: get,
    Keep: keep,
    Recall: recall,
    Revert: revert,
    Remember: remember,
    Forget: forget,
    Sample: sample,
}
"""The function of each instruction."""
