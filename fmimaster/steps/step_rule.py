"""Step-size rules: they choose the end of the next step and accept or reject tried steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import (
    Goal,
    Instant,
    Instants,
    PointsAhead,
    TimeBase,
    exact,
    goal_at,
)
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import RuleTwin
from fmimaster.program.indicators import Indicators
from fmimaster.program.store import ValueStore
from fmimaster.record.causes import GRID, Cause, Kind
from fmimaster.steps.estimator import Estimator, Measured
from fmimaster.system.clocks import Time as Time
from fmimaster.system.model import Model

CHANGE = "change of discrete outputs"
"""Name of the event that rules locate which watch discrete outputs."""


@dataclass(frozen=True, slots=True)
class StepContext:
    """A step that will be tried, or that was tried and is not accepted yet."""

    indicators: Indicators
    """The event indicators of the plan in the value store: ``indicators.plan``, ``indicators.store``."""
    size: float
    """Length in s of a whole step."""
    variant: int
    """The variant of the last step, or of this step after it was tried."""
    goal: Goal
    """The end of the step, and its cause."""
    base: TimeBase
    """The unit of the ticks of instants."""
    changed: tuple[str, ...] = ()
    """Components with a connected discrete output that has changed in the step; empty before the step is tried."""


class RateInterval(NamedTuple):
    """An interval between two communication points."""

    begins: frozenset[str]
    """Components whose step begins at its start."""
    ends: frozenset[str]
    """Components whose step ends at its end."""


class RatePattern(NamedTuple):
    """The intervals of a run."""

    intervals: tuple[RateInterval, ...]
    """They repeat until the end of the run."""
    last: RateInterval
    """The last interval: all components step to its end."""

    @property
    def components(self) -> frozenset[str]:
        """All that have a step size."""
        return self.last.ends


class NextSteps(NamedTuple):
    """Steps at several places of a run: see :meth:`StepRule.after_restarts`."""

    ends: NDArray[np.float64]
    """[s]"""
    are_short: NDArray[np.bool_]
    """Whether each ends because steps grow again after an event, not by the step size."""
    are_exact: NDArray[np.bool_]
    """Whether each end is an exact time; otherwise it is found."""


Memory = TypeVar("Memory")
"""Memory of a rule between steps: a value that can be copied."""


@dataclass(frozen=True, slots=True)
class StepRule(TypedArguments, ABC, Generic[Memory]):
    """Base of all step-size rules. A rule is pure: its memory is a value in the state of the run.

    Returned values must depend on the arguments alone. If a rule neither rejects steps nor has estimators, it is called
    for several steps in advance, before the FMUs do the first of them.

    Parameters
    ----------
    size : float, int, str, Fraction or None
        Largest step size in s. A float is read as its shortest decimal; a text may be a fraction: ``"1/60"``. With
        None, the system and the FMUs determine it.

    A new rule is a subclass with ``begin`` and ``propose``, and ``decide`` if it rejects steps; see docs/events.md.
    """

    size: Time | None = None

    varies: ClassVar[bool] = True
    """Whether steps have different sizes, also without an event between them."""
    is_fixed: ClassVar[bool] = False
    """Whether all steps end on one grid, ``start + k * size``, unless an event ends one."""
    holds_inputs: ClassVar[bool] = False
    """Whether components end their steps at different times, with inputs that are held."""
    watches_discrete_outputs: ClassVar[bool] = False
    """Whether the rule decides on steps by changes of connected discrete outputs."""
    rejection: ClassVar[Cause] = Cause(Kind.ERROR)
    """The cause of the end of a repeated step."""

    def __init_subclass__(cls) -> None:
        # a class with slots is created twice, and super() without arguments refers to the first one
        super(StepRule, cls).__init_subclass__()  # noqa: UP008
        # inherited `ahead`, `after_restarts` and `twin` describe the methods of the base class, not those of the subclass
        if not vars(cls).keys().isdisjoint(_KNOWN_AHEAD):
            for name in {"ahead", "after_restarts", "twin"} - vars(cls).keys():
                setattr(cls, name, getattr(StepRule, name))

    def __post_init__(self) -> None:
        if self.size is not None and self.exact_size <= 0:
            raise OptionError(f"Step size {self.size} s: expected a positive number.")

    @property
    def rejects(self) -> bool:
        """Whether a step may be rolled back and repeated with another length; all FMUs must then restore states."""
        return False

    def bracket(self, time: float) -> float:
        """Length in s to which a change of a discrete output is located, at a time in s; 0 if none is."""
        del time
        return 0.0

    @property
    def estimators(self) -> tuple[Estimator, ...]:
        """The error estimators of the rule; most rules have none."""
        return ()

    @property
    def control(self) -> tuple[str, str] | None:
        """The range of step sizes and the criterion of their choice, in words; None if no error is measured."""
        return None

    def with_inputs(self, degree: int) -> StepRule[Memory]:
        """This rule for inputs that are extrapolated by polynomials of that degree."""
        del degree
        return self

    @property
    def exact_size(self) -> Fraction:
        """The largest step size as a rational number of s."""
        assert self.size is not None, "the schedule gives each rule a size"
        return exact(self.size)

    @property
    def sizes(self) -> tuple[Fraction, ...]:
        """All step sizes in s that must be exact: more than one if components have their own."""
        return (self.exact_size,)

    @property
    def shortest(self) -> Fraction:
        """The shortest step in s of the rule, if no other condition limits the step."""
        return min(self.sizes)

    def size_of(self, component: str) -> Fraction:
        """The largest step size of a component in s."""
        del component
        return self.exact_size

    def completed(self, models: Mapping[str, Model], usual: Callable[[], Time]) -> StepRule[Memory]:
        """The rule for the components of a run.

        Parameters
        ----------
        models
            Full component name → model.
        usual
            Returns the size, if none is given.
        """
        del models
        return self if self.size is not None else replace(self, size=usual())

    def halved(self) -> StepRule[Memory] | None:
        """The same rule with steps half as long; None if no size of the rule makes them so."""
        return None

    def rates(self, span: Fraction) -> RatePattern | None:
        """Which components step in which intervals of the grid, over a run of this length in s; None if all step in all."""
        del span
        return None

    @abstractmethod
    def begin(self, base: TimeBase, start: int) -> Memory:
        """The memory at the start of a run.

        Parameters
        ----------
        base : TimeBase
            The unit of time in which the size is an integer.
        start : int
            The start time in ticks of the base.
        """

    @abstractmethod
    def propose(self, now: Instant, memory: Memory) -> Goal:
        """The end of the next step, if no other condition limits it."""

    def error(self, tried: StepContext) -> float:
        """Scaled error of a tried step; at most 1 is acceptable.

        Called only if the rule ``rejects`` and has no estimators.
        """
        del tried
        return 0.0

    def decide(
        self, memory: Memory, now: Instant, length: float, errors: Sequence[Measured]
    ) -> tuple[Memory, float | None]:
        """The memory after a step, and the decision: None accepts the step, a length in s repeats it.

        Parameters
        ----------
        now : Instant
            Start of the step. Near a large time, no step can be shorter than the distance of two doubles.
        length : float
            Its length in s.
        errors
            One for each of :attr:`estimators`; if there are none, a single one, as returned by :meth:`error`. ``inf`` for a
            step that was discarded or did not converge, and for NaN if the rule rejects.

        A repeated step is never longer than its first attempt. If a step is rejected too often, or cannot be shorter,
        the run ends with an error.
        """
        del now, length, errors
        return memory, None

    def restart(self, memory: Memory) -> Memory:
        """The memory after an event."""
        return memory

    def warnings(self, memory: Memory) -> tuple[str, ...]:
        """Reasons why the results so far are less accurate than they should be."""
        del memory
        return ()

    def twin(self, memory: Memory, plan: Plan, store: ValueStore) -> RuleTwin[Memory] | None:
        """The same rule in C, which lets an executor do steps without Python; None if there is none.

        Called once, at the start of a run. The results must agree bit for bit. A subclass that overrides ``propose`` or
        ``decide`` has none, unless it overrides this method as well.
        """
        del memory, plan, store
        return None

    def ahead(self, memory: Memory) -> PointsAhead | None:
        """The next points that the rule proposes, if they follow a formula; None if there is none.

        The executor can then do many steps in one call. While steps end at these points, ``decide`` must not change the
        memory. A subclass that overrides ``propose`` or ``decide`` has none, unless it overrides this method as well.
        """
        del memory
        return None

    def after_restarts(self, memory: Memory, begins: Instants) -> Iterator[NextSteps] | None:
        """The steps after each of some instants at which it restarts, if they follow a formula; None if there is none.

        The executor can then do the steps between the ticks of clocks in one call. Yields the first steps, the second
        ones and so on, without an end. A subclass that overrides ``propose`` or ``decide`` has none, unless it overrides
        this method as well.
        """
        del memory, begins
        return None


_KNOWN_AHEAD = {"propose", "decide"}
"""Methods that ``ahead``, ``after_restarts`` and ``twin`` replace."""


@dataclass(frozen=True, slots=True)
class FixedStep(StepRule[Grid]):
    """Steps of one size, on the grid ``start + k * size``.

    Parameters
    ----------
    size : float, int, str or Fraction
        Step size in s, as in :class:`StepRule`; a text may be a fraction: ``"1/60"``.

    Examples
    --------
    >>> FixedStep("1/60").exact_size
    Fraction(1, 60)
    """

    varies: ClassVar[bool] = False
    is_fixed: ClassVar[bool] = True

    def halved(self) -> FixedStep:
        """Steps of half the size."""
        return FixedStep(self.exact_size / 2)

    def begin(self, base: TimeBase, start: int) -> Grid:
        """The grid."""
        return Grid(base, start, base.ticks(self.exact_size))

    def propose(self, now: Instant, memory: Grid) -> Goal:
        """The first grid point after an instant."""
        return goal_at(memory.after(now), GRID)

    def ahead(self, memory: Grid) -> Grid:
        """The grid."""
        return memory
