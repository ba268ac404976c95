"""What is known of an event before it happens: its program, and what it leaves outdated."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.plan.events import concerned
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.program.indicators import NONE
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Fit, Move
from fmimaster.program.instructions.outputs import Get, Sample
from fmimaster.program.instructions.steps import Mode
from fmimaster.program.programs import ChangedStructure, Programs
from fmimaster.run.loop import InputJump, Loop
from fmimaster.steps.schedule import Schedule
from fmimaster.system.resolved import Link

MOST_PLANNED = 10_000
"""So many combinations are kept; then they are planned anew. Their programs are kept by the algorithm."""


@dataclass(frozen=True)
class PlannedEvent:
    """Data about a combination of requests, triggered events and ticks."""

    instances: tuple[int, ...]
    """Instances that take part in the event."""
    program: Program
    late: frozenset[int]
    """Instances that it concerns and that stand ahead."""
    outdated: frozenset[int]
    """Instances with outputs that are outdated by it."""
    starting: frozenset[int]
    """Instances that execute it at the start of their next step, with the inputs that they have there; see
    :func:`starting_instances`."""
    unseen: frozenset[tuple[int, int]]
    seen: frozenset[tuple[int, int]]
    """Sets of indicators that do not show what it has changed, and that do; see
    :func:`fmimaster.run.planned_events.unseen_sets`."""

    @cached_property
    def halves(self) -> tuple[Program, Program]:
        """The program up to where all instances are in Event Mode, and the rest of it."""
        instructions = self.program.instructions
        n = len(list(takewhile(lambda i: isinstance(i, Mode), instructions)))
        return Program("event", instructions[:n]), Program("event", instructions[n:])


def last_row(plan: Plan, initialized: NDArray[np.uint8]) -> Program:
    """The row of an event in which an FMU has ended the run: what can be read where all instances are.

    Parameters
    ----------
    initialized : shape (n_instances,)
        Whether each instance has left Initialization Mode.
    """
    read = (
        Get(i, Group.OUTPUTS)
        for i, planned in enumerate(plan.instances)
        if planned.event_mode and initialized[i] and plan.layout.segments(i, Group.OUTPUTS)
    )
    return Program("last row", (*read, Sample()))


def read_all(plan: Plan) -> Program:
    """Reads the outputs of all instances."""
    with_outputs = (i for i in range(len(plan.instances)) if plan.layout.segments(i, Group.OUTPUTS))
    return Program("read", tuple(Get(i, Group.OUTPUTS) for i in with_outputs))


class PlannedEvents:
    """Plans each combination of requests, triggered events and ticks once."""

    def __init__(self, loop: Loop) -> None:
        self._plan, self._state = loop.plan, loop.state
        self._variants = loop.programs.variants
        self._sets = loop.indicators.sets
        self._attempts = [v.attempt for v in loop.programs.variants]
        if loop.programs.restart is not None:
            self._attempts.append(loop.programs.restart.attempt)
        self._known: dict[
            tuple[frozenset[int], frozenset[int], frozenset[int], bool, int, frozenset[int]],
            PlannedEvent,
        ] = {}

    @cached_property
    def _starting(self) -> frozenset[int]:
        return starting_instances(self._plan, self._attempts)

    def __call__(
        self,
        requests: frozenset[int] = NONE,
        fired: frozenset[int] = NONE,
        ticks: frozenset[int] = NONE,
        *,
        is_early: bool = False,
    ) -> PlannedEvent:
        """The event of some instances, triggered events and ticking clocks, in the present variant of the algorithm.

        Parameters
        ----------
        requests
            Instances with an event of their own.
        fired
            Events that the importer triggers, by their numbers.
        ticks
            Time-based clocks that tick, by their triggers.
        is_early
            Whether an early return is the cause.
        """
        key = requests, fired, ticks, is_early, self._state.variant, self._state.ahead
        if key not in self._known:
            if len(self._known) == MOST_PLANNED:
                self._known.clear()
            self._known[key] = self._planned(requests, fired, ticks, is_early)
        return self._known[key]

    def of_change(
        self, change: ChangedStructure, new: frozenset[int], changed: frozenset[int]
    ) -> PlannedEvent:
        """A change of the structure, of which the programs are given; see
        :data:`fmimaster.program.programs.ChangePrograms`."""
        plan = self._plan
        shown = new.union(change.modes, change.corrected)
        late = {
            i for i in changed.intersection(change.late) if plan.instances[i].model.direct_inputs
        }
        outdated = outdated_instances(plan, shown, shown, ()).difference(new, change.corrected)
        return PlannedEvent(
            tuple(sorted(new.union(change.modes))),
            change.after,
            NONE,
            outdated | late,
            NONE,
            *unseen_sets(plan, self._sets, shown, shown, ()),
        )

    def _planned(
        self,
        requests: frozenset[int],
        fired: frozenset[int],
        ticks: frozenset[int],
        is_early: bool,
    ) -> PlannedEvent:
        plan, ahead = self._plan, self._state.ahead
        events = [plan.events[e] for e in sorted(fired)]
        first = requests.union(*(event.instances for event in events))
        first |= {plan.triggers[k].instance for k in ticks}
        affected = concerned(first, plan.reached_by_events)
        instances = tuple(i for i in affected if i not in ahead)
        late = ahead.intersection(affected)
        triggers = tuple(
            m.trigger for event in events for m in event.members if m.trigger is not None
        ) + tuple(sorted(ticks))
        program = self._variants[self._state.variant].event(
            instances, triggers, is_early, tuple(sorted(late))
        )
        # an instance without Event Mode that was not triggered has only requested the event
        changed = {i for i in instances if plan.instances[i].event_mode}
        changed |= {plan.triggers[k].instance for k in triggers}
        return PlannedEvent(
            instances,
            program,
            late,
            outdated_instances(plan, changed, first, triggers) - ahead,
            self._starting.intersection(plan.triggers[k].instance for k in triggers) - ahead,
            *unseen_sets(plan, self._sets, changed, first, triggers),
        )


def starting_instances(plan: Plan, attempts: Iterable[Program]) -> frozenset[int]:
    """Instances without Event Mode whose inputs at the start of a step are not those of that instant.

    They execute an event when they are triggered there: at the start of their next step. It would be executed with inputs
    that are meant for that step, as its mean, or the outputs at its end. So a very short step follows the event.
    Polynomials have the values of the instant there; other inputs beside them are mostly their derivatives.
    """
    found = set[int]()
    for program in attempts:
        stepped = set[int]()
        for instruction in program.instructions:
            if isinstance(instruction, Get):
                stepped.add(instruction.instance)
            elif isinstance(instruction, Fit):
                if instruction.is_constant:
                    found.add(instruction.instance)
            elif isinstance(instruction, Move) and instruction.group is Group.CONTINUOUS:
                sources = {route.link.source for route in _fed(plan, instruction.instance)}
                if not stepped.isdisjoint(sources):
                    found.add(instruction.instance)
    return frozenset(i for i in found if not plan.instances[i].event_mode)


def _fed(plan: Plan, instance: int) -> Sequence[Route]:
    """What feeds the continuous inputs of an instance."""
    return plan.routes.get((instance, Group.CONTINUOUS), ())


def outdated_instances(
    plan: Plan, changed: Collection[int], first: Collection[int], triggers: Collection[int]
) -> frozenset[int]:
    """Instances of which outputs that are used depend directly on instances that an event has changed, and do not show it.

    Parameters
    ----------
    changed
        Instances that the event changes.
    first
        Those of them in which it happens. Of the others, which only take new inputs in Event Mode, outputs change that
        depend directly on these.
    triggers
        Those that it makes active, by number. An output that depends on the payload of a trigger shows the right limit of
        the member from which the payload is.
    """
    used = cache(partial(_used_outputs, plan))  # there may be many connections to one instance
    return frozenset(
        link.target
        for link in _links_from(plan, changed, first)
        if _depends(plan, link.target, [link], used(link.target))
        and not _is_told(plan, link, triggers, used(link.target))
    )


def input_jumps(
    plan: Plan,
    schedule: Schedule,
    jumps: Mapping[float, frozenset[str]],
    programs: Programs,
    begins_anew: bool,
) -> dict[Fraction, InputJump]:
    """Times in s at which signals of the input, the last component, jump, with what follows from that.

    Jumps without an event are left out, unless something must begin anew there.

    Parameters
    ----------
    jumps
        Time in s → the columns of the input that jump.
    begins_anew
        Whether lines through several instants or step-size control must restart where an input jumps.
    """
    table = len(plan.instances) - 1
    fed: dict[str, list[InputJump]] = {}
    used = cache(partial(_used_outputs, plan))
    routes = ((i, group, r.link) for (i, group), found in plan.routes.items() for r in found)
    for i, group, link in routes:
        if link.source != table:
            continue
        has_event, one = plan.instances[i].event_mode, frozenset({i})
        is_event = has_event and group is Group.CONTINUOUS
        is_input = not has_event and group is not Group.PARAMETERS
        passes = is_input and _depends(plan, i, [link], used(i))
        restarts = begins_anew and (passes or group is Group.CONTINUOUS)
        if is_event or restarts:
            is_late = passes and programs.follows_lines
            jump = InputJump(one if is_event else NONE, one if is_late else NONE)
            fed.setdefault(link.output.name, []).append(jump)
    found: dict[Fraction, InputJump] = {}
    for time, columns in jumps.items() if fed else ():
        met = schedule.met(time)
        here = [jump for column in columns for jump in fed.get(column, ())]
        if here and schedule.start < met <= schedule.stop:
            events, outdated = zip(*here, found.get(met, InputJump(NONE, NONE)), strict=True)
            found[met] = InputJump(NONE.union(*events), NONE.union(*outdated))
    return found


def unseen_sets(
    plan: Plan,
    sets: Sequence[IndicatorSet],
    changed: Collection[int],
    first: Collection[int],
    triggers: Collection[int],
) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
    """Sets of indicators, by number, each with an instance that an event has changed and on which it depends.

    Returns
    -------
    Those that do not show the change, and those that do: see :func:`outdated_instances`.
    """
    unseen, seen = set[tuple[int, int]](), set[tuple[int, int]]()
    for link in _links_from(plan, changed, first):
        for s in sets:
            names = _indicators(plan, s)
            if s.instance == link.target and _depends(plan, link.target, [link], names):
                told = _is_told(plan, link, triggers, names)
                (seen if told else unseen).add((s.number, link.source))
    return frozenset(unseen), frozenset(seen)


def _links_from(plan: Plan, changed: Collection[int], first: Collection[int]) -> Iterable[Link]:
    """Connections through which instances without Event Mode depend on changed outputs."""
    return (
        link
        for i in sorted(changed)
        for link in plan.links.out_of_instance.get(i, ())
        if link.source != link.target
        and link.input.is_continuous
        and not plan.instances[link.target].event_mode
        and (link.source in first or _passes_on(plan, link, changed))
    )


def _passes_on(plan: Plan, link: Link, changed: Collection[int]) -> bool:
    """Whether the output of a connection depends directly on an instance that has changed."""
    into = [k for k in plan.links.into_instance.get(link.source, ()) if k.source in changed]
    return _depends(plan, link.source, into, [link.output.name])


def _is_told(plan: Plan, link: Link, triggers: Collection[int], names: Collection[str]) -> bool:
    """Whether these variables depend on a payload from the source of a connection to its target."""
    payload = [
        k
        for trigger in (plan.triggers[number] for number in triggers)
        if trigger.impulse is None  # impulses of others at the same instant may change it too
        for k in trigger.links
        if (k.source, k.target) == (link.source, link.target)
    ]
    return _depends(plan, link.target, payload, names)


def _depends(plan: Plan, i: int, links: Iterable[Link], names: Collection[str]) -> bool:
    """Whether one of these variables of an instance depends directly on an input of these connections."""
    dependencies = plan.instances[i].model.dependencies
    return any(k.input.name in dependencies.get(name, ()) for k in links for name in names)


def _indicators(plan: Plan, s: IndicatorSet) -> list[str]:
    members = (m for m in plan.events[s.event].members if m.instance == s.instance)
    return [indicator.name for m in members for indicator in m.declaration.indicators]


def _used_outputs(plan: Plan, i: int) -> set[str]:
    """Names of the outputs of an instance that feed others or indicate events."""
    fed = {k.output.name for k in plan.links.out_of_instance.get(i, ())}
    slopes = {v.name for v in plan.instances[i].model.variables if v.derivative_of in fed}
    indicators = {
        k.name
        for event in plan.events
        for m in event.members
        if m.instance == i
        for k in m.declaration.indicators
    }
    return fed | slopes | indicators
