"""The units of a trigger sequence: components, or groups of them that stay together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from fmimaster.optimization.trial import Arc
from fmimaster.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Units:
    """What a sequence orders, and what is connected.

    A unit is a component, or several that are solved together as an algebraic loop. It has the name of the first of them by
    name.

    Attributes
    ----------
    members : name of the unit → names of its components, in the order in which they are stepped
    arcs : frozenset of Arc
        Pairs of units between which there are connections.
    unit_of : instance → name of its unit
    """

    members: Mapping[str, tuple[str, ...]]
    arcs: frozenset[Arc]
    unit_of: Mapping[int, str]

    def sequence(self, units: Iterable[str]) -> tuple[str, ...]:
        """Components in the order of their units."""
        return tuple(component for unit in units for component in self.members[unit])

    def of_instances(self, instances: Iterable[int]) -> tuple[str, ...]:
        """Units in the order of the first of their instances."""
        return tuple(dict.fromkeys(self.unit_of[i] for i in instances if i in self.unit_of))

    def arc(self, source: int, target: int) -> Arc:
        """The arc to which a connection of two instances belongs; empty names for an instance that is not ordered."""
        return self.unit_of.get(source, ""), self.unit_of.get(target, "")

    def pairs(self, arcs: Iterable[Arc]) -> frozenset[tuple[str, str]]:
        """Pairs of components that arcs stand for."""
        return frozenset(
            pair
            for source, target in arcs
            for pair in product(self.members[source], self.members[target])
        )


def units_of(plan: Plan, ordered: Iterable[int] | None = None) -> Units:
    """The units of a plan.

    Parameters
    ----------
    ordered
        Instances that a sequence orders; all if left out. A table that feeds open inputs always comes first.
    """
    ordered = range(len(plan.instances)) if ordered is None else ordered
    names = [instance.name for instance in plan.instances]
    position = {i: k for k, i in enumerate(plan.trigger_sequence)}
    group_of = {i: group for group in plan.step_groups for i in group}
    unit_of = {i: min(names[k] for k in group_of.get(i, (i,))) for i in ordered}
    members: dict[str, list[int]] = {}
    for i in sorted(unit_of, key=position.__getitem__):
        members.setdefault(unit_of[i], []).append(i)
    arcs = {
        (unit_of[k.source], unit_of[k.target])
        for k in plan.links
        if k.source in unit_of and k.target in unit_of
    }
    return Units(
        {unit: tuple(names[i] for i in inside) for unit, inside in sorted(members.items())},
        frozenset((a, b) for a, b in arcs if a != b),
        unit_of,
    )
