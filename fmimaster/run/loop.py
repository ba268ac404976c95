"""Data of the loop over time: what is made once for all runs of a plan, and the state, which changes.

Besides the state there are the value store and the registers of the executor (:mod:`fmimaster.run.rows`), and the FMUs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.events.zeno import EventHistory
from fmimaster.instants.calendar import Calendar
from fmimaster.instants.instant import NEVER, Goal, Instant, TimeBase
from fmimaster.plan.plan import Plan
from fmimaster.plan.power_bonds import BondSums
from fmimaster.program.indicators import Indicators
from fmimaster.program.programs import Programs
from fmimaster.program.store import ValueStore
from fmimaster.record.step_series import StepColumns
from fmimaster.run.executor import Executor
from fmimaster.run.log import ActivationLog, EventLog, StepLog, Stretch
from fmimaster.steps.step_rule import StepContext, StepRule
from fmimaster.system.model import DataType

if TYPE_CHECKING:
    from fmimaster.events.event_clock import EventClock


class InputJump(NamedTuple):
    """A jump of inputs that is known before the run."""

    events: frozenset[int]
    """Instances for which the jump of a continuous input is an event (FMI 3.0, 4.1.1)."""
    outdated: frozenset[int]
    """Other instances with outputs that depend directly on the input, feed others, and can be read after a step only."""


@dataclass
class Timeline:
    """Required points of the user or of an input table, in the order of time."""

    points: list[Instant] = field(default_factory=list)
    jumps: Mapping[Instant, InputJump] = field(default_factory=dict)
    """Those of the points at which an input jumps."""

    @classmethod
    def of(
        cls, points: Iterable[Instant], jumps: Mapping[Instant, InputJump] | None = None
    ) -> Timeline:
        """A calendar with these points, and those of the jumps."""
        jumps = jumps or {}
        return cls(sorted({*points, *jumps}), jumps)

    def after(self, now: Instant) -> Instant:
        """The first point after an instant; NEVER if there is none."""
        k = bisect_right(self.points, now)
        return self.points[k] if k < len(self.points) else NEVER


@dataclass(frozen=True, slots=True)
class StructureHistory:
    """The changes of the structure of a system so far."""

    happened: frozenset[str] = frozenset()
    """Events that have changed it: only the first of each name does."""
    seen: int = 0
    """Number of events that have been looked at."""
    has_changed: bool = False
    """Whether there was a change."""
    changed_at: Fraction | None = None
    """Time in s since which there is the present structure; None since the start."""
    bonds: Mapping[str, BondSums] = field(default_factory=dict)
    """Name of a power bond → its sums at the last change, or at its end."""


@dataclass
class RunState:
    """The state of a run in Python: a deep copy can replace it."""

    time: Instant
    timeline: Timeline
    memory: Any = None
    """Memory of the step-size rule."""
    calendar: Calendar = field(default_factory=Calendar)
    """The next tick of each time-based clock, by the number of its trigger."""
    retry: Goal | None = None
    """The end of the next step, if the one before was undone."""
    longest: float = 0.0
    """Length in s of the first try of the present step: it is not tried with a longer one."""
    tries: int = 0
    """How often the present step was undone."""
    attempts: int = 0
    steps: int = 0
    stretch: Stretch | None = None
    """The steps that the executor is doing on its own; None if there are none. It stays when one of them fails."""
    pauses: bool = False
    """Whether the run continues after the instant to which it is advanced at present. A step that ends there by the rule
    then keeps its cause: causes and rows are those of a run without pauses."""
    asked: bool = False
    """Whether another thread wants the loop to yield after the present step."""
    variant: int = 0
    """The variant of the algorithm by which the last step was done."""
    previous: float = 0.0
    """Length of the last step in s; 0 at the start and after an event, where there is no history."""
    index: int = 0
    """Superdense index of the last row."""
    next_event: float = inf
    """Time in s of the next event that an FMU has announced."""
    jumped: Instant | None = None
    """Time of the last search for jumps of continuous inputs."""
    fired: frozenset[int] = frozenset()
    """Events that have occurred at the present time."""
    on: frozenset[int] = frozenset()
    """Events whose condition has held since they occurred: they do not occur again."""
    resting: frozenset[int] = frozenset()
    """Events of bodies that touch and stay. Those of their members that can do so ignore their own events."""
    held: frozenset[int] = frozenset()
    """Events of contacts that are held by a force."""
    loose: frozenset[int] = frozenset()
    """Events of contacts that touch without a force, as those that have just opened."""
    forces: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    """The forces at contacts, by their events, as coefficients of the time since the next one."""
    forces_at: float = 0.0
    """[s]"""
    closed: Mapping[int, float] = field(default_factory=dict)
    """Where the bodies of the held contacts have met, each as the difference of their positions."""
    free: tuple[tuple[float, tuple[float, ...]], ...] = ()
    """Rates of the velocities of the held contacts without their forces at the last points, each with its time in s, the
    newest first."""
    approaches: dict[int, tuple[float, ...]] = field(default_factory=dict)
    """Contact → the velocities of its last hits, the newest last."""
    gaps: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Contact → the largest gap while a force held it, if that is too large, and its time in s."""
    unseen: frozenset[tuple[int, int]] = frozenset()
    """Sets of indicators, by number, and instances on which they depend and that have jumped at the present time."""
    ahead: frozenset[int] = frozenset()
    """Instances that have stepped past an early return and cannot go back: they stay at their own times."""
    late: frozenset[int] = frozenset()
    """Those of them that have an event at their own time, because they could not have it at the time of the others."""
    executed: float = -inf
    """Time in s at which it was last observed that FMUs have executed an event themselves."""
    alone: dict[int, tuple[float, frozenset[int]]] = field(default_factory=dict)
    """Shared events that some of their members have executed themselves, each with the time in s and these members."""
    outdated: frozenset[int] = frozenset()
    """Instances whose outputs depend on inputs that have jumped, and can be read only after their next step."""
    renewed: tuple[Instant | None, frozenset[int]] = None, frozenset()
    """The end of the last short step that made outputs known again; the instances of all such steps that led there."""
    discrete_inputs: list[list[Any]] = field(default_factory=list)
    discrete_outputs: list[list[Any]] = field(default_factory=list)
    """Values of discrete variables when they were compared last; see :mod:`fmimaster.run.changes`."""
    located: dict[str, tuple[float, list[list[Any]]]] = field(default_factory=dict)
    """Component → time in s of the last change of its discrete outputs that was located, and their values before it."""
    close: frozenset[str] = frozenset()
    """Components whose discrete outputs have changed and changed back within a usual step."""
    ineffective: dict[str, int] = field(default_factory=dict)
    """Event → how often it was on after a trigger that had no effect, since it had one."""
    derivatives: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Indicator → over how many smooth steps its derivative has fitted its change, and has not."""
    step_log: StepLog = field(default_factory=StepLog)
    event_log: EventLog = field(default_factory=EventLog)
    activation_log: ActivationLog = field(default_factory=ActivationLog)
    warnings: tuple[str, ...] = ()
    """Reasons for a loss of accuracy because the run has continued from a checkpoint."""
    structure: StructureHistory = StructureHistory()
    """Changes of the structure of the system; the present structure is in the plan."""
    accumulating: EventHistory = field(default_factory=EventHistory)
    """Times of the last events of each kind."""

    @property
    def touching(self) -> frozenset[int]:
        """Events of contacts that do not happen, because the bodies touch and stay, or only begin to move apart."""
        return self.held | self.loose

    @property
    def just_renewed(self) -> frozenset[int]:
        """Instances whose outputs short steps have made known again up to now."""
        at, instances = self.renewed
        return instances if at == self.time else frozenset()

    def counts(self, reached: float) -> tuple[int, int]:
        """Numbers of steps and of attempts, with those of a stretch that has not ended.

        Parameters
        ----------
        reached : float
            Start in s of the interval on which the executor works.
        """
        stretch = self.stretch  # another thread may end it meanwhile
        if stretch is None:
            return self.steps, self.attempts
        done = stretch.done(reached)
        return self.steps + done, self.attempts + done + 1

    def entries(self, reached: float) -> StepColumns:
        """The entries of all steps likewise."""
        stretch = self.stretch
        if stretch is None:
            return self.step_log.part(0)
        log = self.step_log.copy()
        log.add_stretch(stretch, stretch.done(reached))
        return log


Choose = Callable[[StepContext], int]
"""Chooses the variant of the algorithm for the next step."""


class RecordedValues:
    """Recorded variables of components with their values in the store, which are read at each event."""

    def __init__(self, plan: Plan, store: ValueStore) -> None:
        self._plan, self._store = plan, store
        self._known: dict[frozenset[str], list[_Recorded]] = {}

    def __call__(self, components: Collection[str]) -> dict[str, Any]:
        """Those of these components that have a value; arrays as lists."""
        key = frozenset(components)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = [*self._of(key)]
        return {
            name: values.tolist()
            for name, values, clocks in known
            if clocks is None or self._is_present(*clocks)
        }

    def _of(self, components: frozenset[str]) -> Iterator[_Recorded]:
        instances, values = self._plan.instances, self._store.values
        for c in self._plan.recorded:
            if c.instance is None or c.is_repeated or c.type is DataType.CLOCK:
                continue
            if instances[c.instance].name in components and c.transformation.is_identity:
                yield _Recorded(c.name, values[c.type][c.slot].reshape(c.shape), c.present)

    def _is_present(self, kind: DataType, flags: tuple[int, ...]) -> bool:
        """Whether a clocked variable has a value now: whether one of its clocks is active."""
        rows = self._plan.rows[kind]
        return bool(self._store.values[kind][[rows[k] for k in flags]].any())


class _Recorded(NamedTuple):
    """A variable: its values are a view on the store."""

    name: str
    values: NDArray[Any]
    clocks: tuple[DataType, tuple[int, ...]] | None
    """Clocks of which one must be active, if it is clocked."""


@dataclass(frozen=True)
class Loop:
    """Data of the loop over time: made once for all runs of a plan by the same instances.

    Parameters
    ----------
    rule, base : StepRule, TimeBase
        ``state.memory`` holds what the rule remembers at the start.
    clock : EventClock or None
    choose : function or None
        For algorithms with several variants.
    """

    plan: Plan
    programs: Programs
    executor: Executor
    rule: StepRule[Any]
    base: TimeBase
    state: RunState
    clock: EventClock | None = None
    choose: Choose | None = None
    indicators: Indicators = field(init=False)
    names: tuple[str, ...] = field(init=False)
    """Of all instances."""
    recorded: RecordedValues = field(init=False)

    def __post_init__(self) -> None:
        step = float(self.rule.exact_size)
        indicators = Indicators(
            self.plan, self.executor.store, self.programs.history, step, self.programs.between
        )
        object.__setattr__(self, "indicators", indicators)
        object.__setattr__(self, "names", tuple(i.name for i in self.plan.instances))
        object.__setattr__(self, "recorded", RecordedValues(self.plan, self.executor.store))


class LoopPart:
    """A part of the loop: it works on the data of the loop, and remembers nothing outside of its state."""

    def __init__(self, loop: Loop) -> None:
        self._plan = loop.plan
        self._programs = loop.programs
        self._executor = loop.executor
        self._rule = loop.rule
        self._base = loop.base
        self._state = loop.state
        self._clock = loop.clock
        self._indicators = loop.indicators
        self._names = loop.names

    def _who(self, instances: Iterable[int]) -> tuple[str, ...]:
        """The names of instances."""
        return tuple(self._names[i] for i in instances)
