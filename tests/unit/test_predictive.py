"""Predictive over runs of a ball that bounces between steps: prediction after a restart, and going back (PZ)."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, sqrt
from sys import float_info
from typing import Any

import pytest
from in_turn import in_turn
from pytest import approx
from python_fmu import PythonFmu

from fmimaster import Results, Simulation
from fmimaster.events import Predictive
from fmimaster.fmu.instance import StepAnswer
from fmimaster.steps import FreeStep, Ramp
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import Causality, DataType

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

H = 0.1
"""[s] Step size."""

TINY = float_info.min
"""Height after a bounce, as in the BouncingBall of modelica's Reference FMUs."""

HIT = 0.448
"""[s] When a ball that moves in steps of 1 ms is below the ground first."""

LEFT = 2e-5
"""[m] Its height one step before."""

INTERVALS = [3, 1, 0.5, 0.3, 0.2, 0.1, 0.06, 0.03]
"""Time between two bounces, in step sizes."""


def ball(interval: float, indicators: str, unit: float = 1.0, **more: Any) -> PythonFmu:
    """An elastic ball under gravity 10 m/s2 that leaves the ground at 0 s; it is triggered to bounce.

    Parameters
    ----------
    interval : time in s between two bounces
    indicators
        ``"h v"``: height and velocity with their derivatives; ``"h"``: the height only; ``"h without slope"``.
    unit : m in the unit of length
    """
    g = 10.0 * unit
    both, slope = indicators == "h v", "without" not in indicators

    def step(v: Any, h: float) -> None:
        v.x, v.w = v.x + v.w * h - g / 2 * h * h, v.w - g * h

    def update(v: Any) -> None:
        if v.hit:
            v.w = -v.w
            if not both:  # after an event one indicator must be positive, however little
                v.x = TINY

    names = [("z", "dz"), *([("w_", "dw")] if both else [])]
    event = EventDeclaration(
        "bounce",
        Scope.PRIVATE,
        tuple(Indicator(z, dz if slope else None) for z, dz in names),
        trigger="hit",
    )
    return PythonFmu(
        inputs={"hit": False},
        states={"x": 0.0 if both else TINY, "w": g * interval / 2},
        outputs={
            "z": lambda v: v.x,
            "dz": lambda v: v.w,
            "w_": lambda v: v.w,
            "dw": lambda v: -g,
            "energy": lambda v: (v.w**2 / 2 + g * v.x) / unit**2,
        },
        attributes={"hit": {"type": DataType.CLOCK}},
        step=step,
        update=update,
        events=[event],
        has_event_mode=True,
        **more,
    )


def bounces(
    simulate: Simulate, interval: float, indicators: str, clock: Predictive, **more: Any
) -> tuple[Results, list[float]]:
    """A run over 60 bounces, or 2 s; and how late each was, in s."""
    until = min(60.5 * interval * H, 2.0)
    results = simulate(
        {"ball": ball(interval * H, indicators, **more)},
        stop_time=until,
        step_size=Ramp(H),
        event_clock=clock,
    )
    times = [e.time for e in results.events]
    assert len(times) == int(until / (interval * H) + 1e-9)
    late = [t - k * interval * H for k, t in enumerate(times, 1)]
    return results, late


@pytest.mark.parametrize(("interval", "go_back"), in_turn(INTERVALS, [True, False]))
def test_an_indicator_that_is_the_slope_of_another_makes_prediction_exact(
    simulate: Simulate, interval: float, go_back: bool
) -> None:
    results, late = bounces(simulate, interval, "h v", Predictive(go_back=go_back))
    assert late == approx([0.0] * len(late), abs=1e-11)
    assert results["ball.energy"] == approx(results["ball.energy"][0])
    assert sum(i.restores for i in results.statistics.instances) == 0


@pytest.mark.parametrize(
    ("interval", "unit"), [*((i, 1.0) for i in INTERVALS), (0.06, 1e6), (0.06, 1e-6)]
)
@pytest.mark.parametrize("indicators", ["h", "h without slope"])
def test_a_step_that_has_passed_an_event_goes_back_to_it(
    simulate: Simulate, interval: float, indicators: str, unit: float
) -> None:
    """With one indicator nothing tells its curvature after a bounce."""
    results, late = bounces(simulate, interval, indicators, Predictive(), unit=unit)
    assert late == approx([0.0] * len(late), abs=1e-11)
    assert results["ball.energy"] == approx(results["ball.energy"][0])


@pytest.mark.parametrize("interval", INTERVALS)
def test_without_fmu_states_short_steps_after_an_event_tell_the_curvature(
    simulate: Simulate, interval: float
) -> None:
    results, late = bounces(simulate, interval, "h", Predictive(), can_get_and_set_fmu_state=False)
    assert late == approx([0.0] * len(late), abs=1e-11)
    assert sum(i.restores for i in results.statistics.instances) == 0


# Events that FMUs let happen themselves: events-ordinary.md 4 ---------------------------------------------------------


def bouncing(
    interval: float, *, event_mode: bool, stops: bool, internal_step: float | None = None
) -> PythonFmu:
    """An elastic ball without trigger: it bounces in Event Mode where it is at the ground, or else inside its steps.

    Its only indicator is the height; a local variable is the derivative. With an internal step it moves by multiples of
    that.
    """
    g = 10.0

    def fly(v: Any, h: float) -> None:
        v.x, v.w, v.at = v.x + v.w * h - g / 2 * h * h, v.w - g * h, v.at + h

    def bounce(v: Any) -> None:
        v.x, v.w = TINY, -v.w

    def step(v: Any, h: float) -> StepAnswer | None:
        end = v.t + h
        while v.at < end - 1e-12:
            ground = (v.w + sqrt(max(v.w**2 + 2 * g * v.x, 0.0))) / g
            if internal_step is not None:
                fly(v, internal_step)
                if v.at > end + 1e-12:
                    raise AssertionError(f"a step to {end} is not on the grid of the FMU")
                if v.x <= 0.0:
                    return StepAnswer(v.at, early=v.at < end - 1e-12, event=True)
            elif v.at + ground > end or (event_mode and not stops):
                fly(v, end - v.at)
            else:
                fly(v, ground)
                if event_mode:
                    v.x = 0.0
                    return StepAnswer(min(v.at, end), early=v.at < end, event=True)
                bounce(v)
        return None

    def update(v: Any) -> None:
        if v.x <= 1e-12 and v.w < 0:
            bounce(v)

    return PythonFmu(
        states={"x": TINY, "w": g * interval / 2, "at": 0.0},
        outputs={"z": lambda v: v.x, "dz": lambda v: v.w},
        attributes={"dz": {"causality": Causality.LOCAL}},
        step=step,
        update=update,
        events=[EventDeclaration("bounce", Scope.PRIVATE, (Indicator("z", "dz"),))],
        has_event_mode=event_mode,
        might_return_early_from_do_step=stops,
        fixed_internal_step_size=internal_step,
    )


def times_of_bounces(simulate: Simulate, interval: float, **more: Any) -> list[float]:
    results = simulate(
        {"ball": bouncing(interval * H, **more)},
        stop_time=min(60.5 * interval * H, 2.01),
        step_size=Ramp(H),
        event_clock=Predictive(),
    )
    return [e.time for e in results.events]


def exact_times(interval: float) -> list[float]:
    count = int(min(60.5, 2.01 / (interval * H)))
    return [k * interval * H for k in range(1, count + 1)]


@pytest.mark.parametrize(("interval", "stops"), in_turn(INTERVALS, [True, False]))
def test_an_event_without_trigger_happens_in_event_mode_where_it_was_predicted(
    simulate: Simulate, interval: float, stops: bool
) -> None:
    found = times_of_bounces(simulate, interval, event_mode=True, stops=stops)
    # without early return a step may end 1e-10 s behind the event, from where the ball rebounds: it gains energy
    assert found == approx(exact_times(interval), abs=1e-11 if stops else 1e-6)


@pytest.mark.parametrize("interval", [3, 1, 0.5])
def test_a_step_ends_behind_an_event_that_an_fmu_executes_in_it(
    simulate: Simulate, interval: float
) -> None:
    found = times_of_bounces(simulate, interval, event_mode=False, stops=False)
    assert found == approx(exact_times(interval), abs=1e-8)


def test_steps_to_an_event_end_where_an_fmu_with_a_fixed_internal_step_does(
    simulate: Simulate,
) -> None:
    fmu = bouncing(0.3037, event_mode=True, stops=True, internal_step=1e-3)
    results = simulate(
        {"ball": fmu}, stop_time="0.4", step_size=Ramp("1/25", first=1), event_clock=Predictive()
    )
    assert [e.time for e in results.events] == approx([0.304])
    assert sum(s.count for s in results.steps) <= 15


def steps_of(results: Results) -> int:
    return sum(s.count for s in results.steps)


def test_steps_get_longer_until_an_fmu_with_an_unknown_internal_step_has_executed_its_event(
    simulate: Simulate,
) -> None:
    """As the BouncingBall of modelica's Reference FMUs of FMI 2.0: between its steps of 1 ms it stands still."""
    tick = 1e-3
    last = HIT - tick

    def fallen(v: Any) -> float:
        return float(floor((v.t + 1e-12) / tick) * tick)

    def height(v: Any) -> float:
        t = fallen(v)
        return 5 * (last**2 - t * t) + LEFT if t < HIT else 4 * (t - HIT) + TINY

    fmu = PythonFmu(
        outputs={"z": height, "dz": lambda v: -10 * fallen(v) if fallen(v) < HIT else 4.0},
        events=[EventDeclaration("floor", Scope.PRIVATE, (Indicator("z", "dz"),))],
    )
    results = simulate({"ball": fmu}, stop_time=0.6, step_size=Ramp(0.1), event_clock=Predictive())
    assert [str(e.cause) for e in results.events] == ["executed by ball"]
    assert results.events[0].time == approx(HIT, abs=2 * tick)
    assert steps_of(results) < 30


def test_an_fmu_that_stops_at_its_events_is_not_asked_again_where_it_did_not(
    simulate: Simulate,
) -> None:
    """As Dymola's FMUs of FMI 3.0, many of whose indicators change their sign without an event."""
    fmu = PythonFmu(
        outputs={"z": lambda v: 0.35 - v.t},
        events=[EventDeclaration("relation", Scope.PRIVATE, (Indicator("z"),))],
        has_event_mode=True,
        might_return_early_from_do_step=True,
    )
    results = simulate({"a": fmu}, stop_time=1, step_size=FreeStep(H), event_clock=Predictive())
    assert results.statistics.rejections == 0
    assert results.statistics.warnings == ()
    assert steps_of(results) < 20


@pytest.mark.parametrize("is_told", [True, False])
def test_an_event_that_is_off_in_a_mode_is_not_predicted(
    simulation: Callable[..., Simulation], is_told: bool
) -> None:
    """The indicator falls to 0 at 0.45 s, and the event can happen from 0.7 s on, when it is at 0.5."""
    event = EventDeclaration(
        *("stick", Scope.PRIVATE, (Indicator("z", "dz"),), None, "go", ()),
        active="slips" if is_told else None,
    )

    def update(v: Any) -> None:
        if v.go:
            v.done = 1.0

    unit = PythonFmu(
        inputs={"go": False},
        states={"done": 0.0},
        outputs={
            "z": lambda v: 1.0 if v.done else (0.45 - v.t if v.t < 0.7 else 1.2 - v.t),
            "dz": lambda v: 0.0 if v.done else -1.0,
            "slips": lambda v: v.t >= 0.7,
        },
        attributes={
            "go": {"type": DataType.CLOCK},
            "dz": {"derivative_of": "z"},
            "slips": {"type": DataType.BOOLEAN},
        },
        update=update,
        events=[event],
        has_event_mode=True,
    )
    settings: Any = {"event_clock": Predictive(), "step_size": 0.1, "stop_time": 1.5}
    results = simulation({"mass": unit}, [], **settings).run()
    assert [e.time for e in results.events] == pytest.approx([1.2 if is_told else 0.45], abs=1e-9)
