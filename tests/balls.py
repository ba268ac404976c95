"""Balls in a row or above each other, and the methods with which they are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from in_turn import in_turn

from fmimaster import Results, SystemBuilder, reference_path
from fmimaster.algorithms import Algorithm, Aligned, Jacobi, Waveform
from fmimaster.events.event_clock import EarlyReturn, EventClock
from fmimaster.events.predictive import Predictive
from fmimaster.front.simulation import Simulation
from fmimaster.inputs import Polynomial

VERSIONS = [("fmi2",), ("fmi3",), ("fmi2", "fmi3"), ("fmi3", "fmi2")]
QUINTIC = Jacobi(Polynomial(2, 2))
PZ = Predictive(), QUINTIC
E1 = EarlyReturn(), Aligned(QUINTIC)
E2 = EarlyReturn(), Waveform(Aligned(QUINTIC), sweeps=2)
METHODS = {"PZ": PZ, "E1": E1, "E2": E2}


def _shown(item: object) -> str:
    return "+".join(map(str, item)) if isinstance(item, tuple) else str(item)


def each(first: Sequence[object], methods: Sequence[str] = tuple(METHODS)) -> list[Any]:
    """Each of the first, such as versions of FMI, with each method: (one of the first, event clock, algorithm).

    All combinations are thorough; by default each one of the first has one method, the methods in turn.
    """
    return [
        pytest.param(
            *(one, *METHODS[method]),
            id=f"{_shown(one)}-{method}",
            marks=() if i % len(methods) == j else pytest.mark.thorough,
        )
        for i, one in enumerate(first)
        for j, method in enumerate(methods)
    ]


def by_each(
    methods: Sequence[str] = tuple(METHODS),
    *,
    versions: Sequence[object] = VERSIONS,
    **others: Sequence[object],
) -> pytest.MarkDecorator:
    """Each method with each of the others, such as sizes of steps, and each of the versions of FMI.

    All combinations are thorough; by default each of all these is tried, with some of the rest.
    """
    lists = in_turn(methods, *others.values(), versions)
    return pytest.mark.parametrize(
        ("clock", "algorithm", *others, "versions"),
        [
            pytest.param(
                *(*METHODS[method], *rest), id="-".join((method, *map(_shown, rest))), marks=marks
            )
            for (method, *rest), marks, _ in lists
        ],
    )


PZ_AND_E1 = "PZ", "E1"
BY_EACH = pytest.mark.parametrize(("versions", "clock", "algorithm"), each(VERSIONS))
BY_PZ_AND_E1 = pytest.mark.parametrize(
    ("versions", "clock", "algorithm"), each(VERSIONS, PZ_AND_E1)
)
MASSES = (1.0, 2.0, 1.0), (3.0, 1.0, 2.0), (1.0, 0.1, 1.0)
"""Of three balls, of which the first and the last hit the one between them."""
RESTITUTIONS = 1.0, 0.5


class Ball(NamedTuple):
    """A ball of radius 0.5 m in a row; in m, m/s, kg."""

    x: float
    v: float = 0.0
    m: float = 1.0


def row(
    balls: Sequence[Ball],
    versions: Sequence[str] = ("fmi3",),
    *,
    order: Sequence[int] | None = None,
    unit: float = 1.0,
    fmu: Path | None = None,
    **more: float,
) -> SystemBuilder:
    """Balls beside each other, that hit their neighbours.

    Parameters
    ----------
    versions
        Of FMI, of one ball after the other, from the beginning again.
    order
        In which they are listed.
    unit
        What 1 m is in the unit of lengths.
    fmu
        Of all balls, instead of the reference FMU.
    more
        Parameters of all balls.
    """
    builder, count = SystemBuilder("row"), len(balls)
    order = order or range(count)
    for n in order:
        usual = reference_path(f"{versions[n % len(versions)]}/CradleBall.fmu")
        builder.add(f"b{n}", fmu or usual)
        values = {"x": balls[n].x * unit, "v": balls[n].v * unit, "r": 0.5 * unit, "m": balls[n].m}
        values["contactLaw"] = 0  # two balls at a time; test_contacts.py has all at once
        for side, k in (("left", n - 1), ("right", n + 1)):
            if 0 <= k < count:
                values |= {f"{side}.m": balls[k].m, f"{side}.r": 0.5 * unit}
        for name, value in (values | more).items():
            builder.set(f"b{n}.{name}", value)
    for n in order:
        for side, k in (("right", n - 1), ("left", n + 1)):
            if 0 <= k < count:
                for name in "xva":
                    builder.connect(f"b{n}.{name}", f"b{k}.{side}.{name}")
        if n + 1 < count:
            builder.share_event(f"hit{n}", f"b{n}.right", f"b{n + 1}.left")
    return builder


def run(
    system: SystemBuilder | Path, clock: EventClock, algorithm: Algorithm, **settings: Any
) -> Results:
    settings = {"step_size": 0.1, "stop_time": 1.0} | settings
    return Simulation(system, algorithm=algorithm, event_clock=clock, **settings).run()


def velocities(results: Results, n: int) -> list[float]:
    return [float(results[f"b{k}.v"][-1]) for k in range(n)]
