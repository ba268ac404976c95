"""Nets of linear units for ``unasked.py``: masses, circuits, walls, control loops, algebraic loops, random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from linear_system import TWO_MASS, LinearSystem
from unasked_nets import Connection, Net, unit


def connected(*texts: str) -> list[Connection]:
    """ "a.y1 -> b.u1" or "a.y1 -> b.u1 * -1"."""
    made = []
    for text in texts:
        source, _, rest = text.partition(" -> ")
        target, _, factor = rest.partition(" * ")
        made.append(Connection(source, target, float(factor or 1.0)))
    return made


SURVEY = Net(
    TWO_MASS, connected("mass1.x -> mass2.x_c", "mass1.v -> mass2.v_c", "mass2.F -> mass1.F")
)


def _mass(k: float, d: float, x0: float, inputs: int) -> LinearSystem:
    """1 kg on a spring and a damper; position and velocity from the sum of forces."""
    return unit([[0, 1], [-k, -d]], [[0] * inputs, [1] * inputs], np.eye(2), x0=[x0, 0])


def _spring(k: float, d: float) -> LinearSystem:
    """A spring and a damper between two masses, which have no states: the force on the first."""
    return unit(None, None, None, [[-k, -d, k, d]])


def three_masses() -> Net:
    """Between the masses are FMUs without states."""
    units = {"m1": _mass(4, 0.2, 1, 1), "s12": _spring(3, 0.1), "m2": _mass(2, 0.1, 0, 2)}
    units |= {"s23": _spring(5, 0.2), "m3": _mass(6, 0.3, -0.5, 1)}
    lines = []
    for s, first, second, k in (("s12", "m1", "m2", 1), ("s23", "m2", "m3", 2)):
        for j, (mass, y) in enumerate(((first, 1), (first, 2), (second, 1), (second, 2)), start=1):
            lines.append(f"{mass}.y{y} -> {s}.u{j}")
        lines += [f"{s}.y1 -> {first}.u{k}", f"{s}.y1 -> {second}.u1 * -1"]
    return Net(units, connected(*lines))


def ladder(count: int, ratio: float = 1.0) -> Net:
    """Resistors and capacitors in a row behind a source of 5 V; each is ``ratio`` times as fast as the one before it."""
    units, lines = {}, []
    for k in range(count):
        rate = ratio**k
        ends = [[rate, rate]] if k < count - 1 else [[rate]]
        sum_of_rates = -rate * len(ends[0])
        units[f"rc{k + 1}"] = unit([[sum_of_rates]], ends, [[1]])
        if k:
            lines += [f"rc{k}.y1 -> rc{k + 1}.u1", f"rc{k + 1}.y1 -> rc{k}.u2"]
    first = units["rc1"]
    units["rc1"] = changed(first, u0=[5.0] + [0.0] * (first.b.shape[1] - 1))
    return Net(units, connected(*lines))


def changed(system: LinearSystem, **values: Any) -> LinearSystem:
    """The same system with other start values of its inputs, ``u0``, or another ``micro_step``."""
    names = (*"abcdef", "x0", "u0", "inputs", "outputs", "states", "micro_step", "units")
    return LinearSystem(**({name: getattr(system, name) for name in names} | values))


def wall() -> Net:
    """A wall of eight layers in two FMUs, between a room with a heater and the weather."""
    n, g = 4, 2.0
    a = -2 * g * np.eye(n) + g * (np.eye(n, k=1) + np.eye(n, k=-1))
    ends = np.zeros((n, 2))
    ends[0, 0] = ends[-1, 1] = g
    both = np.zeros((2, n))
    both[0, 0] = both[1, -1] = 1
    inner, outer = (unit(a, ends, both, x0=[x] * n) for x in (15.0, 5.0))
    room = unit([[-0.8]], [[0.8]], [[1]], e=[3.0], x0=[18])
    weather = unit(
        [[0, 0.5, 0], [-0.5, 0, 0], [0, 0, 0]], np.zeros((3, 0)), [[1, 0, 1]], x0=[0, 3, 2]
    )
    return Net(
        {"room": room, "inner": inner, "outer": outer, "weather": weather},
        connected(
            *("room.y1 -> inner.u1", "inner.y1 -> room.u1", "inner.y2 -> outer.u1"),
            *("outer.y1 -> inner.u2", "weather.y1 -> outer.u2"),
        ),
    )


def rooms() -> Net:
    """Three rooms of unequal size that exchange heat; the first one is heated."""
    units, lines = {}, []
    for k, (capacity, heat) in enumerate(((1.0, 8.0), (3.0, 0.0), (0.6, 0.0)), start=1):
        loss, exchange = 0.3 / capacity, 0.7 / capacity
        units[f"r{k}"] = unit(
            [[-loss - 2 * exchange]],
            [[exchange, exchange]],
            [[1]],
            e=[heat / capacity],
            x0=[10.0 + k],
        )
        others = [n for n in (1, 2, 3) if n != k]
        lines += [f"r{n}.y1 -> r{k}.u{j}" for j, n in enumerate(others, start=1)]
    return Net(units, connected(*lines))


def stiff_circuit() -> Net:
    """A capacitor fed by a source, and a load of a resistor and a small capacitor: time constants of 1 s and 10 ms."""
    source = unit([[0, 2], [-2, 0]], np.zeros((2, 0)), [[1, 0]], x0=[0, 5])
    line = unit([[-1]], [[1, 1]], [[1]], x0=[0])
    load = unit(
        [[-100]],
        [[100]],
        [
            [
                -2,
            ]
        ],
        x0=[0],
    )
    return Net(
        {"source": source, "line": line, "load": load},
        connected("source.y1 -> line.u1", "line.y1 -> load.u1", "load.y1 -> line.u2"),
    )


def stiff_resistor() -> Net:
    """A capacitor with a resistor that has no state: with held inputs the step is limited by its time constant."""
    source = unit([[0, 2], [-2, 0]], np.zeros((2, 0)), [[1, 0]], x0=[0, 5])
    return Net(
        {
            "source": source,
            "capacitor": unit([[0]], [[25]], [[1]]),
            "resistor": unit(None, None, None, [[1, -1]]),
        },
        connected(
            "source.y1 -> resistor.u1", "capacitor.y1 -> resistor.u2", "resistor.y1 -> capacitor.u1"
        ),
    )


def rates() -> Net:
    """A fast oscillator beside a slow one: 40 to 1."""
    fast = unit([[0, 1], [-1600, -4]], [[0], [800]], [[1, 0]], x0=[1, 0])
    slow = unit([[0, 1], [-1, -0.1]], [[0], [0.3]], [[1, 0]], x0=[1, 0])
    return Net({"slow": slow, "fast": fast}, connected("slow.y1 -> fast.u1", "fast.y1 -> slow.u1"))


def pi_loop() -> Net:
    """A controller that acts directly on what it measures, and a plant of second order."""
    plant = unit([[0, 1], [-4, -1.2]], [[0], [4]], [[1, 0]])
    control = unit([[0]], [[-1]], [[1.2]], [[-1.5]], [1], [1.5])
    return Net(
        {"control": control, "plant": plant},
        connected("control.y1 -> plant.u1", "plant.y1 -> control.u1"),
    )


def cascade() -> Net:
    """A sine through two filters, without a way back."""
    units = {
        "sine": unit([[0, 3], [-3, 0]], np.zeros((2, 0)), [[1, 0]], x0=[0, 1]),
        "first": unit([[-2]], [[2]], [[1]]),
        "second": unit([[-5]], [[5]], [[1]]),
    }
    return Net(units, connected("sine.y1 -> first.u1", "first.y1 -> second.u1"))


def motor() -> Net:
    """A motor: its winding, its shaft, and a load on an elastic coupling."""
    units = {
        "winding": unit([[-200]], [[-50]], [[0.5]], e=[240]),
        "shaft": unit([[-0.2]], [[50, -50]], [[1], [1]]),
        "load": unit([[0, 1], [-8, -1]], [[0], [8]], [[0.05, 0]]),
    }
    return Net(
        units,
        connected(
            *("winding.y1 -> shaft.u1", "shaft.y1 -> winding.u1"),
            *("shaft.y2 -> load.u1 * 0.1", "load.y1 -> shaft.u2"),
        ),
    )


def loop(gain: float) -> Net:
    """Two units with states, whose outputs depend directly on each other: an algebraic loop of this gain."""
    first = unit([[-1]], [[-0.3]], [[1]], [[1]], e=[1], x0=[0.5])
    second = unit([[-2, 0], [0, -0.5]], [[0.4], [0.2]], [[1, 0.5]], [[gain]], f=[0.3], x0=[1, -1])
    return Net({"a": first, "b": second}, connected("a.y1 -> b.u1", "b.y1 -> a.u1"))


def random_net(seed: int) -> tuple[Net, float]:
    """Two to five units of one to three states, and the time in s in which the slowest mode decays."""
    chance = np.random.default_rng([29, seed])
    while True:
        count = int(chance.integers(2, 6))
        units, lines = {}, []
        for k in range(count):
            m = int(chance.integers(1, 4))
            a = chance.normal(size=(m, m)) * 10 ** chance.uniform(-0.5, 0.8)
            decay = max(float(np.linalg.eigvals(a).real.max()), 0.0) + 10 ** chance.uniform(
                -1.2, 0.5
            )
            units[f"c{k}"] = unit(
                a - decay * np.eye(m),
                2 * chance.normal(size=(m, 2)),
                chance.normal(size=(2, m)),
                e=3 * chance.normal(size=m),
                x0=chance.normal(size=m),
            )
            for i in (1, 2):
                if chance.random() < 0.85:
                    source = (k + int(chance.integers(1, count))) % count
                    factor = float(chance.normal())
                    lines.append(
                        f"c{source}.y{int(chance.integers(1, 3))} -> c{k}.u{i} * {factor!r}"
                    )
        net = Net(units, connected(*lines))
        eigenvalues = net.closed().eigenvalues
        slowest, fastest = float(-eigenvalues.real.max()), float(np.abs(eigenvalues).max())
        if slowest > 0.02 and fastest < 150 * slowest and lines:
            return net, min(10 / slowest, 30.0)


FOUR_UNITS = {
    ("S4.y42", "S1.u11"),
    ("S1.y11", "S2.u21"),
    ("S2.y21", "S3.u31"),
    ("S4.y41", "S3.u32"),
    ("S1.y12", "S4.u41"),
    ("S3.y31", "S4.u42"),
}


def four_units() -> Net:
    """Their equations: the readme of fmus/FourUnitsS1."""
    c, d, j1, j3, j4, kp, ki, r = 1000.0, 44.27, 0.1, 0.9, 0.5, 100.0, 0.1, 10.0
    units = {
        "S1": unit(
            [[0, -1 / j1], [c, -d / j1]],
            [[1], [d]],
            [[0, 1 / j1], [c, -d / j1]],
            [[0], [d]],
            inputs=["u11"],
            outputs=["y11", "y12"],
        ),
        "S2": unit(
            [[0]], [[-ki]], [[1]], [[-kp]], [ki * r], [kp * r], inputs=["u21"], outputs=["y21"]
        ),
        "S3": unit([[0]], [[1, -1]], [[1 / j3]], inputs=["u31", "u32"], outputs=["y31"]),
        "S4": unit(
            [[0, -1 / j4], [c, -d / j4]],
            [[0, 1], [-1, d]],
            [[c, -d / j4], [0, 1 / j4]],
            [[0, d], [0, 0]],
            inputs=["u41", "u42"],
            outputs=["y41", "y42"],
        ),
    }
    return Net(units, [Connection(*ends) for ends in sorted(FOUR_UNITS)])
