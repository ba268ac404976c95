"""Event handling: all affected instances are updated at one superdense instant, from left limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from fmimaster.algorithms.settling import Settling, measure_partials
from fmimaster.base.data import dataclass
from fmimaster.events.zeno import MOST_MICROSTEPS
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Program
from fmimaster.system.states import State


@dataclass
class Events:
    """The program of each combination of instances and triggers, written and checked on first use."""

    emitter: Emitter = field(compare=False)
    """That of the run."""
    hook: Hook | None
    settling: Settling
    _known: dict[tuple[tuple[int, ...], tuple[int, ...], bool, tuple[int, ...]], Program] = field(
        default_factory=dict
    )

    def __call__(
        self,
        instances: tuple[int, ...],
        fired: tuple[int, ...],
        early: bool = False,
        late: tuple[int, ...] = (),
    ) -> Program:
        """The program of an event; see :class:`fmimaster.program.programs.EventPrograms`."""
        key = instances, fired, early, late
        if key not in self._known:
            p = self.emitter.another()
            hook = self.hook if early else None
            emit_event(p.plan, p, instances, fired, hook, self.settling, late)
            program = p.program("event")
            ready = State.STEP_MODE
            check(program, p.plan, begin=ready, end=ready, history=bool(p.history))
            self._known[key] = program
        return self._known[key]


def emit_event(
    plan: Plan,
    p: Emitter,
    instances: Iterable[int],
    fired: Iterable[int],
    hook: Hook | None,
    settling: Settling,
    late: Iterable[int],
) -> None:
    """Write the program of an event.

    Parameters
    ----------
    instances
        The affected instances: those with Event Mode enter it, those with triggers are triggered without Event Mode.
    fired
        Triggers that the importer makes active.
    hook
        Changes the value store after triggers and payload have been set.
    settling
        Makes the values consistent after each update.
    late
        Affected instances that stand ahead: their triggers become active, and are set at their own time.
    """
    instances, late = tuple(instances), tuple(late)
    modes = [i for i in instances if plan.instances[i].event_mode]
    for i in modes:
        p.mode(i, State.EVENT_MODE)
    fired = tuple(fired)
    for trigger in fired:
        p.tick(trigger)
    _give_inputs(
        plan, p, {plan.triggers[trigger].instance for trigger in fired}.difference(modes, late)
    )
    emit_updates(plan, p, instances, settling, hook=hook, late=late)
    # after an event an FMU may be in another mode
    with p.at_an_event():
        measure_partials(plan, p, filter(plan.is_corrected_as_if_linear, modes))
    for i in modes:
        p.mode(i, State.STEP_MODE)
    p.forget()
    p.remember()


def _give_inputs(plan: Plan, p: Emitter, triggered: Iterable[int]) -> None:
    """Give the inputs of the instant to instances without Event Mode, which execute an event when they are triggered.

    Without that they have those of their last step: predicted for its end, or a mean. FMI 2.0 allows to read outputs after
    a trigger whose FMU shows right limits without a step.
    """
    with p.at_an_event():
        for i in sorted(triggered):
            p.move(i)
            p.set_inputs(i)


def emit_updates(
    plan: Plan,
    p: Emitter,
    instances: Iterable[int],
    settling: Settling,
    *,
    hook: Hook | None = None,
    rows: bool = True,
    late: Iterable[int] = (),
) -> None:
    """Update discrete states until nothing changes: all from left limits, then consistent values, then a row."""
    instances = tuple(instances)
    modes = [i for i in instances if plan.instances[i].event_mode]
    settled = {i for i in modes if plan.has_inputs(i)}
    triggered = [
        i
        for i in instances
        if plan.instances[i].event_mode or plan.layout.segments(i, Group.TRIGGERS)
    ]
    walked = {i for visit in plan.clocked_visits for i in visit.instances}
    tolerance = settling.tolerance_of_updates(plan, settled)
    with p.at_an_event(), p.repeat(least=1, most=MOST_MICROSTEPS, tolerance=tolerance):
        for i in modes:
            p.get_clocks(i)
        for i in triggered:
            if plan.instances[i].event_mode:
                p.move(i)
            if i not in walked:
                p.move_triggers(i)
        for i in late:
            p.move_triggers(i)
        if hook is not None:
            p.call(hook)
        for i in triggered:
            if plan.instances[i].event_mode:
                p.set_inputs(i)
            p.set(i, Group.FORCES)  # before a counter, by which an FMU takes it over
            if i not in walked:
                p.set(i, Group.TRIGGERS)
                p.get_clocked(i)
        settling.clocked_values(plan, p, triggered)
        for i in modes:
            p.update(i)
        for i in modes:
            p.get_intervals(i)
        for i in triggered:
            p.get(i)
        settling.at_an_event(plan, p, settled)
        if rows:
            p.measure()
            p.sample()
