"""What instructions do, and what is known of a run at one point of a program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.plan.layout import Group
from fmimaster.system.states import State

if TYPE_CHECKING:
    from fmimaster.plan.plan import Plan


class Fitted(NamedTuple):
    """The operands of FIT for one route."""

    points: int
    derivatives: int
    history: bool = False
    held: float | None = None
    mean: float | None = None
    adaptive: bool = False
    compensation: float = 0.0
    late: float | None = None
    half: int = 0

    @property
    def size(self) -> int:
        """Number of coefficients of the polynomial."""
        return self.points * (self.derivatives + 1)

    @property
    def is_constant(self) -> bool:
        """Whether the input is constant over the interval, because its polynomial is held."""
        return self.held is not None or self.mean is not None


class Effects:
    """Follows a program: each instruction calls the method of what it does. Here none has a consequence.

    The checker derives its knowledge in this way, :mod:`fmimaster.program.delays` the delays, and the emitter the buffers
    that it can use.
    """

    def move(self, i: int, group: Group, fitted: Callable[[int], Fitted] | None = None) -> None:
        """Inputs of a group in the store belong to the time of the instance; not held, with the operands of
        FIT for the k-th route."""

    def set(self, i: int, group: Group) -> None:
        """A group in the store → FMU."""

    def get(self, i: int, group: Group) -> None:
        """A group of the FMU → store."""

    def update(self, i: int) -> None:
        """The instance has other discrete states."""

    def enter(self, i: int, state: State) -> None:
        """The instance is in another state of FMI."""

    def step(self, i: int, end: float) -> None:
        """The instance stands at a fraction of the interval."""

    def align(self, i: int) -> None:
        """The instance is not past an early return, and its outputs are read again if it was."""

    def save(self, i: int, place: int) -> None:
        """State of the instance → place."""

    def restore(self, i: int, place: int) -> None:
        """State of the instance ← place."""

    def keep(self, buffer: int) -> None:
        """All outputs in the store → buffer."""

    def recall(self, buffer: int) -> None:
        """All outputs in the store ← buffer."""

    def revert(self, i: int, buffer: int) -> None:
        """Outputs of the instance in the store ← buffer."""

    def change(self) -> None:
        """Outputs in the store change without being read."""

    def repeat(self) -> None:
        """A repetition starts."""


NO_GROUPS: frozenset[Group] = frozenset()
NEVER = -1
INPUTS = (Group.CONTINUOUS, Group.DISCRETE)
"""Groups that an instance must have been given before it steps."""


@dataclass(slots=True)
class Known:
    """The known state of an instance."""

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

    @property
    def is_read(self) -> bool:
        """Whether the outputs in the store are those of the present state of the instance."""
        return self.read == self.stamp


class _Instances(dict[int, Known]):
    """What is known of each instance; of one that no instruction has concerned, that it is as it was at first."""

    def __init__(self, begin: State) -> None:
        self.begin = begin
        self.read = 0 if begin is State.STEP_MODE else NEVER

    def __missing__(self, i: int) -> Known:
        known = self[i] = Known(self.begin, read=self.read)
        return known


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
        self.instances = _Instances(begin)
        for i in under_way:
            self.instances[i].moved = frozenset(INPUTS)
        self.ends = who
        self.places: dict[int, tuple[int, State, float, int]] = {}
        """Place → instance, with its state, time and stamp."""
        self.kept: dict[int, dict[int, tuple[float, int]]] = {}
        """Buffer → time of each instance that was concerned, and stamp when its outputs were read."""
        self._stamps = 0
        self._steps = 0
        self._returns: list[_Return] = []
        """The last steps of two different instances that may have ended early, the newest first."""
        self._past: dict[int, int] = {}
        """Instance → another one that was stepped to an earlier time inside the interval, where it may request an event."""

    def end_of(self, i: int) -> float:
        """Time of an instance at the end."""
        return self.ends.get(i, 0.0)

    def begins_in(self, i: int, state: State) -> None:
        """An instance that is in another state than the others at first."""
        self.instances[i] = Known(state, read=0 if state is State.STEP_MODE else NEVER)

    def move(self, i: int, group: Group, fitted: object = None) -> None:
        """Inputs of the instance are up to date."""
        self.instances[i].moved |= {group}

    def set(self, i: int, group: Group) -> None:
        """Inputs of the instance are given, and its outputs change where they follow without a step."""
        if group in INPUTS:
            self.instances[i].given |= {group}
        elif (
            group is Group.TRIGGERS
        ):  # what was given before is for the event, and outputs are read behind it
            self.instances[i].given = NO_GROUPS
        is_open = self.instances[i].state in (State.INITIALIZATION_MODE, State.EVENT_MODE)
        follows = group in INPUTS and bool(self.plan.instances[i].model.followed)
        if group is Group.TRIGGERS or (group is not Group.INTERVALS and (is_open or follows)):
            self.update(i)

    def get(self, i: int, group: Group) -> None:
        """The outputs in the store are those of the present state."""
        if group is Group.OUTPUTS:
            self.instances[i].read = self.instances[i].stamp

    def update(self, i: int) -> None:
        """The instance has other outputs from now on."""
        self._stamps += 1
        self.instances[i].stamp = self._stamps

    def enter(self, i: int, state: State) -> None:
        """The instance is in another state of FMI: no inputs are known there."""
        known = self.instances[i]
        known.state, known.moved, known.given = state, NO_GROUPS, NO_GROUPS

    def step(self, i: int, end: float) -> None:
        """The instance has done a step."""
        known = self.instances[i]
        if known.at == 0.0:
            known.since = self._steps
        self._steps += 1
        known.at, known.moved, known.given = end, NO_GROUPS, NO_GROUPS
        self.update(i)
        if end < 1.0 and self.plan.instances[i].may_request_events:
            self._past |= {j: i for j, other in self.instances.items() if other.at > end}
        if self.plan.instances[i].may_return_early:
            others = [r for r in self._returns if r.instance != i]
            self._returns = [_Return(i, self._steps), *others[:1]]

    def align(self, i: int) -> None:
        """The instance is not past an early return."""
        self.instances[i].since = self._steps
        self._past.pop(i, None)

    def save(self, i: int, place: int) -> None:
        """What is known of the instance is known of the place."""
        known = self.instances[i]
        self.places[place] = i, known.state, known.at, known.stamp

    def restore(self, i: int, place: int) -> None:
        """The instance has its saved state; the outputs in the store are unchanged."""
        known = self.instances[i]
        _, known.state, known.at, known.stamp = self.places[place]
        known.moved, known.given, known.since = NO_GROUPS, NO_GROUPS, self._steps
        self._past.pop(i, None)

    def keep(self, buffer: int) -> None:
        """What is known of all outputs is known of the buffer."""
        self.kept[buffer] = {i: (known.at, known.read) for i, known in self.instances.items()}

    def recall(self, buffer: int) -> None:
        """The outputs in the store are those of the buffer."""
        for i in self.instances:
            self.revert(i, buffer)

    def revert(self, i: int, buffer: int) -> None:
        """The outputs of the instance in the store are those of the buffer."""
        _, self.instances[i].read = self.kept_of(i, buffer)

    def kept_of(self, i: int, buffer: int) -> tuple[float, int]:
        """Time of an instance that a buffer holds, and stamp when its outputs were read."""
        return self.kept[buffer].get(i) or (0.0, self.instances.read)

    def concerned(self) -> Iterable[int]:
        """Instances that may not be as a program must leave them; of others, a program in Step Mode changes nothing."""
        if self.instances.begin is State.STEP_MODE:
            return sorted({*self.instances, *self.ends})
        return range(len(self.plan.instances))

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
