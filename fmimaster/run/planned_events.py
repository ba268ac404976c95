"""What is known of an event before it happens: its program, and what it leaves outdated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from fmimaster.plan.events import concerned
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.indicators import NONE
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.control import Mode
from fmimaster.program.instructions.outputs import Get, Sample
from fmimaster.program.programs import ChangedStructure
from fmimaster.run.loop import Loop
from fmimaster.run.outdated import outdated_instances, unseen_sets

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
    unseen: frozenset[tuple[int, int]]
    seen: frozenset[tuple[int, int]]
    """Sets of indicators that do not show what it has changed, and that do; see
    :func:`fmimaster.run.outdated.unseen_sets`."""

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
        self._known: dict[
            tuple[frozenset[int], frozenset[int], frozenset[int], bool, int, frozenset[int]],
            PlannedEvent,
        ] = {}

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
        :class:`fmimaster.program.programs.ChangePrograms`."""
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
            *unseen_sets(plan, self._sets, changed, first, triggers),
        )
