"""MultiRate: each component steps on its own grid, and all grids begin at the start time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from fractions import Fraction
from math import ceil, lcm
from typing import ClassVar

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import Goal, Instant, TimeBase, exact
from fmimaster.record.causes import GRID
from fmimaster.steps.step_rule import RateInterval, RatePattern, StepRule, Time
from fmimaster.system.model import Model

MOST_POINTS = 10_000
"""Number of communication points after which the pattern of steps must repeat, because each is stored in a list."""


@dataclass(frozen=True, slots=True)
class MultiRate(StepRule[Grid]):
    """A fixed step size for each component: its steps end on the grid ``start + k * step size``.

    The communication points of the run are those of all grids. A component steps only between its own points. Its
    inputs are the newest outputs at the start of its step, held over the step. In rows between its points its outputs
    keep their values.

    Parameters
    ----------
    size : float, int, str or Fraction, optional
        Step size in s of the components that are not named, as in :class:`StepRule`. It is not needed if all are named.
    components : name → float, int, str or Fraction
        Step size in s of a component. A component that is not named gets ``size``. If it has a fixed internal step size
        (``fixedInternalStepSize``) and ``size`` is not a multiple of it, it gets that internal step size.

    All components end at the stop time, with a shorter last step if the span is not a multiple of their step size.

    Source: fmimaster (docs/multi-rate.md); the exact grids: FMI 3.0.2, 4.1.2 (communication points of one instance follow
    each other).

    Examples
    --------
    >>> from fmimaster import reference_path, simulate
    >>> from fmimaster.steps import MultiRate
    >>> system = reference_path("systems/two-mass-b1-mixed.ssp")
    >>> rule = MultiRate("1/30", {"upper": "1/100"})
    >>> results = simulate(system, step_size=rule, stop_time=1, error_estimate=False)
    >>> [(instance.name, instance.calls) for instance in results.statistics.instances]
    [('upper', 100), ('lower', 30)]
    """

    components: Mapping[str, Time] = field(default_factory=dict)

    varies: ClassVar[bool] = False
    holds_inputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        StepRule.__post_init__(self)
        if not isinstance(self.components, Mapping):
            raise OptionError(
                f"MultiRate: components is {self.components!r}, expected a mapping of component names to step sizes in s."
            )
        for name, size in self.components.items():
            if exact(size) <= 0:
                raise OptionError(
                    f"MultiRate: the step size of '{name}' is {size} s, expected a positive number."
                )

    @property
    def exact_size(self) -> Fraction:
        """The step size in s of the components that are not named; if none is given, the largest of all."""
        return max(self.sizes) if self.size is None else exact(self.size)

    @property
    def sizes(self) -> tuple[Fraction, ...]:
        """The different step sizes of all components in s, sorted."""
        given = (*self.components.values(), *(() if self.size is None else (self.size,)))
        return tuple(sorted({exact(size) for size in given}))

    def size_of(self, component: str) -> Fraction:
        """The step size of a component in s."""
        size = self.components.get(component)
        return self.exact_size if size is None else exact(size)

    def halved(self) -> MultiRate:
        """Half of each step size."""
        halves = {name: self.size_of(name) / 2 for name in self.components}
        return MultiRate(self.exact_size / 2, halves)

    def completed(self, models: Mapping[str, Model], usual: Callable[[], Time]) -> MultiRate:
        """The rule with the step size of each component.

        Raises
        ------
        OptionError
            If there is no component with a given name.
        """
        for name in self.components:
            if name not in models:
                raise OptionError(
                    f"MultiRate: there is no component '{name}'.{did_you_mean(name, models)} Give the step size of a "
                    f"component: {', '.join(sorted(models))}."
                )
        if models.keys() <= self.components.keys():
            return replace(self, size=None)
        size = usual() if self.size is None else self.size
        others = {n: _own(m, exact(size)) for n, m in models.items() if n not in self.components}
        return replace(self, size=size, components={**self.components, **others})

    def begin(self, base: TimeBase, start: int) -> Grid:
        """The points of all grids together."""
        period, offsets = _common_points(tuple(base.ticks(size) for size in self.sizes))
        return Grid(base, start, period, offsets)

    def propose(self, now: Instant, memory: Grid) -> Goal:
        """The first point after an instant."""
        return Goal(memory.after(now), GRID)

    def ahead(self, memory: Grid) -> Grid:
        """The points of all grids together."""
        return memory

    def rates(self, span: Fraction) -> RatePattern:
        """Which components step in which intervals; the component of the rule must be complete."""
        base = TimeBase.of(self.sizes)
        steps = {name: base.ticks(self.size_of(name)) for name in self.components}
        period, offsets = _common_points(tuple(set(steps.values())))
        ends = (*offsets[1:], period)
        intervals = tuple(
            RateInterval(_meeting(steps, begin), _meeting(steps, end))
            for begin, end in zip(offsets, ends, strict=True)
        )
        return RatePattern(intervals, RateInterval(self._at_last_point(span), frozenset(steps)))

    def _at_last_point(self, span: Fraction) -> frozenset[str]:
        """The components that have a point at the start of the last interval of a run."""
        sizes = {name: self.size_of(name) for name in self.components}
        last = {name: (ceil(span / size) - 1) * size for name, size in sizes.items()}
        latest = max(last.values())
        return frozenset(name for name, time in last.items() if time == latest)


def _own(model: Model, size: Fraction) -> Fraction:
    """The step size of a component for which none is given."""
    own = model.capabilities.fixed_internal_step_size
    return exact(own) if own and size % exact(own) else size


def _meeting(steps: Mapping[str, int], ticks: int) -> frozenset[str]:
    """The components that have a point at a number of ticks after the start."""
    return frozenset(name for name, step in steps.items() if ticks % step == 0)


def _common_points(steps: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """The number of ticks after which the points of several grids repeat, and the points before it.

    Raises
    ------
    OptionError
        If there are too many.
    """
    period = lcm(*steps)
    if sum(period // step for step in steps) > MOST_POINTS:
        raise OptionError(
            f"MultiRate: the pattern of the steps has more than {MOST_POINTS} communication points. Choose step "
            "sizes with simple ratios, such as 1/100, 1/50 and 1/20."
        )
    return period, tuple(sorted({ticks for step in steps for ticks in range(0, period, step)}))
