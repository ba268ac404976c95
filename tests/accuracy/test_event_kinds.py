"""The suite of systems with events of several kinds: ``conformance/event_kinds.py`` and its exact solutions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from math import pi, sqrt
from pathlib import Path

import event_kinds
import numpy as np
import pytest
from event_kinds import Task
from exact_hybrid import CoupledSystem
from hybrid_kinds import KINDS, STICK
from hybrid_writer import Variant
from numpy.typing import NDArray
from outcomes import QUINTIC
from pytest import approx
from random_kinds import random_case
from scipy.integrate import solve_ivp

from fmimaster import AccuracyWarning
from fmimaster.algorithms import Jacobi

Array = NDArray[np.float64]
THOROUGH = pytest.mark.thorough


def integrated(
    system: CoupledSystem, stop_time: float, bounces: Callable[[Array], Array]
) -> tuple[list[float], Array]:
    """Times of the events and the last states, by a solver that knows nothing of the matrices."""
    [table, ball] = system.units.values()
    x = np.array([*table.states.values(), *ball.states.values()])
    stiffness = table.modes[0].rates["v"]["x"]
    gravity = ball.modes[0].rates["v"]["1"]

    def rates(_t: float, x: Array) -> list[float]:
        return [x[1], stiffness * x[0], x[3], gravity]

    def gap(_t: float, x: Array) -> float:
        return float(x[2] - x[0])

    gap.terminal, gap.direction = True, -1  # type: ignore[attr-defined]
    time = 0.0
    times: list[float] = []
    while True:
        found = solve_ivp(rates, (time, stop_time), x, "DOP853", events=gap, rtol=1e-12, atol=1e-13)
        time, x = float(found.t[-1]), found.y[:, -1]
        if time >= stop_time:
            return times, x
        times.append(time)
        x = bounces(x)


def test_the_exact_solution_of_a_ball_on_a_table_is_that_of_another_solver() -> None:
    case = random_case("table", 0)
    reset = case.system.units["ball"].events[0].transitions[0].reset["v"]

    def bounces(x: Array) -> Array:
        return np.array([x[0], x[1], x[2], reset["v"] * x[3] + reset["u_v"] * x[1]])

    times, final = integrated(case.system, case.stop_time, bounces)
    assert len(times) == len(case.exact.events) >= 3
    assert times == approx([e.time for e in case.exact.events], abs=1e-7)
    assert list(final) == approx(list(case.exact.final.values()), abs=1e-6)


def test_the_exact_solution_of_stick_and_slip_is_that_of_another_solver() -> None:
    """A mass on a belt: its modes by the law of friction, not by the matrices of the units."""
    case = random_case("stick-slip", 0)
    belt, mass = case.system.units.values()
    pull = mass.modes[1].rates["v"]
    static = mass.events[1].transitions[0].indicators[0]["1"]
    speed, swing = belt.modes[0].outputs["v"]["1"], belt.modes[0].rates["q"]["s"]

    def rates(_t: float, x: Array) -> list[float]:
        acceleration = x[1] if sticks else pull["x"] * x[2] + pull["v"] * x[3] + pull["1"]
        return [x[1], swing * x[0], x[3], acceleration]

    def margin(_t: float, x: Array) -> float:
        friction = x[1] - pull["x"] * x[2] - pull["v"] * x[3]
        return float(static - friction if sticks else speed + x[0] - x[3])

    margin.terminal, margin.direction = True, -1  # type: ignore[attr-defined]
    x = np.array([*belt.states.values(), *mass.states.values()])
    time, sticks = 0.0, False
    times: list[float] = []
    while time < case.stop_time:
        found = solve_ivp(
            rates, (time, case.stop_time), x, "DOP853", events=margin, rtol=1e-12, atol=1e-13
        )
        time, x = float(found.t[-1]), found.y[:, -1]
        if time < case.stop_time:
            times.append(time)
            sticks = not sticks
            x[3] = speed + x[0] if sticks else x[3]
    assert len(times) == len(case.exact.events) >= 3
    assert times == approx([e.time for e in case.exact.events], abs=1e-7)
    assert list(x) == approx(list(case.exact.final.values()), abs=1e-6)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in ("table", "stick-slip", "chain") else THOROUGH)
        for kind in KINDS
    ],
)
def test_a_system_can_be_scored(kind: str) -> None:
    case = random_case(kind, 0)
    assert case.exact.is_clear
    assert len(case.exact.events) >= 3
    assert 0.0 < case.angle < pi


def test_each_run_has_an_outcome() -> None:
    """Of a process of its own: also if the limit of CPU time ends it."""

    def outcome(method: str, kind: str, limit: float) -> str:
        task = Task(method, 0.2, kind, 0)
        return event_kinds.run(
            task, seed=28, limit=limit, variant=Variant(), folder=None, shows=False
        ).outcome

    assert outcome("PZ", "table", 20.0) == "right"
    assert outcome("E2", "chain", 20.0) == "right"
    if sys.platform != "win32":  # without a process of its own there is no limit
        assert outcome("PZ", "table", -1.0) == "endless"


def test_without_an_event_clock_polynomial_inputs_give_no_warning_and_held_ones_do(
    tmp_path: Path,
) -> None:
    """A ball on a table finds its event by the position of the table."""
    case = random_case("table", 0)
    made = event_kinds.simulation(case, Task("plain", 0.2, "table", 0), tmp_path, Variant())
    with pytest.warns(AccuracyWarning, match=r"early or late, or missing: 'ball\.bounce'"):
        made.run()
    replace(made, algorithm=Jacobi(QUINTIC)).run()


@pytest.mark.parametrize("number", [0, 5])
def test_a_member_of_fmi_2_shows_what_its_partner_does_at_a_shared_event(number: int) -> None:
    """Unequal masses: with the old speed of the partner the event would be on again."""
    task = Task("PZ", 0.1, "chain", number)
    found = event_kinds.run(task, seed=28, limit=20.0, variant=Variant(), folder=None, shows=False)
    assert found.version == "fmi2"
    assert found.outcome == "right"


def test_a_ball_leaves_a_table_with_the_inputs_of_the_instant(tmp_path: Path) -> None:
    """In FMI 2.0 it had those that were predicted for the end of the step, and was 3.6 % of its range away at the end."""
    case = random_case("table", 0)
    assert case.version == "fmi2"
    run = event_kinds.simulation(case, Task("E1", 0.2, "table", 0), tmp_path, Variant()).run()
    reset = case.system.units["ball"].events[0].transitions[0].reset["v"]
    for e in run.events:
        table = float(np.interp(e.time, run.time, run["table.v"]))
        leaving = reset["v"] * e.left["ball.v"] + reset["u_v"] * table
        assert e.right["ball.v"] == approx(leaving, abs=1e-9)


@pytest.mark.parametrize(("method", "version"), [("PZ", "fmi2"), ("E1", "fmi3"), ("E2", "mixed")])
def test_a_mass_that_sticks_to_a_belt_stays_on_it(
    method: str, version: str, tmp_path: Path
) -> None:
    """The belt swings about its place. Spring and acceleration stay below the largest friction."""
    case = random_case("stick-slip", 0)
    belt, mass = case.system.units.values()
    static = mass.events[1].transitions[STICK].indicators[0]["1"]
    stiffness, swing = mass.modes[1].rates["v"]["x"], -belt.modes[0].rates["q"]["s"]
    w = sqrt(swing)
    speed, x = 0.4 * static * w / -stiffness, 0.1 * static / -stiffness
    mode = belt.modes[0]
    moving = replace(mode, outputs={**mode.outputs, "v": {"s": 1.0}})
    units = {
        "belt": replace(belt, states={"s": speed, "q": 0.0}, modes=(moving,)),
        "mass": replace(mass, states={"x": x, "v": speed}, start_mode=STICK),
    }
    sticking = replace(case, system=replace(case.system, units=units), version=version)
    run = event_kinds.simulation(
        sticking, Task(method, 0.1, "stick-slip", 0), tmp_path, Variant()
    ).run()
    assert event_kinds.executed(sticking, run) == []
    assert len(run.events) == 0
    assert run["mass.x"] == approx(x + speed / w * np.sin(w * run.time), abs=1e-6 * speed / w)
    assert run["mass.v"] == approx(speed * np.cos(w * run.time), abs=1e-6 * speed)


@pytest.mark.parametrize("method", ["PZ", "E2"])
def test_an_event_that_another_one_makes_possible_is_not_on_while_it_rises_from_zero(
    method: str,
) -> None:
    """A clutch that begins to slip: the speeds differ by the error of the coupling, and it would lock at once."""
    task = Task(method, 0.05, "clutch", 5)
    found = event_kinds.run(task, seed=28, limit=20.0, variant=Variant(), folder=None, shows=False)
    assert found.found == found.events == 14
    assert found.outcome == "right"


@pytest.mark.parametrize(
    ("kind", "number", "size"),
    [("stick-slip", 4, 0.02), ("chain", 0, 0.05)],
)  # me3, fmi2: both were silent
def test_held_inputs_that_make_events_wrong_are_said(kind: str, number: int, size: float) -> None:
    task = Task("PZ held", size, kind, number)
    found = event_kinds.run(task, seed=28, limit=20.0, variant=Variant(), folder=None, shows=False)
    assert found.outcome == "warned"
    assert re.search(r"Inputs are held over steps: at t = .* s the input '.*' differed", found.text)


@pytest.mark.parametrize("kind", ["thermostats", "jump table"])
def test_an_event_that_is_off_at_the_start_is_found_by_held_inputs(kind: str) -> None:
    """FMI 3.0: its indicator depends on inputs in another mode, so this is measured again in Event Mode."""
    task = Task("PZ", 0.1, kind, 1)
    found = event_kinds.run(task, seed=28, limit=20.0, variant=Variant(), folder=None, shows=False)
    assert (found.version, found.held) == ("fmi3", True)
    assert found.outcome == "right"
    assert found.late < 0.01
