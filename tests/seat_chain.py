"""The exact solution of a chain of two power bonds: a seat on the chassis of the quarter car."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmimaster.studies.demos.quarter_car import LINEAR_CAR, QuarterCar, Vector, linear_solution


@dataclass(frozen=True)
class SeatChain:
    """A seat on the chassis of a linear quarter car: mass in kg, stiffness in N/m and damping in N s/m of the seat."""

    ms: float = 80.0
    ks: float = 8000.0
    ds: float = 400.0
    car: QuarterCar = LINEAR_CAR

    def seat_force(self, states: Vector) -> Vector:
        """Force Fs in N; `states` are zs, vs, zc, vc, zw, vw, shape (6, ...)."""
        zs, vs, zc, vc = states[:4]
        return np.asarray(self.ks * (zs - zc) + self.ds * (vs - vc))

    def rates(self, states: Vector) -> Vector:
        """Time derivatives of the states; shape as theirs."""
        force = self.seat_force(states)
        car = self.car.rates(states[2:])
        car[1] += force / self.car.mc
        return np.array([states[1], -force / self.ms, *car])

    def powers(self, times: Vector) -> tuple[Vector, Vector]:
        """Exact powers in W at some times: from the seat to the chassis, and from the chassis to the wheel."""
        constant = self.rates(np.zeros(6))
        matrix = np.transpose([self.rates(unit) - constant for unit in np.eye(6)])
        states = linear_solution(matrix, constant, np.zeros(6))(times)
        return self.seat_force(states) * states[1], self.car.force(states[2:]) * states[3]
