"""Systems with events of several kinds, whose parameters are random: balls on a table, stick and slip, clutches, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from exact_hybrid import CoupledSystem
from hybrid_system import Event, Form, HybridSystem, Mode, Signal, Transition

Chance = np.random.Generator


def _spread(chance: Chance, low: float, high: float) -> float:
    return float(np.exp(chance.uniform(np.log(low), np.log(high))))


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
                "x": amplitude * chance.uniform(-1, 1),
                "v": amplitude * fastest * chance.uniform(-1, 1),
            },
            (Mode(rates, outputs),),
            _MOTION,
        )
    }
    gravity = amplitude * fastest**2 * _spread(chance, 0.4, 4.0)
    connections: dict[str, str] = {}
    for name in ("ball", "other")[: int(chance.choice((1, 2)))]:
        e = chance.uniform(0.85, 1.0)
        rates, outputs = _motion({"1": -gravity})
        hit = Transition(
            ({"x": 1, "u_x": -1}, {"v": 1, "u_v": -1}), 0, {"v": {"v": -e, "u_v": 1 + e}}
        )
        height = gravity / fastest**2 * chance.uniform(2.0, 8.0) + 1.5 * amplitude
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
    speed = chance.uniform(0.3, 1.0)
    swing = speed * chance.uniform(0.0, 0.4) * int(chance.choice((0, 1)))
    slow = fastest * chance.uniform(0.1, 0.4)
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
    names = ("mass", "other")[: int(chance.choice((1, 2)))]
    for name in names:
        partner = {"mass": "other", "other": "mass"}[name] if len(names) == 2 else ""
        units[name] = _mass_on_belt(chance, fastest, speed, bool(partner))
        connections |= {f"{name}.u_{letter}": f"belt.{letter}" for letter in "vaj"}
        if partner:
            connections |= {f"{name}.p_{letter}": f"{partner}.{letter}" for letter in "xva"}
    return CoupledSystem(units, connections, {})


def _mass_on_belt(chance: Chance, fastest: float, speed: float, has_partner: bool) -> HybridSystem:
    own = fastest * (chance.uniform(0.5, 0.7) if has_partner else 1.0)
    link = fastest**2 - own**2 if has_partner else 0.0
    link *= 0.4
    damping = own * chance.uniform(0.01, 0.1)
    kinetic = own * speed * chance.uniform(0.5, 2.0)
    static = kinetic * chance.uniform(1.3, 2.5)
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
    is_double = int(chance.choice((0, 1)))
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
    starts = {"x": kinetic / own**2 * chance.uniform(-0.5, 0.5), "v": 0.0}
    return HybridSystem(starts, modes, _MOTION, signals, events, start_mode=BEHIND)


def thermostats(chance: Chance, fastest: float) -> CoupledSystem:
    """Two or three rooms that exchange heat, each with a controller that switches its heating."""
    count = int(chance.choice((2, 3)))
    units: dict[str, HybridSystem] = {}
    connections: dict[str, str] = {}
    booleans: dict[str, str] = {}
    rate = fastest * chance.uniform(0.05, 0.15)
    for k in range(count):
        name, control = f"room{k + 1}", f"control{k + 1}"
        neighbours = [f"room{n + 1}" for n in range(count) if n != k]
        loss, heating = rate * chance.uniform(0.5, 1.0), rate * chance.uniform(1.5, 3.0)
        exchange = rate * chance.uniform(0.1, 0.5) / count
        change: dict[str, float] = {"T": -loss - exchange * len(neighbours), "heat": heating}
        change |= {f"T{n + 1}": exchange for n in range(len(neighbours))}
        outputs: dict[str, Form] = {"T": {"T": 1.0}, "dT": change}
        signals = (
            Signal("heat"),
            *(Signal(f"T{n + 1}", f"dT{n + 1}") for n in range(len(neighbours))),
        )
        start = {"T": chance.uniform(0.2, 0.8)}
        units[name] = HybridSystem(
            start, (Mode({"T": change}, outputs),), {"T": "dT", "dT": ""}, signals
        )
        middle = chance.uniform(0.4, 0.7)
        half = chance.uniform(0.05, 0.15)
        units[control] = _hysteresis(middle - half, middle + half, "heat", Signal("T", "dT"))
        booleans[f"{control}.heat"] = f"{control}.on"
        connections |= {f"{name}.heat": f"{control}.heat"}
        connections |= {f"{control}.T": f"{name}.T", f"{control}.dT": f"{name}.dT"}
        for n, neighbour in enumerate(neighbours):
            connections |= {f"{name}.T{n + 1}": f"{neighbour}.T"}
            connections |= {f"{name}.dT{n + 1}": f"{neighbour}.dT"}
    return CoupledSystem(units, connections, {}, booleans)


def _hysteresis(low: float, high: float, output: str, signal: Signal) -> HybridSystem:
    """The output is 1 from `low` on, until the signal is `high`; then it is 0."""
    return HybridSystem(
        {},
        (Mode({}, {output: {}}), Mode({}, {output: {"1": 1.0}}, on=True)),
        {output: ""},
        (signal,),
        (
            Event("low", {0: Transition(({signal.value: 1.0, "1": -low},), 1)}),
            Event("high", {1: Transition(({signal.value: -1.0, "1": high},), 0)}),
        ),
        start_mode=1,
    )


LOCKED, ENGINE_SLOW, ENGINE_FAST = range(3)
"""Modes of a clutch: no slip, the engine slower or faster than the load."""


def clutch(chance: Chance, fastest: float) -> CoupledSystem:
    """An engine whose torque swings and a load on a spring, with dry friction between them: both lock and slip together."""
    inertia = {"engine": chance.uniform(0.5, 2.0), "load": chance.uniform(0.5, 2.0)}
    capacity = chance.uniform(0.5, 1.5)
    limit = capacity * chance.uniform(1.2, 2.0)
    damping = fastest * chance.uniform(0.05, 0.2)
    slow = fastest * chance.uniform(0.3, 0.8)
    swing = capacity * chance.uniform(1.0, 4.0)
    stiffness = fastest**2 * inertia["load"]
    torque: dict[str, dict[str, float]] = {
        "engine": {"s": swing, "w": -damping * inertia["engine"]},
        "load": {"angle": -stiffness, "w": -damping * inertia["load"]},
    }
    extra: dict[str, dict[str, Form]] = {
        "engine": {"s": {"q": 1.0}, "q": {"s": -(slow**2)}},
        "load": {"angle": {"w": 1.0}},
    }
    starts = {
        "engine": {
            "w": swing / fastest * chance.uniform(0.2, 1.0),
            "s": chance.uniform(-1, 1),
            "q": slow,
        },
        "load": {"w": 0.0, "angle": 0.0},
    }
    is_double = bool(chance.choice((0, 1)))
    halves = {
        name: _Half(name, inertia, torque[name], extra[name], capacity, limit, is_double)
        for name in inertia
    }
    units = {name: half.system(starts[name]) for name, half in halves.items()}
    connections: dict[str, str] = {}
    for name, other in (("engine", "load"), ("load", "engine")):
        names = ("w", "a", "torque", "slope")
        connections |= {f"{name}.u_{signal}": f"{other}.{signal}" for signal in names}
    shared = {e.name: (("engine", e.name), ("load", e.name)) for e in units["engine"].events}
    return CoupledSystem(units, connections, shared)


@dataclass(frozen=True)
class _Half:
    """The engine or the load. Torques on the load by the engine are positive if the engine is faster."""

    name: str
    inertia: Mapping[str, float]
    torque: Mapping[str, float]
    """A form of states."""
    extra: Mapping[str, Form]
    """Rates of states beside the speed w."""
    capacity: float
    limit: float
    """Torque that the clutch passes in slip, and torque at which it slips."""
    is_double: bool
    """The lock has two indicators: the difference of the speeds and its derivative."""

    @property
    def sign(self) -> float:
        return 1.0 if self.name == "engine" else -1.0

    @property
    def other(self) -> float:
        """Moment of inertia of the other half."""
        return sum(self.inertia.values()) - self.inertia[self.name]

    def brake(self, mode: int) -> float:
        """Torque by the clutch in slip."""
        return self.capacity * (-self.sign if mode == ENGINE_FAST else self.sign)

    def accelerated(self, mode: int) -> dict[str, float]:
        own, both = self.inertia[self.name], sum(self.inertia.values())
        if mode == LOCKED:
            return {n: f / both for n, f in self.torque.items()} | {"u_torque": 1 / both}
        return {n: f / own for n, f in self.torque.items()} | {"1": self.brake(mode) / own}

    def mode(self, number: int) -> Mode:
        accelerated = self.accelerated(number)
        slope: dict[str, float] = {}  # the time derivative of the torque
        for state, factor in self.torque.items():
            for n, f in (accelerated if state == "w" else self.extra[state]).items():
                slope[n] = slope.get(n, 0.0) + factor * f
        outputs: dict[str, Form] = {"w": {"w": 1.0}, "a": accelerated}
        outputs |= {"torque": self.torque, "slope": slope}
        return Mode({"w": accelerated, **self.extra}, outputs, on=number == LOCKED)

    def lock(self, mode: int) -> Transition:
        """At equal speeds; then both have the common speed and acceleration."""
        own, both = self.inertia[self.name], sum(self.inertia.values())
        factor = self.sign if mode == ENGINE_FAST else -self.sign
        rate = {n: factor * f for n, f in self.accelerated(mode).items()} | {"u_a": -factor}
        indicators = ({"w": factor, "u_w": -factor}, rate)[: 1 + self.is_double]
        common: Form = {"w": own / both, "u_w": self.other / both}
        partner: dict[str, Form] = {"u_w": common, "u_a": self.accelerated(LOCKED)}
        return Transition(indicators, LOCKED, {"w": common}, partner)

    def slip(self, mode: int) -> Transition:
        """Where the clutch passes the limit of the torque; then the other half has the acceleration of its new mode."""
        own, both = self.inertia[self.name], sum(self.inertia.values())
        factor = -1.0 if mode == ENGINE_FAST else 1.0
        # The torque that is passed to the load: T1 - J1 a = (J2 T1 - J1 T2) / (J1 + J2)
        rest = {n: factor * self.sign * f * self.other / both for n, f in self.torque.items()}
        rest |= {"u_torque": -factor * self.sign * own / both, "1": self.limit}
        apart = {"u_torque": 1 / self.other, "1": -self.brake(mode) / self.other}
        return Transition((rest,), mode, partner={"u_a": apart})

    def system(self, starts: Mapping[str, float]) -> HybridSystem:
        locks = {mode: self.lock(mode) for mode in (ENGINE_SLOW, ENGINE_FAST)}
        events = [Event("lock", locks, shared=True, payload=("w", "u_w"))]
        for name, mode in (("ahead", ENGINE_FAST), ("behind", ENGINE_SLOW)):
            slip = {LOCKED: self.slip(mode)}
            events.append(Event(name, slip, shared=True, payload=("torque", "u_torque")))
        return HybridSystem(
            starts,
            tuple(self.mode(n) for n in (LOCKED, ENGINE_SLOW, ENGINE_FAST)),
            {"w": "a", "a": "", "torque": "slope", "slope": ""},
            (Signal("u_w", "u_a"), Signal("u_torque", "u_slope")),
            tuple(events),
            start_mode=ENGINE_FAST,
        )


def chain(chance: Chance, fastest: float) -> CoupledSystem:
    """Three to six unequal masses in a row, each on a spring of its own, that hit their neighbours."""
    count = int(chance.choice((3, 4, 5, 6)))
    masses = [_spread(chance, 0.4, 2.5) for _ in range(count)]
    restitution = [chance.uniform(0.7, 1.0) for _ in range(count - 1)]
    units: dict[str, HybridSystem] = {}
    connections: dict[str, str] = {}
    for k, mass in enumerate(masses):
        own = fastest * chance.uniform(0.3, 1.0)
        rest = k * chance.uniform(0.9, 1.1)
        rates, outputs = _motion(
            {"x": -(own**2), "v": -own * chance.uniform(0.0, 0.05), "1": own**2 * rest}
        )
        events, signals = [], []
        for side, other, gap in (("left", k - 1, -1.0), ("right", k + 1, 1.0)):
            if not 0 <= other < count:
                continue
            e = restitution[min(k, other)]
            part = (1 + e) * masses[other] / (mass + masses[other])
            distance: dict[str, float] = {f"{side}_x": gap, "x": -gap, "1": -0.5}
            speed: dict[str, float] = {f"{side}_v": gap, "v": -gap}
            reset: Form = {"v": 1 - part, f"{side}_v": part}
            back = (1 + e) * mass / (mass + masses[other])
            seen: Form = {f"{side}_v": 1 - back, "v": back}
            hit = Transition((distance, speed), 0, {"v": reset}, {f"{side}_v": seen})
            events.append(Event(side, {0: hit}, shared=True, payload=("v", f"{side}_v")))
            signals.append(Signal(*(f"{side}_{letter}" for letter in "xva")))
            connections |= _connected((f"mass{k + 1}.{side}", f"mass{other + 1}."))
        start = {"x": rest, "v": own * chance.uniform(-1.5, 1.5)}
        units[f"mass{k + 1}"] = HybridSystem(
            start, (Mode(rates, outputs),), _MOTION, tuple(signals), tuple(events)
        )
    shared = {f"hit{k}": ((f"mass{k}", "right"), (f"mass{k + 1}", "left")) for k in range(1, count)}
    return CoupledSystem(units, connections, shared)


def jump_table(chance: Chance, fastest: float) -> CoupledSystem:
    """A relay or a quantizer of three steps, whose output drives the body of which it gets the position."""
    damping = fastest * chance.uniform(0.02, 0.3)
    gain = fastest**2
    rates, outputs = _motion({"x": -(fastest**2), "v": -damping, "y": gain})
    body = HybridSystem(
        {"x": chance.uniform(-1, 1), "v": fastest * chance.uniform(-1, 1)},
        (Mode(rates, outputs),),
        _MOTION,
        (Signal("y"),),
    )
    width = chance.uniform(0.05, 0.3)
    is_relay = bool(chance.choice((0, 1)))
    signal = Signal("u", "du", "ddu")
    relay = _hysteresis(-width, width, "y", signal)
    unit = relay if is_relay else _quantizer(width, chance.uniform(0.4, 0.8), signal)
    connections = {"body.y": "unit.y"}
    connections |= {"unit.u": "body.x", "unit.du": "body.v", "unit.ddu": "body.a"}
    booleans = {"unit.y": "unit.on"} if is_relay else {}
    return CoupledSystem({"body": body, "unit": unit}, connections, {}, booleans)


def _quantizer(width: float, step: float, signal: Signal) -> HybridSystem:
    """y is -step, 0 or step; each step at +-0.5 step, with a hysteresis."""
    modes = tuple(Mode({}, {"y": {"1": y}}) for y in (-step, 0.0, step))
    limit, back = step / 2, step / 2 - step * width
    up = {
        0: Transition(({"u": -1.0, "1": -back},), 1),
        1: Transition(({"u": -1.0, "1": limit},), 2),
    }
    down = {
        1: Transition(({"u": 1.0, "1": limit},), 0),
        2: Transition(({"u": 1.0, "1": -back},), 1),
    }
    events = (Event("up", up), Event("down", down))
    return HybridSystem({}, modes, {"y": ""}, (signal,), events, start_mode=1)


KINDS: Mapping[str, Callable[[Chance, float], CoupledSystem]] = {
    "table": table,
    "stick-slip": stick_slip,
    "clutch": clutch,
    "thermostats": thermostats,
    "chain": chain,
    "jump table": jump_table,
}
"""Name → a random system whose fastest mode has about this angular frequency in rad/s."""
