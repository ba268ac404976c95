"""Several events at one instant, against exact solutions: hits of balls in a row, one after the other, in any order of
listing and in any unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from pytest import approx

from fmimaster import Polynomial, Results, SystemBuilder, reference_path
from fmimaster.algorithms import Algorithm, Aligned, Jacobi, Waveform
from fmimaster.control.event_clock import EarlyReturn, EventClock
from fmimaster.control.predictive import Predictive
from fmimaster.simulation import Simulation

VERSIONS = [("fmi2",), ("fmi3",), ("fmi2", "fmi3"), ("fmi3", "fmi2")]
QUINTIC = Jacobi(Polynomial(2, 2))
PZ = Predictive(), QUINTIC
E1 = EarlyReturn(), Aligned(QUINTIC)
E2 = EarlyReturn(), Waveform(Aligned(QUINTIC), sweeps=2)
METHODS = pytest.mark.parametrize(("clock", "algorithm"), [PZ, E1, E2], ids=["PZ", "E1", "E2"])
EACH_VERSION = pytest.mark.parametrize("versions", VERSIONS, ids="+".join)


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
    more
        Parameters of all balls.
    """
    builder, count = SystemBuilder("row"), len(balls)
    order = order or range(count)
    for n in order:
        builder.add(f"b{n}", reference_path(f"{versions[n % len(versions)]}/CradleBall.fmu"))
        values = {"x": balls[n].x * unit, "v": balls[n].v * unit, "r": 0.5 * unit, "m": balls[n].m}
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


def run(system: SystemBuilder, clock: EventClock, algorithm: Algorithm, **settings: Any) -> Results:
    settings = {"step_size": 0.1, "stop_time": 1.0} | settings
    return Simulation(system, algorithm=algorithm, event_clock=clock, **settings).run()


def velocities(results: Results, n: int) -> list[float]:
    return [float(results[f"b{k}.v"][-1]) for k in range(n)]


@METHODS
@EACH_VERSION
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=str)
def test_a_ball_that_is_hit_from_both_sides_passes_both_on(
    versions: Sequence[str], order: Sequence[int], clock: EventClock, algorithm: Algorithm
) -> None:
    """Velocities 1, 0, -1 become -1, 0, 1. All at once, from the same left limits, they would become 0, 0, 0."""
    balls = row([Ball(-2, 1), Ball(0), Ball(2, -1)], versions, order=order)
    r = run(balls, clock, algorithm, stop_time=1.5)
    assert velocities(r, 3) == approx([-1, 0, 1], abs=1e-9)
    assert [e.name for e in r.events] == ["hit0", "hit1", "hit0"]
    assert [e.time for e in r.events] == approx([1, 1, 1], abs=1e-9)
