"""Exact results of the cases: linear motions with jumps, in NumPy alone.

    python exact.py FOLDER

writes FOLDER/<motion>.csv: the time in s, each variable and, as ``der(...)``, its time derivative. There is a row every
0.01 s and, at an event, one row for each superdense instant: the left limit, the values after each jump, the right limit.

Between events the motion is ``x' = A x + b``. Its flow is a matrix exponential; events are located by bisection to the last
bit. After a jump all events are looked at again. So nothing here has a step size that matters, but the spacing of the rows.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Array = np.ndarray

SPACING = 0.01
"""[s] between rows; cubic interpolation between them is better than 1e-8 of each variable's range."""

TOUCH = 1e-9
"""[m, m/s] bodies that are as near touch, and approach if they are faster: far above the rounding of values of 10."""


@dataclass(frozen=True)
class Jump:
    """An event of two bodies or more: when ``gap @ x + distance`` comes down to 0, ``x`` becomes ``reset @ x``."""

    gap: Array
    distance: float
    reset: Array
    then: str = ""
    """The motion that follows, of `MODES`; empty for the same one."""


@dataclass(frozen=True)
class Motion:
    """States are positions, then velocities; ``names`` are the variables of the results."""

    names: tuple[str, ...]
    matrix: Array
    constant: Array
    start: Array
    jumps: tuple[Jump, ...]
    stop: float


def flow(motion: Motion, h: float) -> Callable[[Array], Array]:
    """The motion over `h` seconds without events: exponential of the augmented matrix by scaling and squaring."""
    n = len(motion.start)
    augmented = np.zeros((n + 1, n + 1))
    augmented[:n, :n], augmented[:n, n] = motion.matrix * h, motion.constant * h
    squarings = max(0, math.ceil(math.log2(max(np.abs(augmented).sum(axis=1).max(), 1e-300) * 16)))
    term = total = np.eye(n + 1)
    for k in range(1, 20):
        term = term @ (augmented / 2.0**squarings) / k
        total = total + term
    for _ in range(squarings):
        total = total @ total
    return lambda x: total[:n, :n] @ x + total[:n, n]


def is_on(motion: Motion, jump: Jump, x: Array) -> bool:
    """Whether bodies touch and approach."""
    rate = jump.gap @ (motion.matrix @ x + motion.constant)
    return bool(jump.gap @ x + jump.distance <= TOUCH and rate < -TOUCH)


def locate(motion: Motion, jump: Jump, x: Array, h: float) -> float:
    """The first time up to `h` at which the gap is closed; it is closed at `h`, and open or touching at 0."""
    before, after = 0.0, h
    while before < (middle := before + (after - before) / 2) < after:
        closed = jump.gap @ flow(motion, middle)(x) + jump.distance <= 0.0
        before, after = (before, middle) if closed else (middle, after)
    return after


def rows(motion: Motion) -> list[tuple[float, Array, Array]]:
    """Times, states and their rates, with one row for each superdense instant."""
    x, t, found = motion.start, 0.0, list[tuple[float, Array, Array]]()
    stop, whole = motion.stop, flow(motion, SPACING)

    def note() -> None:
        found.append((t, x, motion.matrix @ x + motion.constant))

    def settle() -> None:
        nonlocal x, motion, whole
        while on := [j for j in motion.jumps if is_on(motion, j, x)]:
            x = on[0].reset @ x
            if on[0].then:
                motion = MODES[on[0].then]
                whole = flow(motion, SPACING)
            note()

    note()
    settle()
    for k in range(1, round(stop / SPACING) + 1):
        end = k * SPACING
        while True:
            first = t == (k - 1) * SPACING
            at_end = whole(x) if first else flow(motion, end - t)(x)
            hit = [j for j in motion.jumps if is_on(motion, j, at_end)]
            if not hit:
                break
            until = min(locate(motion, j, x, end - t) for j in hit)
            x, t = flow(motion, until)(x), t + until
            note()
            settle()
        x, t = at_end, end
        note()
    return found


# The motions ----------------------------------------------------------------------------------------------------------


def bodies(
    names: Sequence[str],
    start: Sequence[tuple[float, float]],
    jumps: Sequence[Jump],
    stop: float,
    *,
    stiffness: Array | None = None,
    damping: Array | None = None,
    constant: Sequence[float] = (),
) -> Motion:
    """Bodies with ``x'' = stiffness x + damping x' + constant``; `names` are positions, then velocities."""
    n = len(start)
    matrix = np.zeros((2 * n, 2 * n))
    matrix[:n, n:] = np.eye(n)
    matrix[n:, :n] = np.zeros((n, n)) if stiffness is None else stiffness
    matrix[n:, n:] = np.zeros((n, n)) if damping is None else damping
    first = np.array([x for x, _ in start] + [v for _, v in start])
    right = np.concatenate([np.zeros(n), np.zeros(n) if len(constant) == 0 else constant])
    return Motion(tuple(names), matrix, right, first, tuple(jumps), stop)


def hit(n: int, low: int, high: int, distance: float, masses: Sequence[float]) -> Jump:
    """An elastic hit of two of `n` bodies whose middles are `distance` apart then."""
    gap, reset = np.zeros(2 * n), np.eye(2 * n)
    gap[low], gap[high] = -1.0, 1.0
    m, k = masses[low], masses[high]
    reset[n + low, n + low], reset[n + low, n + high] = (m - k) / (m + k), 2 * k / (m + k)
    reset[n + high, n + high], reset[n + high, n + low] = (k - m) / (m + k), 2 * m / (m + k)
    return Jump(gap, -distance, reset)


def wall(n: int, body: int, place: float, sign: float, restitution: float = 1.0) -> Jump:
    """A body hits a wall, which is above (`sign` 1) or below (-1) it."""
    gap, reset = np.zeros(2 * n), np.eye(2 * n)
    gap[body] = -sign
    reset[n + body, n + body] = -restitution
    return Jump(gap, sign * place, reset)


def rope(masses: Sequence[float], length: float) -> Jump:
    """A rope around all bodies goes taut: the same impulse for each, elastic."""
    n = len(masses)
    gap, reset = np.zeros(2 * n), np.eye(2 * n)
    gap[:n] = -1.0
    inverse = 1 / np.array(masses)
    reset[n:, n:] -= 2 * np.outer(inverse, np.ones(n)) / inverse.sum()
    return Jump(gap, length, reset)


def two_masses() -> Motion:
    """Two blocks on springs, hung below each other: Dejaco and Benedikt (2017), benchmark B1."""
    m, k, d, size = (0.2, 0.3), 1.0, 0.01, 1.1
    inverse = np.diag([1 / m[0], 1 / m[1]])
    springs = np.array([[-2.0, 1.0], [1.0, -1.0]])
    return bodies(
        ("upper.x", "lower.x", "upper.v", "lower.v"),
        ((-0.7, 3.5), (-8.8, 3.0)),
        (hit(2, 1, 0, size, m), wall(2, 0, -size / 2, 1.0)),
        7.0,
        stiffness=k * inverse @ springs,
        damping=d * inverse @ springs,
        constant=(-9.81, -9.81),
    )


def cradle() -> Motion:
    """Newton's cradle: five balls that touch, the first of which is released."""
    names = tuple(f"ball{k}.{y}" for y in "xv" for k in range(1, 6))
    start = [(float(k) if k else -0.5, 0.0) for k in range(5)]
    hits = [hit(5, k, k + 1, 1.0, (1.0,) * 5) for k in range(4)]
    w = math.pi**2
    rest = [w * k for k in range(5)]
    return bodies(names, start, hits, 4.0, stiffness=-w * np.eye(5), constant=rest)


def switched(rate: float, gap: tuple[float, float], distance: float, then: str) -> Motion:
    """A level x that rises or falls, and the number y of its mode, which changes where x has come to a limit."""
    jump = Jump(np.array(gap), distance, np.array([[1.0, 0.0], [0.0, -1.0]]), then)
    matrix, constant = np.zeros((2, 2)), np.array([rate, 0.0])
    return Motion(("x", "y"), matrix, constant, np.array([0.2, 1.0]), (jump,), 4.0)


def stack(landed: int) -> Motion:
    """Four balls above a floor, which fall and stay where they hit what is below, one after the other."""
    n = 5
    plastic = np.eye(2 * n)
    jumps = []
    if landed < n - 1:
        low, high = landed, landed + 1
        gap = np.zeros(2 * n)
        gap[low], gap[high] = -1.0, 1.0
        plastic[n + high, n + high] = 0.0
        jumps = [Jump(gap, -1.0, plastic, f"stack {high}")]
    names = tuple(f"ball{k}.{y}" for y in "xv" for k in range(1, n + 1))
    start = [(1.5 * k, 0.0) for k in range(n)]
    falls = [0.0 if k <= landed else -9.81 for k in range(n)]
    return bodies(names, start, jumps, 2.0, constant=falls)


MODES = {
    "rising": switched(1.0, (-1.0, 0.0), 1.0, "falling"),
    "falling": switched(-1.0, (1.0, 0.0), 0.0, "rising"),
    **{f"stack {landed}": stack(landed) for landed in range(5)},
}
"""Motions that others go on with."""

MOTIONS = {
    "modes": MODES["rising"],
    "stack": MODES["stack 0"],
    "ball": bodies(
        ("h", "v"), ((1.0, 0.0),), (wall(1, 0, 0.0, -1.0, 0.7),), 2.4, constant=(-9.81,)
    ),
    "start-ball": bodies(
        ("h", "v"), ((0.0, -3.0),), (wall(1, 0, 0.0, -1.0, 0.7),), 1.0, constant=(-9.81,)
    ),
    # a mass of 0.2 kg on a spring of 1 N/m, which hits the ceiling with its upper edge
    "ceiling": bodies(
        ("x", "v"),
        ((-0.7, 3.5),),
        (wall(1, 0, -0.55, 1.0),),
        7.0,
        stiffness=np.array([[-5.0]]),
        constant=(-9.81,),
    ),
    # a ball of 1 kg meets one of 3 kg, whose motion is an input and does not change
    "meeting": bodies(
        ("x", "right.x", "v", "right.v"),
        ((0.0, 1.0), (3.0, -0.5)),
        (
            Jump(
                np.array([-1.0, 1.0, 0.0, 0.0]),
                -1.0,
                np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, -0.5, 1.5], [0, 0, 0, 1]]),
            ),
        ),
        3.0,
    ),
    "two-masses": two_masses(),
    "cradle": cradle(),
    "rope": bodies(
        tuple(f"mass{k}.{y}" for y in "xv" for k in (1, 2, 3)),
        ((0.0, 1.0), (0.0, 2.0), (0.0, 3.0)),
        (rope((1.0, 2.0, 4.0), 3.0),),
        4.0,
        constant=(2.0, 2.0, 2.0),
    ),
}


def write(name: str, folder: Path) -> Path:
    """Write the exact results of one motion."""
    motion = MOTIONS[name]
    path = folder / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time", *motion.names, *(f"der({n})" for n in motion.names)])
        for t, x, rates in rows(motion):
            writer.writerow([repr(float(value)) for value in (t, *x, *rates)])
    return path


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for motion_name in MOTIONS:
        print(write(motion_name, target))
