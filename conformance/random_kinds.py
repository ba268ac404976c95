"""Random systems with events of several kinds, and their exact solutions.

Every system has its own longest communication step, in which the phase of the fastest mode changes by 0.2 to 0.7 rad,
and is run at that step size and at all shorter ones. Systems are drawn until one has a suitable number of events and does
not depend on its start values so strongly that a change by 1e-4 shifts an event by more than half of its longest step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from exact_hybrid import CoupledSystem, Solution, solve
from hybrid_system import Event, Form, HybridSystem, Mode, Signal, Transition

SEED = 28
SIZES = (0.02, 0.05, 0.1, 0.2)
"""[s] Communication step sizes."""
VERSIONS = ("fmi2", "fmi3", "mixed", "me2", "me3")
"""FMI versions of the units; mixed: in turn; me: Model Exchange."""

_STEPS = 100
"""Longest steps until the end."""
_CHANGE = 1e-4
"""Relative change of the start values to measure the sensitivity of the events."""
_EVENTS = 3, 60
"""Least and largest number of executions."""
_SHORTEST_GAP = 0.3
"""Of the longest step: least time between two events of different instants."""


@dataclass(frozen=True)
class Case:
    """A system, how it is built, and its exact solution."""

    kind: str
    number: int
    system: CoupledSystem
    longest: float
    """[s] Largest step size."""
    version: str
    """One of ``VERSIONS``."""
    is_held: bool
    """Whether the FMUs hold their inputs; otherwise these can be polynomials."""
    stop_time: float
    """[s]"""
    exact: Solution

    @property
    def sizes(self) -> tuple[float, ...]:
        """Step sizes in s at which it is run."""
        return tuple(size for size in SIZES if size <= self.longest)

    @property
    def angle(self) -> float:
        """[rad] By which the fastest mode turns in the longest step."""
        return self.exact.fastest * self.longest


class Chance:
    """Random numbers."""

    def __init__(self, *seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def between(self, low: float, high: float) -> float:
        return float(self._generator.uniform(low, high))

    def spread(self, low: float, high: float) -> float:
        return float(np.exp(self._generator.uniform(np.log(low), np.log(high))))

    def sign(self) -> float:
        return float(self._generator.choice((-1.0, 1.0)))

    def one_of(self, *values: int) -> int:
        return int(self._generator.choice(values))


@cache
def random_case(kind: str, number: int, seed: int = SEED) -> Case:
    """The system of that kind and number, from 0. Longest step, version and inputs follow from the number."""
    longest = SIZES[-1 - number % len(SIZES)]
    version = VERSIONS[number % len(VERSIONS)]
    is_held = bool((number + number // len(SIZES)) % 2)
    chance = Chance(seed, list(KINDS).index(kind), number)
    stop_time = _STEPS * longest
    while True:
        system = KINDS[kind](chance, chance.between(0.2, 0.7) / longest)
        exact = _suitable(system, stop_time, longest)
        if exact is not None:
            return Case(kind, number, system, longest, version, is_held, stop_time, exact)


def _suitable(system: CoupledSystem, stop_time: float, longest: float) -> Solution | None:
    """The exact solution, if the system is one that can be scored."""
    least, most = _EVENTS
    exact = solve(system, stop_time, longest / 50, most)
    if exact is None or not exact.is_clear or not least <= len(exact.events) <= most:
        return None
    times = np.array([e.time for e in exact.events])
    gaps = np.diff(times)
    if (gaps[gaps > 0.0] < _SHORTEST_GAP * longest).any() or times[-1] > stop_time - longest:
        return None
    for sign in (-1.0, 1.0):
        other = solve(system.changed(sign * _CHANGE), stop_time, longest / 50, most)
        if other is None or [e[1:] for e in other.events] != [e[1:] for e in exact.events]:
            return None
        if np.abs(np.array([e.time for e in other.events]) - times).max() > longest / 2:
            return None
    return exact


def _connected(*pairs: tuple[str, str]) -> dict[str, str]:
    """Connections of all orders: ("ball.u", "table.") → ball.u_x, ball.u_v, ball.u_a from table.x, table.v, table.a."""
    made: dict[str, str] = {}
    for target, source in pairs:
        made |= {f"{target}_{letter}": f"{source}{letter}" for letter in "xva"}
    return made


def _motion(acceleration: Form) -> tuple[dict[str, Form], dict[str, Form]]:
    """Rates and outputs of a body with position x and velocity v."""
    rates: dict[str, Form] = {"x": {"v": 1.0}, "v": acceleration}
    return rates, {"x": {"x": 1.0}, "v": {"v": 1.0}, "a": acceleration}


_MOTION = {"x": "v", "v": "a", "a": ""}
"""Outputs of a body, and their derivatives."""


# Kinds


def table(chance: Chance, fastest: float) -> CoupledSystem:
    """One or two balls on a table that swings, and is so heavy that it does not feel them."""
    amplitude = 1.0
    rates, outputs = _motion({"x": -(fastest**2)})
    units = {
        "table": HybridSystem(
            {
                "x": amplitude * chance.between(-1, 1),
                "v": amplitude * fastest * chance.between(-1, 1),
            },
            (Mode(rates, outputs),),
            _MOTION,
        )
    }
    gravity = amplitude * fastest**2 * chance.spread(0.4, 4.0)
    connections: dict[str, str] = {}
    for name in ("ball", "other")[: chance.one_of(1, 2)]:
        e = chance.between(0.85, 1.0)
        rates, outputs = _motion({"1": -gravity})
        hit = Transition(
            ({"x": 1, "u_x": -1}, {"v": 1, "u_v": -1}), 0, {"v": {"v": -e, "u_v": 1 + e}}
        )
        height = gravity / fastest**2 * chance.between(2.0, 8.0) + 1.5 * amplitude
        units[name] = HybridSystem(
            {"x": height, "v": 0.0},
            (Mode(rates, outputs),),
            _MOTION,
            (Signal("u_x", "u_v", "u_a"),),
            (Event("bounce", {0: hit}),),
        )
        connections |= _connected((f"{name}.u", "table."))
    return CoupledSystem(units, connections, {})


STICK, BEHIND, AHEAD = range(3)
"""Modes of a mass on a belt: it moves with the belt, slower, or faster."""


def stick_slip(chance: Chance, fastest: float) -> CoupledSystem:
    """One or two masses on springs, on a belt whose speed is constant or swings; two are connected by a spring."""
    speed = chance.between(0.3, 1.0)
    swing = speed * chance.between(0.0, 0.4) * chance.one_of(0, 1)
    slow = fastest * chance.between(0.1, 0.4)
    belt = HybridSystem(
        {"s": swing, "q": 0.0},
        (
            Mode(
                {"s": {"q": 1.0}, "q": {"s": -(slow**2)}},
                {"v": {"s": 1.0, "1": speed}, "a": {"q": 1.0}, "j": {"s": -(slow**2)}},
            ),
        ),
        {"v": "a", "a": "j", "j": ""},
    )
    units = {"belt": belt}
    connections: dict[str, str] = {}
    names = ("mass", "other")[: chance.one_of(1, 2)]
    for name in names:
        partner = {"mass": "other", "other": "mass"}[name] if len(names) == 2 else ""
        units[name] = _mass_on_belt(chance, fastest, speed, bool(partner))
        connections |= {f"{name}.u_{letter}": f"belt.{letter}" for letter in "vaj"}
        if partner:
            connections |= {f"{name}.p_{letter}": f"{partner}.{letter}" for letter in "xva"}
    return CoupledSystem(units, connections, {})


def _mass_on_belt(chance: Chance, fastest: float, speed: float, has_partner: bool) -> HybridSystem:
    own = fastest * (chance.between(0.5, 0.7) if has_partner else 1.0)
    link = fastest**2 - own**2 if has_partner else 0.0
    link *= 0.4
    damping = own * chance.between(0.01, 0.1)
    kinetic = own * speed * chance.between(0.5, 2.0)
    static = kinetic * chance.between(1.3, 2.5)
    pull: dict[str, float] = {"x": -(own**2) - link, "v": -damping}
    if has_partner:
        pull["p_x"] = link
    friction = {name: -factor for name, factor in pull.items()} | {"u_a": 1.0}
    against = {name: -factor for name, factor in friction.items()}
    accelerations = {
        STICK: {"u_a": 1.0},
        BEHIND: pull | {"1": kinetic},
        AHEAD: pull | {"1": -kinetic},
    }
    modes = tuple(Mode(*_motion(accelerations[m]), on=m == STICK) for m in (STICK, BEHIND, AHEAD))
    slower, faster = {"u_v": 1.0, "v": -1.0}, {"v": 1.0, "u_v": -1.0}
    closing = {name: -factor for name, factor in accelerations[BEHIND].items()} | {"u_a": 1.0}
    opening = accelerations[AHEAD] | {"u_a": -1.0}
    is_double = chance.one_of(0, 1)
    behind: tuple[Form, ...] = (slower, closing) if is_double else (slower,)
    ahead: tuple[Form, ...] = (faster, opening) if is_double else (faster,)
    same: dict[str, Form] = {"v": {"u_v": 1.0}}
    events = (
        Event(
            "stick",
            {BEHIND: Transition(behind, STICK, same), AHEAD: Transition(ahead, STICK, same)},
        ),
        Event("lag", {STICK: Transition(({"1": static} | against,), BEHIND)}),
        Event("lead", {STICK: Transition(({"1": static} | friction,), AHEAD)}),
    )
    signals = (Signal("u_v", "u_a", "u_j"), *[Signal("p_x", "p_v", "p_a")] * has_partner)
    starts = {"x": kinetic / own**2 * chance.between(-0.5, 0.5), "v": 0.0}
    return HybridSystem(starts, modes, _MOTION, signals, events, start_mode=BEHIND)


KINDS: Mapping[str, Callable[[Chance, float], CoupledSystem]] = {
    "table": table,
    "stick-slip": stick_slip,
}
"""Name → a random system whose fastest mode has about this angular frequency in rad/s."""
