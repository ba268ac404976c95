"""The communication points of an earlier run, and one point between each two of them."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from math import isfinite

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.instants.grid import same
from fmimaster.instants.instant import Goal, Instant, TimeBase
from fmimaster.numerics.step_sizes import SLIVER
from fmimaster.record.causes import STEP_SIZE
from fmimaster.steps.step_rule import StepRule


@dataclass(frozen=True, slots=True)
class Halved(StepRule[tuple[float, ...]]):
    """Steps half as long as those of an earlier run, for every step-size rule of that run.

    The difference between both runs estimates the error of this run: the steps of both have the same distribution over
    time, so their errors have the same form. Event clocks and FMUs can end steps earlier, as in any run.

    Parameters
    ----------
    size : float, int, str, Fraction or None
        Step size in s after the last of the times; half the longest step of the earlier run, if left out.
    times : communication points of the earlier run in s, as ``results.time``
        Times that occur several times, at events, count once.

    Source: Richardson (1911); Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, II.9.

    Examples
    --------
    >>> Halved(times=(0.0, 1.0, 1.5)).points
    (0.0, 0.5, 1.0, 1.25, 1.5)
    """

    times: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        times = tuple(dict.fromkeys(map(float, self.times)))
        if len(times) < 2 or not all(a < b for a, b in pairwise(times)) or not isfinite(times[-1]):
            raise OptionError(
                f"Halved: {len(times)} different times, expected at least two, increasing, in s. Give it results.time of "
                "a run that has recorded all of its communication points."
            )
        object.__setattr__(self, "times", times)
        if self.size is None:
            # a few digits: the stop time must not look like a rounded multiple of it
            longest = max(b - a for a, b in pairwise(times)) / 2
            object.__setattr__(self, "size", f"{longest:.3g}")
        StepRule.__post_init__(self)

    @property
    def points(self) -> tuple[float, ...]:
        """The times, and the midpoint between each two of them if it is a different double, in s."""
        found = [self.times[0]]
        for a, b in pairwise(self.times):
            middle = a + (b - a) / 2
            found += [middle, b] if a + same(b, b - a) < middle else [b]
        return tuple(found)

    def begin(self, base: TimeBase, start: int) -> tuple[float, ...]:
        """The points, computed once."""
        del base, start
        return self.points

    def propose(self, now: Instant, memory: tuple[float, ...]) -> Goal:
        """The next point to which the step is not too short; after the last point, steps of the largest size."""
        k = bisect_right(memory, now.seconds)
        if k < len(memory) and memory[k] - now.seconds <= SLIVER * (memory[k] - memory[k - 1]):
            k += 1
        end = memory[k] if k < len(memory) else now.seconds + float(self.exact_size)
        return Goal(Instant(end), STEP_SIZE)
