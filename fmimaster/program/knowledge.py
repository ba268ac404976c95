"""The known state of instances, places and buffers at one point of a program."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.effects import Effects
from fmimaster.system.states import State

NO_GROUPS: frozenset[Group] = frozenset()
NEVER = -1
INPUTS = (Group.CONTINUOUS, Group.DISCRETE)
"""Groups that an instance must have been given before it steps."""


class Known(NamedTuple):
    """The known state of an instance; an immutable value, so copies cost nothing."""

    state: State
    at: float = 0.0
    """Its time, as a fraction of the interval."""
    moved: frozenset[Group] = NO_GROUPS
    """Groups of inputs whose values in the store belong to the time of the instance."""
    given: frozenset[Group] = NO_GROUPS
    """Groups of inputs that were set in the FMU at this time."""
    stamp: int = 0
    """A new number after each operation that can change its outputs; restored with its state."""
    read: int = NEVER
    """Stamp when its outputs in the store were read."""
    since: int = 0
    """Count of steps when it left the start of the interval, or when it was last aligned or restored."""

    # a program has thousands of instructions: these take a third of the time of _replace

    def with_moved(self, group: Group) -> Known:
        """With a group of inputs that was moved."""
        state, at, moved, given, stamp, read, since = self
        return Known(state, at, moved | {group}, given, stamp, read, since)

    def with_given(self, group: Group) -> Known:
        """With a group of inputs that was set."""
        state, at, moved, given, stamp, read, since = self
        return Known(state, at, moved, given | {group}, stamp, read, since)

    def with_stamp(self, stamp: int) -> Known:
        """With other outputs."""
        state, at, moved, given, _, read, since = self
        return Known(state, at, moved, given, stamp, read, since)

    def with_read(self, read: int) -> Known:
        """With outputs in the store that were read at a stamp."""
        state, at, moved, given, stamp, _, since = self
        return Known(state, at, moved, given, stamp, read, since)

    @property
    def is_read(self) -> bool:
        """Whether the outputs in the store are those of the present state of the instance."""
        return self.read == self.stamp


class _Return(NamedTuple):
    """A step that may have ended early: its instance, and the number of steps up to it."""

    instance: int
    step: int


class Knowledge(Effects):
    """The known state of a run at one point of a program.

    Parameters
    ----------
    begin : State
        Of all instances at first.
    who : instance → fraction
        Times of the instances at the end, as fractions of the interval.
    under_way
        Instances whose inputs in the store belong to a step that began earlier.
    """

    def __init__(
        self, plan: Plan, begin: State, who: Mapping[int, float], under_way: Collection[int] = ()
    ) -> None:
        self.plan = plan
        read = 0 if begin is State.STEP_MODE else NEVER
        self.instances = [Known(begin, read=read) for _ in plan.instances]
        for i in under_way:
            self.instances[i] = self.instances[i]._replace(moved=frozenset(INPUTS))
        self.ends = [who.get(i, 0.0) for i in range(len(plan.instances))]
        self.places: dict[int, tuple[int, Known]] = {}
        """Place → instance, and its known state."""
        self.kept: dict[int, list[Known]] = {}
        """Buffer → the known states of all instances."""
        self._stamps = 0
        self._steps = 0
        self._returns: list[_Return] = []
        """The last steps of two different instances that may have ended early, the newest first."""
        self._past: dict[int, int] = {}
        """Instance → another one that was stepped to an earlier time inside the interval, where it may request an event."""

    def begins_in(self, i: int, state: State) -> None:
        """An instance that is in another state than the others at first."""
        self.instances[i] = Known(state, read=0 if state is State.STEP_MODE else NEVER)

    def move(self, i: int, group: Group, fitted: object = None) -> None:
        """Inputs of the instance are up to date."""
        self.instances[i] = self.instances[i].with_moved(group)

    def set(self, i: int, group: Group) -> None:
        """Inputs of the instance are given, and its outputs change where they follow without a step."""
        if group in INPUTS:
            self.instances[i] = self.instances[i].with_given(group)
        is_open = self.instances[i].state in (State.INITIALIZATION_MODE, State.EVENT_MODE)
        follows = group in INPUTS and bool(self.plan.instances[i].model.followed)
        if group is Group.TRIGGERS or (group is not Group.INTERVALS and (is_open or follows)):
            self.update(i)

    def get(self, i: int, group: Group) -> None:
        """The outputs in the store are those of the present state."""
        if group is Group.OUTPUTS:
            self.instances[i] = self.instances[i].with_read(self.instances[i].stamp)

    def update(self, i: int) -> None:
        """The instance has other outputs from now on."""
        self._stamps += 1
        self.instances[i] = self.instances[i].with_stamp(self._stamps)

    def enter(self, i: int, state: State) -> None:
        """The instance is in another state of FMI: no inputs are known there."""
        known = self.instances[i]
        self.instances[i] = Known(
            state, known.at, stamp=known.stamp, read=known.read, since=known.since
        )

    def step(self, i: int, end: float) -> None:
        """The instance has done a step."""
        known = self.instances[i]
        since = self._steps if known.at == 0.0 else known.since
        self._steps += 1
        self._stamps += 1
        self.instances[i] = Known(
            known.state, end, stamp=self._stamps, read=known.read, since=since
        )
        if end < 1.0 and self.plan.instances[i].may_request_events:
            self._past |= {j: i for j, other in enumerate(self.instances) if other.at > end}
        if self.plan.instances[i].may_return_early:
            others = [r for r in self._returns if r.instance != i]
            self._returns = [_Return(i, self._steps), *others[:1]]

    def align(self, i: int) -> None:
        """The instance is not past an early return."""
        self.instances[i] = self.instances[i]._replace(since=self._steps)
        self._past.pop(i, None)

    def save(self, i: int, place: int) -> None:
        """What is known of the instance is known of the place."""
        self.places[place] = (i, self.instances[i])

    def restore(self, i: int, place: int) -> None:
        """The instance has its saved state; the outputs in the store are unchanged."""
        _, saved = self.places[place]
        read = self.instances[i].read
        self._past.pop(i, None)
        self.instances[i] = Known(
            saved.state, saved.at, stamp=saved.stamp, read=read, since=self._steps
        )

    def keep(self, buffer: int) -> None:
        """What is known of all outputs is known of the buffer."""
        self.kept[buffer] = list(self.instances)

    def recall(self, buffer: int) -> None:
        """The outputs in the store are those of the buffer."""
        for i, then in enumerate(self.kept[buffer]):
            self.instances[i] = self.instances[i].with_read(then.read)

    def revert(self, i: int, buffer: int) -> None:
        """The outputs of the instance in the store are those of the buffer."""
        self.instances[i] = self.instances[i].with_read(self.kept[buffer][i].read)

    def ahead_of(self, i: int) -> int:
        """An instance that may have stopped at an event, while this one may be past that time; -1 for none.

        It may be this instance itself, if it discards a step at an event: it is then at the end of the step. An instance
        that cannot go back may be past that time.
        """
        known = self.instances[i]
        if self.plan.instances[i].stays_ahead:
            return -1
        if i in self._past:
            return self._past[i]
        for r in self._returns:
            discards = not self.plan.instances[i].event_mode
            if known.at > 0.0 and r.step > known.since and (r.instance != i or discards):
                return r.instance
        return -1

    def repeatable(self, i: int) -> tuple[object, ...]:
        """The properties of an instance that must be the same in the second pass of a REPEAT as in the first."""
        k = self.instances[i]
        return k.state, k.at, k.moved, k.given, k.is_read, self.ahead_of(i)
