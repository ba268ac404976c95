"""The thermostat: a room and a controller, coupled here by hand."""

from __future__ import annotations

import math

import pytest
from fmpy.fmi1 import FMICallException
from pytest import approx
from reference_instance import Instance, Instantiate

EVENTS = {"eventModeUsed": True, "earlyReturnAllowed": True}
FIRST, COOLING, HEATING = (10 * math.log(r) for r in (10 / 9, 21 / 19, 11 / 9))


def switch_times(stop: float) -> list[float]:
    """Exact times of the switches, off and on in turn."""
    times, t, k = [], FIRST, 0
    while t <= stop:
        times.append(t)
        t += (COOLING, HEATING)[k % 2]
        k += 1
    return times


def update(*fmus: Instance) -> bool:
    """One event iteration; FMI 3.0."""
    again = [fmu.update().again for fmu in fmus]  # of all, whatever the first says
    return any(again)


def test_in_event_mode_every_switch_is_exact(instantiate: Instantiate) -> None:
    room = instantiate("ThermostatRoom", "fmi3", **EVENTS).initialize()
    controller = instantiate("ThermostatController", "fmi3", **EVENTS).initialize()
    update(room, controller)
    for fmu in (room, controller):
        fmu.fmu.enterStepMode()
    switches, t, k = [], 0.0, 0
    while k < 600:
        controller["x"] = room["x"]
        event, _, early, t = room.fmu.doStep(t, (k + 1) / 10 - t)
        controller.fmu.doStep(controller.time, t - controller.time)
        controller.time = t
        k += not early
        if not event:
            continue
        assert room["x"] in (21.0, 19.0)
        for fmu in (room, controller):
            fmu.fmu.enterEventMode()
        again = True
        while again:
            controller["x"] = room["x"]
            controller.activate("sample", room.active("crossing.out"))
            room["q"] = controller["q"]
            again = update(room, controller)
        assert room["crossing.z[1]"] == 2.0
        switches.append(t)
        for fmu in (room, controller):
            fmu.fmu.enterStepMode()
    assert len(switches) == 40
    assert switches == approx(switch_times(60.0), abs=1e-12)


def test_on_a_grid_the_controller_acts_at_communication_points(
    instantiate: Instantiate, version: str
) -> None:
    """hybrid.md 4: the controller sees x(t_k) and q acts from t_k on."""
    room = instantiate("ThermostatRoom", version).initialize()
    controller = instantiate("ThermostatController", version).initialize()
    switches, q, x, highest, lowest = [], True, 20.0, 20.0, 20.0
    for k in range(600):
        controller["x"] = room["x"]
        controller.fmu.doStep(k / 10, (k + 1) / 10 - k / 10)
        if controller["q"] != q:
            switches.append((k / 10, room["x"]))
            q = controller["q"]
        room["q"] = q
        room.fmu.doStep(k / 10, (k + 1) / 10 - k / 10)
        x = 30 * q + (x - 30 * q) * math.exp(-0.01)
        assert room["x"] == approx(x, rel=1e-12)
        highest, lowest = max(highest, room["x"]), min(lowest, room["x"])
    assert len(switches) == 36
    assert switches[:2] == [
        (1.1, approx(21.041658647, abs=1e-9)),
        (2.2, approx(18.849836079, abs=1e-9)),
    ]
    assert (highest, lowest) == approx((21.077550, 18.849836), abs=1e-6)


@pytest.mark.parametrize("x", [20.0, 20.3, 19.0000001, math.nextafter(21.0, 0.0)])
def test_the_room_stops_exactly_at_the_limit(instantiate: Instantiate, x: float) -> None:
    room = instantiate("ThermostatRoom", "fmi3", **EVENTS).initialize(x=x)
    room.update()
    room.fmu.enterStepMode()
    assert room.step(5.0)[:3] == (True, False, True)
    assert room.time == approx(10 * math.log((30 - x) / 9), abs=1e-13)
    assert (room["x"], room["crossing.z[1]"]) == (21.0, 0.0)
    assert room["crossing.dz[1]"] == -room["dx"] == approx(-0.9, rel=1e-15)
    room.fmu.enterEventMode()
    room.update()
    room.fmu.enterStepMode()
    assert room.step(5.0)[:3] == (False, False, False)  # the heating is still on: no second event


def test_without_early_return_the_room_counts_and_goes_on(instantiate: Instantiate) -> None:
    room = instantiate("ThermostatRoom", "fmi2").initialize()
    room.step(1.0)
    assert room["crossing.out"] == 0
    room.step(1.0)
    assert room["crossing.out"] == 1
    assert room["x"] == approx(30 - 10 * math.exp(-0.2), rel=1e-14)


def test_the_controller_acts_only_when_its_clock_ticks(instantiate: Instantiate) -> None:
    controller = instantiate("ThermostatController", "fmi3", **EVENTS).initialize(x=25.0)
    assert not controller.update().again
    assert controller["q"]
    controller.activate("sample")
    assert controller["q"]
    assert controller.update().again
    assert not controller["q"]
    assert not controller.update().again


def test_a_discrete_input_is_set_in_event_mode(instantiate: Instantiate) -> None:
    room = instantiate("ThermostatRoom", "fmi3", **EVENTS).initialize()
    room.update()
    room.fmu.enterStepMode()
    with pytest.raises(FMICallException, match="error"):
        room["q"] = False
    assert room.log[-1].endswith("'q' (value reference 1) cannot be set in Step Mode.")
    room.fmu.enterEventMode()
    room["q"] = False
    assert room["dx"] == -2.0


@pytest.mark.parametrize("model", ["ThermostatRoom", "ThermostatController"])
def test_limits_that_are_not_in_order_are_refused(
    instantiate: Instantiate, version: str, model: str
) -> None:
    fmu = instantiate(model, version)
    with pytest.raises(FMICallException, match="ExitInitializationMode"):
        fmu.initialize(lower=22.0)
    assert "lower is 22, upper is 21 degC." in fmu.log[-1]
