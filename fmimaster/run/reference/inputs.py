"""MOVE, FIT, SET: inputs of an instance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fmimaster.inputs.polynomial import Polynomials
from fmimaster.plan.layout import Group
from fmimaster.program.instructions.base import Instruction
from fmimaster.program.instructions.inputs import Fit, Move, Set
from fmimaster.run.inputs import fitted, moves
from fmimaster.run.reference.machine import Action, Machine, in_turn, view
from fmimaster.run.ticks import GivenIntervals
from fmimaster.system.model import DataType


def move(m: Machine, instruction: Move, _: int) -> Action:
    """MOVE."""
    i = instruction.instance
    if instruction.group is Group.TRIGGERS:
        return _move_triggers(m, i)
    elements = [
        element
        for route in m.plan.routes[i, instruction.group]
        for element in moves(route, m.store, m.plan)
    ]
    degree = view(m.store.courses.degree)
    is_continuous = instruction.group is Group.CONTINUOUS

    def act() -> None:
        for target, t, source, s, convert in elements:
            target[t] = source[s] if convert is None else convert(source[s])
        if is_continuous:
            degree[i] = -1

    return act


def _move_triggers(m: Machine, i: int) -> Action:
    clocks, active = m.store.values.get(DataType.CLOCK), m.store.active
    chosen = []
    for k in m.plan.triggers_of(i):
        routes = m.plan.triggers[k].payload
        elements = [e for route in routes for e in moves(route, m.store, m.plan)]
        chosen.append((k, m.plan.triggers[k].sources, elements))

    def act() -> None:
        for k, sources, elements in chosen:
            active[k] |= any(clocks[s] for s in sources)  # type: ignore[index]
            if active[k]:
                for target, t, source, s, convert in elements:
                    target[t] = source[s] if convert is None else convert(source[s])

    return act


def fit(m: Machine, instruction: Fit, _: int) -> Action:
    """FIT."""
    i, courses = instruction.instance, m.store.courses
    routes = m.plan.routes[i, Group.CONTINUOUS]
    (segment,) = m.plan.layout.segments(i, Group.CONTINUOUS)
    values = m.part(segment)

    def act() -> None:
        courses.put(i, fitted(routes, m.store, m.begin, m.end, instruction))

    def hold() -> None:
        values[:] = fitted(routes, m.store, m.begin, m.end, instruction).coefficients[0]
        courses.degree[i] = -1

    return hold if instruction.is_constant else act


def set_(m: Machine, instruction: Set, _: int) -> Action:
    """SET."""
    i, group = instruction.instance, instruction.group
    if group is Group.TRIGGERS:
        return _set_triggers(m, i)
    if group is Group.INTERVALS:
        given = GivenIntervals(m.plan, i, m.instances[i])

        def give() -> None:
            given(m.store)

        return give
    instance, at = m.instances[i], m.at
    segments = m.plan.layout.segments(i, group)
    setters = m.setters(i, segments)
    if group is not Group.CONTINUOUS:
        put_all = in_turn(setters)
        return lambda: None if _takes_no_step(m, i) else put_all()
    courses, follows_polynomials = m.store.courses, m.follows_polynomials
    degree = view(courses.degree)
    values, polynomial_setters, put = m.part(segments[0]), m.polynomial_setters, setters[0]

    def act() -> None:
        if _takes_no_step(m, i):
            return
        if degree[i] < 0 and not follows_polynomials[i]:
            put()
            return
        # an FMU that was given a polynomial once is given one each time, also when the value is held again
        if i not in polynomial_setters:
            polynomial_setters[i] = instance.polynomial_setter(segments[0].value_references)
        follows_polynomials[i] = 1
        signal = courses.get(i) or Polynomials(values[np.newaxis].copy(), at[i])
        values[:] = signal(at[i], 0)
        put()
        polynomial_setters[i](at[i], signal)

    return act


def _takes_no_step(m: Machine, i: int) -> bool:
    """Whether an instance is at the limit or beyond it: inputs that are set there could not be followed by DoStep, and FMI
    forbids to read outputs in between. Programs without steps have no limit before their end."""
    return bool(m.limit < m.end and m.at[i] >= m.limit)


def _set_triggers(m: Machine, i: int) -> Action:
    active, values = m.store.active, m.store.values
    triggers = [(k, m.plan.triggers[k]) for k in m.plan.triggers_of(i)]
    chosen = [(k, trigger, m.setters(i, trigger.segments)) for k, trigger in triggers]

    def act() -> None:
        for k, trigger, setters in chosen:
            if not active[k]:
                continue
            if trigger.shown is not None:
                # it stays so in the iteration: a loop sets its triggers again and again
                values[DataType.CLOCK][trigger.shown] = True
            if trigger.counter is not None:  # an array wraps around
                values[DataType.INT32][trigger.counter : trigger.counter + 1] += 1
            for put in setters:
                put()
            active[k] = False

    return act


ACTIONS: dict[type[Instruction], Callable[..., Action]] = {
    Move: move,
    Fit: fit,
    Set: set_,
}
"""The function of each instruction."""
