"""What the choice of trigger sequences is compared with: all sequences, the matrices of the source, rotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf

import numpy as np
from numpy.typing import NDArray

from fmimaster.sequences.exact import TIE
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.levels import Levels
from fmimaster.sequences.makespan import canonical
from fmimaster.sequences.weights import UnitConnection, Units, Weights

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Matrices:
    """The wiring of m units by n connections as matrices.

    Inputs and outputs are numbered as the connections in the order of their names; an output that feeds several inputs has
    an entry for each of them. Units are numbered in the order of their names.

    Source: Holzinger and Benedikt (2019), section 2, equations 1 to 5; equation 3 with the parenthesis of its figure 4.
    """

    inputs: tuple[str, ...]
    """``"unit.input"``, one per connection."""
    outputs: tuple[str, ...]
    """``"unit.output"``, one per connection."""
    units: tuple[str, ...]
    l: Array  # noqa: E741 - the letter of the source
    """L, shape (n, n): ``u = L y``, a permutation."""
    s: Array
    """S, shape (n, m): which output belongs to which unit."""
    t: Array
    """T, shape (n, m): which input belongs to which unit."""
    c: Array
    """C, shape (n, n): the weights on the diagonal."""

    @property
    def d(self) -> Array:
        """``D = (T' C L S)'``, shape (m, m): weight of all connections from the unit of the row to that of the column."""
        d: Array = (self.t.T @ self.c @ self.l @ self.s).T
        return d


def matrices(units: Units, weights: Weights) -> Matrices:
    """The matrices of a system by some weights."""

    def by_input(c: UnitConnection) -> tuple[str, str]:
        return c.target, c.input

    def by_output(c: UnitConnection) -> tuple[str, str, str, str]:
        return c.source, c.output, c.target, c.input

    names = tuple(sorted(units.names))
    column = {name: k for k, name in enumerate(names)}
    inputs = sorted(units.connections, key=by_input)
    outputs = sorted(units.connections, key=by_output)
    n, m = len(inputs), len(names)
    row = {by_output(c): k for k, c in enumerate(outputs)}
    l, s, t = np.zeros((n, n)), np.zeros((n, m)), np.zeros((n, m))  # noqa: E741
    for i, c in enumerate(inputs):
        l[i, row[by_output(c)]] = 1.0
        t[i, column[c.target]] = 1.0
        s[row[by_output(c)], column[c.source]] = 1.0
    return Matrices(
        tuple(c.target_input for c in inputs),
        tuple(f"{c.source}.{c.output}" for c in outputs),
        names,
        l,
        s,
        t,
        np.diag(weights.of(inputs)) if n else np.zeros((0, 0)),
    )


def brute_force(graph: UnitGraph) -> tuple[int, ...]:
    """The sequence of least cost; of several the first one by names. All sequences are tried: for few units only.

    A sequence is abandoned as soon as it costs more than the best one before.
    """
    d = graph.matrix.tolist()
    tolerance = TIE * fsum(graph.weights.values())
    best: tuple[int, ...] = ()
    limit = inf

    def go_on(order: tuple[int, ...], left: tuple[int, ...], cost: float) -> None:
        nonlocal best, limit
        if not left:
            best, limit = order, cost - tolerance
        for unit in left:
            others = tuple(k for k in left if k != unit)
            more = cost + sum(d[k][unit] for k in others)
            if more < limit:
                go_on((*order, unit), others, more)

    go_on((), tuple(range(graph.size)), 0.0)
    return best


def stale_connections(units: Units, sequence: Sequence[str]) -> list[UnitConnection]:
    """The connections that are stale in Gauss-Seidel: their target steps before their source, or is the same unit."""
    position = {name: k for k, name in enumerate(sequence)}
    return [c for c in units.connections if position[c.source] >= position[c.target]]


def cost_of_levels(graph: UnitGraph, levels: Levels) -> float:
    """Weight of the stale inputs if the units of a level step at the same time: those within a level are stale, too."""
    level = {unit: k for k, units in enumerate(levels) for unit in units}
    return sum(w for (a, b), w in graph.weights.items() if level[a] >= level[b])


def rotation_class(graph: UnitGraph, sequence: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The canonical forms of all sequences that rotations of this one lead to, in the order of the names.

    A rotation moves the last unit to the front: the number of stale arcs on each directed cycle stays the same, and with it
    the stability of the co-simulation; only which outputs are late is different.
    """
    first = canonical(graph, sequence)
    found, waiting = {first}, [first]
    while waiting:
        order = waiting.pop()
        position = {unit: k for k, unit in enumerate(order)}
        for last in order:
            if any(position[b] > position[last] for b in graph.neighbours[last]):
                continue
            rotated = canonical(graph, (last, *(unit for unit in order if unit != last)))
            if rotated not in found:
                found.add(rotated)
                waiting.append(rotated)
    return tuple(sorted(found))
