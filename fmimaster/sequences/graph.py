"""The weighted graph of units, and the cost of a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import fsum

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.sequences.structure import topological_order
from fmimaster.sequences.weights import Units, Weights

Arc = tuple[int, int]
"""Source and target, as indices of units."""


@dataclass(frozen=True)
class UnitGraph:
    """Units in the order of their names, and the weight of all connections from one to another.

    A choice of a sequence depends only on indices (that is, on names) and on weights, never on the order in which
    components and connections are listed.
    """

    names: tuple[str, ...]
    """Sorted."""
    weights: Mapping[Arc, float]
    """Arc → sum of the weights of its connections, not negative; in the order of the arcs. A connection of a unit with
    itself is in none. An arc of weight 0 has no influence on the sequence that is chosen."""

    def __post_init__(self) -> None:
        for (a, b), weight in self.weights.items():
            if not 0 <= weight < np.inf:
                raise OptionError(
                    f"Weight of the connections from '{self.names[a]}' to '{self.names[b]}': {weight!r}, expected a "
                    "finite number that is not negative."
                )

    @classmethod
    def of(cls, units: Units, weights: Weights) -> UnitGraph:
        """The graph of these units by these weights."""
        return cls.made(
            units.names,
            (
                (c.source, c.target, weight)
                for c, weight in zip(units.connections, weights.of(units.connections), strict=True)
            ),
        )

    @classmethod
    def made(cls, names: Iterable[str], arcs: Iterable[tuple[str, str, float]]) -> UnitGraph:
        """The graph of units of these names, with arcs (source, target, weight); parallel arcs add up.

        Raises
        ------
        OptionError
            If a weight is negative, NaN or infinite.
        """
        ordered = tuple(sorted(names))
        index = {name: k for k, name in enumerate(ordered)}
        found: dict[Arc, list[float]] = {}
        for source, target, weight in arcs:
            if source != target:
                found.setdefault((index[source], index[target]), []).append(weight)
        # a sum that does not depend on the order
        return cls(ordered, {arc: fsum(found[arc]) for arc in sorted(found)})

    @property
    def size(self) -> int:
        """Number of units."""
        return len(self.names)

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """D, shape (units, units): weight of all connections from row to column. (H&B 2019, equation 3.)"""
        d = np.zeros((self.size, self.size))
        for arc, weight in self.weights.items():
            d[arc] = weight
        return d

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """For each unit those that it feeds, in order."""
        found: list[list[int]] = [[] for _ in self.names]
        for a, b in self.weights:
            found[a].append(b)
        return tuple(map(tuple, found))

    @cached_property
    def neighbours(self) -> tuple[frozenset[int], ...]:
        """For each unit those that it feeds or that feed it: their order matters."""
        found: list[set[int]] = [set() for _ in self.names]
        for a, b in self.weights:
            found[a].add(b)
            found[b].add(a)
        return tuple(map(frozenset, found))

    def indices(self, sequence: Iterable[str]) -> tuple[int, ...]:
        """Indices of units that are given by name."""
        index = {name: k for k, name in enumerate(self.names)}
        return tuple(index[name] for name in sequence)

    def named(self, sequence: Iterable[int]) -> tuple[str, ...]:
        """Names of units that are given by index."""
        return tuple(self.names[k] for k in sequence)

    def stale(self, sequence: Sequence[int]) -> list[Arc]:
        """Arcs whose target steps before their source, in order."""
        position = {unit: k for k, unit in enumerate(sequence)}
        return [(a, b) for a, b in self.weights if position[a] > position[b]]

    def cost(self, sequence: Sequence[int]) -> float:
        """Weight of all stale connections (Holzinger and Benedikt 2019, equation 8).

        The first unit counts too: all its inputs are stale.
        """
        return fsum(self.weights[arc] for arc in self.stale(sequence))

    def ordered(self, without: Iterable[Arc] = ()) -> tuple[int, ...]:
        """The topological order of all arcs with a weight but some; of several the first one by names.

        Raises
        ------
        ValueError
            If the arcs that are left have a cycle.
        """
        left_out = frozenset(without)
        followers: dict[int, list[int]] = {k: [] for k in range(self.size)}
        for (a, b), weight in self.weights.items():
            if weight > 0 and (a, b) not in left_out:
                followers[a].append(b)
        return tuple(topological_order(followers))
