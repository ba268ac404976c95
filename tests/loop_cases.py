"""The loops of loops.md, section 4: functions, start values, solutions, and how many sweeps are enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import cos, sin, sqrt, tanh

MORE = 1.5
"""So many times the sweeps of the reference runs are enough (loops.md, section 4)."""

MOST_SWEEPS = 200
"""Before a loop without solution must be given up."""


@dataclass(frozen=True)
class Unit:
    """One function y = f(u) of one or several inputs, with its partial derivatives and the start values of the inputs."""

    function: Callable[..., float]
    partials: Callable[..., tuple[float, ...]]
    start: tuple[float, ...] = (0.0,)
    nominal: float | None = None
    """Of the output."""


def names_of(unit: Unit) -> list[str]:
    """Names of its inputs."""
    n = len(unit.start)
    return ["u"] if n == 1 else [f"u{k + 1}" for k in range(n)]


@dataclass(frozen=True)
class LoopCase:
    """A loop: units, which output feeds which input, and what must come out."""

    units: Mapping[str, Unit]
    connections: tuple[str, ...] = ("a.y -> b.u", "b.y -> a.u")
    solution: Mapping[str, float] = field(default_factory=dict)
    """Output → value; empty if there is none."""
    reason: str = ""
    """Class of the failure."""
    sweeps: int = MOST_SWEEPS
    """Of the reference run."""
    start: Mapping[str, float] = field(default_factory=dict)
    """Start values of the user; 0 for all other inputs."""


def ring(
    first: Callable[[float], float],
    derivative: Callable[[float], float],
    second: Callable[[float], float] = lambda u: u,
    slope: float = 1.0,
) -> dict[str, Unit]:
    """Two units in a ring."""
    return {
        "a": Unit(first, lambda u: (derivative(u),)),
        "b": Unit(second, lambda u: (slope,)),
    }


_A = ((0, 2, 0, -1), (1, 0, 1.5, 0), (-0.5, 1, 0, 2), (0, -2, 0.5, 0))
_B = (1, -2, 3, 0.5)


def _row(k: int) -> Unit:
    used = [j for j in range(4) if _A[k][j]]
    factors = tuple(float(_A[k][j]) for j in used)
    return Unit(
        lambda *u: sum(a * v for a, v in zip(factors, u, strict=True)) + _B[k],
        lambda *u: factors,
        (0.0,) * len(used),
    )


def _rows() -> dict[str, Unit]:
    return {f"s{k + 1}": _row(k) for k in range(4)}


def _row_connections() -> tuple[str, ...]:
    return tuple(
        f"s{j + 1}.y -> s{k + 1}.u{1 + [m for m in range(4) if _A[k][m]].index(j)}"
        if sum(1 for m in range(4) if _A[k][m]) > 1
        else f"s{j + 1}.y -> s{k + 1}.u"
        for k in range(4)
        for j in range(4)
        if _A[k][j]
    )


def _quadratic() -> dict[str, Unit]:
    return ring(lambda u: u * u / 4 + 0.75, lambda u: u / 2)


SINGULAR = "singular: loop gain 1 (no or no unique solution)"
STATIONARY = "no solution found (stationary residual 0.75 at 0.5)"

CASES: Mapping[str, LoopCase] = {
    "L1": LoopCase(
        ring(lambda u: 0.5 * u + 1, lambda u: 0.5, lambda u: 0.4 * u + 2, 0.4),
        solution={"a.y": 2.5, "b.y": 3.0},
        sweeps=3,
    ),
    "L2": LoopCase(
        ring(lambda u: -2 * u + 3, lambda u: -2.0, lambda u: 1.5 * u + 1, 1.5),
        solution={"a.y": 0.25, "b.y": 1.375},
        sweeps=3,
    ),
    "L3": LoopCase(
        ring(cos, lambda u: -sin(u)),
        solution={"a.y": 0.7390851332151607, "b.y": 0.7390851332151607},
        sweeps=8,
    ),
    "L4": LoopCase(
        ring(lambda u: 3 - u**3, lambda u: -3 * u * u),
        solution={"a.y": 1.2134116627622296},
        sweeps=19,
    ),
    "L5": LoopCase(
        _rows(),
        _row_connections(),
        solution={"s1.y": 85 / 23, "s2.y": 33 / 46, "s3.y": -15 / 23, "s4.y": -29 / 23},
        sweeps=6,
    ),
    "L6a": LoopCase(ring(lambda u: u * u + 1, lambda u: 2 * u), reason=STATIONARY),
    "L6b": LoopCase(ring(lambda u: u + 1, lambda u: 1.0), reason=SINGULAR),
    "L6c": LoopCase(
        ring(lambda u: u, lambda u: 1.0), solution={"a.y": 0.3}, sweeps=1, start={"a.u": 0.3}
    ),
    "L7a": LoopCase(_quadratic(), solution={"a.y": 1.0}, sweeps=9),
    "L7b": LoopCase(_quadratic(), solution={"a.y": 3.0}, sweeps=12, start={"a.u": 5.0}),
    "L7c": LoopCase(_quadratic(), solution={"a.y": 1.0}, sweeps=12, start={"a.u": 2.0}),
    "L8": LoopCase(
        {
            "pump": Unit(lambda q: 10 - q * q, lambda q: (-2 * q,)),
            "pipe": Unit(sqrt, lambda p: (0.5 / sqrt(p),)),
        },
        ("pump.y -> pipe.u", "pipe.y -> pump.u"),
        solution={"pump.y": 5.0, "pipe.y": sqrt(5.0)},
        sweeps=3,
        start={"pipe.u": 1.0},
    ),
    "L9": LoopCase(
        {
            "a": Unit(
                lambda u: 1e5 * (1 - tanh(u)), lambda u: (-1e5 * (1 - tanh(u) ** 2),), nominal=1e5
            ),
            "b": Unit(lambda u: 1e-5 * u, lambda u: (1e-5,), nominal=1.0),
        },
        solution={"a.y": 52129.8457000279, "b.y": 0.521298457000279},
        sweeps=8,
    ),
}

# With reference FMUs --------------------------------------------------------------------------------------------------

AFFINE: Mapping[str, Mapping[str, tuple[list[list[float]], list[float]]]] = {
    "L1": {"a": ([[0.5]], [1.0]), "b": ([[0.4]], [2.0])},
    "L2": {"a": ([[-2.0]], [3.0]), "b": ([[1.5]], [1.0])},
    "L5": {f"s{k + 1}": ([[float(a) for a in _A[k] if a]], [float(_B[k])]) for k in range(4)},
    "L6b": {"a": ([[1.0]], [1.0]), "b": ([[1.0]], [0.0])},
    "L6c": {"a": ([[1.0]], [0.0]), "b": ([[1.0]], [0.0])},
}
"""Case → unit → D and f of a LinearSystem without states."""

_SAME = {"c0": 0.0, "c1": 1.0}

PARAMETERS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "L3": {"a": {"function": 1}, "b": _SAME},
    "L4": {"a": {"c0": 3.0, "c1": 0.0, "c3": -1.0}, "b": _SAME},
    "L6a": {"a": {"c0": 1.0, "c1": 0.0, "c2": 1.0}, "b": _SAME},
    **{f"L7{k}": {"a": {"c0": 0.75, "c1": 0.0, "c2": 0.25}, "b": _SAME} for k in "abc"},
    "L8": {"pump": {"c0": 10.0, "c1": 0.0, "c2": -1.0}, "pipe": {"function": 3}},
    "L9": {
        "a": {"function": 2, "c0": 1e5, "c1": -1e5},
        "b": {"c0": 0.0, "c1": 1e-5},
    },
}
"""Case → unit → parameters of a LoopFunction."""
