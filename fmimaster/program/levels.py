"""Levels of a program: which instances can step at the same time, read off the delays of its connections.

Instances that feed each other by fresh connections, as in an iteration, step *together*: they share a level.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fmimaster.plan.graph import Node, components
from fmimaster.plan.levels import level_sets
from fmimaster.program.delays import Delay


def levels(
    sequence: Sequence[int], delays: Collection[Delay]
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The levels, lowest first; each has groups of instances that step together, mostly of one. All in the order of the
    sequence.

    Parameters
    ----------
    sequence
        Instance indices in the order of stepping.
    delays
        Those of all connections.
    """
    arcs: dict[Node, list[Node]] = {(i, ""): [] for i in sequence}
    for delay in delays:
        if delay.is_fresh:
            arcs[delay.route.link.source, ""].append((delay.route.link.target, ""))
    together = [tuple(i for i, _ in part) for part in components(arcs)] if arcs else []
    first = {i: group[0] for group in together for i in group}
    fresh = {
        (first[source], first[target])
        for (source, _), heads in arcs.items()
        for target, _ in heads
        if first[source] != first[target]
    }
    members = {group[0]: group for group in together}
    order = [i for i in sequence if i in members]
    return tuple(tuple(members[i] for i in level) for level in level_sets(order, fresh))
