"""Levels: which instances can step at the same time, read off the delays of the connections.

A connection is *fresh* if its input has the value of the end of the step, else *stale*. An instance stands one level above
the highest of those that feed it by fresh connections; instances of one level can step at the same time without any
change of the results. Instances that feed each other by fresh connections, as in an iteration, share a level.

Source: Holzinger and Benedikt (2019), Optimal Trigger Sequence for Non-iterative Co-simulation, for fresh and stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fmimaster.plan.graph import Node, components
from fmimaster.program.delays import Delay


def levels(sequence: Sequence[int], delays: Iterable[Delay]) -> tuple[tuple[int, ...], ...]:
    """The instances of each level, lowest level first; each in the order of the sequence.

    Parameters
    ----------
    sequence
        Instance indices in the order of stepping.
    delays
        Those of all connections; connections of instances outside the sequence do not count.
    """
    arcs: dict[Node, list[Node]] = {(i, ""): [] for i in sequence}
    for delay in delays:
        source, target = delay.route.link.source, delay.route.link.target
        if delay.is_fresh and (source, "") in arcs and (target, "") in arcs:
            arcs[source, ""].append((target, ""))
    groups = components(arcs) if arcs else []
    group_of = {i: k for k, group in enumerate(groups) for i, _ in group}
    feeds: dict[int, set[int]] = {k: set() for k in range(len(groups))}
    for (source, _), heads in arcs.items():
        feeds[group_of[source]] |= {group_of[target] for target, _ in heads} - {group_of[source]}
    level_of = _longest_paths(feeds)
    found: list[list[int]] = [[] for _ in range(max(level_of.values(), default=-1) + 1)]
    for i in sequence:
        found[level_of[group_of[i]]].append(i)
    return tuple(map(tuple, found))


def _longest_paths(feeds: dict[int, set[int]]) -> dict[int, int]:
    """The number of arcs of the longest path to each node of a graph without cycles."""
    waits = dict.fromkeys(feeds, 0)
    for heads in feeds.values():
        for head in heads:
            waits[head] += 1
    level = dict.fromkeys(feeds, 0)
    ready = [k for k, count in waits.items() if count == 0]
    while ready:
        k = ready.pop()
        for head in feeds[k]:
            level[head] = max(level[head], level[k] + 1)
            waits[head] -= 1
            if waits[head] == 0:
                ready.append(head)
    return level
