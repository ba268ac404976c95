"""REPEAT, MODE, UPDATE, TICK, CALL: repetition, and actions at events."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fmimaster.instants.grid import same
from fmimaster.plan.layout import Group
from fmimaster.program.instructions.base import Instruction
from fmimaster.program.instructions.control import Call, Mode, Repeat, Tick, Until, Update
from fmimaster.program.outcome import Halt, Reason
from fmimaster.run.convergence import largest_change
from fmimaster.run.reference.machine import Action, EndedByFmu, Machine, Stopped
from fmimaster.system.states import State

SAME_LIMIT = 1e-9
"""Early returns of two passes that are no farther apart, in s, count as the same: FMUs find their events by iterations of
their own, and inputs differ from pass to pass."""


def repeat(m: Machine, instruction: Repeat, body: list[Action], until: Until, line: int) -> Action:
    """REPEAT with its body and its UNTIL, which is at ``line``."""

    def act() -> None:
        limit_at_first, requests_at_first, wanted = m.limit, m.requests, m.wants_another
        change, limit = np.inf, limit_at_first
        near = max(SAME_LIMIT, same(m.end, m.end - m.begin))
        for count in range(1, instruction.most + 1):
            before, _ = m.store.copy_of_outputs()
            m.limit, m.requests, m.wants_another = limit_at_first, set(requests_at_first), False
            for step in body:
                step()
            # the first pass has none to be compared with
            change = largest_change(before, m.store, m.nominals) if count > 1 else np.inf
            is_settled = change <= until.tolerance and abs(m.limit - limit) <= near
            has_converged = count >= instruction.least and is_settled and not m.wants_another
            is_last = instruction.bounded and count == instruction.most
            if has_converged or is_last or m.terminate:  # FMI: only Terminate may follow the end
                m.wants_another = wanted
                return
            limit = m.limit
        raise Stopped(Halt(Reason.NOT_CONVERGED, -1, line, m.begin, change))

    return act


def mode(m: Machine, instruction: Mode, _: int) -> Action:
    """MODE."""
    i, experiment = instruction.instance, m.experiment
    instance, tolerance = m.instances[i], m.plan.instances[i].tolerance.value
    enter: dict[State, Action] = {
        State.CONFIGURATION_MODE: instance.enter_configuration_mode,
        State.INSTANTIATED: instance.exit_configuration_mode,
        State.INITIALIZATION_MODE: lambda: instance.enter_initialization_mode(
            experiment.start, experiment.stop, tolerance
        ),
        State.STEP_MODE: instance.enter_step_mode,
        State.EVENT_MODE: instance.enter_event_mode,
        State.TERMINATED: instance.terminate,
    }
    is_event = instruction.state is State.EVENT_MODE
    is_initialized = instruction.state in (State.STEP_MODE, State.EVENT_MODE)
    clocks = [
        m.part(segment)
        for group in (Group.CLOCKS, Group.INPUT_CLOCKS)
        for segment in m.plan.layout.segments(i, group)
        if instruction.state is State.STEP_MODE
    ]

    def act() -> None:
        enter[instruction.state]()
        m.events[i] += is_event
        if is_event:
            m.pending[i] = 0
        m.initialized[i] = is_initialized
        for active in clocks:
            active[:] = False

    return act


def update(m: Machine, instruction: Update, _: int) -> Action:
    """UPDATE."""
    i, instance = instruction.instance, m.instances[instruction.instance]

    def act() -> None:
        m.present = i, "UpdateDiscreteStates"
        answer = instance.update_discrete_states()
        m.present = None
        m.wants_another |= answer.wants_update
        m.terminate |= answer.terminate
        m.registers.next_events[i] = answer.next_event_time
        if answer.terminate:
            raise EndedByFmu

    return act


def tick(m: Machine, instruction: Tick, _: int) -> Action:
    """TICK."""
    active, k = m.store.active, instruction.trigger

    def act() -> None:
        active[k] = True

    return act


def call(m: Machine, instruction: Call, _: int) -> Action:
    """CALL."""
    hook = m.hooks[instruction.hook]

    def act() -> None:
        m.wants_another |= bool(hook(m.store))

    return act


ACTIONS: dict[type[Instruction], Callable[..., Action]] = {
    Mode: mode,
    Update: update,
    Tick: tick,
    Call: call,
}
"""The function of each instruction."""
