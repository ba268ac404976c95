"""Changes of the structure of a system during a run: at times, and when events happen first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fmimaster.base.errors import ConvergenceError, FmimasterError, SimulationError
from fmimaster.instants.instant import Instant
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import InstancePlan, Plan
from fmimaster.prepare.prepared import Prepared
from fmimaster.prepare.structures import Structures
from fmimaster.program.bond_powers import carry_sums
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Set
from fmimaster.program.store import ValueStore
from fmimaster.run.executor import Executor, set_start
from fmimaster.session.instances import timeline_of
from fmimaster.system.model import DataType, Variable

if TYPE_CHECKING:
    from fmimaster.session.session import Session

log = logging.getLogger("fmimaster")


class StructureChanges:
    """Steps a session from structure to structure.

    At a change the plan is made anew. Instances that exist before and after it stay as they are, with their states and
    clocks. Those that begin are initialized at that time, with inputs from the running system, and those that end are
    terminated. The rows before and after the change are at the same time. Each structure is prepared like a simulation of
    its own, so no plan and no algorithm has code for changes.

    Source: Gomes et al. (2017), section 5.4.4.
    """

    def __init__(self, session: Session, structures: Structures) -> None:
        self._session = session
        self._structures = structures

    def steps(self, until: Instant) -> Iterator[None]:
        """Step until the stop time; yields as :meth:`Stepper.advance` does."""
        session = self._session
        while not session.stepper.has_ended:
            if not self._has_cause():  # of another change at this instant, or at the start
                goal = min(self._next_change(), until)
                session.state.pauses = goal.seconds < session.stop.seconds
                for _ in self._advance(goal):
                    yield
                    if self._has_cause() and not session.stepper.has_ended:
                        break
                else:
                    if goal == until or session.stepper.has_ended:
                        self._tell_of_missing_events()
                        return
            self._change()
            until = session.prepared.schedule.instant(session.prepared.schedule.stop)

    def _advance(self, goal: Instant) -> Iterator[None]:
        """Step until an instant; an algebraic loop that the first step after a change cannot solve is an error of the
        change."""
        try:
            yield from self._session.stepper.advance(goal)
        except ConvergenceError as error:
            state, schedule = self._session.state, self._session.prepared.schedule
            past = state.structure
            if past.has_changed and schedule.time_of(state.time) == past.changed_at:
                raise self._unsolved(error) from error
            raise

    def _tell_of_missing_events(self) -> None:
        for name in sorted(self._structures.events - self._session.state.structure.happened):
            log.warning(
                "the event '%s', at which the structure of the system changes, has not occurred: see the names in "
                "Results.events",
                name,
            )

    def _next_change(self) -> Instant:
        schedule = self._session.prepared.schedule
        last = self._session.state.structure.changed_at
        later = [t for t in self._structures.times if last is None or t > last]
        time = min(later, default=schedule.stop)
        return schedule.base.instant(time * schedule.base.resolution)

    def _has_cause(self) -> bool:
        """Whether events since the last look have happened first that change the structure."""
        state, log = self._session.state, self._session.state.event_log
        past = state.structure
        if log.count == past.seen:
            return False
        new = log.events[len(log.events) - (log.count - past.seen) :]
        found = self._structures.events.intersection(e.name for e in new) - past.happened
        state.structure = replace(past, happened=past.happened | found, seen=log.count)
        return bool(found)

    def _change(self) -> None:
        """Go over to the structure that exists from now on."""
        session, state = self._session, self._session.state
        before, time = session.prepared, session.prepared.schedule.time_of(state.time)
        try:
            after = self._structures.at(time, state.structure.happened)
        except FmimasterError as error:
            raise SimulationError(
                f"The structure of the system changes at t = {float(time):.12g} s, and the new one cannot be simulated: "
                f"{error}"
            ) from error
        state.structure = replace(state.structure, changed_at=time)
        if after is before:
            return
        state.structure = replace(state.structure, has_changed=True)
        old, new = (prepared.plan.instances.numbers for prepared in (before, after))
        kept = _kept(before, after)
        _refuse_other_uses(before, after, float(time))
        for name in sorted(old.keys() - kept):
            session.instances[old[name]].terminate()
        calendar, earlier = state.calendar, session.executor
        ticks = (calendar.next, calendar.periods, calendar.told)
        by_clock = [_by_name(entries, before.plan) for entries in ticks]
        session.take_structure(after, kept)
        stores = before.plan, earlier.store, after.plan, session.executor.store
        start, now = float(after.schedule.start), state.time.seconds
        _carry_over(*stores, now)
        bonds = carry_sums(*stores, state.structure.bonds, start=start, now=now)
        state.structure = replace(state.structure, bonds=bonds)
        base = after.schedule.base
        factor = Fraction(base.resolution, before.schedule.base.resolution)
        self._renew_state(after, factor)
        for name in old.keys() & new.keys():
            arrays = (executor.registers.by_instance() for executor in (earlier, session.executor))
            for source, target in zip(*arrays, strict=True):
                target[..., new[name]] = source[..., old[name]]
        joined = frozenset(new[name] for name in new.keys() - kept)
        session.executor.registers.initialized[list(joined)] = False
        clocks = _clocks(after.plan).items()
        present = ({k: entries[c] for c, k in clocks if c in entries} for entries in by_clock)
        calendar.rescale(base.resolution, factor, *present)
        session.rows.change(session.executor.rows, self._structures.arrange(after))
        gone = sorted(_components(before) - _components(after))
        self._begin(before.plan, earlier, joined, gone)

    def _renew_state(self, prepared: Prepared, factor: Fraction) -> None:
        """What the loop remembers of the structure before has no meaning in the new one."""
        state, schedule = self._session.state, prepared.schedule
        if not np.isinf(float(state.time.ticks)):
            state.time = schedule.base.instant(Fraction(state.time.ticks) * factor)
        state.activation_log.rescale(factor)
        state.timeline = timeline_of(prepared)
        state.memory = schedule.rule.begin(schedule.base, schedule.base.ticks(schedule.start))
        state.retry, state.jumped, state.previous, state.variant = None, None, 0.0, 0
        state.fired = state.on = state.ahead = state.late = state.outdated = frozenset()
        state.unseen = frozenset()

    def _begin(self, before: Plan, earlier: Executor, new: frozenset[int], gone: list[str]) -> None:
        """Initialize new instances, let the others see the change, and record the rows after it."""
        session, plan = self._session, self._session.plan
        changed = _changed_inputs(before, plan)
        lost = {i: _unconnected(plan, i, inputs) for i, inputs in changed.items()}
        named = {plan.instances[i].name for i in {*new, *changed}}
        names = sorted({*gone, *(named & _components(session.prepared))})

        def set_lost(i: int) -> None:
            self._end_polynomials(i, before, earlier, lost.get(i, []))
            self._give(i, lost.get(i, []))

        try:
            session.stepper.has_ended = session.stepper.events.rejoin(
                tuple(names), new, frozenset(changed) - new, set_lost
            )
        except ConvergenceError as error:
            raise self._unsolved(error) from error

    def _unsolved(self, error: ConvergenceError) -> SimulationError:
        time = self._session.state.time.seconds
        return SimulationError(
            f"The structure of the system changes at t = {time:.12g} s, and the values of the new one cannot be computed: "
            f"{error}",
            time=time,
        )

    def _end_polynomials(
        self, i: int, before: Plan, earlier: Executor, lost: list[Variable]
    ) -> None:
        """Hold the inputs of an instance that has lost all that followed polynomials, by the executor that gave these."""
        plan, now = self._session.plan, self._session.state.time.seconds
        planned = plan.instances[i]
        j = before.instances.numbers[planned.name]
        has_others = plan.layout.segments(i, Group.CONTINUOUS)
        if has_others or not earlier.registers.follows_polynomials[j]:
            return
        for variable in lost:
            place = before.layout.slots.get((j, Group.CONTINUOUS, variable.name))
            if place is not None:
                earlier.store.values[place[0]][place[1]] = _start(planned, variable)
        earlier.store.courses.degree[j] = -1
        earlier.run(Program("hold", (Set(j, Group.CONTINUOUS),)), now, now)

    def _give(self, i: int, variables: list[Variable]) -> None:
        """Set inputs that have lost their connection to their start values."""
        instance, planned = self._session.instances[i], self._session.plan.instances[i]
        for variable in variables:
            values = _start(planned, variable)
            instance.setter(variable.type, (variable.value_reference,), values)()
            place = self._session.plan.layout.slots.get((i, Group.OUTPUTS, variable.name))
            if place is not None:  # recorded: FMI forbids to read it now in Step Mode
                self._session.executor.store.values[place[0]][place[1]] = values


def _carry_over(before: Plan, old: ValueStore, after: Plan, new: ValueStore, time: float) -> None:
    """What instances that stay have as inputs and outputs at a time in s goes from one value store to another."""
    for i, planned in enumerate(after.instances):
        j = before.instances.numbers.get(planned.name)
        if j is None:
            continue
        _hold_inputs(before, old, j, time)
        for group in (Group.OUTPUTS, Group.CONTINUOUS, Group.DISCRETE):
            for name in (v.name for s in after.layout.segments(i, group) for v in s.variables):
                if (place := before.layout.slots.get((j, group, name))) is not None:
                    kind, slot = after.layout.slots[i, group, name]
                    new.values[kind][slot] = old.values[kind][place[1]]


def _hold_inputs(plan: Plan, store: ValueStore, i: int, time: float) -> None:
    """Continuous inputs that follow polynomials ← their values at a time in s."""
    if store.courses.degree[i] >= 0:
        (segment,) = plan.layout.segments(i, Group.CONTINUOUS)
        highest = plan.instances[i].model.highest_order
        values = store.courses.value(i, time, highest)
        store.values[segment.type][segment.start : segment.stop] = values


def _clocks(plan: Plan) -> dict[tuple[str, str], int]:
    """(Component, clock) → number of its trigger."""
    return {(plan.instances[t.instance].name, t.name): k for k, t in enumerate(plan.triggers)}


def _by_name(entries: Mapping[int, Any], plan: Plan) -> dict[tuple[str, str], Any]:
    names = {k: clock for clock, k in _clocks(plan).items()}
    return {names[k]: entry for k, entry in entries.items()}


def _components(prepared: Prepared) -> set[str]:
    """Names of all instances but that of the signals of the input."""
    return {name for name, _ in prepared.description.components()}


def _kept(before: Prepared, after: Prepared) -> set[str]:
    """Names of the instances that stay: not that of the signals of the input, if other signals are used from then on."""
    then, now = (
        {p.name: c.connectors for p, c in zip(s.plan.instances, s.components, strict=True)}
        for s in (before, after)
    )
    return {name for name in then.keys() & now.keys() if then[name] == now[name]}


def _refuse_other_uses(before: Prepared, after: Prepared, time: float) -> None:
    """Refuse instances that would have to be instantiated in another way: that cannot be changed while they exist."""
    others = {i.name: i for i in after.plan.instances}
    use: Callable[[InstancePlan], object] = lambda i: (i.event_mode, i.may_return_early)  # noqa: E731
    followers = {
        prepared.plan.instances[i].name
        for prepared in (before, after)
        for i in prepared.programs.polynomial_inputs
    }
    for planned in before.plan.instances:
        other = others.get(planned.name)
        if other is None:
            continue
        if planned.name in followers & before.isolated.keys() and _continuous(
            before.plan, planned.name
        ) != _continuous(after.plan, planned.name):
            raise SimulationError(
                f"The structure of the system changes at t = {time:.12g} s: '{planned.name}' has a process of its own, and "
                "other inputs of it would follow polynomials from then on, which must be decided when it is instantiated. "
                "Leave isolate (--isolate) out for it, or hold its inputs (inputs)."
            )
        if use(planned) != use(other):
            raise SimulationError(
                f"The structure of the system changes at t = {time:.12g} s: '{planned.name}' would use "
                "its Event Mode or early return from then on, or no longer, which must be decided when it is instantiated. "
                "Leave event_mode (--event-mode) out, or set it, to use Event Mode all the time."
            )


def _continuous(plan: Plan, name: str) -> list[str]:
    """Names of the connected continuous inputs of an instance."""
    segments = plan.layout.segments(plan.instances.numbers[name], Group.CONTINUOUS)
    return [v.name for s in segments for v in s.variables]


def _changed_inputs(before: Plan, after: Plan) -> dict[int, set[str]]:
    """Instance → its inputs with another source than before."""

    def sources(plan: Plan) -> dict[tuple[str, str], tuple[str, str]]:
        name = [planned.name for planned in plan.instances]
        return {(name[k.target], k.input.name): (name[k.source], k.output.name) for k in plan.links}

    then, now, index = sources(before), sources(after), after.instances.numbers
    found: dict[int, set[str]] = {}
    for component, name in sorted(then.keys() | now.keys()):
        key = component, name
        if component in index and then.get(key) != now.get(key):
            found.setdefault(index[component], set()).add(name)
    return found


def _unconnected(plan: Plan, i: int, inputs: set[str]) -> list[Variable]:
    """Those of the inputs of an instance that nothing feeds; clocks and clocked ones keep their values."""
    fed = {k.input.name for k in plan.links.into_instance.get(i, ())}
    variables = (plan.instances[i].model.variable(name) for name in sorted(inputs - fed))
    return [v for v in variables if v and v.type is not DataType.CLOCK and not v.clocks]


def _start(planned: InstancePlan, variable: Variable) -> Any:
    values = np.zeros(variable.size, dtype=variable.type.dtype)
    set_start(values, planned, variable.name)
    return values
