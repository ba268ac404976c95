"""Location of changes of discrete outputs by repeating steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, ulp
from typing import ClassVar, NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import Goal, Instant, TimeBase
from fmimaster.record.causes import GRID, Cause, Kind
from fmimaster.steps.estimator import Measured
from fmimaster.steps.step_rule import CHANGE, StepContext, StepRule


class Bracket(NamedTuple):
    """The grid, and the step lengths in s without and with a change; both are 0 while no change is being located."""

    grid: Grid
    without: float = 0.0
    with_it: float = 0.0


@dataclass(frozen=True, slots=True)
class Locate(StepRule[Bracket]):
    """Locate changes of discrete outputs: repeat the step with half its length until a short bracket contains the
    change.

    All instances then step to the end of the bracket. Other steps are on the grid of the size. This is for FMUs without
    Event Mode that change discrete outputs inside a step. All FMUs must be able to get and set their state.

    Changes of several outputs at several times of a step are all found. There is a warning if an output changes at the very
    start of a step, since what has changed it was in the step before; if outputs that do not depend on themselves change
    twice within a step, since a change that is taken back inside a step is not seen; and if a change does not occur again
    in the same step.

    Parameters
    ----------
    size : float, int, str, Fraction or None
        Step size in s, as in :class:`StepRule`.
    tolerance : float
        Length of the bracket in s.
    """

    tolerance: float = 1e-10

    watches_discrete_outputs: ClassVar[bool] = True
    rejection: ClassVar[Cause] = Cause(Kind.LOCATED, (CHANGE,))

    def __post_init__(self) -> None:
        StepRule.__post_init__(self)
        if not self.tolerance > 0:
            raise OptionError(f"{self}: expected a positive tolerance in s, such as 1e-10.")

    @property
    def rejects(self) -> bool:
        """Always True: steps are rolled back."""
        return True

    def bracket(self, time: float) -> float:
        """The tolerance, or the resolution of doubles if that is longer."""
        return max(self.tolerance, 4 * ulp(time))

    def halved(self) -> Locate:
        """A grid of half the size; changes are located with the same tolerance."""
        return replace(self, size=self.exact_size / 2)

    def begin(self, base: TimeBase, start: int) -> Bracket:
        """The grid."""
        return Bracket(Grid(base, start, base.ticks(self.exact_size)))

    def propose(self, now: Instant, memory: Bracket) -> Goal:
        """The first grid point after an instant."""
        return Goal(memory.grid.after(now), GRID)

    def error(self, tried: StepContext) -> float:
        """2 if a connected discrete output has changed."""
        return 2.0 if tried.changed else 0.0

    def decide(
        self, memory: Bracket, now: Instant, length: float, errors: Sequence[Measured]
    ) -> tuple[Bracket, float | None]:
        """Halve the bracket until it is as short as the tolerance, or as the resolution of doubles."""
        grid, without, with_it = memory
        error = errors[0].error
        changed, same = error > 1.0, length == with_it
        if error == inf or not (with_it or changed):
            return Bracket(grid), None
        if changed:
            with_it = length
        else:
            without = length
        bracket = Bracket(grid, without, with_it)
        if with_it - without > self.bracket(now.seconds):
            return bracket, (without + with_it) / 2
        # a change that does not occur again in a step of the same length cannot be located
        return (Bracket(grid), None) if changed or same else (bracket, with_it)
