"""Events that FMUs execute themselves, inside a step, are in the results, whatever the FMU publishes of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster.algorithms import Jacobi
from fmimaster.base.errors import AccuracyWarning, FmimasterError
from fmimaster.base.installation import reference_path
from fmimaster.events.look_ahead import LookAhead
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.record.causes import Cause, Kind
from fmimaster.results.results import Results
from fmimaster.run.executor import Backend
from fmimaster.steps.ramp import FreeStep
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import DataType

G = 10.0
"""[m/s2]"""
RESTITUTION = 0.9

Simulate = Callable[..., Results]


@pytest.fixture(params=[Backend.REFERENCE, Backend.FASTEST], ids=["reference", "native"])
def simulate(request: pytest.FixtureRequest, simulation: Callable[..., Simulation]) -> Simulate:
    """simulate(units, connections, **settings) by each of the executors."""
    return lambda *system, **options: simulation(
        *system, **{"backend": request.param, "event_clock": LookAhead(), **options}
    ).run()


PUBLISHED = {
    "two indicators with derivatives": (Indicator("h", "dh"), Indicator("v", "dv")),
    "one with derivative": (Indicator("h", "dh"),),
    "one": (Indicator("h"),),
}


def ball(*indicators: Indicator, unit: float = 1.0, floor: float = 0.0, **more: Any) -> PythonFmu:
    """Falls from 1 m and bounces exactly; executes its bounces inside the step, and counts them.

    Parameters
    ----------
    unit
        Of the length, in 1/m.
    floor
        Height of the floor in m; at rest nothing happens.
    """

    def step(v: Any, h: float) -> None:
        while True:
            landing = (v.w + (v.w**2 + 2 * G * max(v.x - floor, 0.0)) ** 0.5) / G
            if landing > h:
                break
            v.x, v.w = floor, RESTITUTION * (G * landing - v.w)
            v.n += 1
            h -= landing
        v.x, v.w = v.x + v.w * h - G / 2 * h * h, v.w - G * h

    event = EventDeclaration("bounce", Scope.PRIVATE, indicators, **more)
    return PythonFmu(
        states={"x": 1.0, "w": 0.0, "n": 0},
        outputs={
            "h": lambda v: (v.x - floor) * unit,
            "dh": lambda v: v.w * unit,
            "v": lambda v: v.w * unit,
            "dv": lambda v: -G * unit,
            "bounces": lambda v: int(v.n),
        },
        attributes={"n": {"type": DataType.INT32}, "bounces": {"type": DataType.INT32}},
        step=step,
        events=[event],
    )


def exact_bounces(stop: float) -> list[float]:
    """Times in s of all bounces until a time."""
    time, interval, found = (2 / G) ** 0.5, 2 * (2 / G) ** 0.5, []
    while time <= stop:
        found.append(time)
        interval *= RESTITUTION
        time += interval
    return found


@pytest.mark.parametrize("published", PUBLISHED)
@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
def test_each_bounce_is_seen_by_its_indicators_in_any_unit(
    simulate: Simulate, published: str, unit: float
) -> None:
    results = simulate(
        {"ball": ball(*PUBLISHED[published], unit=unit)}, step_size=0.05, stop_time=4
    )
    ends = [results.time[results.time >= bounce][0] for bounce in exact_bounces(4)]
    assert [event.time for event in results.events] == ends
    assert len(ends) == 6


def test_an_executed_event_names_who_has_executed_it_and_where_the_next_point_is(
    simulate: Simulate,
) -> None:
    published = PUBLISHED["two indicators with derivatives"]
    event = simulate({"ball": ball(*published)}, step_size=0.05, stop_time=1).events[0]
    assert event.cause == Cause(Kind.EXECUTED, ("ball",))
    assert str(event.cause) == "executed by ball"
    assert (event.name, event.shared, event.components) == ("ball.bounce", False, ("ball",))
    assert event.left == {}
    assert event.right["ball.bounces"] == 1


def test_a_counter_shows_what_indicators_cannot(simulate: Simulate) -> None:
    """Steps of 0.4 s are too long for any extrapolation."""
    indicators = PUBLISHED["one"]
    results = simulate(
        {"ball": ball(*indicators, announce="bounces")}, step_size=FreeStep(0.4), stop_time=4
    )
    counted = [int(n) for n in results["ball.bounces"]]
    rises = [t for t, a, b in zip(results.time[1:], counted, counted[1:], strict=False) if b > a]
    assert [event.time for event in results.events] == rises


@pytest.mark.parametrize("published", PUBLISHED)
def test_a_turn_just_above_zero_is_no_event(simulate: Simulate, published: str) -> None:
    """A spring turns it 1e-6 of its way before the floor."""
    numbers = count()

    def step(v: Any, h: float) -> None:
        from math import cos, sin

        next(numbers)
        x, w = v.x - 1.0, v.w
        v.x, v.w = 1.0 + x * cos(h) + w * sin(h), w * cos(h) - x * sin(h)

    swinging = PythonFmu(
        states={"x": 2.0, "w": 0.0},
        outputs={
            "h": lambda v: v.x + 1e-6,
            "dh": lambda v: v.w,
            "v": lambda v: v.w,
            "dv": lambda v: 1.0 - v.x,
        },
        step=step,
        events=[EventDeclaration("touch", Scope.PRIVATE, PUBLISHED[published])],
    )
    results = simulate({"mass": swinging}, step_size=0.1, stop_time=30)
    assert next(numbers) > 300
    assert results.events == ()


def test_what_is_off_from_the_start_and_what_rests_is_no_event(simulate: Simulate) -> None:
    constant = PythonFmu(
        outputs={"z": lambda v: 0.0, "y": lambda v: -1.0},
        events=[
            EventDeclaration("rest", Scope.PRIVATE, (Indicator("z"),)),
            EventDeclaration("on", Scope.PRIVATE, (Indicator("y"),)),
        ],
    )
    assert simulate({"a": constant}, step_size=0.1, stop_time=1).events == ()


# The two masses -------------------------------------------------------------------------------------------------------

SEQUENCE = "c c c u c c u c c c c c"
"""Collisions and impacts of the upper mass on the ceiling, within 20 s; hybrid.md."""


def two_mass(version: str, **settings: Any) -> Results:
    given = {"event_clock": LookAhead(), "step_size": 0.08, **settings}
    return Simulation(reference_path(f"systems/two-mass-b3-{version}.ssp"), **given).run()


def too_long() -> AbstractContextManager[Any]:
    return pytest.warns(AccuracyWarning, match="Steps are too long for the prediction of inputs")


@pytest.mark.parametrize("version", ["fmi2", "fmi3", "mixed"])
@pytest.mark.parametrize("inputs", [Polynomial(1, 0), Polynomial(2, 2)])
def test_look_ahead_reports_the_events_of_both_masses(version: str, inputs: Polynomial) -> None:
    said: AbstractContextManager[Any] = nullcontext() if inputs.is_hold else too_long()
    with said:  # events are inside of steps
        results = two_mass(version, algorithm=Jacobi(inputs))
    assert " ".join(event.name[0] for event in results.events) == SEQUENCE
    assert all(event.cause.kind is Kind.EXECUTED for event in results.events)
    shared = [event for event in results.events if event.shared]
    assert {event.components for event in shared} == {("upper", "lower")}
    assert results.statistics.events == 12


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_inputs_are_not_extrapolated_over_an_event_that_an_fmu_executes(version: str) -> None:
    """They were, and the upper mass broke off with more than 1000 events in a step."""
    try:
        with too_long():
            results = two_mass(version, algorithm=Jacobi(Polynomial(2, 2)))
    except FmimasterError as error:
        pytest.fail(str(error))
    held = two_mass(version)
    assert results.statistics.steps <= held.statistics.steps
    assert results.events[-1].time == pytest.approx(19.174, abs=0.004)  # held: 19.185


def test_a_step_behind_a_very_short_one_shows_no_collision_that_is_none() -> None:
    """A tick at 32/11 s, a grid point 0.9 ms later, and then a whole step: the cubic of the short one is noise."""
    system = SystemBuilder("two masses and a sampler")
    system.add("upper", reference_path("fmi3/TwoMassUpper.fmu"))
    system.add("lower", reference_path("fmi3/TwoMassLower.fmu"))
    for quantity in "xva":
        system.connect(f"upper.{quantity}", f"lower.u_{quantity}")
        system.connect(f"lower.{quantity}", f"upper.u_{quantity}")
    system.share_event("collision", "upper.collision", "lower.collision")
    every_eleventh = {"interval.counter": 1, "interval.resolution": 11}
    system.add("sampler", reference_path("fmi3/Sampler.fmu"), every_eleventh)
    system.connect("lower.v", "sampler.u")
    results = Simulation(system, stop_time=4, step_size=0.01, event_clock=LookAhead()).run()
    assert [event.time for event in results.events] == pytest.approx([0.541, 1.660], abs=0.003)


# Events that may be wrong -----------------------------------------------------------------------------------------------


def test_steps_of_a_millisecond_become_shorter_towards_an_event(simulate: Simulate) -> None:
    published = PUBLISHED["two indicators with derivatives"]
    results = simulate({"ball": ball(*published)}, step_size=FreeStep("1e-3"), stop_time=0.5)
    shortened = [s for s in results.steps if s.cause.kind is Kind.LOOK_AHEAD]
    assert shortened
    assert all(s.size < 1e-3 for s in shortened)
    assert results.events[0].time == pytest.approx(exact_bounces(0.5)[0], abs=5e-5)


def ramp(speed: float) -> PythonFmu:
    """A table that moves with a constant speed."""
    return PythonFmu(
        states={"x": 0.0},
        outputs={"x": lambda v: v.x},
        step=lambda v, h: setattr(v, "x", v.x + speed * h),
    )


def switch(scope: Scope, limit: float = 0.21, **more: Any) -> PythonFmu:
    """Switches once where its input, which it holds over a step, exceeds a limit."""

    def step(v: Any, h: float) -> None:
        v.n = max(v.n, int(v.u > limit))

    indicator = Indicator("z", None)
    return PythonFmu(
        inputs={"u": 0.0},
        states={"n": 0},
        outputs={"z": lambda v: 1.0 if v.n else 0.21 - v.u, "count": lambda v: int(v.n)},
        attributes={"n": {"type": DataType.INT32}, "count": {"type": DataType.INT32}},
        step=step,
        depends={"z": ["u"]},
        events=[EventDeclaration("on", scope, (indicator,), **more)],
    )


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            {"announce": "count"},
            "'b.on' was executed once in or after a step that was not shortened",
        ),
        ({}, r"'b.on' may be wrong in time by up to 0\.\d+ s, as at t = .*: its inputs move"),
    ],
)
@pytest.mark.parametrize("speed", [0.4, 0.0])
def test_an_event_of_inputs_that_move_is_told(
    simulate: Simulate, more: Any, says: str, speed: float
) -> None:
    units = {"a": ramp(speed), "b": switch(Scope.COUPLED, **more)}
    with pytest.warns(AccuracyWarning) if speed else nullcontext():
        results = simulate(units, ["a.x -> b.u"], step_size=FreeStep(0.1), stop_time=1)
    assert results["b.count"][-1] == int(speed > 0)
    assert bool(re.search(says, " ".join(results.statistics.warnings))) == (speed > 0)


def test_a_shared_event_that_one_member_has_alone_is_told(simulate: Simulate) -> None:
    units = {
        "a": ramp(0.4),
        "b": switch(Scope.SHARED, announce="count"),
        "c": switch(Scope.SHARED, limit=1.0, announce="count"),
    }
    with pytest.warns(
        AccuracyWarning, match=r"shared event 'b\.on' was executed once by this member"
    ):
        simulate(
            units,
            ["a.x -> b.u", "a.x -> c.u"],
            shared_events={"on": ["b.on", "c.on"]},
            step_size=FreeStep(0.1),
            stop_time=1,
        )
