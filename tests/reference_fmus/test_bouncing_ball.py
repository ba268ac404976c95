"""The bouncing ball: exact bounce times, rest, and bounces that accumulate."""

from __future__ import annotations

import math
from typing import Any

import pytest
from fmpy.fmi1 import FMICallException
from pytest import approx
from reference_instance import Instance, Instantiate

FIRST = math.sqrt(2 / 9.81)
SPEED = math.sqrt(2 * 9.81)
EVENTS = {"eventModeUsed": True, "earlyReturnAllowed": True}
EXECUTE, ANNOUNCE, IGNORE = 0, 1, 2
REST = 2.499113314225


def bounce_time(k: int) -> float:
    """Time of the bounce `k`, counted from 1."""
    return FIRST * (1 + 2 * sum(0.7**i for i in range(1, k)))


def bounces_in_event_mode(ball: Instance, count: int, policy: int = EXECUTE) -> list[float]:
    """Times of the first bounces, each executed in Event Mode; the step size is 0.3 s."""
    ball.update()
    ball.fmu.enterStepMode()
    times: list[float] = []
    while len(times) < count:
        event, *_ = ball.step(0.3)
        if event:
            times.append(ball.time)
            ball.fmu.enterEventMode()
            assert ball.active("bounce.out")
            if policy == ANNOUNCE:
                assert not ball.update().states_changed  # what has a trigger is left to it
                ball.activate("bounce.in")
            assert ball.update().states_changed
            ball.fmu.enterStepMode()
    return times


@pytest.mark.parametrize("policy", [EXECUTE, ANNOUNCE])
def test_bounces_are_where_they_should_be(instantiate: Instantiate, policy: int) -> None:
    ball = instantiate("BouncingBall", "fmi3", **EVENTS).initialize(eventPolicy=policy)
    times = bounces_in_event_mode(ball, 11, policy)
    # Each bounce is at most 1e-13 s late, and what is late adds up.
    assert times == approx([bounce_time(k) for k in range(1, 12)], abs=3e-12)
    assert times[-1] == approx(REST, abs=1e-11)
    assert (ball["h"], ball["v"], ball["a"]) == (0.0, 0.0, 0.0)
    assert ball.step(10.0)[0] is False
    assert (ball["h"], ball["v"]) == (0.0, 0.0)
    ball.fmu.enterEventMode()
    assert not ball.update().states_changed
    assert max(ball["bounce.z[1]"], ball["bounce.z[2]"]) > 0


def test_without_event_mode_they_are_executed_in_the_step(
    instantiate: Instantiate, version: str
) -> None:
    ball = instantiate("BouncingBall", version, loggingOn=True).initialize()
    ball.step(REST - 1e-9)
    assert ball["v"] == approx(-SPEED * 0.7**10, rel=1e-7)
    assert len(ball.log) == 10
    ball.step(1.0)
    assert (ball["h"], ball["v"]) == (0.0, 0.0)
    ball.step(1.0)
    assert len(ball.log) == 11


def test_between_bounces_the_parabola_is_exact(instantiate: Instantiate, version: str) -> None:
    ball = instantiate("BouncingBall", version).initialize()
    ball.step(0.25)
    assert ball["h"] == approx(1 - 9.81 / 2 * 0.25**2, rel=1e-12)
    ball.step(0.5)
    s = 0.75 - FIRST
    assert ball["h"] == approx(0.7 * SPEED * s - 9.81 / 2 * s**2, rel=1e-10)
    assert ball["bounce.dz[1]"] == ball["v"]
    assert (ball["bounce.dz[2]"], ball["bounce.z[1]"]) == (-9.81, ball["h"])


def test_bounces_that_accumulate_end_the_step(instantiate: Instantiate, version: str) -> None:
    ball = instantiate("BouncingBall", version).initialize(v_min=0.0)
    ball.step(2.5)
    with pytest.raises(FMICallException, match="error"):
        ball.step(0.5)
    [message] = ball.log
    assert message.startswith("More than 1000 events in the step from t = 2.5 s to 3 s: ")
    where = float(message.removesuffix(" s.").split(" = ")[-1])
    assert where == approx(FIRST * 1.7 / 0.3, abs=1e-8)


def test_in_event_mode_the_importer_sees_every_bounce(instantiate: Instantiate) -> None:
    ball = instantiate("BouncingBall", "fmi3", **EVENTS).initialize(v_min=0.0)
    times = bounces_in_event_mode(ball, 40)
    assert times[-1] == approx(2.558632049077, abs=1e-9)
    assert times == sorted(times)


def test_a_trigger_of_fmi2_shows_the_rebound_at_once(instantiate: Instantiate) -> None:
    ball = instantiate("BouncingBall", "fmi2").initialize(eventPolicy=ANNOUNCE)
    assert ball.discarded_step(1.0) == approx(FIRST, abs=2e-13)
    ball.fmu.reset()
    ball.initialize(eventPolicy=ANNOUNCE)
    ball.step(FIRST)
    ball["bounce.in"] = 1
    assert ball["v"] == approx(0.7 * SPEED, rel=1e-12)
    assert ball["bounce.z[2]"] == ball["v"]
    ball.step(0.1)
    assert ball["v"] == approx(0.7 * SPEED - 0.981, rel=1e-12)


@pytest.mark.parametrize("impact", [-4.0, -0.9])
def test_a_second_trigger_at_one_time_is_executed_too(
    instantiate: Instantiate, version: str, impact: float
) -> None:
    """Requirement F10: also if the ball rises already. Whether it happens is for the importer to judge."""
    ball = instantiate("BouncingBall", version, **EVENTS if version == "fmi3" else {})
    ball.initialize(h=0.0, v=impact, eventPolicy=IGNORE)
    for number in (1, 2):
        if version == "fmi3":
            ball.activate("bounce.in")
            ball.update()
        else:
            ball["bounce.in"] = number
            assert ball["v"] == approx(-(0.7**number) * impact, rel=1e-12)
    if version == "fmi3":
        ball.fmu.enterStepMode()
    assert ball["v"] == approx(-0.49 * impact, rel=1e-12)
    ball.step(0.01)
    assert ball["v"] == approx(-0.49 * impact - 0.0981, rel=1e-12)


def test_a_trigger_of_fmi2_can_bring_it_to_rest(instantiate: Instantiate) -> None:
    ball = instantiate("BouncingBall", "fmi2").initialize(h=1e-12, v=-0.1)
    ball["bounce.in"] = 1
    assert (ball["h"], ball["v"], ball["a"]) == (0.0, 0.0, 0.0)
    ball.step(1.0)
    assert (ball["h"], ball["v"]) == (0.0, 0.0)


@pytest.mark.parametrize("values", [{"g": 9.81}, {"e": 1.1}, {"v_min": -1.0}])
def test_unusable_parameters_are_refused(
    instantiate: Instantiate, version: str, values: dict[str, Any]
) -> None:
    ball = instantiate("BouncingBall", version)
    with pytest.raises(FMICallException, match="ExitInitializationMode"):
        ball.initialize(**values)
    assert "g must be negative, e from 0 to 1, v_min not negative." in ball.log[-1]
