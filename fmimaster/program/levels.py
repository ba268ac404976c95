"""Levels of a program: the instances that can step at the same time, derived from the delays of its connections.

Instances with fresh connections in both directions, as in an iteration, step *together*: they share a level.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fmimaster.plan.graph import Node, components
from fmimaster.program.delays import Delay
from fmimaster.sequences.levels import level_sets
from fmimaster.sequences.structure import topological_order

Levels = tuple[tuple[tuple[int, ...], ...], ...]
"""The levels, lowest first; each has groups of instances that step together, mostly of one. All in the order of the trigger
sequence."""


def levels(sequence: Sequence[int], delays: Collection[Delay]) -> Levels:
    """The levels of a program.

    Parameters
    ----------
    sequence
        The trigger sequence, as indices of instances. A program may step them in another order.
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
    # the program may step in another order: then its fresh connections decide
    position = {i: k for k, i in enumerate(sequence)}
    fed: dict[int, list[int]] = {position[i]: [] for i in members}
    for source, target in fresh:
        fed[position[source]].append(position[target])
    order = [sequence[k] for k in topological_order(fed)]
    return tuple(
        tuple(members[i] for i in sorted(level, key=position.__getitem__))
        for level in level_sets(order, fresh)
    )


def order_of_steps(
    sequence: Sequence[int], delays: Collection[Delay], found: Levels
) -> tuple[int, ...]:
    """The trigger sequence, if each instance is given new values only of those before it and of those with which it steps
    together; else the instances level by level."""
    position = {i: k for k, i in enumerate(sequence)}
    group_of = {i: group for level in found for group in level for i in group}
    ends = [(d.route.link.source, d.route.link.target) for d in delays if d.is_fresh]
    if all(position[a] < position[b] or group_of[a] == group_of[b] for a, b in ends):
        return tuple(sequence)
    return tuple(i for level in found for group in level for i in group)
