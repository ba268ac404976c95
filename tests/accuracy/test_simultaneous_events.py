"""Several events at one instant, against exact solutions: hits of balls in a row, one after the other, in any order of
listing and in any unit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from math import sqrt
from typing import Any

import numpy as np
import pytest
from balls import (
    BY_EACH,
    E1,
    MASSES,
    PZ,
    RESTITUTIONS,
    Ball,
    by_each,
    each,
    row,
    run,
    velocities,
)
from pytest import approx

from fmimaster import AccuracyWarning, SystemBuilder, reference_path
from fmimaster.algorithms import Algorithm, Jacobi
from fmimaster.events.event_clock import EventClock
from fmimaster.front.simulation import Simulation
from fmimaster.inputs import Polynomial
from fmimaster.steps import FixedStep, FreeStep, Ramp


@by_each(order=[(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_ball_that_is_hit_from_both_sides_passes_both_on(
    versions: Sequence[str], order: Sequence[int], clock: EventClock, algorithm: Algorithm
) -> None:
    """Velocities 1, 0, -1 become -1, 0, 1. All at once, from the same left limits, they would become 0, 0, 0."""
    balls = row([Ball(-2, 1), Ball(0), Ball(2, -1)], versions, order=order)
    r = run(balls, clock, algorithm, stop_time=1.5)
    assert velocities(r, 3) == approx([-1, 0, 1], abs=1e-9)
    assert [e.name for e in r.events] == ["hit0", "hit1", "hit0"]
    assert [e.time for e in r.events] == approx([1, 1, 1], abs=1e-9)


@by_each(step_size=[FixedStep(0.1), FreeStep(0.1), Ramp(0.1)])
def test_a_ball_is_hit_from_both_sides_between_communication_points(
    versions: Sequence[str], step_size: Any, clock: EventClock, algorithm: Algorithm
) -> None:
    """All three FMUs stop there, and announce their hits together."""
    balls = row([Ball(-1.777, 1), Ball(0), Ball(1.777, -1)], versions)
    r = run(balls, clock, algorithm, step_size=step_size, stop_time=1.2)
    assert velocities(r, 3) == approx([-1, 0, 1], abs=1e-9)
    assert [e.name for e in r.events] == ["hit0", "hit1", "hit0"]
    assert [e.time for e in r.events] == approx([0.777] * 3, abs=1e-9)


@by_each(order=[(0, 1, 2, 3, 4), (3, 0, 4, 2, 1)])
def test_newtons_cradle(
    versions: Sequence[str], order: Sequence[int], clock: EventClock, algorithm: Algorithm
) -> None:
    """Balls that touch: the speed passes from one end to the other at one instant, and back."""
    balls = [Ball(-2, 1), Ball(0), Ball(1), Ball(2), Ball(3)]
    walls = [Ball(-11, m=1e300), *balls, Ball(5, m=1e300)]
    r = run(
        row(walls, versions, order=[0, *(n + 1 for n in order), 6]), clock, algorithm, stop_time=4.5
    )
    hits = [(1.0, n) for n in (1, 2, 3, 4)] + [(2.0, 5)] + [(3.0, n) for n in (4, 3, 2, 1)]
    assert [(e.name, round(e.time, 9)) for e in r.events] == [(f"hit{n}", t) for t, n in hits]
    assert velocities(r, 7) == approx([0, -1, 0, 0, 0, 0, 0], abs=1e-9)


@by_each(size=[0.02, 0.037, 0.05, 0.1, 0.3], versions=["fmi2", "fmi3", "mixed"])
def test_balls_that_touch_and_rest_do_not_meet_by_noise(
    size: float, versions: str, clock: EventClock, algorithm: Algorithm
) -> None:
    """Newton's cradle with pendulums. Extrapolated inputs move the balls in the middle by 1e-13; inside a step FMUs that
    look for their own events see them meet, and EarlyReturn let up to 89 events happen, with velocities that were wrong
    by 15 mm/s."""
    system = reference_path(f"systems/cradle-{versions}.ssp")
    too_long = algorithm is E1[1] and size == 0.3  # 0.94 rad, without sweeps
    said: AbstractContextManager[Any] = (
        pytest.warns(AccuracyWarning, match="prediction") if too_long else nullcontext()
    )
    with said:
        r = run(system, clock, algorithm, step_size=size, stop_time=4.0)
    forth, back = ["hit1", "hit2", "hit3", "hit4"], ["hit4", "hit3", "hit2", "hit1"]
    assert [e.name for e in r.events] == [*forth, *back, *forth, *back]
    assert [e.time for e in r.events] == approx(np.repeat([0.5, 1.5, 2.5, 3.5], 4), abs=1e-9)
    swing = -0.5 * np.maximum(np.cos(np.pi * r.time), 0.0)
    assert r["ball1.x"] == approx(swing, abs=1e-9)
    assert [r[f"ball{k}.v"][-1] for k in (2, 3, 4)] == approx([0.0] * 3, abs=1e-11)


def test_balls_by_polynomials_without_slopes_keep_their_speeds() -> None:
    """These know no speed of a neighbour after a hit, so that the balls at rest move by 1e-9 m/s. They shared hits by such
    an approach, and the run ended with an error."""
    inputs, cradle = Jacobi(Polynomial(3, 0, adaptive=True)), "systems/cradle-fmi2.ssp"
    r = run(reference_path(cradle), PZ[0], inputs, step_size=0.05, stop_time=2.8)
    assert not r.statistics.warnings
    assert r["ball1.x"] == approx(-0.5 * np.maximum(np.cos(np.pi * r.time), 0.0), abs=1e-7)
    assert [r[f"ball{k}.v"][-1] for k in (2, 3, 4)] == approx([0.0] * 3, abs=1e-7)


@by_each(size=[0.03, 0.1, 0.17])
def test_a_pair_that_touches_hits_another_pair_that_touches(
    versions: Sequence[str], size: float, clock: EventClock, algorithm: Algorithm
) -> None:
    """All four balls ignore their own events under EarlyReturn before the hit, so that it is predicted. Both speeds pass
    over: the inner two hit, then the outer ones, then the inner two again."""
    balls = [Ball(-2.5, 1), Ball(-1.5, 1), Ball(0), Ball(1)]
    r = run(row(balls, versions), clock, algorithm, step_size=size, stop_time=1.5)
    assert [e.name for e in r.events] == ["hit1", "hit0", "hit2", "hit1"]
    refreshed = (
        1e-5 * size
    )  # FMI 2.0: what a hit has changed in a neighbour is read after a very short step
    assert [e.time for e in r.events] == approx([0.5] * 4, abs=1e-9 + refreshed)
    assert velocities(r, 4) == approx([0, 0, 1, 1], abs=1e-9)


@by_each(e=RESTITUTIONS, masses=MASSES)
def test_hits_of_unequal_balls_go_on_until_none_approaches_another(
    versions: Sequence[str],
    masses: tuple[float, float, float],
    e: float,
    clock: EventClock,
    algorithm: Algorithm,
) -> None:
    """One hit after the other, by the formula for two bodies: the first, the second, the first again, ..."""
    v = [1.0, 0.0, -1.0]
    expected: list[str] = []
    while True:
        n = 0 if v[0] - v[1] > 1e-12 else 1 if v[1] - v[2] > 1e-12 else None
        if n is None or len(expected) > 100:
            break
        a, b = masses[n], masses[n + 1]
        impulse = (1 + e) * a * b / (a + b) * (v[n] - v[n + 1])
        v[n], v[n + 1] = v[n] - impulse / a, v[n + 1] + impulse / b
        expected.append(f"hit{n}")
    balls = [Ball(x, s, m) for x, s, m in zip((-2, 0, 2), (1, 0, -1), masses, strict=True)]
    r = run(row(balls, versions, e=e), clock, algorithm, stop_time=1.1)
    assert velocities(r, 3) == approx(v, abs=1e-9)
    assert [event.name for event in r.events] == expected


@BY_EACH
def test_a_ball_between_two_walls_closer_than_a_step(
    versions: Sequence[str], clock: EventClock, algorithm: Algorithm
) -> None:
    """0.02 m of room and 1 m/s: a hit each 0.02 s, five in a step."""
    balls = [Ball(-1, m=1e300), Ball(0.01, 1.0), Ball(1.02, m=1e300)]
    r = run(row(balls, versions), clock, algorithm)
    assert [e.time for e in r.events] == approx([0.01 + 0.02 * k for k in range(50)], abs=1e-9)
    assert [e.name for e in r.events] == ["hit1", "hit0"] * 25
    assert velocities(r, 3) == approx([0, 1, 0], abs=1e-9)


@by_each(unit=[1e6, 1e-6])
def test_events_do_not_depend_on_the_unit(
    versions: Sequence[str], unit: float, clock: EventClock, algorithm: Algorithm
) -> None:
    """A ball that loses speed between a wall and a heavy one, all falling towards the wall."""
    balls = [Ball(-1, m=1e300), Ball(0.5, 3), Ball(2, -0.5, m=5)]
    runs = [
        run(
            row(balls, versions, unit=u, e=0.9, g=-2.0 * u),
            clock,
            algorithm,
            stop_time=2.5,
            step_size=0.05,
        )
        for u in (1.0, unit)
    ]
    (si, scaled) = ([(e.name, e.time) for e in r.events] for r in runs)
    assert len(si) > 2
    assert [name for name, _ in scaled] == [name for name, _ in si]
    assert [t for _, t in scaled] == approx([t for _, t in si], abs=1e-9)


@pytest.mark.parametrize(("version", "clock", "algorithm"), each(["fmi2", "fmi3", "mixed"]))
def test_three_members_of_one_event(version: str, clock: EventClock, algorithm: Algorithm) -> None:
    """Masses of 1, 2 and 4 kg with velocities 1, 2 and 3, and g = 2, from 0 on: 6 t + 3 t^2 = 3 where the rope is taut."""
    system = reference_path(f"systems/rope-{version}.ssp")
    r = Simulation(
        system, algorithm=algorithm, event_clock=clock, step_size=0.1, stop_time=0.6
    ).run()
    t = sqrt(2) - 1
    impulse = 2 * (6 + 6 * t) / (1 + 1 / 2 + 1 / 4)
    event = r.events[0]
    assert [e.components for e in r.events] == [("mass1", "mass2", "mass3")]
    assert event.time == approx(t, abs=1e-9)
    for k, m in ((1, 1), (2, 2), (3, 4)):
        assert event.right[f"mass{k}.v"] == approx(k + 2 * t - impulse / m, abs=1e-9)


@pytest.mark.parametrize(("clock", "algorithm"), [PZ, E1], ids=["PZ", "E1"])
@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_hundreds_of_bounces_stay_exact_in_any_unit(
    unit: float, clock: EventClock, algorithm: Algorithm
) -> None:
    """A ball that bounces on a floor each 0.36 s; ten hours are 100 000 bounces."""
    g, period = 9.81, 0.36
    system = row([Ball(-1, m=1e300), Ball(0, g * period / 2)], unit=unit)
    system.set("b1.g", -g * unit)
    r = run(system, clock, algorithm, stop_time=72.1)
    expected = [period * (n + 1) for n in range(200)]
    assert [e.time for e in r.events] == approx(expected, abs=1e-9)


@by_each(size=[0.1, 0.03], apart=[0.0, 1e-15, 1e-13])
def test_private_events_of_two_fmus_at_one_instant_all_happen(
    versions: Sequence[str], clock: EventClock, algorithm: Algorithm, size: float, apart: float
) -> None:
    """Two blocks that have nothing to do with each other, and reach their ceilings at times this far apart, in s."""
    builder = SystemBuilder("two")
    alone = {"u_x": -1000.0, "u_v": 0.0, "k2": 0.0, "d2": 0.0, "v": 8.0}
    for n in range(2):
        builder.add(f"b{n}", reference_path(f"{versions[n % len(versions)]}/TwoMassUpper.fmu"))
        for name, value in alone.items():
            builder.set(f"b{n}.{name}", value)
    builder.set("b1.x", -0.7 - 8.0 * apart)
    r = run(builder, clock, algorithm, step_size=size, stop_time=2.0)
    first, second = ([e.time for e in r.events if e.components == (f"b{n}",)] for n in range(2))
    assert len(first) == 2
    assert first == approx(second, abs=1e-9)
    assert r["b0.v"][-1] == approx(r["b1.v"][-1], abs=1e-9)


@by_each(
    when=[(b, stop) for b in (0.0, 1e-13, 9.9e-11, 1.1e-10) for stop in (0.5, 1.0)]
    + [(-5e-11, 1.0)]
)
def test_an_event_just_before_the_end_of_a_step_is_not_lost(
    versions: Sequence[str],
    clock: EventClock,
    algorithm: Algorithm,
    when: tuple[float, float],
) -> None:
    """The end of the run too. What is within 1e-10 s before the end of a step the FMUs locate there, and those of FMI 2.0
    then do not stop."""
    before, stop_time = when
    hits_at = 0.5 - before
    ball = row([Ball(-1.0, 1.0), Ball(hits_at, m=1e300)], versions)
    r = run(ball, clock, algorithm, stop_time=stop_time)
    assert [e.time for e in r.events] == approx([hits_at], abs=1.01e-10)
    assert r["b0.v"][-1] == -1.0
