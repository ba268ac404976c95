"""Inputs over an interval as polynomials through the newest points of the outputs that feed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmimaster.errors import OptionError

MOST_POINTS, MOST_COEFFICIENTS = 8, 64
"""Of one polynomial."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """How an input goes on over the interval: the Hermite polynomial through the newest points.

    Parameters
    ----------
    points : int, at least 1
        How many points of the source's output it goes through: the newest one, then others, newest first.
    derivatives : int, at least 0
        How many time derivatives of the output it takes at each point; they are outputs of the source too, known by
        the attribute ``derivative``.
    history : bool
        Whether points before the present interval may serve.
    held : float, optional
        The input is constant over the interval, at the value that the polynomial has at this fraction of it: 0.5 is a
        midpoint hold. Without it the input follows the polynomial.

    ``Polynomial(1, 0)`` holds the value, ``Polynomial(1, 1)`` goes on along the slope (first-order hold),
    ``Polynomial(2, 0)`` is the straight line through two points.
    """

    points: int = 1
    derivatives: int = 0
    history: bool = True
    held: float | None = None

    def __post_init__(self) -> None:
        if self.points < 1 or self.derivatives < 0:
            raise OptionError(
                f"Polynomial({self.points}, {self.derivatives}): expected at least 1 point and 0 derivatives."
            )
        if self.points > MOST_POINTS or self.degree >= MOST_COEFFICIENTS:
            raise OptionError(
                f"Polynomial({self.points}, {self.derivatives}): expected at most {MOST_POINTS} points and "
                f"{MOST_COEFFICIENTS} coefficients, which is far more than numbers of double precision can bear."
            )

        if self.held is not None and not 0.0 <= self.held <= 1.0:
            raise OptionError(f"held={self.held:g}: expected a fraction of the interval, 0 to 1.")

    @property
    def degree(self) -> int:
        """Degree of the polynomial; 0 means that the value is held."""
        return self.points * (self.derivatives + 1) - 1


HOLD = Polynomial(1, 0)
"""The value stays as it is until the next communication point."""

NEAREST = 0.02
"""Points of time that are nearer to each other, in intervals, are too near for a polynomial through both."""

FIRST_ORDER = Polynomial(1, 1)
"""The value goes on along its present slope."""


def hermite(
    times: Sequence[float], samples: Sequence[Sequence[NDArray[np.float64]]], centre: float
) -> NDArray[np.float64]:
    """Coefficients of the Hermite polynomial through points with derivatives.

    Parameters
    ----------
    times : length p
        Distinct times of the points in s.
    samples : length p, each of length d + 1, each of shape (n,)
        Value and derivatives of order 1 to d at each point, for n signals; d may differ from point to point.
    centre : float
        Time in s about which the powers are taken.

    Returns
    -------
    shape (sum of all d + 1, n)
        Row k holds the coefficient of ``(t - centre) ** k``.

    Notes
    -----
    Newton's form with confluent divided differences (e.g. Stoer and Bulirsch, Numerische Mathematik 1, 2.1.5), summed in
    a fixed order, so that every executor computes the same bits.
    """
    owners = [p for p, sample in enumerate(samples) for _ in sample]
    nodes = [times[p] for p in owners]
    column = [samples[p][0] for p in owners]
    newton = [column[0]]
    factorial = 1.0
    for k in range(1, len(nodes)):
        factorial *= k
        column = [
            samples[owners[i]][k] / factorial
            if nodes[i + k] == nodes[i]
            else (column[i + 1] - column[i]) / (nodes[i + k] - nodes[i])
            for i in range(len(nodes) - k)
        ]
        newton.append(column[0])
    coefficients = np.zeros((len(nodes), len(newton[0])))
    for k in reversed(range(len(nodes))):
        shift = centre - nodes[k]
        coefficients[1:] = coefficients[1:] * shift + coefficients[:-1]
        coefficients[0] = coefficients[0] * shift + newton[k]
    return coefficients


def evaluate(
    coefficients: NDArray[np.float64], s: float, derivative: int = 0
) -> NDArray[np.float64]:
    """Value, or a derivative, of polynomials at distance ``s`` from their centre, by Horner's rule.

    ``coefficients`` has shape (degree + 1, n); returns shape (n,).
    """
    result = np.zeros(coefficients.shape[1])
    for k in reversed(range(derivative, len(coefficients))):
        weight = 1.0
        for j in range(derivative):
            weight *= k - j
        result = result * s + weight * coefficients[k]
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Polynomials:
    """Polynomials of several signals over time: coefficients of shape (degree + 1, n) about a centre in s."""

    coefficients: NDArray[np.float64]
    centre: float

    def __call__(self, time: float, derivative: int = 0) -> NDArray[np.float64]:
        """Values, or derivatives, at a time in s; shape (n,)."""
        return evaluate(self.coefficients, time - self.centre, derivative)
