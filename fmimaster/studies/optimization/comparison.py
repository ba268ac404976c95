"""Comparisons of sequences: predicted and simulated errors of several methods; compromises of accuracy and speed."""

from __future__ import annotations

from collections.abc import Mapping

from fmimaster.base.data import dataclass
from fmimaster.plan.plan import Plan
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.levels import levels_of
from fmimaster.sequences.makespan import pareto_front
from fmimaster.sequences.methods import METHODS
from fmimaster.sequences.weights import Count, FeedThrough, units_of
from fmimaster.studies.optimization.sequence_search import SequenceSearch
from fmimaster.studies.optimization.signature import Candidate
from fmimaster.studies.optimization.trial import Groups, stale_arcs


@dataclass(frozen=True, slots=True)
class ComparedSequence:
    """A sequence that was simulated.

    Attributes
    ----------
    components : tuple of str
        In the order of their steps.
    methods : tuple of str
        Names of the methods that choose this sequence.
    stale : float
        Number of stale connections.
    feed_through : float
        Their total weight; those without feed-through have the weight 0.01.
    candidate : Candidate
        Predicted and simulated errors and differences.
    """

    components: tuple[str, ...]
    methods: tuple[str, ...]
    stale: float
    feed_through: float
    candidate: Candidate


PRESENT = "settings"
"""Method name of the sequence of a simulation with the same settings."""
SIGNATURE = "signature"


def compare(search: SequenceSearch) -> list[ComparedSequence]:
    """Simulate the sequences of all methods and the best predicted ones.

    Parameters
    ----------
    search
        A search with the signature method, which predicts errors.

    Returns
    -------
    The best sequence first. Sequences with the same stale connections are listed once.
    """
    plan, groups = search.prepared.plan, search.groups
    names = [i.name for i in plan.instances]
    units = units_of(names, [i.model for i in plan.instances], plan.links, plan.step_groups)
    index = {name: i for i, name in enumerate(names)}
    chosen = {
        name: groups.of_instances(index[n] for n in method.choose(units))
        for name, method in METHODS.items()
    }
    found = search.run(chosen.values())
    chosen = {PRESENT: search.base, SIGNATURE: found.candidates[0].sequence, **chosen}
    late = {name: stale_arcs(sequence, groups.arcs) for name, sequence in chosen.items()}
    graphs = [UnitGraph.of(units, weights) for weights in (Count(), FeedThrough())]
    tables = [n for i, n in enumerate(names) if i not in groups.group_of]
    compared = []
    for candidate in found.candidates:
        components = groups.components(candidate.sequence)
        stale = stale_arcs(candidate.sequence, groups.arcs)
        methods = tuple(name for name, arcs in late.items() if arcs == stale)
        number, weight = (g.cost(g.indices((*tables, *components))) for g in graphs)
        compared.append(ComparedSequence(components, methods, number, weight, candidate))
    return compared


@dataclass(frozen=True, slots=True)
class TriedCompromise:
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
) -> tuple[TriedCompromise, ...]:
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
        TriedCompromise(
            tuple(groups.components(graph.named(units)) for units in levels_of(graph, c.sequence)),
            c.cost,
            c.makespan,
        )
        for c in pareto_front(graph, times, cores)
    )
