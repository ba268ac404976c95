"""Contacts whose impulses and forces the run determines, against exact solutions: impacts, rest, opening."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from math import acos, cos, log2, sin, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from balls import (
    BY_PZ_AND_E1,
    E2,
    MASSES,
    PZ,
    PZ_AND_E1,
    QUINTIC,
    RESTITUTIONS,
    VERSIONS,
    Ball,
    by_each,
    row,
    run,
    velocities,
)
from pytest import approx

from fmimaster import AccuracyWarning, Results, Simulation, SystemBuilder, reference_path, resume
from fmimaster.algorithms import Algorithm, Jacobi
from fmimaster.base.errors import DescriptionError, FmimasterError, SimulationError
from fmimaster.events.event_clock import EventClock
from fmimaster.fmu import add_manifest
from fmimaster.record.causes import Kind

G = 9.81
FLOOR = Ball(-0.5, m=1e300)


def contacts(balls: Sequence[Ball], versions: Sequence[str], **more: Any) -> SystemBuilder:
    return row(balls, versions, contactLaw=1, **more)


def stack(
    versions: Sequence[str], masses: Sequence[float], apart: float = 0.0, **more: Any
) -> SystemBuilder:
    """Balls above each other on a floor, each this far above the one below it, in m."""
    balls = [Ball(0.5 + k + (k + 1) * apart, m=m) for k, m in enumerate(masses)]
    system = contacts([FLOOR, *balls], versions, **more)
    for k in range(len(masses)):
        system.set(f"b{k + 1}.g", -G)
    return system


def heights(results: Results, n: int) -> list[float]:
    return [float(results[f"b{k + 1}.x"][-1]) for k in range(n)]


def causes(results: Results, kind: Kind) -> list[tuple[str, Any]]:
    return [(e.name, e.time) for e in results.events if e.cause.kind is kind]


@by_each(size=[0.1, 0.17])
def test_a_stack_at_rest_stays_for_ten_seconds(
    versions: Sequence[str], size: float, clock: EventClock, algorithm: Algorithm
) -> None:
    system = stack(versions, (1.0, 2.0, 0.5), e=0.5)
    r = run(system, clock, algorithm, step_size=size, stop_time=10.0)
    assert r.events == ()
    for k in range(3):
        assert r[f"b{k + 1}.x"] == approx(np.full(len(r.time), 0.5 + k), abs=1e-9)


def test_fmus_of_held_contacts_stop_at_no_event_before_their_outputs_are_known() -> None:
    """FMI 2.0: not before the first step, in which sweeps did not converge; only its length decided whether they did."""
    r = run(stack(("fmi2",), (1.0, 2.0, 0.5), e=0.5), *E2, step_size=0.3)
    assert r.events == ()
    assert heights(r, 3) == approx([0.5, 1.5, 2.5], abs=1e-9)


@by_each(PZ_AND_E1, size=[0.01, 0.1, 0.3])
def test_a_plastic_stack_comes_to_rest_ball_by_ball(
    versions: Sequence[str], size: float, clock: EventClock, algorithm: Algorithm
) -> None:
    """Each falls 0.2 m further than the one below it, which lies already."""
    system = stack(versions, (1.0, 2.0, 0.5), 0.2, e=0.0)
    r = run(system, clock, algorithm, step_size=size, stop_time=1.0)
    landings = [sqrt(2 * 0.2 * k / G) for k in (1, 2, 3)]
    assert causes(r, Kind.RESTS) == [
        (f"hit{k}", approx(t, abs=1e-6)) for k, t in enumerate(landings)
    ]
    assert heights(r, 3) == approx([0.5, 1.5, 2.5], abs=1e-9)
    assert velocities(r, 4) == approx([0.0] * 4, abs=1e-9)


@BY_PZ_AND_E1
def test_an_elastic_stack_comes_to_rest_and_loses_energy_only(
    versions: Sequence[str], clock: EventClock, algorithm: Algorithm
) -> None:
    masses = (1.0, 2.0, 0.5)
    r = run(stack(versions, masses, 0.2, e=0.5), clock, algorithm, step_size=0.05, stop_time=3.0)
    assert heights(r, 3) == approx([0.5, 1.5, 2.5], abs=1e-8)
    assert velocities(r, 4) == approx([0.0] * 4, abs=1e-9)
    rested = causes(r, Kind.RESTS)[-1][1]
    assert r.events[-1].time == rested < 1.0
    energy = sum(m * (r[f"b{k}.v"] ** 2 / 2 + G * r[f"b{k}.x"]) for k, m in enumerate(masses, 1))
    assert np.diff(energy).max() < 1e-6 * np.ptp(energy)


@by_each(PZ_AND_E1, size=[0.02, 0.1])
def test_a_ball_that_bounces_comes_to_rest_before_its_bounces_accumulate(
    versions: Sequence[str], size: float, clock: EventClock, algorithm: Algorithm
) -> None:
    """From 1 m with e = 1/2: flights of 2 v / g, 2 v / (2 g), ... with a sum of 4 v / (2 g). The last one is longer than
    1/1000 of a step, and those after it would take as long as it did."""
    r = run(stack(versions, (1.0,), 1.0, e=0.5), clock, algorithm, step_size=size, stop_time=3.0)
    v = sqrt(2 * G)
    limit = v / G + 2 * v / G
    ((name, rested),) = causes(r, Kind.RESTS)
    assert name == "hit0"
    assert limit - 2e-3 * size < rested < limit
    hits = [e for e in r.events if e.cause.kind is not Kind.RESTS]
    assert len(hits) == 1 + int(log2(v / G / (1e-3 * size))) + 1
    after = r.time > rested
    assert r["b1.x"][after] == approx(np.full(after.sum(), 0.5), abs=1e-9)


@by_each(e=RESTITUTIONS, masses=MASSES)
def test_a_ball_that_is_hit_from_both_sides_at_once(
    versions: Sequence[str],
    masses: tuple[float, float, float],
    e: float,
    clock: EventClock,
    algorithm: Algorithm,
) -> None:
    """Both contacts open with e times the velocity at which they have closed: two linear equations, and the momentum."""
    balls = [Ball(x, s, m) for x, s, m in zip((-2, 0, 2), (1, 0, -1), masses, strict=True)]
    r = run(contacts(balls, versions, e=e), clock, algorithm, stop_time=1.5)
    rows = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [*masses]])
    after = np.linalg.solve(rows, [e, e, masses[0] - masses[2]])
    assert velocities(r, 3) == approx(after, abs=1e-9)
    assert [event.name for event in r.events] == ["hit0", "hit1"]
    assert [event.time for event in r.events] == approx([1.0, 1.0], abs=1e-9)


def table(versions: Sequence[str], amplitude: float, omega: float, **more: float) -> SystemBuilder:
    """A ball of 2 kg on a table that moves as ``amplitude * cos(omega t)``."""
    balls = [Ball(amplitude - 0.5, m=1e300), Ball(amplitude + 0.5, m=2.0)]
    system = contacts(balls, versions, **more)
    for name, value in {"b0.w": omega, "b0.x0": -0.5, "b1.g": -G}.items():
        system.set(name, value)
    return system


@by_each(PZ_AND_E1, size=[0.01, 0.02, 0.03])
def test_a_table_that_accelerates_downwards_throws_a_ball_off(
    versions: Sequence[str], size: float, clock: EventClock, algorithm: Algorithm
) -> None:
    """It starts at the lowest point, and falls faster than the ball from where ``-a w**2 cos(w t) = -g`` on; a < 0."""
    a, w = -3.0, 2.0
    r = run(table(versions, a, w, e=0.0), clock, algorithm, step_size=size, stop_time=1.6)
    t = acos(G / (a * w**2)) / w
    ((name, opened),) = causes(r, Kind.OPENS)
    assert name == "hit0"
    assert len(r.events) == 1
    assert opened == approx(t, abs=1e-6)
    s = r.time[-1] - t
    place = a * cos(w * t) + 0.5 - a * w * sin(w * t) * s - G / 2 * s**2
    assert r["b1.x"][-1] == approx(place, abs=size**3)
    held = r.time < opened
    gap = r["b1.x"] - r["b0.x"] - 1.0
    assert gap[held] == approx(np.zeros(held.sum()), abs=10 * size**4)


@pytest.mark.parametrize("versions", VERSIONS, ids="+".join)
def test_forces_that_are_held_over_a_step_keep_a_stack_closed(versions: Sequence[str]) -> None:
    r = run(stack(versions, (1.0, 2.0, 0.5), e=0.5), PZ[0], Jacobi(), step_size=0.05, stop_time=5.0)
    assert r.events == ()
    assert heights(r, 3) == approx([0.5, 1.5, 2.5], abs=1e-9)


def test_hits_that_accumulate_between_two_balls_and_the_floor_end_with_a_plastic_one() -> None:
    """Inelastic collapse: a light ball between the floor and a heavy one that falls on it."""
    system = stack(("fmi2",), (0.2, 4.0), 0.2, e=0.3)
    r = run(system, *PZ, step_size=0.01)
    assert [name for name, _ in causes(r, Kind.RESTS)][-1] == "hit1"
    assert heights(r, 2) == approx([0.5, 1.5], abs=1e-9)
    assert velocities(r, 3) == approx([0.0] * 3, abs=1e-9)


def test_a_fast_table_throws_a_ball_off_by_accelerations_after_the_opening() -> None:
    """Those at its end that were read with the last force were extrapolated by quintics, 100 times their error: the
    velocities of the bodies and the second indicator seemed to differ."""
    a, w = -0.06, 14.0
    r = run(table(("fmi3",), a, w, e=0.0), *PZ, step_size=0.02, stop_time=0.23)
    assert causes(r, Kind.OPENS) == [("hit0", approx(acos(G / (a * w**2)) / w, abs=1e-9))]
    assert len(r.events) == 1


@pytest.mark.parametrize("algorithm", [Jacobi(), QUINTIC], ids=["held", "polynomials"])
def test_a_gap_of_a_held_contact_is_told(algorithm: Algorithm) -> None:
    """Steps of 0.6 rad: the gap is 4 % of the table's amplitude with held forces, and 0.4 % with polynomials."""
    system = table(("fmi3",), -0.3, 6.0, e=0.0)
    with pytest.warns(AccuracyWarning, match="too long|Inputs are held") as told:
        r = run(system, PZ[0], algorithm, step_size=0.1, stop_time=0.4)
    gap = np.abs(r["b1.x"] - r["b0.x"] - 1.0)[r.time < 0.38].max()
    assert (gap > 0.01) == any("'hit0', its first indicator was" in str(t.message) for t in told)


def test_members_with_different_restitutions_are_named() -> None:
    system = stack(("fmi3",), (1.0, 2.0), 0.2, e=0.5)
    system.set("b1.e", 0.25)
    with pytest.raises(SimulationError, match=r"'hit0' have the restitutions 0\.5 and 0\.25"):
        run(system, *PZ)


def test_an_inverse_mass_that_is_none_is_named(tmp_path: Path) -> None:
    """By a manifest that takes a negative parameter for it."""
    original = reference_path("fmi3/CradleBall.fmu")
    with zipfile.ZipFile(original) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("events/fmi-ls-manifest.xml"))
        manifest = archive.read(name).replace(b'inverseMass="inverseMass"', b'inverseMass="g"')
    wrong = add_manifest(original, manifest, tmp_path / "CradleBall.fmu")
    system = stack(("fmi3",), (1.0,), 0.2, e=0.5, fmu=wrong)
    with pytest.raises(
        SimulationError, match=r"inverse mass of 'b1' at the contact 'hit0' is -9\.81"
    ):
        run(system, *PZ)


@pytest.mark.parametrize("name", ["left.f", "left.p"])
def test_an_input_for_a_force_or_an_impulse_must_not_be_connected(name: str) -> None:
    system = stack(("fmi3",), (1.0, 2.0), e=0.5)
    system.connect("b1.v", f"b2.{name}")
    with pytest.raises(DescriptionError, match=rf"'b2\.{name}' is connected.*set 'b2\.contactLaw'"):
        run(system, *PZ)


def test_a_ball_between_two_walls_that_approach_each_other_cannot_move() -> None:
    """No impulses make all contacts open: both are named, and the rows up to there are kept."""
    walls = Ball(-1.5, 1.0, 1e300), Ball(0.0), Ball(1.5, -1.0, 1e300)
    with pytest.raises(SimulationError, match=r"contacts hit0, hit1 at") as raised:
        run(contacts(walls, ("fmi3",), e=0.5), *PZ)
    r = raised.value.results
    assert r is not None
    assert r.time[-1] == approx(0.5, abs=1e-9)
    assert r["b0.x"] == approx(-1.5 + r.time, abs=1e-9)


def test_a_mass_of_zero_is_named() -> None:
    system = stack(("fmi3",), (1.0, 2.0), 0.2, e=0.5)
    system.set("b1.m", 0.0)
    with pytest.raises(FmimasterError, match=r"b1.*\bm is 0"):
        run(system, *PZ)


@pytest.mark.parametrize(("clock", "algorithm"), [PZ, E2], ids=["PZ", "E2"])
def test_a_run_continues_from_a_checkpoint_while_a_contact_is_held(
    clock: EventClock, algorithm: Algorithm, tmp_path: Path
) -> None:
    """The forces, and the points through which they are foreseen, are part of it."""
    system, file = table(("fmi2", "fmi3"), -3.0, 2.0, e=0.0), tmp_path / "held"
    settings: dict[str, Any] = {"step_size": 0.05, "stop_time": 1.6, "checkpoint": file}
    simulation = Simulation(system.build(), algorithm=algorithm, event_clock=clock, **settings)
    with simulation.start() as one:
        one.advance_to(1.0)
        one.advance_to(1.6)
    with simulation.start() as first:
        first.advance_to(1.0)
    found, expected = resume(file), one.results
    assert [e.cause.kind for e in found.events] == [Kind.OPENS]
    assert found.events == expected.events
    for name in ("time", *expected.names):
        assert found[name].tobytes() == expected[name].tobytes(), name
