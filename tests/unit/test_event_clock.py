"""Event clocks: where the next step shall end for an event, and what is on; from numbers in the value store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import cos, sin
from typing import Any

import pytest
from event_store import Seen, plan
from pytest import approx
from python_fmu import PythonFmu, plan_of

from fmimaster.base.errors import OptionError
from fmimaster.events.event_clock import Check, EarlyReturn, Retry
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.instants.instant import Goal, Instant
from fmimaster.plan.policy import EventUse
from fmimaster.record.causes import GRID, Cause, Kind

NOTHING: frozenset[int] = frozenset()


# LookAhead ------------------------------------------------------------------------------------------------------------


# events.md 13; safety 0.9, forecast 2, shortest 0.002 s, time between the points 0.08
@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ([0.5, -3], [0.2, -4], 0.9 * 0.08 * 0.2 / 0.3),
        ([0.5, -3], [0.4, -4], -1.0),
        ([0.5, -3], [0.001, -4], 0.002),
        ([0.5, 1], [0.2, 0.4], 0.048),
        ([-0.1, -3], [-0.2, -4], -1.0),
    ],
)
def test_local_look_ahead(before: list[float], now: list[float], expected: float) -> None:
    assert LookAhead().time_to_event(before, now, 0.08, 0.002) == approx(expected, rel=1e-12)


def test_look_ahead_shortens_the_step_to_the_nearest_event() -> None:
    seen = Seen(plan({"far": ["u"], "near": ["w"], "never": ["x"]}), history=2)
    seen.put({"u": 1.0, "w": 0.5, "x": 0.5}, 0.0)
    seen.remember()
    seen.put({"u": 0.6, "w": 0.2, "x": 0.7}, 0.08)
    seen.remember()
    goal = seen.clip(LookAhead(), 0.08, 0.18)
    assert goal.end.seconds == approx(0.08 + 0.048)
    assert str(goal.cause) == "look-ahead to a.near"


def test_look_ahead_leaves_a_goal_that_comes_first() -> None:
    seen = Seen(plan({"near": ["w"]}), history=2)
    seen.put({"w": 0.5}, 0.0)
    seen.remember()
    seen.put({"w": 0.2}, 0.08)
    seen.remember()
    assert seen.clip(LookAhead(), 0.08, 0.1).cause is GRID


def test_look_ahead_needs_two_points() -> None:
    seen = Seen(plan({"near": ["w"]}), history=2)
    seen.put({"w": 0.2}, 0.0)
    seen.remember()
    assert seen.clip(LookAhead(), 0.0, 1.0).cause is GRID


@pytest.mark.parametrize(
    ("said", "length"), [(0.05, 0.05), (0.0, 2.5e-3), (-1.0, 0.1)], ids=["near", "now", "none"]
)
def test_the_forecast_of_an_fmu_is_the_time_to_its_event(said: float, length: float) -> None:
    """0 is now (proposal, requirements F13 and I31): the step is the shortest one."""
    unit = PythonFmu(outputs={"next": lambda v: said})
    unit.model = replace(unit.model, look_ahead="next")
    seen = Seen(plan_of({"a": unit}, use=EventUse(watched=True)), history=2)
    seen.put({"next": said}, 0.0)
    assert seen.clip(LookAhead(), 0.0, 0.1).end.seconds == approx(length)


@pytest.mark.parametrize(
    "settings",
    [
        {"safety": 1.0},
        {"safety": 0.0},
        {"forecast": 0.0},
        {"shortest": 0.0},
        {"shortest": 1.0},
        {"shortest": float("nan")},
    ],
)
def test_settings_with_which_look_ahead_fails_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(OptionError, match=r"The paper has 0\.9, 2 and 0\.025"):
        LookAhead(**settings)  # type: ignore[arg-type]


# Predictive -----------------------------------------------------------------------------------------------------------

Signal = tuple[Callable[[float], float], Callable[[float], float]]
"""An indicator and its derivative."""


def course(signals: Mapping[str, Signal], times: Sequence[float], **options: Any) -> Seen:
    """A history of one event whose indicators are these signals; it ends at the last time."""
    seen = Seen(plan({"event": list(signals)}, **options))
    for t in times:
        seen.put({name: f(t) for name, (f, _) in signals.items()}, t)
        seen.put({f"d{name}": df(t) for name, (_, df) in signals.items()}, t)
        seen.remember()
    return seen


FALL: Signal = (lambda t: 1 - t - t**3, lambda t: -1 - 3 * t**2)
ROOT = 0.6823278038280193
"""Of FALL."""


def test_a_cubic_is_predicted_exactly() -> None:
    seen = course({"z": FALL}, [0.0, 0.2])
    goal = seen.clip(Predictive(approach=1.0), 0.2, 1.2)
    assert goal.end.seconds == approx(ROOT, abs=1e-14)
    assert str(goal.cause) == "a.event predicted"


def test_a_far_event_is_approached_and_a_near_one_is_met() -> None:
    far = course({"z": FALL}, [0.0, 0.2]).clip(Predictive(), 0.2, 1.2)
    assert far.end.seconds == approx(0.2 + 0.95 * (ROOT - 0.2))
    near = course({"z": FALL}, [0.2, ROOT - 5e-4]).clip(Predictive(), ROOT - 5e-4, 1.2)
    assert near.end.seconds == approx(ROOT, abs=1e-14)
    assert near.fire == NOTHING


def test_an_event_that_is_now_is_fired_without_a_step() -> None:
    now = ROOT - 5e-9
    goal = course({"z": FALL}, [0.2, now]).clip(Predictive(), now, 1.2)
    assert goal == Goal(Instant(now), Cause(Kind.PREDICTED, ("a.event",)), frozenset({0}))


def test_an_event_that_has_just_happened_is_not_predicted() -> None:
    now = ROOT - 5e-9
    seen = course({"z": FALL}, [0.2, now])
    assert seen.clip(Predictive(), now, 1.2, frozenset({0})).cause is GRID


def test_an_event_beyond_the_goal_is_left() -> None:
    seen = course({"z": FALL}, [0.0, 0.2])
    assert seen.clip(Predictive(), 0.2, 0.6).cause is GRID


def test_the_last_indicator_to_fall_decides() -> None:
    late: Signal = (lambda t: 0.9 - t, lambda t: -1.0)
    goal = course({"z": FALL, "w": late}, [0.0, 0.2]).clip(Predictive(approach=1.0), 0.2, 1.2)
    assert goal.end.seconds == approx(0.9)


def test_an_event_needs_all_indicators_at_one_time() -> None:
    """z is below 0 up to 0.5 only, w from 0.8 on."""
    z: Signal = (lambda t: t - 0.5, lambda t: 1.0)
    w: Signal = (lambda t: 0.8 - t, lambda t: -1.0)
    assert course({"z": z, "w": w}, [0.0, 0.2]).clip(Predictive(), 0.2, 1.2).cause is GRID


def test_an_event_between_two_roots_is_found() -> None:
    """z dips below 0 between 0.5 and 0.7: both ends of the horizon are above."""
    dip: Signal = (lambda t: (t - 0.5) * (t - 0.7), lambda t: 2 * t - 1.2)
    goal = course({"z": dip}, [0.0, 0.2]).clip(Predictive(approach=1.0), 0.2, 1.0)
    assert goal.end.seconds == approx(0.5)


def test_after_an_event_the_extrapolation_is_a_line() -> None:
    goal = course({"z": FALL}, [0.2]).clip(Predictive(approach=1.0), 0.2, 1.2)
    assert goal.end.seconds == approx(0.2 + FALL[0](0.2) / 1.12)


def test_without_derivatives_it_is_the_line_through_two_points() -> None:
    seen = course({"z": FALL}, [0.0, 0.2], slopes=False)
    goal = seen.clip(Predictive(approach=1.0), 0.2, 1.2)
    slope = (FALL[0](0.0) - FALL[0](0.2)) / 0.2
    assert goal.end.seconds == approx(0.2 + FALL[0](0.2) / slope)


def test_a_point_that_is_too_near_serves_no_cubic() -> None:
    near = course({"z": FALL}, [0.0, 0.19999, 0.2]).clip(Predictive(approach=1.0), 0.2, 1.2)
    assert near.end.seconds == approx(ROOT, abs=1e-12)


def test_the_error_of_the_prediction_is_of_fourth_order() -> None:
    wave: Signal = (lambda t: cos(t), lambda t: -sin(t))
    errors = []
    for h in (0.2, 0.1):
        now = 1.5707963267948966 - h
        goal = course({"z": wave}, [now - h, now]).clip(Predictive(approach=1.0), now, now + 2 * h)
        errors.append(abs(goal.end.seconds - 1.5707963267948966))
    assert errors[0] / errors[1] > 2**4 * 0.9


def test_what_is_on_at_the_end_of_a_step_is_detected() -> None:
    seen = Seen(plan({"one": ["u"], "two": ["w", "x"]}))
    seen.put({"u": 1.0, "w": 5e-11, "dw": -1.0, "x": -1.0})
    assert Predictive().detect(seen.indicators) == {1}
    seen.put({"w": 2e-10})
    assert Predictive().detect(seen.indicators) == NOTHING


@pytest.mark.parametrize("slopes", [True, False])
def test_after_an_event_the_slope_of_an_indicator_gives_its_curvature(slopes: bool) -> None:
    """w is the slope of z; without the derivative of w nobody knows how z bends."""
    z: Signal = (lambda t: 2 * t - 5 * t * t, lambda t: 2 - 10 * t)
    w: Signal = (lambda t: 2 - 10 * t, lambda t: -10.0)
    seen = course({"z": z, "w": w}, [0.0], slopes=slopes)
    goal = seen.clip(Predictive(approach=1.0), 0.0, 1.0, frozenset({0}))
    assert goal.end.seconds == (approx(0.4) if slopes else 1.0)


def test_an_event_that_has_just_happened_is_predicted_again() -> None:
    seen = course({"z": FALL}, [0.0, 0.2])
    goal = seen.clip(Predictive(approach=1.0), 0.2, 1.2, frozenset({0}))
    assert goal.end.seconds == approx(ROOT, abs=1e-14)


def test_without_derivatives_three_points_give_a_parabola() -> None:
    z: Signal = (lambda t: 1 - t - t * t, lambda t: -1 - 2 * t)
    seen = course({"z": z}, [0.0, 0.1, 0.3], slopes=False)
    assert seen.clip(Predictive(approach=1.0), 0.3, 1.2).end.seconds == approx((5**0.5 - 1) / 2)


def passed(signals: Mapping[str, Signal], begin: float, end: float, **more: Any) -> Retry | None:
    """What Predictive finds after a step."""
    tries = more.pop("tries", 0)
    seen = course(signals, [begin], **more)
    seen.put({name: f(end) for name, (f, _) in signals.items()}, end)
    seen.put({f"d{name}": df(end) for name, (_, df) in signals.items()}, end)
    return Predictive().passed(seen.indicators, begin, end, tries)


def test_an_event_that_was_passed_is_located_by_the_cubic_through_both_ends() -> None:
    found = passed({"z": FALL}, 0.2, 1.2)
    assert found is not None
    assert found.length == approx(ROOT - 0.2, abs=1e-14)
    assert str(found.cause) == "a.event located"


def test_an_event_that_began_and_ended_in_one_step_was_passed() -> None:
    dip: Signal = (lambda t: (t - 0.5) * (t - 0.7), lambda t: 2 * t - 1.2)
    found = passed({"z": dip}, 0.2, 1.0)
    assert found is not None
    assert found.length == approx(0.3)


def test_a_step_that_ends_at_an_event_but_for_little_has_not_passed_it() -> None:
    assert passed({"z": FALL}, 0.2, ROOT + 9e-7) is None
    assert passed({"z": FALL}, 0.2, ROOT + 1.1e-6) is not None


def test_an_event_was_passed_only_if_all_indicators_were_below_0_at_one_time() -> None:
    z: Signal = (lambda t: t - 0.5, lambda t: 1.0)
    assert passed({"z": z, "w": FALL}, 0.2, 1.2) is None


def test_without_derivatives_a_step_that_began_at_0_is_halved() -> None:
    z: Signal = (lambda t: t - 3 * t * t, lambda t: 1 - 6 * t)
    found = passed({"z": z}, 0.0, 0.5, slopes=False)
    assert found is not None
    assert found.length == 0.25


def test_after_the_first_try_only_the_end_of_the_step_counts() -> None:
    """At the start extrapolated inputs put z at 1e-3, but it was below 0 already: a step as short as may be is best."""
    seen = course({"z": (lambda t: 1e-3, lambda t: -1.0)}, [0.2])
    seen.put({"z": -2e-3, "dz": -1.0}, 0.201)
    found = Predictive().passed(seen.indicators, 0.2, 0.201, 1)
    assert found is not None
    assert found.length == approx(1e-8)
    seen.put({"z": -5e-4, "dz": -1.0}, 0.201)
    found = Predictive().passed(seen.indicators, 0.2, 0.201, 1)
    assert found is not None
    assert found.length == approx(5e-4)


def test_going_back_ends_after_nine_tries() -> None:
    assert passed({"z": FALL}, 0.2, 1.2, tries=8) is not None
    assert passed({"z": FALL}, 0.2, 1.2, tries=9) is None


# Check ----------------------------------------------------------------------------------------------------------------


def test_after_an_event_check_interrupts_for_a_moment() -> None:
    seen = Seen(plan({"event": ["z"]}))
    assert seen.clip(Check(), 0.5, 0.6).cause is GRID
    goal = seen.clip(Check(), 0.5, 0.6, frozenset({0}))
    assert (goal.end.seconds, str(goal.cause)) == (0.5 + 1e-4, "interruption")
    assert seen.clip(Check(1e-2), 0.595, 0.6, frozenset({0})).cause is GRID


def test_check_fires_what_is_on() -> None:
    seen = Seen(plan({"one": ["u"], "two": ["w"]}))
    seen.put({"u": 0.0, "du": -1.0, "w": 1e-9, "dw": -1.0})
    assert Check().detect(seen.indicators) == {0}


@pytest.mark.parametrize("interruption", [0.0, -1e-4])
def test_an_interruption_takes_time(interruption: float) -> None:
    with pytest.raises(OptionError, match="expected a positive interruption"):
        Check(interruption)


# EarlyReturn --------------------------------------------------------------------------------------------------


def test_early_return_leaves_the_step_to_the_fmus_and_fires_what_is_on_at_its_end() -> None:
    seen = Seen(plan({"one": ["u"], "two": ["w"]}))
    seen.put({"u": -1.0, "du": -1.0, "w": 1.0, "dw": -1.0})
    assert seen.clip(EarlyReturn(), 0.5, 0.6).cause is GRID
    assert EarlyReturn().detect(seen.indicators) == {0}
