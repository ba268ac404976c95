"""Compromises of accuracy and speed: sequences by their cost, and by the time of a step on several cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fmimaster.plan.plan import Plan
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.levels import levels_of
from fmimaster.sequences.makespan import pareto_front
from fmimaster.sequences.units import units_of
from fmimaster.sequences.weights import FeedThrough
from fmimaster.studies.optimization.groups import Groups


@dataclass(frozen=True, slots=True)
class Compromise:
    """A sequence for which no other one has both fewer stale inputs and faster steps.

    Attributes
    ----------
    levels : tuple of tuple of str
        Components of the first level, of the second, ...
    cost : float
        Weight of the stale inputs by feed-through.
    seconds : float
        Time in s of the FMUs for one step of the system, by list scheduling.
    """

    levels: tuple[tuple[str, ...], ...]
    cost: float
    seconds: float


def compromises(
    plan: Plan, groups: Groups, seconds: Mapping[str, float], cores: int
) -> tuple[Compromise, ...]:
    """The best compromises, that of least cost first. There are several only if some components can step at the same
    time.

    Parameters
    ----------
    seconds : name of the component → s
        Measured time of its part of a communication step.
    cores : int
        Number of components that can step at the same time.
    """
    names = [i.name for i in plan.instances]
    units = units_of(names, [i.model for i in plan.instances], plan.links)
    number = {name: i for i, name in enumerate(names)}
    arcs = (
        (*groups.arc(number[c.source], number[c.target]), weight)
        for c, weight in zip(units.connections, FeedThrough().of(units.connections), strict=True)
    )
    graph = UnitGraph.made(groups.members, (arc for arc in arcs if arc[0] and arc[1]))
    times = {
        group: sum(seconds.get(name, 0.0) for name in inside)
        for group, inside in groups.members.items()
    }
    return tuple(
        Compromise(
            tuple(groups.components(graph.named(units)) for units in levels_of(graph, c.sequence)),
            c.cost,
            c.makespan,
        )
        for c in pareto_front(graph, times, cores)
    )
