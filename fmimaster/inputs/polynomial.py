"""Inputs over an interval as polynomials through the newest points of the connected outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.numerics import polynomials

MOST_POINTS, MOST_COEFFICIENTS = 8, 64
"""Of one polynomial."""


@dataclass(frozen=True, slots=True)
class Polynomial(TypedArguments):
    """Polynomial of an input over the interval: the Hermite polynomial through the newest points of its source.

    Parameters
    ----------
    points : int, at least 1
        Number of points of the source's output: the newest one, then earlier ones, newest first.
    derivatives : int, at least 0
        Number of time derivatives of the output at each point. They are outputs of the source as well, marked by the
        attribute ``derivative``. If the source publishes fewer, those are used.
    history : bool
        Whether points before the present interval may be used.
    held : float, optional
        The input is constant over the interval, at the value that the polynomial has at this fraction of it: 0.5 is a
        midpoint hold. Without it the input follows the polynomial.
    mean : bool
        The input is constant over the interval, at the mean of the polynomial. An FMU that accepts no polynomials
        always gets the mean, unless the polynomial is ``held``.
    adaptive : bool
        One point or one derivative less is used if this would have predicted the newest point better, see
        :class:`fmimaster.program.instructions.inputs.Fit`. Needs at least 2 points.
    compensation : float, 0 to 1
        For a held input: this fraction of the difference between the output and the mean of the input over the last
        interval is added over the present one. Source: Benedikt et al. (2013), NEPCE; there it is 1, which is unstable
        if intervals differ in length.
    late : bool
        The input is delayed by one interval: it goes from the second newest value to the newest one, and has no jumps
        at communication points. For ``Polynomial(2, 0)`` only. Source: Gomes et al. (2017), equation (49).
    sub_steps : int, at least 1
        Number of equal parts of the step of an FMU that accepts no polynomials. In each part the input is the mean of
        the polynomial. The step size of the FMU must be variable, and no FMU may end steps early.

    ``Polynomial(1, 0)`` holds the value, ``Polynomial(1, 1)`` follows the slope (first-order hold), and ``Polynomial(2,
    0)`` is the straight line through two points.
    """

    points: int = 1
    derivatives: int = 0
    history: bool = True
    held: float | None = None
    mean: bool = False
    adaptive: bool = False
    compensation: float = 0.0
    late: bool = False
    sub_steps: int = 1

    def __post_init__(self) -> None:
        if self.points < 1 or self.derivatives < 0:
            raise OptionError(
                f"Polynomial({self.points}, {self.derivatives}): expected at least 1 point and 0 derivatives."
            )
        if self.points > MOST_POINTS or self.degree >= MOST_COEFFICIENTS:
            raise OptionError(
                f"Polynomial({self.points}, {self.derivatives}): expected at most {MOST_POINTS} points and "
                f"{MOST_COEFFICIENTS} coefficients; rounding errors are too large long before this limit."
            )

        if self.held is not None and not 0.0 <= self.held <= 1.0:
            raise OptionError(f"held={self.held:g}: expected a fraction of the interval, 0 to 1.")
        if self.held is not None and self.mean:
            raise OptionError(
                "held and mean: both define the value of a constant input. Give only one of them."
            )
        if self.adaptive and (self.points < 2 or not self.history):
            raise OptionError(
                f"Polynomial({self.points}, {self.derivatives}, adaptive=True): expected at least 2 points and the "
                "history, because the error is measured at the newest point by those before it."
            )
        if not 0.0 <= self.compensation <= 1.0:
            raise OptionError(f"compensation={self.compensation:g}: expected 0 to 1.")
        if self.compensation and not (self.is_constant and self.history):
            raise OptionError(
                f"Polynomial({self.points}, {self.derivatives}, compensation={self.compensation:g}): expected an input "
                "that is held, with the history. For an input that follows a polynomial the error is not known."
            )
        if self.late and (self.numbers != (2, 0) or self.held is not None or self.adaptive):
            raise OptionError(
                f"Polynomial({self.points}, {self.derivatives}, late=True): expected Polynomial(2, 0, late=True), which "
                "is neither held nor adaptive."
            )
        if self.sub_steps < 1 or (self.sub_steps > 1 and (self.is_constant or self.late)):
            raise OptionError(
                f"Polynomial({self.points}, {self.derivatives}, sub_steps={self.sub_steps}): expected at least 1, and more "
                "only for a polynomial that is neither held nor late."
            )

    @property
    def numbers(self) -> tuple[int, int]:
        """Points and derivatives."""
        return self.points, self.derivatives

    @property
    def is_hold(self) -> bool:
        """Whether the input only keeps its newest value over the interval."""
        return self.degree == 0 and not self.compensation

    @property
    def degree(self) -> int:
        """Degree of the polynomial; 0 means that the value is held."""
        return self.points * (self.derivatives + 1) - 1

    @property
    def followed_degree(self) -> int:
        """Highest degree of signals that it reproduces exactly; 0 if the input is constant or late."""
        return 0 if self.is_constant or self.late else self.degree

    @property
    def is_constant(self) -> bool:
        """Whether the input is constant over the interval."""
        return self.degree == 0 or self.mean or self.held is not None

    @property
    def uses_history(self) -> bool:
        """Whether points before the present interval are used."""
        return self.history and self.wanted_points > 1

    @property
    def wanted_points(self) -> int:
        """Number of used points; a compensation also needs the second newest one."""
        return max(self.points, 2) if self.compensation else self.points

    def constant(self, held: float) -> Polynomial:
        """The value that the polynomial has at this fraction of the interval, held; itself, if it is held already."""
        if self.mean or self.compensation or self.held is not None:
            return self
        if self.late:
            return replace(self, mean=True)
        return replace(self, held=held, adaptive=False, sub_steps=1)

    def of(self, published: int) -> Polynomial:
        """The polynomial for a source with this number of published derivatives."""
        derivatives = min(self.derivatives, published)
        sub_steps = self.sub_steps if self.points * (derivatives + 1) > 1 else 1
        if (derivatives, sub_steps) == (self.derivatives, self.sub_steps):
            return self
        return replace(self, derivatives=derivatives, sub_steps=sub_steps)

    def mean_of(self, published: int, *, in_halves: bool = False) -> Polynomial:
        """The polynomial whose mean is the input of an FMU that accepts no polynomials.

        With derivatives it goes through the newest point alone, otherwise through at most two points: means of
        polynomials of higher degree are less stable. Source: fmimaster, the best of five on the two masses with held
        inputs. If there is a value for each half of a step, the error of the extrapolation is the largest that is left:
        then it goes through two points, or through fewer by the measured error.
        """
        derivatives = min(self.derivatives, published)
        points = min(self.points, 2) if in_halves or not derivatives else 1
        is_adaptive = in_halves and derivatives > 0 and points > 1 and self.history
        return replace(
            self,
            points=points,
            derivatives=derivatives,
            mean=True,
            adaptive=is_adaptive,
            sub_steps=1,
        )


HOLD = Polynomial(1, 0)
"""The value is held until the next communication point."""

FIRST_ORDER = Polynomial(1, 1)
"""The value follows its present slope."""

LINEAR = Polynomial(2, 0)
"""The straight line through the two newest points."""

QUADRATIC = Polynomial(3, 0)
"""The parabola through the three newest points."""

HERMITE = Polynomial(2, 1)
"""The cubic through value and slope at the two newest points."""

MIDPOINT = Polynomial(2, 0, held=0.5)
"""The value that :data:`LINEAR` has in the middle of the interval, held. Source: fmimaster; NEPCE without recursion."""

NEPCE = Polynomial(1, 0, compensation=0.5)
"""The newest value, held, plus half of the error over the last interval: damped nearly energy-preserving coupling
element. Source: Benedikt et al. (2013)."""

INTERPOLATED = Polynomial(2, 0, late=True)
"""From the second newest value to the newest: no jumps, delayed by one interval. Source: Gomes et al. (2017), eq.
(49)."""

ADAPTIVE = Polynomial(2, 2, adaptive=True)
"""The quintic through value and two derivatives at two points, with lower degree if its measured error is smaller."""

KINDS: Mapping[str, Polynomial] = {
    "hold": HOLD,
    "midpoint": MIDPOINT,
    "nepce": NEPCE,
    "linear": LINEAR,
    "quadratic": QUADRATIC,
    "interpolated": INTERPOLATED,
    "first-order": FIRST_ORDER,
    "hermite": HERMITE,
    "adaptive": ADAPTIVE,
}
"""Polynomials by their names on the command line."""

MOST_CANDIDATES = 4
"""Of an adaptive polynomial."""

MOST_GIVEN = 4
"""Number of intervals that are stored for each compensated input: the last one, the present one, and parts of it that
may still be undone. If more are undone, the repeated step is not compensated."""


def candidates(points: int, derivatives: int) -> tuple[tuple[int, int], ...]:
    """The candidates of an adaptive polynomial: (points, derivatives), the largest first.

    A polynomial without derivatives is a candidate only for a source that publishes none.
    """
    orders = [d for d in (derivatives, derivatives - 1) if d > 0] or [0]
    return tuple((p, d) for p in (points, points - 1) for d in orders)


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
    """
    nodes = [time for time, sample in zip(times, samples, strict=True) for _ in sample]
    rows: list[Any] = [row for sample in samples for row in sample]
    if len(rows[0]) == 1:  # floats: NumPy takes longer for one signal
        rows = [row.item() for row in rows]
    n = len(nodes)
    coefficients = [0.0] * n
    polynomials.hermite(nodes, rows, n, centre, [0.0] * (3 * n), coefficients)
    return np.array(coefficients).reshape(n, -1)


def evaluate(
    coefficients: NDArray[np.float64], s: float, derivative: int = 0
) -> NDArray[np.float64]:
    """Value, or a derivative, of polynomials at distance ``s`` from their centre, by Horner's rule.

    ``coefficients`` has shape (degree + 1, n); returns shape (n,).
    """
    degree = len(coefficients) - 1
    if derivative > degree:
        return np.zeros(coefficients.shape[1])
    found: NDArray[np.float64]
    if not derivative:
        found = polynomials.horner(coefficients, 1, degree, s)
        return found
    weights = [1.0] * (degree + 1)
    for order in range(1, derivative + 1):
        polynomials.next_weights(weights, degree, order)
    found = polynomials.derivative_at(coefficients, weights, 1, degree, derivative, s)
    return found


def mean(coefficients: NDArray[np.float64], length: float, half: int = 0) -> NDArray[np.float64]:
    """Mean of polynomials from their centre over a length in s; shape (degree + 1, n) → (n,).

    With ``half``, 1 or 2, the values for that half of an interval, see ``FIT``.
    """
    found: NDArray[np.float64]
    degree = len(coefficients) - 1
    if half:
        found = polynomials.half_mean(coefficients, 1, degree, length, half)
    else:
        found = polynomials.mean(coefficients, 1, degree, length)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Polynomials:
    """Polynomials of several signals over time: coefficients of shape (degree + 1, n) about a centre in s."""

    coefficients: NDArray[np.float64]
    centre: float

    def __call__(self, time: float, derivative: int = 0) -> NDArray[np.float64]:
        """Values, or derivatives, at a time in s; shape (n,)."""
        return evaluate(self.coefficients, time - self.centre, derivative)
