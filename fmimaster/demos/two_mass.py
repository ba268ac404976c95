"""The two colliding masses, solved exactly: the reference of the event benchmarks.

Between events the system is linear, so that its flow is a sum of exponentials; events are bracketed to the last bits.

Source: Dejaco and Benedikt (2017); Tischer et al., LookAhead; initial values as in docs/events.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, inf, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

M1, M2, K1, K2, D1, D2, G, DX = 0.2, 0.3, 1.0, 1.0, 0.01, 0.01, 9.81, 0.55
START = (-0.7, 3.5, -8.8, 3.0)
"""Positions in m and velocities in m/s at t = 0: x1, v1, x2, v2."""

_A = np.array(
    [
        [0, 1, 0, 0],
        [-(K1 + K2) / M1, -(D1 + D2) / M1, K2 / M1, D2 / M1],
        [0, 0, 0, 1],
        [K2 / M2, D2 / M2, -K2 / M2, -D2 / M2],
    ]
)
_REST = np.array([-(M1 + M2) * G / K1, 0.0, -(M1 + M2) * G / K1 - M2 * G / K2, 0.0])
_EIGENVALUES, _EIGENVECTORS = np.linalg.eig(_A)
_INVERSE = np.linalg.inv(_EIGENVECTORS)

_SCAN = 2e-3
"""[s] Events are looked for in pieces of this length."""


@dataclass(frozen=True, slots=True)
class Wall:
    """An obstacle that moves: ``c0 + ca sin(cw t + cp)``, in m."""

    c0: float = 0.0
    ca: float = 0.0
    cw: float = 0.0
    cp: float = 0.0

    def position(self, t: float) -> float:
        """[m]"""
        return self.c0 + self.ca * sin(self.cw * t + self.cp)

    def velocity(self, t: float) -> float:
        """[m/s]"""
        return self.ca * self.cw * cos(self.cw * t + self.cp)


@dataclass(frozen=True, slots=True)
class ReferenceEvent:
    """An event of the exact solution."""

    time: float
    """[s]"""
    name: str
    """``"collision"``, ``"ceiling"`` or ``"floor"``."""
    state: NDArray[np.float64]
    """Right limit: x1, v1, x2, v2."""


class TwoMassReference:
    """The exact solution.

    Parameters
    ----------
    stop_time : float, in s
    ceiling, floor : Wall
        Without a floor there is none.
    """

    def __init__(
        self, stop_time: float, ceiling: Wall | None = None, floor: Wall | None = None
    ) -> None:
        self._ceiling, self._floor = ceiling or Wall(), floor
        self.events: list[ReferenceEvent] = []
        time, state = 0.0, np.array(START)
        self._begins, self._states = [time], [state]
        while (found := self._next(time, state, stop_time)) is not None:
            time, name = found
            state = self._reset(name, time, _flow(self._states[-1], time - self._begins[-1]))
            self.events.append(ReferenceEvent(time, name, state))
            self._begins.append(time)
            self._states.append(state)

    def __call__(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """States x1, v1, x2, v2 at these times in s, shape (n, 4); right limits at events."""
        piece = np.searchsorted(self._begins, times, side="right") - 1
        return np.array(
            [_flow(self._states[k], t - self._begins[k]) for k, t in zip(piece, times, strict=True)]
        )

    def _indicators(self, name: str, t: float, s: NDArray[np.float64]) -> tuple[float, float]:
        x1, v1, x2, v2 = s
        if name == "collision":
            return x1 - x2 - 2 * DX, v1 - v2
        if name == "ceiling":
            return self._ceiling.position(t) - DX - x1, self._ceiling.velocity(t) - v1
        assert self._floor is not None
        return x2 - DX - self._floor.position(t), v2 - self._floor.velocity(t)

    def _reset(self, name: str, t: float, s: NDArray[np.float64]) -> NDArray[np.float64]:
        x1, v1, x2, v2 = s
        if name == "collision":
            w1 = ((M1 - M2) * v1 + 2 * M2 * v2) / (M1 + M2)
            w2 = ((M2 - M1) * v2 + 2 * M1 * v1) / (M1 + M2)
            return np.array([x1, w1, x2, w2])
        if name == "ceiling":
            return np.array([x1, 2 * self._ceiling.velocity(t) - v1, x2, v2])
        assert self._floor is not None
        return np.array([x1, v1, x2, 2 * self._floor.velocity(t) - v2])

    def _next(
        self, begin: float, state: NDArray[np.float64], stop: float
    ) -> tuple[float, str] | None:
        from scipy.optimize import brentq  # slow to import

        find: Any = brentq  # it has no types, and default values that pyright takes for types
        names = ["collision", "ceiling"] + (["floor"] if self._floor is not None else [])

        def largest(name: str, t: float) -> float:
            return max(self._indicators(name, t, _flow(state, t - begin)))

        t = begin
        while t < stop:
            after = min(t + _SCAN, stop)
            first, which = inf, ""
            for name in names:
                low = t if t > begin else np.nextafter(t, inf)  # an event has just happened
                if largest(name, low) > 0 >= largest(name, after):
                    found = find(
                        lambda u, n=name: largest(n, u), low, after, xtol=1e-15, rtol=1e-15
                    )
                    if found < first:
                        first, which = found, name
            if which:
                return first, which
            t = after
        return None


def _flow(state: NDArray[np.float64], dt: float) -> NDArray[np.float64]:
    modes = np.exp(_EIGENVALUES * dt) * (_INVERSE @ (state - _REST))
    flowed: NDArray[np.float64] = (_EIGENVECTORS @ modes).real + _REST
    return flowed
