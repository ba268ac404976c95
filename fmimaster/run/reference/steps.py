"""STEP, ALIGN, SAVE, RESTORE, PARALLEL; REPEAT, UNTIL, MODE, UPDATE, TICK, CALL: steps, repetition, actions at events."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, nan
from time import perf_counter

import numpy as np

from fmimaster.fmu.instance import StepAnswer
from fmimaster.instants.grid import same
from fmimaster.plan.layout import Group
from fmimaster.program.instructions.base import Instruction
from fmimaster.program.instructions.inputs import Set
from fmimaster.program.instructions.outputs import Get
from fmimaster.program.instructions.steps import (
    Align,
    Call,
    Mode,
    Parallel,
    Repeat,
    Restore,
    Save,
    Step,
    Tick,
    Until,
    Update,
)
from fmimaster.run.changes import largest_change
from fmimaster.run.executor import Halt, Reason, entering
from fmimaster.run.reference import inputs, outputs
from fmimaster.run.reference.machine import Action, EndedByFmu, Machine, Stopped
from fmimaster.system.states import State

OUTSIDE = 1e-6
"""By how much, relative to the step, the time that an FMU names may be outside of it: its own clock may be a sum of many
small steps. More is a contradiction."""

MOST_ALIGNMENTS = 20
"""Most repetitions of an ALIGN for an instance. One that has discarded a step stops before its event, by the time that
it has found in a longer step; from there on these times differ by what its own search for the event leaves."""


def step(m: Machine, instruction: Step, line: int) -> Action:
    """STEP."""
    i, fraction, at, seconds = instruction.instance, instruction.end, m.at, m.seconds
    do_step, steps, stepped = m.instances[i].do_step, m.steps, m.stepped
    present = i, "DoStep"

    def act() -> None:
        here = at[i]
        there = m.end if fraction == 1.0 else m.begin + fraction * (m.end - m.begin)
        there = min(there, m.limit)
        if here >= there:
            return
        steps[i] += 1
        stepped[i] = steps[i]
        m.present, since = present, perf_counter()
        answer = do_step(here, there - here)
        m.present = None
        seconds[i] += perf_counter() - since
        at[i] = there
        if answer is not None:
            _answered(m, i, line, here, there, answer)
            # FMI: only Terminate may follow, no other part of the step
            if answer.terminate and fraction < 1.0:
                raise EndedByFmu

    return act


def _answered(m: Machine, i: int, line: int, here: float, there: float, answer: StepAnswer) -> None:
    """A step that was not simply done: the run ends, an event, an early return, or a step that cannot be done."""
    planned, named = m.plan.instances[i], answer.last_successful_time
    reached = time_in_step(named, here, there)
    m.terminate |= answer.terminate
    if answer.terminate:
        m.at[i] = named
        if isnan(reached):
            raise Stopped(Halt(Reason.ENDED, i, line, named))
        m.at[i] = reached
    elif answer.discarded:
        if not planned.may_return_early or planned.event_mode or isnan(reached):
            raise Stopped(Halt(Reason.DISCARDED, i, line, named, messages=answer.messages))
        # it has not done the step, not even if the event is at its very end: ALIGN brings it back
        m.limit = min(reached, there - same(there, there - here))
        m.requests = {i}  # those before are for events at later times
    elif answer.early and reached != there:
        if not planned.may_return_early or isnan(reached):
            raise Stopped(Halt(Reason.EARLY, i, line, named, messages=answer.messages))
        m.limit = m.at[i] = reached
        m.requests = set()
    if answer.event and planned.event_mode:
        _event_is_pending(m, i)


def _event_is_pending(m: Machine, i: int) -> None:
    """An instance must enter Event Mode before it steps on: its time is the limit, also between parts of a step."""
    if m.at[i] < m.limit:
        m.limit = m.at[i]
        m.requests = set()  # those before are for events at later times
    m.requests.add(i)
    m.pending[i] = 1


def time_in_step(named: float, here: float, there: float) -> float:
    """The time in s that an FMU has reached in a step, by the one that it names; NaN if that is not in the step.

    Both ends count as reached where doubles cannot tell: FMUs compute the end of a step in other ways than the importer.
    """
    step = there - here
    near = same(there, step)
    outside = max(OUTSIDE * step, near)
    if not here - outside <= named <= there + outside:  # NaN, too
        return nan
    if named >= there - near:
        return there
    return here if named <= here + near else named


def align(m: Machine, instruction: Align, line: int) -> Action:
    """ALIGN."""
    i, at = instruction.instance, m.at
    back = [restore(m, Restore(i, instruction.place), line)]
    if m.plan.layout.segments(i, Group.CONTINUOUS):
        back.append(inputs.set_(m, Set(i, Group.CONTINUOUS), line))
    back.append(step(m, Step(i, 1.0), line))
    if m.plan.layout.segments(i, Group.OUTPUTS):
        back.append(outputs.get(m, Get(i, Group.OUTPUTS), line))

    def act() -> None:
        for _ in range(MOST_ALIGNMENTS):
            if at[i] <= m.limit:
                return
            for part in back:
                part()
        if at[i] > m.limit:
            raise Stopped(Halt(Reason.EARLY, i, line, m.limit))

    return act


def save(m: Machine, instruction: Save, _: int) -> Action:
    """SAVE."""
    i, place = instruction.instance, instruction.place
    save_state, registers = m.instances[i].save, m.registers

    def act() -> None:
        save_state(place)
        m.has_saved = True
        registers.kept_from[i] = min(registers.kept_from[i], m.at[i])
        registers.place_at[place] = m.at[i]
        registers.place_stepped[place] = m.stepped[i]

    return act


def restore(m: Machine, instruction: Restore, _: int) -> Action:
    """RESTORE."""
    i, place = instruction.instance, instruction.place
    restore_state, registers, restores = m.instances[i].restore, m.registers, m.restores

    def act() -> None:
        if m.stepped[i] == registers.place_stepped[place]:
            return
        restore_state(place)
        restores[i] += 1
        m.pending[i] = 0
        m.at[i] = registers.place_at[place]
        m.stepped[i] = registers.place_stepped[place]

    return act


def parallel(_m: Machine, _instruction: Parallel, _: int) -> Action:
    """PARALLEL: any order is correct; here one after the other."""
    return lambda: None


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
    i, tolerance = instruction.instance, m.plan.instances[instruction.instance].tolerance.value
    enter = entering(m.instances[i], instruction.state, m.experiment, tolerance)
    is_event = instruction.state is State.EVENT_MODE
    is_initialized = instruction.state in (State.STEP_MODE, State.EVENT_MODE)
    clocks = [
        m.part(segment)
        for group in (Group.CLOCKS, Group.INPUT_CLOCKS)
        for segment in m.plan.layout.segments(i, group)
        if instruction.state is State.STEP_MODE
    ]

    def act() -> None:
        enter()
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
    Step: step,
    Align: align,
    Save: save,
    Restore: restore,
    Parallel: parallel,
    Mode: mode,
    Update: update,
    Tick: tick,
    Call: call,
}
"""The function of each instruction."""
