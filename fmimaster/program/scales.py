"""What is negligible for each indicator: its own largest value so far, and those of the inputs on which it depends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING

from fmimaster.numerics.indicators import ROUNDING
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType, Variable

if TYPE_CHECKING:
    from fmimaster.program.indicator_set import IndicatorSet

REST = 1e-9
"""A body rests if its motion is no more than this fraction of the largest one, or the fraction ROUNDING of the inputs:
extrapolations amplify roundings to this size. So slow an approach is detected when the indicator is below zero by this
amount."""


class Scales:
    """The sizes of indicators and of their derivatives, by their slots among the Float64 outputs.

    Parameters
    ----------
    sets : sequence of IndicatorSet
        The indicators of each event in each member.
    step : float
        Length in s of a usual step.
    """

    def __init__(
        self, plan: Plan, store: ValueStore, sets: Sequence[IndicatorSet], step: float
    ) -> None:
        self._largest = memoryview(store.largest.data)  # its elements are read in half the time
        self._step = step
        self._sources: list[tuple[tuple[int, float], ...]] = [()] * len(store.largest)
        for s in sets:
            for k, variable in _variables_of(plan, s):
                self._sources[k] = tuple(_sources(plan, s.instance, variable))
                if variable.has_nominal:
                    store.largest[k] = max(store.largest[k], variable.nominal)

    def largest_with_inputs(self, k: int) -> float:
        """The largest value so far of an indicator or a derivative, or of an input on which it depends, by its slot."""
        return max(self._largest[k], self.of_inputs(k))

    def negligible(self, z: int, dz: int, part: float = ROUNDING) -> float:
        """The largest negligible value of an indicator with a derivative, by their slots. One that was always 0 has no own
        scale."""
        return max(self.rest(z, part), REST * self._step * self._largest[dz])

    def rest(self, k: int, part: float = ROUNDING) -> float:
        """The largest negligible value of an indicator or a derivative, by its slot; ``part``: as a part of the inputs."""
        own: float = REST * self._largest[k]
        return max(own, part * self.of_inputs(k)) if self._sources[k] else own

    def sources(self, k: int) -> Sequence[tuple[int, float]]:
        """The outputs on which an indicator or a derivative depends, by its slot, each with the factor of the
        connection."""
        return self._sources[k]

    def of_inputs(self, k: int) -> float:
        """Largest value so far of an input on which an indicator or a derivative depends, by its slot."""
        found: float = 0.0
        for j, factor in self._sources[k]:
            size = factor * self._largest[j]
            if size > found:
                found = size
        return found

    def rest_of_slope(
        self,
        s: IndicatorSet,
        z: int,
        dz: int,
        length: float,
        values: Sequence[float],
        part: float = ROUNDING,
    ) -> float:
        """The largest negligible time derivative, taken over a length in s.

        It changes the indicator by no more than a negligible value. If the indicator is itself the slope of another one
        of the set, like the velocity for a gap, it changes that one by no more than a negligible value either.
        """
        if length == 0.0:
            return inf
        least = self.rest(z, part) / length
        if dz < 0:
            return least
        least = max(self.rest(dz, part), least)
        for other, slope in s.pairs:
            if (
                slope >= 0
                and abs(values[slope] - values[z]) <= self.rest(z)
                and abs(values[dz] - values[other]) > self.rest(other)  # else each is of the other
            ):
                least = max(least, 2 * self.negligible(other, slope, part) / length**2)
        return least


def _variables_of(plan: Plan, s: IndicatorSet) -> Iterator[tuple[int, Variable]]:
    """The indicators of a set and their derivatives, each with its slot."""
    for slots, indicator in zip(s.pairs, s.declaration.indicators, strict=True):
        for k, name in zip(slots, (indicator.name, indicator.derivative), strict=True):
            variable = plan.instances[s.instance].model.variable(name or "")
            if variable is not None:
                yield k, variable


def _sources(plan: Plan, instance: int, variable: Variable) -> Iterator[tuple[int, float]]:
    """Slots of the outputs connected to the inputs of the same unit on which a variable depends directly, each with the
    factor of the connection."""
    needed = plan.instances[instance].model.dependencies.get(variable.name, ())
    for link in plan.links.into_instance.get(instance, ()):
        if link.input.name not in needed:
            continue
        if link.input.unit == variable.unit and link.output.type is DataType.FLOAT64:
            _, slot = plan.layout.slots[link.source, Group.OUTPUTS, link.output.name]
            for k in range(slot.start, slot.stop):
                yield k, abs(link.transformation.factor)
