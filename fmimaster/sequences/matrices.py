"""The matrices of Holzinger and Benedikt (2019): connections, units, weights, and the matrix D."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmimaster.sequences.units import UnitConnection, Units
from fmimaster.sequences.weights import Weights

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
