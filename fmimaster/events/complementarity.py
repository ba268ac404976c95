"""Linear complementarity problems: ``z >= 0``, ``w = M z + q >= 0``, and of each pair ``z[i]``, ``w[i]`` one is 0.

Contacts of rigid bodies are such problems: an impulse or a force pushes, or the contact opens.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

NEGLIGIBLE = 1e-12
"""What is smaller than this part of the largest entry of its row or column is rounding."""

MOST_PIVOTS = 50
"""Pivots per unknown; Lemke's method needs one or two."""

Rows = Sequence[Sequence[float]]
"""Lists: most problems have one unknown or a few, for which arrays of NumPy take longer."""


def solve(matrix: Rows, constant: Sequence[float]) -> list[float] | None:
    """A solution ``z`` of the problem with ``M = matrix`` and ``q = constant``; None if there is none.

    By Lemke's method with the lexicographic rule against cycles. It finds a solution, or that there is none, for every
    matrix that is positive semidefinite, such as that of contacts.

    Source: Cottle, Pang and Stone, The Linear Complementarity Problem (2009), algorithm 4.4.5 and section 4.9.

    Examples
    --------
    >>> solve([[2.0, -1.0], [-1.0, 2.0]], [-1.0, 4.0])
    [0.5, 0.0]
    """
    n = len(constant)
    if all(q >= 0.0 for q in constant):
        return [0.0] * n
    rows, scale = _scaled(matrix)
    # columns: w, z, the artificial variable, q; rows: basic variables
    table = [
        [*_unit(i, n), *(-x for x in row), -1.0, q * scale[i]]
        for i, (row, q) in enumerate(zip(rows, constant, strict=True))
    ]
    basis = list(range(n))
    artificial = 2 * n
    row = min(range(n), key=lambda i: (table[i][-1], *table[i][:n]))
    entering = artificial
    for _ in range(MOST_PIVOTS * n):
        leaving = basis[row]
        _pivot(table, row, entering)
        basis[row] = entering
        if leaving == artificial:
            return _values(basis, table, scale)
        entering = (leaving + n) % (2 * n)
        chosen = _leaving(table, basis, entering, n)
        if chosen is None:
            return None
        row = chosen
    return None


def part(matrix: Rows, chosen: Sequence[int]) -> Rows:
    """Some rows, and the same columns."""
    return [[matrix[i][k] for k in chosen] for i in chosen]


def product(a: Sequence[float], b: Sequence[float]) -> float:
    """The scalar product of two vectors."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def _unit(i: int, n: int) -> list[float]:
    return [float(i == k) for k in range(n)]


def _scaled(matrix: Rows) -> tuple[Rows, list[float]]:
    """The matrix with the diagonal 1, and the factors of rows and columns that make it so."""
    diagonal = [abs(row[i]) for i, row in enumerate(matrix)]
    scale = [1.0 / sqrt(d) if d > 0.0 else 1.0 for d in diagonal]
    scaled = [
        [x * (scale[i] * scale[k]) for k, x in enumerate(row)] for i, row in enumerate(matrix)
    ]
    return scaled, scale


def _pivot(table: list[list[float]], row: int, entering: int) -> None:
    """Solve the equation of a row for a variable, and replace it in the others."""
    pivot = table[row][entering]
    chosen = table[row] = [x / pivot for x in table[row]]
    for i, other in enumerate(table):
        if i != row:
            factor = other[entering]
            table[i] = [x - factor * y for x, y in zip(other, chosen, strict=True)]


def _leaving(table: Rows, basis: list[int], entering: int, n: int) -> int | None:
    """The row whose basic variable becomes 0 first; None if the entering one can grow for ever."""
    column = [row[entering] for row in table]
    least = NEGLIGIBLE * max(1.0, *map(abs, column))
    ratios = {i: table[i][-1] / x for i, x in enumerate(column) if x > least}
    if not ratios:
        return None
    nearest = min(ratios.values())
    limit = nearest + NEGLIGIBLE * max(1.0, abs(nearest))
    near = [i for i, ratio in ratios.items() if ratio <= limit]
    for i in near:
        if basis[i] == 2 * n:  # the artificial variable leaves first: the problem is solved
            return i
    return min(near, key=lambda i: tuple(x / column[i] for x in table[i][:n]))


def _values(basis: list[int], table: Rows, scale: list[float]) -> list[float]:
    n = len(basis)
    z = [0.0] * n
    for variable, row in zip(basis, table, strict=True):
        if n <= variable < 2 * n:
            z[variable - n] = max(row[-1], 0.0) * scale[variable - n]
    return z


EVEN = 2.0**-46
"""Impulses are multiples of this part of the largest one, some dozens of roundings: a body that passes one on has exactly
the velocity that it had before."""

TOGETHER = 1e-6
"""A contact that approaches more slowly than this part of the fastest one has no impact together with it: bodies at rest
beside each other approach by rounding, and would share the impact instead of passing it on."""

MOST_ROUNDS = 1000
"""Impacts that follow each other at one instant; with more of them all contacts are taken as plastic."""


def impulses(
    matrix: Rows,
    velocities: Sequence[float],
    restitutions: Sequence[float],
    slow: Sequence[float],
    least: Sequence[float],
) -> tuple[list[float], list[int]] | None:
    """The impulses at contacts of bodies at one instant, each the sum of all impacts there, and the contacts with impacts
    in their order; None if no impulses end the approach.

    In rounds: the contacts that approach have an impact together, by which each opens with its restitution at least. That
    may make others approach.

    Parameters
    ----------
    matrix
        Change of the velocities of the contacts by impulses.
    velocities
        At which the contacts open; negative where they approach.
    restitutions, slow
        Of each contact, the part of its velocity that is left, and the velocity below which nothing is left.
    least
        Velocities that are rounding.
    """
    n, now = len(velocities), velocities
    total, order = [0.0] * n, dict[int, None]()
    for _ in range(MOST_ROUNDS):
        together = TOGETHER * min(now)
        approaching = {k for k in range(n) if now[k] < min(-least[k], together)}
        if not approaching:
            return _even(total), list(order)
        left = [0.0 if -now[k] < slow[k] else restitutions[k] for k in range(n)]
        is_last = not any(left[k] for k in approaching)
        chosen = [k for k in range(n) if is_last or k in approaching or restitutions[k] == 0.0]
        wanted = [now[k] + left[k] * min(now[k], 0.0) for k in chosen]
        push = solve(part(matrix, chosen), wanted)
        if push is None:
            return None
        for k, p in zip(chosen, push, strict=True):
            total[k] += p
            if p > 0.0:
                order[k] = None
        now = [
            v + product([row[k] for k in chosen], push) for v, row in zip(now, matrix, strict=True)
        ]
        if is_last:
            return _even(total), list(order)
    push = solve(matrix, now)
    if push is None:
        return None
    return _even([a + b for a, b in zip(total, push, strict=True)]), list(order)


def _even(pushes: Sequence[float]) -> list[float]:
    unit = EVEN * max(0.0, *pushes)
    return [round(push / unit) * unit if unit > 0.0 else push for push in pushes]
