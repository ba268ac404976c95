"""Systems of linear FMUs without events for ``unasked.py``, with their exact solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from linear_system import LinearSystem
from scipy.linalg import expm
from unasked_case import Case, Columns, net_case, whole
from unasked_linear import (
    FOUR_UNITS,
    SURVEY,
    cascade,
    changed,
    connected,
    four_units,
    ladder,
    loop,
    motor,
    pi_loop,
    random_net,
    rates,
    rooms,
    stiff_circuit,
    stiff_resistor,
    three_masses,
    wall,
)
from unasked_nets import Array, Made, Net, Piece, Signal, states, unit
from unasked_nonlinear import car_cases, nonlinear_cases

from fmimaster import SystemBuilder, reference_path

HOLDS = Made(holds=True)
FMI3, MIXED = Made("fmi3"), Made("mixed")
BOTH = (("", Made()), (", held", HOLDS))


def linear_cases() -> Iterator[Case]:
    """Systems of linear FMUs, and others that are as good as that."""
    for name, made in (("fmi2", Made()), ("fmi3", FMI3), ("mixed", MIXED), ("held", HOLDS)):
        yield net_case(f"two masses {name}", "masses", SURVEY, 20, made)
    for text, made in BOTH:
        yield net_case(f"three masses{text}", "masses", three_masses(), 20, made)
        yield net_case(f"RC ladder{text}", "circuits", ladder(3), 8, made)
        yield net_case(f"five RC{text}", "circuits", ladder(5, 1.6), 10, made)
        yield net_case(f"rates 40:1{text}", "rates", rates(), 10, made)
        yield net_case(f"motor{text}", "control", motor(), 4, made)
        yield net_case(f"PI loop{text}", "control", pi_loop(), 12, made)
        yield net_case(f"cascade{text}", "control", cascade(), 10, made)
    for name, made in (("fmi2", Made()), ("fmi3", FMI3)):
        yield net_case(
            f"stiff circuit {name}", "circuits", stiff_circuit(), 6, made, Fraction(1, 200)
        )
        yield net_case(
            f"stiff resistor {name}", "circuits", stiff_resistor(), 6, made, Fraction(19, 2000)
        )
        yield net_case(f"thermal wall {name}", "heat", wall(), 20, made)
        yield net_case(f"rooms {name}", "heat", rooms(), 10, made)
    yield net_case("rooms mixed, held", "heat", rooms(), 10, replace(HOLDS, version="mixed"))
    yield net_case("PI loop fmi3", "control", pi_loop(), 12, FMI3)
    yield net_case(
        "three masses without FMU states", "masses", three_masses(), 20, Made(states=False)
    )
    yield net_case(
        "PI loop without FMU states", "control", pi_loop(), 12, Made("fmi3", states=False)
    )
    yield net_case("cascade with a suggested step", "control", cascade(), 10, Made(suggested=0.02))
    yield net_case("motor with a suggested step", "control", motor(), 4, Made(suggested=5e-4))
    yield net_case("motor with a long suggested step", "control", motor(), 4, Made(suggested=4.0))


def loop_cases() -> Iterator[Case]:
    """Algebraic loops: declared, undeclared, and hidden by dependencies that are wrong."""
    for dependencies, gains in (
        ("declared", (-0.6, -1.05, -3.0, 0.5)),
        ("none", (-0.6, -0.95, -1.05, -2.0, -3.0, 0.5)),
        ("hidden", (-0.6, -2.0, 0.5)),
    ):
        text = {"declared": "loop", "none": "undeclared loop", "hidden": "hidden loop"}[
            dependencies
        ]
        for k, gain in enumerate(gains):
            made = Made(("fmi2", "fmi3")[k % 2], dependencies=dependencies)
            yield net_case(f"{text} {gain:g}", "loops", loop(gain), 10, made, Fraction(1, 20))
    yield net_case("no loop, undeclared", "loops", cascade(), 10, Made(dependencies="none"))


def filtered(name: str, made: Made, times: tuple[float, ...], values: tuple[float, ...]) -> Case:
    """Two filters behind an input from a file, the second one with a way back."""
    units = {"a": unit([[-3]], [[3, -1]], [[1]]), "b": unit([[-1]], [[1]], [[1]])}
    net = Net(units, connected("a.y1 -> b.u1", "b.y1 -> a.u2"), Signal("a.u1", times, values))
    return net_case(name, "input file", net, 8.0, made, Fraction(1, 20))


def input_cases() -> Iterator[Case]:
    """Inputs from files."""
    t = np.linspace(0, 8, 81)
    wave = tuple(map(float, t)), tuple(map(float, np.sin(1.5 * t)))
    stairs = (0.0, 1.0, 1.0, 3.03, 3.03, 5.5, 5.5, 8.0), (0.0, 0.0, 2.0, 2.0, -1.0, 0.5, 1.5, 1.0)
    yield filtered("file", Made(), *wave)
    yield filtered("file, held", HOLDS, *wave)
    yield filtered("file fmi3", FMI3, *wave)
    yield filtered("file with jumps", Made(), *stairs)
    yield filtered("file with jumps, held", HOLDS, *stairs)
    yield filtered("file with jumps fmi3", FMI3, *stairs)


def random_cases() -> Iterator[Case]:
    """Random nets, a third of them with FMUs that hold their inputs."""
    for seed in range(18):
        made = Made(("fmi2", "fmi3", "mixed")[seed // 2 % 3], holds=seed % 3 == 2)
        net, time = random_net(seed)
        yield net_case(f"random net {seed}", "random nets", net, time, made)


# Sampled control


def _held(plant: LinearSystem, gain: float, period: float, times: Array, first: float) -> Columns:
    """A plant whose input is ``gain * (1 - y)`` at the last multiple of the period."""
    n = len(plant.x0)
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n], matrix[:n, n] = plant.a, plant.b[:, 0]
    move, z = expm(matrix * period), np.array([*plant.x0, first])
    pieces = []
    for k in range(round(float(times[-1]) / period) + 1):
        z = np.array([*z[:n], gain * (1.0 - float(plant.c[0] @ z[:n]))])
        pieces.append(Piece(k * period, matrix, z))
        z = move @ z
    found = np.array([z for _, z in states(pieces, times + 1e-9 * period)])
    return {"plant.y1": found[:, :n] @ plant.c[0]}


PLANT = unit([[0, 1], [-1, -0.8]], [[0], [1]], [[1, 0]])


def sampled_cases() -> Iterator[Case]:
    """A controller with a discrete output, which computes at each communication point; and one with a clock."""
    control = unit(None, None, None, [[-1.5]], f=[1.5])
    net = Net(
        {"control": control, "plant": PLANT},
        connected("control.y1 -> plant.u1", "plant.y1 -> control.u1"),
    )
    step = Fraction(1, 20)
    for version in ("fmi2", "fmi3"):
        made = Made(version, discrete=("y1",), holds=True, suggested=float(step))

        def build(folder: Path, made: Made = made) -> Any:
            builder = SystemBuilder("sampled")
            builder.add("control", made.write(folder / "control.fmu", control, 0))
            of_plant = replace(made, discrete=(), holds=False, suggested=None)
            builder.add("plant", of_plant.write(folder / "plant.fmu", PLANT, 0))
            for source, target, factor in net.connections:
                builder.connect(source, target, factor=factor)
            return builder.build()

        yield Case(
            f"sampled control {version}",
            "sampled",
            version.replace("fmi", "") + ".0",
            build,
            lambda times, h: _held(PLANT, 1.5, h, times, 0.0),
            whole(12, step),
            step,
        )

    def clocked(folder: Path) -> Any:
        builder = SystemBuilder("clocked")
        values = {"interval.counter": 1, "interval.resolution": 5, "gain": -1.5, "offset": 1.5}
        builder.add("control", reference_path("fmi3/Sampler.fmu"), values)
        builder.add("plant", FMI3.write(folder / "plant.fmu", PLANT, 0))
        builder.connect("plant.y1", "control.u")
        builder.connect("control.held", "plant.u1")
        return builder.build()

    for n, step in enumerate((Fraction(1, 20), Fraction(7, 100))):
        yield Case(
            f"clocked control{', other steps' * n}",
            "sampled",
            "3.0",
            clocked,
            lambda times, _: _held(PLANT, 1.5, 0.2, times, 0.0),
            whole(12, step),
            step,
        )


def coarse_cases() -> Iterator[Case]:
    """FMUs whose own solver is Euler's method with fixed steps: their errors are not those of the coupling."""
    for name, micro in (("fine", 5e-4), ("coarse", 2e-2), ("very coarse", 1e-1)):
        units = {k: changed(system, micro_step=micro) for k, system in SURVEY.units.items()}
        net = replace(SURVEY, units=units)
        yield net_case(f"two masses, {name} solvers", "own solvers", net, 20)
    for version in ("fmi2", "fmi3"):
        case = net_case("", "", four_units(), 0.15, step=Fraction(1, 2000))
        yield replace(
            case,
            name=f"four units {version}",
            kind="own solvers",
            fmi=version.replace("fmi", "") + ".0",
            build=partial(_four_fmus, version),
        )


def _four_fmus(version: str, _: Path) -> Any:
    builder = SystemBuilder("four units")
    for k in range(1, 5):
        builder.add(f"S{k}", reference_path(f"{version}/FourUnitsS{k}.fmu"))
    for source, target in sorted(FOUR_UNITS):
        builder.connect(source, target)
    return builder.build()


def exchange_cases() -> Iterator[Case]:
    """Relaxations in a ring, by Model Exchange, Co-Simulation, or both in turn."""
    step = Fraction(1, 20)
    net = Net(
        {
            n: unit(
                [[-k]], [[1]], [[1], [-k]], [[0], [1]], x0=[x], inputs=["u"], outputs=["x", "dx"]
            )
            for n, k, x in (("a", 1.0, 1.0), ("b", 2.0, 0.5), ("c", 0.7, -1.0))
        },
        connected("a.x -> b.u", "b.x -> c.u", "c.x -> a.u * -2"),
    )
    closed = net.closed()
    for name, version, interfaces in (
        ("ME", "fmi2", ("ModelExchange",) * 3),
        ("ME", "fmi3", ("ModelExchange",) * 3),
        ("ME and CS", "fmi2", ("ModelExchange", "CoSimulation", "ModelExchange")),
        ("ME and CS", "mixed", ("CoSimulation", "ModelExchange", "CoSimulation")),
    ):

        def build(_: Path, version: str = version, interfaces: tuple[str, ...] = interfaces) -> Any:
            builder = SystemBuilder("ring")
            for n, (unit_name, system) in enumerate(net.units.items()):
                fmi = {"mixed": ("fmi2", "fmi3")[n % 2]}.get(version, version)
                values = {"k": -float(system.a[0, 0]), "x": float(system.x0[0])}
                path = reference_path(f"{fmi}/Dahlquist.fmu")
                builder.add(unit_name, path, values, interface=interfaces[n])
            for source, target, factor in net.connections:
                builder.connect(source, target, factor=factor)
            return builder.build()

        yield Case(
            f"ring {name} {version}",
            "Model Exchange",
            {"fmi2": "2.0", "fmi3": "3.0"}.get(version, version),
            build,
            lambda times, _: closed.solution(times),
            whole(8, step),
            step,
        )


def smooth_cases() -> list[Case]:
    """All systems without events."""
    groups: tuple[Callable[[], Iterator[Case]], ...] = (
        *(linear_cases, car_cases, loop_cases, sampled_cases, input_cases),
        *(nonlinear_cases, exchange_cases, coarse_cases, random_cases),
    )
    return [case for group in groups for case in group()]
