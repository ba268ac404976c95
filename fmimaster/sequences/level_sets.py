"""Level sets: instances that can step at the same time without a change of any result."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def level_sets(
    sequence: Sequence[int],
    arcs: Collection[tuple[int, int]],
    stale: Collection[tuple[int, int]] = (),
) -> tuple[tuple[int, ...], ...]:
    """The instances of each level of a trigger sequence, in the order of the sequence.

    An instance is one level above the highest of those that feed it and step before it; those that step after it, or whose
    arc is stale on purpose, do not count.

    Parameters
    ----------
    sequence
        Instances in the order in which they step.
    arcs
        Pairs of a source and a target.
    stale
        Those of the arcs whose target is given the source's outputs at the start of the step in any case.

    Source: Holzinger and Benedikt (2019), section 4 (hierarchical scheduling); the longest path of an acyclic graph.
    """
    position = {i: k for k, i in enumerate(sequence)}
    fresh: dict[int, list[int]] = {i: [] for i in sequence}
    for source, target in set(arcs) - set(stale):
        if source in position and target in position and position[source] < position[target]:
            fresh[target].append(source)
    level, sets = dict[int, int](), list[list[int]]()
    for i in sequence:
        level[i] = 1 + max((level[k] for k in fresh[i]), default=-1)
        if level[i] == len(sets):
            sets.append([])
        sets[level[i]].append(i)
    return tuple(map(tuple, sets))
