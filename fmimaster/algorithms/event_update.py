"""What happens at an event: all whom it concerns are updated at one superdense instant, from left limits."""

from __future__ import annotations

from collections.abc import Iterable

from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.system.states import State

MOST_UPDATES = 100
"""Event iterations at one instant; more are an endless loop."""


def emit_event(
    plan: Plan, p: Emitter, instances: Iterable[int], fired: Iterable[int], hook: Hook | None = None
) -> None:
    """Write the program of an event.

    Parameters
    ----------
    instances
        Whom it concerns: those with Event Mode enter it, those with triggers are triggered without.
    fired
        Triggers that the importer makes active.
    hook
        Works on the value store after triggers and payload have moved.
    """
    instances = tuple(instances)
    modes = [i for i in instances if plan.instances[i].event_mode]
    for i in modes:
        p.mode(i, State.EVENT_MODE)
    for trigger in fired:
        p.tick(trigger)
    emit_updates(plan, p, instances, hook)
    for i in modes:
        p.mode(i, State.STEP_MODE)
    p.forget()
    p.remember()


def emit_updates(
    plan: Plan, p: Emitter, instances: Iterable[int], hook: Hook | None = None, *, rows: bool = True
) -> None:
    """Update discrete states until nothing changes any more: all from left limits, then settled, then a row."""
    instances = tuple(instances)
    modes = [i for i in instances if plan.instances[i].event_mode]
    triggered = [i for i in instances if i in modes or plan.layout.segments(i, Group.TRIGGERS)]
    tolerance = 1e-10 if plan.initial_loops else 0.0
    with p.at_an_event(), p.repeat(least=1, most=MOST_UPDATES, tolerance=tolerance):
        for i in modes:
            p.get_clocks(i)
        for i in triggered:
            if i in modes:
                p.move(i)
            p.move_triggers(i)
        if hook is not None:
            p.call(hook)
        for i in triggered:
            if i in modes:
                p.set_inputs(i)
            p.set(i, Group.TRIGGERS)
        for i in modes:
            p.update(i)
        for i in triggered:
            p.get(i)
        for visit in plan.visits:
            for i in visit.instances:
                if i in modes and plan.has_inputs(i):
                    p.exchange(i)
        if rows:
            p.sample()
