"""The quarter car of Sadjina et al.: its exact solution, and the errors of the power between its two parts.

A suspension connects a chassis to a wheel, and a tyre connects the wheel to the road. All states are 0 at
the start; the road is 0.1 m high from then on.

Source: Sadjina, Kyllingstad, Skjong, Pedersen (2017), Energy conservation and power bonds in co-simulations, section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fmimaster.results.results import Results

Vector = NDArray[np.float64]

BOND = "suspension"
"""Name of the power bond between chassis and wheel in the systems."""

TOLERANCE = 1e-12
"""Relative and absolute, of the integration of the nonlinear car."""


@dataclass(frozen=True)
class QuarterCar:
    """Parameters of the car, in SI units.

    Parameters
    ----------
    mc, mw : float
        Masses of chassis and wheel in kg.
    kc, kw : float
        Stiffness of suspension and tyre in N/m.
    dc, nd : float
        Damper of the suspension: dc sign(d) abs(d) ** (2 / (1 + 2 nd)), with the difference d of the velocities.
    road : float
        Height of the road in m.
    stop : float
        End of the simulation in s.
    """

    mc: float = 400.0
    mw: float = 40.0
    kc: float = 15000.0
    kw: float = 150000.0
    dc: float = 1000.0
    nd: float = 0.5
    road: float = 0.1
    stop: float = 4.0

    @property
    def is_linear(self) -> bool:
        """Whether the damper is."""
        return self.nd == 0.5

    def force(self, states: Vector) -> Vector:
        """Force Fc of the suspension in N; `states` are zc, vc, zw, vw, shape (4, ...)."""
        zc, vc, zw, vw = states
        d = vc - vw
        damper = self.dc * np.sign(d) * np.abs(d) ** (2.0 / (1.0 + 2.0 * self.nd))
        return np.asarray(self.kc * (zc - zw) + damper)

    def rates(self, states: Vector) -> Vector:
        """Time derivatives of the states; shape as theirs."""
        _, vc, zw, vw = states
        force = self.force(states)
        road = self.kw * (zw - self.road)
        return np.array([vc, -force / self.mc, vw, (force - road) / self.mw])

    def solution(self) -> Callable[[Vector], Vector]:
        """The exact states at some times: shape (n,) in s → (4, n), zc and zw in m, vc and vw in m/s."""
        if self.is_linear:
            constant = self.rates(np.zeros(4))
            matrix = np.transpose([self.rates(unit) - constant for unit in np.eye(4)])
            return linear_solution(matrix, constant, np.zeros(4))
        return _integrated(self)

    def power(self, split: str) -> Callable[[Vector], Vector]:
        """Exact power in W from the first half to the second one at some times; `split` is "a" or "b".

        In split A the chassis has the velocity as output and the force as input; in split B it is the other way round.
        """
        solution, velocity = self.solution(), {"a": 1, "b": 3}[split]

        def power(times: Vector) -> Vector:
            states = solution(times)
            return np.asarray(self.force(states) * states[velocity])

        return power


@cache
def _integrated(car: QuarterCar) -> Callable[[Vector], Vector]:
    from scipy.integrate import solve_ivp  # slow to import

    solved = solve_ivp(
        lambda _, x: car.rates(x),
        (0.0, car.stop),
        np.zeros(4),
        method="DOP853",
        dense_output=True,
        rtol=TOLERANCE,
        atol=TOLERANCE,
    )
    return lambda times: np.asarray(solved.sol(times))


LINEAR_CAR = QuarterCar()
NONLINEAR_CAR = QuarterCar(dc=900.0, nd=1.5, stop=2.0)


def linear_solution(matrix: Vector, constant: Vector, start: Vector) -> Callable[[Vector], Vector]:
    """The exact solution of x' = A x + b for A that has an inverse and n eigenvectors: times (m,) → states (n, m)."""
    rest = np.linalg.solve(matrix, -constant)
    eigenvalues, vectors = np.linalg.eig(matrix)
    weights = np.linalg.solve(vectors, (start - rest).astype(complex))

    def solution(times: Vector) -> Vector:
        modes = weights[:, None] * np.exp(eigenvalues[:, None] * times)
        return np.asarray(rest[:, None] + (vectors @ modes).real, np.float64)

    return solution


@dataclass(frozen=True)
class Measures:
    """Measures of a run with a power bond; all means are weighted with the step sizes.

    Attributes
    ----------
    steps : int
    mean_step : float
        In s.
    mean_power : float
        In W, from the first component of the bond to the second one.
    power_error : float
        Mean absolute error of that power in W, at the ends of the steps.
    residual_energy : float
        In J.
    half_residual : float
        Half of the mean absolute residual power in W: the mean local error of both powers.

    Source: Sadjina et al. (2017), section 5.
    """

    steps: int
    mean_step: float
    mean_power: float
    power_error: float
    residual_energy: float
    half_residual: float


def measures(results: Results, exact: Callable[[Vector], Vector], bond: str = BOND) -> Measures:
    """The measures of a run with that power bond; `exact` is its exact power in W at some times in s."""
    time, length = results.time[1:], np.diff(results.time)
    power, residual = results[f"{bond}.power"][1:], results[f"{bond}.residual_power"][1:]
    duration = float(np.sum(length))
    return Measures(
        len(length),
        duration / len(length),
        float(power @ length) / duration,
        float(np.abs(power - exact(time)) @ length) / duration,
        float(residual @ length),
        float(np.abs(residual) @ length) / duration / 2,
    )
