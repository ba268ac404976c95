"""Linear systems with given matrices, of which linear_writer.py makes FMUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST = 16
"""States, inputs and outputs that a system can have; as in LinearSystem/model.c."""

UNITS: Mapping[str, Mapping[str, int]] = {
    "m": {"m": 1},
    "m/s": {"m": 1, "s": -1},
    "N": {"kg": 1, "m": 1, "s": -2},
}
"""Units by name: their exponents of SI base units."""


class LinearSystem:
    """x' = A x + B u + e, y = C x + D u + f, from x(0) = x0.

    Parameters
    ----------
    a, b, c, d
        Matrices of the shapes (states, states), (states, inputs), (outputs, states), (outputs, inputs); zero if they are
        left out.
    e, f, x0, u0
        Vectors; zero if they are left out. `u0` are the start values of the inputs.
    inputs, outputs, states
        Names; without them u1, u2, ..., y1, y2, ..., x1, x2, .... The time derivative of x1 is der(x1).
    micro_step : float
        Length of the steps of Euler's method in s; 0 for the exact solution.
    units : mapping
        Units of inputs, outputs and states by their names: those in UNITS.
    """

    def __init__(
        self,
        *,
        a: ArrayLike | None = None,
        b: ArrayLike | None = None,
        c: ArrayLike | None = None,
        d: ArrayLike | None = None,
        e: ArrayLike | None = None,
        f: ArrayLike | None = None,
        x0: ArrayLike | None = None,
        u0: ArrayLike | None = None,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        states: Sequence[str] = (),
        micro_step: float = 0.0,
        units: Mapping[str, str] | None = None,
    ) -> None:
        n = _size((a, 0), (b, 0), (c, 1))
        m = _size((b, 1), (d, 1))
        p = _size((c, 0), (d, 0))
        if max(n, m, p) > MOST:
            raise ValueError(f"{n} states, {m} inputs, {p} outputs: there can be {MOST} of each.")
        self.a, self.b = _matrix(a, n, n), _matrix(b, n, m)
        self.c, self.d = _matrix(c, p, n), _matrix(d, p, m)
        self.e, self.f = _vector(e, n), _vector(f, p)
        self.x0, self.u0 = _vector(x0, n), _vector(u0, m)
        self.inputs = tuple(inputs) or tuple(f"u{k + 1}" for k in range(m))
        self.outputs = tuple(outputs) or tuple(f"y{k + 1}" for k in range(p))
        self.states = tuple(states) or tuple(f"x{k + 1}" for k in range(n))
        if (len(self.inputs), len(self.outputs), len(self.states)) != (m, p, n):
            raise ValueError(f"Names are needed for {m} inputs, {p} outputs and {n} states.")
        self.micro_step = micro_step
        self.units = dict(units or {})


def _size(*candidates: tuple[ArrayLike | None, int]) -> int:
    """Rows (0) or columns (1) of the first matrix that is given."""
    for matrix, axis in candidates:
        if matrix is not None:
            return int(np.asarray(matrix, dtype=float).shape[axis])
    return 0


def _matrix(values: ArrayLike | None, rows: int, columns: int) -> NDArray[np.float64]:
    made = np.zeros((rows, columns)) if values is None else np.asarray(values, dtype=float)
    if made.shape != (rows, columns):
        raise ValueError(f"A matrix has the shape {made.shape} in place of {(rows, columns)}.")
    return made


def _vector(values: ArrayLike | None, size: int) -> NDArray[np.float64]:
    made = np.zeros(size) if values is None else np.asarray(values, dtype=float)
    if made.shape != (size,):
        raise ValueError(f"A vector has the shape {made.shape} in place of {(size,)}.")
    return made


EXAMPLE = LinearSystem(
    a=[[0, 1], [-1, -1]], b=[[0], [1]], c=np.eye(2), x0=[1, 0]
)  # a mass on a spring and a damper
"""The system of the FMU that build.py makes."""


_ENDS: Mapping[str, Any] = {
    "c": np.eye(2),
    "inputs": ["F"],
    "outputs": ["x", "v"],
    "states": ["position", "velocity"],
}
RIGID_LINK = {
    "mass1": LinearSystem(a=[[0, 1], [-1, -1]], b=[[0], [1]], x0=[1, 0], **_ENDS),
    "mass3": LinearSystem(a=[[0.0, 1.0], [-0.5, 0.0]], b=[[0.0], [0.5]], x0=[1, 0], **_ENDS),
}
"""1 kg on a spring with a damper, and 2 kg on a spring: Gomes et al. (2017), Co-simulation: state of the art, eq. (26)."""

TWO_MASS = {
    "mass1": LinearSystem(
        a=[[0, 1], [-1, -1]],
        b=[[0], [1]],
        x0=[1, 0],
        units={"F": "N", "x": "m", "v": "m/s", "position": "m", "velocity": "m/s"},
        **_ENDS,
    ),
    "mass2": LinearSystem(
        a=[[0, 1], [-2, -1]],
        b=[[0, 0], [1, 1]],
        c=[[1, 1]],
        d=[[-1, -1]],
        inputs=["x_c", "v_c"],
        outputs=["F"],
        states=["position", "velocity"],
        units={"x_c": "m", "v_c": "m/s", "F": "N", "position": "m", "velocity": "m/s"},
    ),
}
"""1 kg on a spring with a damper, and 1 kg on a spring (d2 = 0); a spring and a damper of 1 between them are in the second:
Gomes et al. (2017), Co-simulation: state of the art, eqs. (23) and (24)."""
