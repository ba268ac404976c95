"""A ball in a row: its flow, its hits with two neighbours, and several of them at one instant."""

from __future__ import annotations

import math
from typing import Any

import pytest
from fmpy.fmi1 import FMICallException
from pytest import approx
from reference_instance import Instance, Instantiate

EVENTS = {"eventModeUsed": True, "earlyReturnAllowed": True}
EXECUTE, ANNOUNCE, IGNORE = 0, 1, 2
BOTH = {"left.m": 1.0, "right.m": 1.0}


def ball(instantiate: Instantiate, version: str, **values: Any) -> Instance:
    """A ball of 1 kg; in FMI 3.0 in Step Mode, with events."""
    options = EVENTS if version == "fmi3" else {}
    made = instantiate("CradleBall", version, loggingOn=True, **options).initialize(**values)
    if version == "fmi3":
        made.update()
        made.fmu.enterStepMode()
    return made


def hit(b: Instance, side: str, velocity: float) -> None:
    """Let the ball be hit by a neighbour that has this velocity before it; in FMI 3.0 in Event Mode."""
    if b.version == "fmi3":
        b.activate(f"{side}.in")
        b[f"{side}.w"] = velocity
        b.update()
    else:
        b[f"{side}.w"] = velocity
        b[f"{side}.in"] = b[f"{side}.in"] + 1


def test_a_pendulum_is_exact(instantiate: Instantiate, version: str) -> None:
    b = ball(instantiate, version, x=-0.5, w=math.pi)
    rounding = 1000 * 2.0**-52  # one unit in the last place of each micro step
    for k in range(1, 11):
        b.step(0.1)
        assert b["x"] == approx(-0.5 * math.cos(0.1 * math.pi * k), abs=rounding)
        assert b["v"] == approx(0.5 * math.pi * math.sin(0.1 * math.pi * k), abs=rounding)


def test_free_fall_is_exact(instantiate: Instantiate, version: str) -> None:
    b = ball(instantiate, version, v=2.0, g=-9.81)
    b.step(0.5)
    assert b["x"] == approx(1.0 - 9.81 / 8, rel=1e-13)
    assert b["a"] == -9.81


def test_without_neighbours_nothing_occurs(instantiate: Instantiate, version: str) -> None:
    b = ball(instantiate, version, v=100.0)
    b.step(1.0)
    assert b["x"] == approx(100.0, rel=1e-13)
    assert (b["right.z[1]"], b["right.z[2]"], b["right.dz[1]"]) == (0.0, 1.0, 0.0)


def test_indicators_are_gap_and_velocity_and_their_derivatives(
    instantiate: Instantiate, version: str
) -> None:
    values = {"x": 0.25, "v": 3.0, "g": -9.0, "r": 0.5, **BOTH}
    near = {"left.x": -2.0, "left.v": 1.0, "left.a": 5.0, "left.r": 0.25}
    b = ball(instantiate, version, **values, **near, **{"right.x": 4.0, "right.v": -1.0})
    assert [b[f"left.z[{k}]"] for k in (1, 2)] == [1.5, 2.0]
    assert [b[f"left.dz[{k}]"] for k in (1, 2)] == [2.0, -14.0]
    assert [b[f"right.z[{k}]"] for k in (1, 2)] == [2.75, -4.0]
    assert [b[f"right.dz[{k}]"] for k in (1, 2)] == [-4.0, 9.0]


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize("policy", [EXECUTE, ANNOUNCE])
def test_it_stops_where_it_hits_in_any_unit(
    instantiate: Instantiate, policy: int, unit: float
) -> None:
    lengths = {"v": 2.0, "r": 0.5, "left.r": 0.5, "right.r": 0.5, "right.x": 2.0, "left.x": -9.0}
    values = {name: unit * value for name, value in lengths.items()}
    b = ball(instantiate, "fmi3", eventPolicy=policy, **values, **BOTH)
    event, _, early, last = b.step(1.0)
    assert (event, early) == (True, True)
    assert last == approx(0.5, abs=2e-13)
    b.fmu.enterEventMode()
    assert (b.active("right.out"), b.active("left.out")) == (True, False)
    hit(b, "right", 0.0)
    assert b["v"] == approx(0.0, abs=1e-15 * unit)
    assert b["right.z[2]"] == approx(2.0 * unit, rel=1e-15)  # the neighbour has the velocity now


def test_fmi2_executes_what_it_is_told_nothing_about(instantiate: Instantiate) -> None:
    b = ball(instantiate, "fmi2", v=2.0, e=0.5, **BOTH, **{"left.x": -9.0, "right.x": 2.0})
    b.step(1.0)
    assert b["v"] == approx(0.5, rel=1e-15)  # 1 - 0.5 * 1, for the velocity 1 of the centre of mass
    assert b["right.out"] == 1


@pytest.mark.parametrize("e", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("m", [1.0, 3.0, 1e300])
def test_restitution_and_momentum(
    instantiate: Instantiate, version: str, e: float, m: float
) -> None:
    b = ball(instantiate, version, v=2.0, m=2.0, e=e, **{"right.m": m, "right.x": 1.0})
    if version == "fmi3":
        b.fmu.enterEventMode()
    hit(b, "right", -1.0)
    after, partner = b["v"], b["v"] + b["right.z[2]"]
    assert partner - after == approx(3.0 * e, abs=1e-14)
    if m < 1e300:
        assert 2.0 * after + m * partner == approx(4.0 - m, abs=1e-13)
    else:
        assert (after, partner) == approx((-1.0 - 3.0 * e, -1.0), abs=1e-15)


def test_hits_from_both_sides_at_one_instant_follow_each_other(
    instantiate: Instantiate, version: str
) -> None:
    """Velocities 1, 0, -1 of three equal balls become -1, 0, 1, by three hits."""
    touching = {"left.x": -1.0, "right.x": 1.0, "left.v": 1.0, "right.v": -1.0}
    b = ball(instantiate, version, **touching, **BOTH)
    if version == "fmi3":
        b.fmu.enterEventMode()

    hit(b, "left", 1.0)
    assert b["v"] == 1.0
    assert (b["left.z[2]"], b["right.z[2]"]) == (1.0, -2.0)
    b["left.v"], b["right.v"] = 0.0, -1.0

    hit(b, "right", -1.0)
    assert b["v"] == -1.0
    assert (b["left.z[2]"], b["right.z[2]"]) == (-1.0, 2.0)
    b["left.v"], b["right.v"] = 0.0, 1.0

    hit(b, "left", 0.0)
    assert b["v"] == 0.0
    assert (b["left.z[2]"], b["right.z[2]"]) == (1.0, 1.0)
    b["left.v"], b["right.v"] = -1.0, 1.0

    for w, v in ((-1.0, -1.0), (0.0, 0.0)):  # each trigger is executed: the importer judges
        hit(b, "left", w)
        assert b["v"] == v
    if version == "fmi3":
        b.fmu.enterStepMode()
    b.step(0.1)
    assert (b["x"], b["v"]) == (0.0, 0.0)
    assert not any("increased by 1" in message for message in b.log)


def test_triggers_of_fmi2_can_be_taken_back(instantiate: Instantiate) -> None:
    b = ball(instantiate, "fmi2", **BOTH, **{"left.x": -1.0, "right.x": 1.0, "left.v": 1.0})
    hit(b, "left", 1.0)
    assert b["v"] == 1.0
    hit(b, "right", 0.0)
    assert b["v"] == 0.0
    b["right.in"] = 0
    assert b["v"] == 1.0
    b["left.in"] = 0
    assert b["v"] == 0.0
    b.step(0.1)
    assert b["x"] == 0.0


def test_a_state_keeps_triggers_that_are_shown(instantiate: Instantiate) -> None:
    b = ball(instantiate, "fmi2", **BOTH, **{"left.x": -1.0, "right.x": 1.0, "left.v": 1.0})
    hit(b, "left", 1.0)
    assert b["v"] == 1.0
    state = b.fmu.getFMUState()
    hit(b, "right", 0.0)
    assert b["v"] == 0.0
    b.fmu.setFMUState(state)
    assert b["v"] == 1.0
    b.step(0.1)
    assert b["x"] == approx(0.1, rel=1e-14)
    b.fmu.freeFMUState(state)


@pytest.mark.parametrize("values", [{"m": 0.0}, {"left.m": -1.0}, {"w": -1.0}, {"e": 1.1}])
def test_unusable_parameters_are_refused(
    instantiate: Instantiate, version: str, values: dict[str, Any]
) -> None:
    b = instantiate("CradleBall", version)
    with pytest.raises(FMICallException, match="ExitInitializationMode"):
        b.initialize(**values)
    assert "m must be positive, left.m, right.m and w not negative, e from 0 to 1." in b.log[-1]
