"""The two colliding masses, solved exactly: the reference of the event benchmarks.

Between events the system is linear, so its solution is a sum of exponentials. Events are bracketed to the last bits.

Source: Dejaco and Benedikt (2017); Tischer et al., LookAhead; initial values as in docs/events.md.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass

_SCAN = 2e-3
"""[s] Length of the pieces in which events are searched."""
_BLOCK = 100
"""Number of pieces that are searched at once."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The two blocks: parameters of the FMUs, and their initial values."""

    m1: float = 0.2
    """[kg] Upper block."""
    m2: float = 0.3
    """[kg] Lower block."""
    k1: float = 1.0
    """[N/m] From the ceiling to the upper block."""
    k2: float = 1.0
    """[N/m] Between the blocks."""
    d1: float = 0.01
    """[N s/m]"""
    d2: float = 0.01
    """[N s/m]"""
    g: float = 9.81
    """[m/s2]"""
    dx: float = 0.55
    """[m] Half the height of a block."""
    start: tuple[float, float, float, float] = (-0.7, 3.5, -8.8, 3.0)
    """Positions in m and velocities in m/s at t = 0: x1, v1, x2, v2."""

    def matrix(self) -> NDArray[np.float64]:
        """The linear system between events: derivatives of x1, v1, x2, v2 by these, shape (4, 4)."""
        k, d = self.k1 + self.k2, self.d1 + self.d2
        return np.array(
            [
                [0, 1, 0, 0],
                [-k / self.m1, -d / self.m1, self.k2 / self.m1, self.d2 / self.m1],
                [0, 0, 0, 1],
                [self.k2 / self.m2, self.d2 / self.m2, -self.k2 / self.m2, -self.d2 / self.m2],
            ]
        )

    def rest(self) -> NDArray[np.float64]:
        """x1, v1, x2, v2 of the equilibrium, shape (4,)."""
        x1 = -(self.m1 + self.m2) * self.g / self.k1
        return np.array([x1, 0.0, x1 - self.m2 * self.g / self.k2, 0.0])


@dataclass(frozen=True, slots=True)
class Wall:
    """An obstacle that moves: ``c0 + ca sin(cw t + cp)``, in m."""

    c0: float = 0.0
    ca: float = 0.0
    cw: float = 0.0
    cp: float = 0.0

    def position(self, t: Any) -> Any:
        """[m] At a time in s, or at several."""
        return self.c0 + self.ca * np.sin(self.cw * t + self.cp)

    def velocity(self, t: Any) -> Any:
        """[m/s] At a time in s, or at several."""
        return self.ca * self.cw * np.cos(self.cw * t + self.cp)


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
        By default there is no floor.
    blocks : Blocks
    most_events : int
        Number of events after which the solution ends.
    """

    def __init__(
        self,
        stop_time: float,
        ceiling: Wall | None = None,
        floor: Wall | None = None,
        *,
        blocks: Blocks | None = None,
        most_events: int = 100_000,
    ) -> None:
        self._ceiling, self._floor, self._blocks = ceiling or Wall(), floor, blocks or Blocks()
        self._rest = self._blocks.rest()
        self._eigenvalues, self._eigenvectors = np.linalg.eig(self._blocks.matrix())
        self._inverse = np.linalg.inv(self._eigenvectors)
        self.events: list[ReferenceEvent] = []
        time, state = 0.0, np.array(self._blocks.start)
        self._begins, self._states = [time], [state]
        while len(self.events) < most_events:
            found = self._next(time, state, stop_time)
            if found is None:
                break
            time, name = found
            state = self._reset(name, time, self._flow(state, time - self._begins[-1]))
            self.events.append(ReferenceEvent(time, name, state))
            self._begins.append(time)
            self._states.append(state)

    def __call__(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """States x1, v1, x2, v2 at these times in s, shape (n, 4); right limits at events."""
        piece = np.searchsorted(self._begins, times, side="right") - 1
        states = np.empty((len(times), 4))
        for k in np.unique(piece):
            states[piece == k] = self._flow(self._states[k], times[piece == k] - self._begins[k])
        return states

    def indicators(self, name: str, t: Any, state: NDArray[np.float64]) -> tuple[Any, Any]:
        """Distance in m to an event, and its derivative in m/s; the event happens when both are at or below 0.

        Parameters
        ----------
        name : str
            ``"collision"``, ``"ceiling"`` or ``"floor"``.
        t : float or shape (n,), in s
        state : shape (4,) or (n, 4)
        """
        x1, v1, x2, v2 = state.T
        if name == "collision":
            return x1 - x2 - 2 * self._blocks.dx, v1 - v2
        if name == "ceiling":
            return (
                self._ceiling.position(t) - self._blocks.dx - x1,
                self._ceiling.velocity(t) - v1,
            )
        assert self._floor is not None
        return x2 - self._blocks.dx - self._floor.position(t), v2 - self._floor.velocity(t)

    def _flow(self, state: NDArray[np.float64], dt: Any) -> NDArray[np.float64]:
        """The state after a time in s, shape (4,), or after several, shape (n, 4)."""
        modes = np.exp(np.multiply.outer(dt, self._eigenvalues)) * (
            self._inverse @ (state - self._rest)
        )
        flowed: NDArray[np.float64] = (modes @ self._eigenvectors.T).real + self._rest
        return flowed

    def _reset(self, name: str, t: float, s: NDArray[np.float64]) -> NDArray[np.float64]:
        x1, v1, x2, v2 = s
        if name == "collision":
            m1, m2 = self._blocks.m1, self._blocks.m2
            w1 = ((m1 - m2) * v1 + 2 * m2 * v2) / (m1 + m2)
            w2 = ((m2 - m1) * v2 + 2 * m1 * v1) / (m1 + m2)
            return np.array([x1, w1, x2, w2])
        if name == "ceiling":
            return np.array([x1, 2 * self._ceiling.velocity(t) - v1, x2, v2])
        assert self._floor is not None
        return np.array([x1, v1, x2, 2 * self._floor.velocity(t) - v2])

    def _next(
        self, begin: float, state: NDArray[np.float64], stop: float
    ) -> tuple[float, str] | None:
        """Time and name of the first event after ``begin``."""
        names = ["collision", "ceiling"] + (["floor"] if self._floor is not None else [])
        first = begin
        while first < stop:
            times = np.minimum(first + _SCAN * np.arange(_BLOCK + 1), stop)
            if first == begin:
                times[0] = np.nextafter(begin, inf)  # an event has just happened
            states = self._flow(state, times - begin)
            found = [self._first(name, begin, state, times, states) for name in names]
            time = min(found)
            if time < inf:
                return time, names[found.index(time)]
            first = float(times[-1])
        return None

    def _first(
        self,
        name: str,
        begin: float,
        state: NDArray[np.float64],
        times: NDArray[np.float64],
        states: NDArray[np.float64],
    ) -> float:
        """Time of the first event between these times; inf if there is none."""
        from scipy.optimize import brentq  # slow to import

        find: Any = brentq  # it has no types, and default values that pyright takes for types

        def at(t: float) -> tuple[float, float]:
            z, dz = self.indicators(name, t, self._flow(state, t - begin))
            return float(z), float(dz)

        z, dz = self.indicators(name, times, states)
        larger = np.maximum(z, dz)
        falls = (larger[:-1] > 0) & (larger[1:] <= 0)
        turns = (larger[:-1] > 0) & (dz[:-1] < 0) & (dz[1:] > 0)  # the distance has a minimum
        for k in np.flatnonzero(falls | turns):
            low, after = float(times[k]), float(times[k + 1])
            if not falls[k]:
                after = find(lambda t: at(t)[1], low, after, xtol=1e-15, rtol=1e-15)
                if at(after)[0] > 0:
                    continue
                # here dz is 0 to the last bits: the event is where the distance is 0
                return float(find(lambda t: at(t)[0], low, after, xtol=1e-15, rtol=1e-15))
            return float(find(lambda t: max(at(t)), low, after, xtol=1e-15, rtol=1e-15))
        return inf
